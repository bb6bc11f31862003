import java.io.File;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * HdfsServer PORT DIRECTORY PATH USER: a namenode on that port of loopback and a datanode, over what DIRECTORY has
 * already. PATH belongs to USER, and nobody else may look into it.
 */
public class HdfsServer {
    public static void main(String[] args) throws Exception {
        File name = new File(args[1], "name-0-1/current/VERSION");
        HdfsConfiguration conf = new HdfsConfiguration();
        conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, args[1]);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf)
            .nameNodePort(Integer.parseInt(args[0]))
            .numDataNodes(1)
            .format(!name.exists())
            .build();
        cluster.waitClusterUp();
        FileSystem files = cluster.getFileSystem();
        Path path = new Path(args[2]);
        files.mkdirs(path);
        files.setOwner(path, args[3], args[3]);
        files.setPermission(path, new FsPermission((short) 0700));
        System.out.println("fact ready=yes");
        System.out.flush();
        Thread.sleep(Long.MAX_VALUE);
    }
}
