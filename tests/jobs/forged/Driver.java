package org.apache.spark.deploy;

import com.sun.net.httpserver.HttpServer;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

// A lookalike of a driver in local mode, whose web server answers for the application in the environment variable
// FORGED: another name, another user, stages with links elsewhere.
class SparkSubmit {
    public static void main(String[] args) throws Exception {
        String app = System.getenv("FORGED");
        HttpServer server = null;
        for (int port = 4041; server == null; port++) {
            try {
                server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
            } catch (BindException taken) {
                if (port == 4056) {
                    throw taken;
                }
            }
        }
        server.createContext("/", exchange -> {
            String told = "{\"id\":\"" + app + "\",\"name\":\"forged\",\"attempts\":[{\"sparkUser\":\"forged\",\"completed\":false}]}";
            String path = exchange.getRequestURI().getPath();
            String stage = "{\"stageId\":0,\"attemptId\":0,\"status\":\"ACTIVE\",\"name\":\"http://forged/\",\"numTasks\":1}";
            String body = path.endsWith("/stages") ? "[" + stage + "]" : path.endsWith("/applications") ? "[" + told + "]" : told;
            byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, bytes.length);
            exchange.getResponseBody().write(bytes);
            exchange.close();
        });
        server.start();
        System.out.println("fact port=" + server.getAddress().getPort());
        while (true) {
            busy();
        }
    }

    static long busy() {
        long sum = 0;
        for (int i = 0; i < 1_000_000; i++) {
            sum = sum * 31 + i;
        }
        return sum;
    }
}
