import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStream;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * YarnServer DIRECTORY MEBIBYTES: a resource manager and a node manager that may give so much memory to containers, which
 * are processes of their own. DIRECTORY gets the configuration that a client needs.
 */
public class YarnServer {
    public static void main(String[] args) throws Exception {
        YarnConfiguration conf = new YarnConfiguration();
        conf.set("yarn.nodemanager.vmem-check-enabled", "false");
        conf.set("yarn.nodemanager.pmem-check-enabled", "false");
        // On a disk that is nine tenths full it would use none.
        conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "100");
        conf.set("yarn.nodemanager.disk-health-checker.min-free-space-per-disk-mb", "0");
        conf.set("yarn.scheduler.minimum-allocation-mb", "256");
        conf.set("yarn.minicluster.yarn.nodemanager.resource.memory-mb", args[1]);
        conf.set("yarn.scheduler.capacity.root.queues", "default");
        conf.set("yarn.scheduler.capacity.root.default.capacity", "100");
        conf.set("yarn.scheduler.capacity.root.default.maximum-capacity", "100");
        conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "0.9");
        MiniYARNCluster cluster = new MiniYARNCluster("mini", 1, 1, 1);
        cluster.init(conf);
        cluster.start();
        cluster.waitForNodeManagersToConnect(60000);
        try (OutputStream out = new FileOutputStream(new File(args[0], "yarn-site.xml"))) {
            cluster.getConfig().writeXml(out);
        }
        System.out.println("fact ready=yes");
        System.out.flush();
        Thread.sleep(Long.MAX_VALUE);
    }
}
