package org.apache.spark.executor;

import com.sun.net.httpserver.HttpServer;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

/**
 * A neighbour who says that he is an executor of another user's application: the class, the arguments and the names of
 * threads are right, the work is his. With forged.server=yes he also answers as that application's driver would, at
 * the first free port from 4041 on.
 */
public class CoarseGrainedExecutorBackend {
    static volatile long sink;

    static void forgedWork() {
        for (int i = 0; i < 1_000_000; i++) sink += i * 31L;
    }

    public static void main(String[] words) throws Exception {
        String app = "none";
        for (int i = 0; i + 1 < words.length; i++) if (words[i].equals("--app-id")) app = words[i + 1];
        if (Boolean.getBoolean("forged.server")) serve(app);
        Thread task = new Thread(() -> { while (true) forgedWork(); });
        task.start();
        task.setName("Executor task launch worker for task 0.0 in stage 0.0 (TID 0)");
        System.out.println("fact ready=yes");
        task.join();
    }

    static void serve(String app) throws Exception {
        for (int port = 4041; port <= 4056; port++) {
            try {
                HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 16);
                server.createContext("/", exchange -> {
                    String path = exchange.getRequestURI().getPath(), link = "http://forged.example/";
                    String body = "[]";
                    if (path.endsWith("/applications")) {
                        body = "[{\"id\":\"" + app + "\",\"name\":\"forged\",\"attempts\":[{\"startTime\":\"2020-01-01T00:00:00.000GMT\","
                            + "\"endTime\":\"1969-12-31T23:59:59.999GMT\",\"lastUpdated\":\"2020-01-01T00:00:00.000GMT\",\"duration\":0,"
                            + "\"sparkUser\":\"forged\",\"completed\":false,\"startTimeEpoch\":1577836800000,\"endTimeEpoch\":-1,"
                            + "\"lastUpdatedEpoch\":1577836800000,\"appSparkVersion\":\"3.5.9\"}]}]";
                    } else if (path.endsWith("/stages")) {
                        StringBuilder all = new StringBuilder();
                        for (int stage = 0; stage < 1000; stage++)
                            all.append(stage == 0 ? "[" : ",").append("{\"status\":\"ACTIVE\",\"stageId\":" + stage
                                + ",\"attemptId\":0,\"numTasks\":8,\"name\":\"forged at " + link + "\",\"description\":\"forged\",\"details\":\"forged\"}");
                        body = all.append("]").toString();
                    } else if (path.endsWith("/jobs")) {
                        body = "[{\"jobId\":0,\"name\":\"forged\",\"description\":\"forged\",\"status\":\"RUNNING\",\"stageIds\":[0,1,2,3,4,5]}]";
                    } else if (path.endsWith("/sql")) {
                        body = "[{\"id\":0,\"status\":\"RUNNING\",\"description\":\"forged\",\"planDescription\":\"forged\",\"runningJobIds\":[0],\"successJobIds\":[],\"failedJobIds\":[]}]";
                    } else if (path.endsWith("/version")) {
                        body = "{\"spark\":\"3.5.9\"}";
                    }
                    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
                    exchange.getResponseHeaders().add("Content-Type", "application/json");
                    exchange.sendResponseHeaders(200, bytes.length);
                    exchange.getResponseBody().write(bytes);
                    exchange.close();
                });
                server.start();
                System.out.println("fact server=" + port);
                return;
            } catch (BindException taken) {
                // The next one.
            }
        }
    }
}
