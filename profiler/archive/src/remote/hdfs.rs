//! HDFS by its own protocol: its client, what it needs that an object store does not, and its errors in words.
//!
//! In: an authority (`namenode:port`, a nameservice, or none for the default file system), `HADOOP_CONF_DIR`,
//! `HADOOP_USER_NAME`. Out: a store whose objects are files: written under a name with a dot, then renamed, so that a
//! file is whole or not there. Directories come by themselves; [`Remote::clear_dirs`] takes the empty ones.
//!
//! Limits: the client has no limit of time for a request, so [`Remote::within`] sets one. It fails over and waits by
//! itself; here it may do that a few times only.

use super::Remote;
use hdfs_native_object_store::{HdfsObjectStore, HdfsObjectStoreBuilder};
use object_store::{Error, ObjectStoreExt, Result};
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Where credentials are looked for. A program with the C library inside loads no library, that of Kerberos neither.
pub(super) const MEND: &str = if cfg!(target_feature = "crt-static") {
    "Set HADOOP_USER_NAME to a user who may write there; where HDFS wants Kerberos, use a program that `./x build` made: this one \
     is linked statically, and cannot load libgssapi_krb5.so.2."
} else {
    "Set HADOOP_USER_NAME to a user who may write there; where HDFS wants Kerberos, set HADOOP_CONF_DIR to the directory of \
     core-site.xml and have a ticket (kinit, KRB5CCNAME)."
};

/// The port of a namenode where the URL has none and the name is no nameservice's (`dfs.namenode.rpc-address`).
const PORT: u16 = 8020;
/// Longest that one request may take.
const REQUEST: Duration = Duration::from_secs(60);
/// Over what the configuration files say: other namenodes and waits for a second (15 attempts take minutes, and a
/// question of the archive is several requests; who asks here asks again by himself), and time to read from another
/// datanode when one does not answer.
const OURS: [(&str, &str); 4] = [
    ("dfs.client.failover.max.attempts", "3"),
    ("dfs.client.failover.sleep.base.millis", "100"),
    ("dfs.client.failover.sleep.max.millis", "400"),
    ("dfs.client.socket-timeout", "10000"),
];

/// The client's connections live here: those who ask come and go with runtimes of their own.
static IO: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| {
    // To Linux a priority is a thread's.
    let last = || {
        emberscope_supervise::rights::keep_only("hdfs");
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 10);
    };
    Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("hdfs")
        .on_thread_start(last)
        .enable_all()
        .build()
});

fn failed(says: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: "HDFS", source: says.into() }
}

/// The client. Nothing is asked of a namenode yet.
pub(super) fn open(authority: &str) -> Result<HdfsObjectStore> {
    let io: Handle = match &*IO {
        Ok(runtime) => runtime.handle().clone(),
        Err(error) => return Err(failed(error.to_string())),
    };
    let build = |authority: &str| {
        let builder = HdfsObjectStoreBuilder::new().with_url(format!("hdfs://{authority}/"));
        builder.with_config(OURS).with_io_runtime(io.clone()).build()
    };
    match build(authority) {
        // No nameservice of the configuration: a host, as Hadoop's own clients take it.
        Err(_) if !authority.is_empty() && !authority.contains(':') => build(&format!("{authority}:{PORT}")),
        Err(error) if authority.is_empty() => Err(failed(format!(
            "without a namenode it is the fs.defaultFS of core-site.xml in HADOOP_CONF_DIR: {error}"
        ))),
        other => other,
    }
}

/// Whether it refuses who asks, by the names of Java's exceptions and the client's own.
pub(super) fn refuses(says: &str) -> bool {
    let texts = [
        "AccessControlException",
        "AuthorizationException",
        "InvalidToken",
        "SaslException",
        "GSSAPI error",
        "SASL error",
        "No valid SASL mechanism",
        "libgssapi",
    ];
    texts.iter().any(|text| says.contains(text))
}

/// What to mend, where it is known.
pub(super) fn mend(says: &str) -> Option<&'static str> {
    const MENDS: [(&str, &str); 6] = [
        (
            "SafeModeException",
            "HDFS takes no writes in safe mode, which it leaves when its datanodes have reported: see `hdfs dfsadmin \
             -safemode get`.",
        ),
        (
            "StandbyException",
            "This namenode is not the active one: write the nameservice's name in its place, and set HADOOP_CONF_DIR to \
             the directory of hdfs-site.xml.",
        ),
        (
            "failed to lookup address",
            "There is no such host: write the namenode's, or a nameservice's name with HADOOP_CONF_DIR set to the \
             directory of hdfs-site.xml.",
        ),
        (
            "Connection refused",
            "No namenode, or no datanode that has the data, listens there: see `hdfs getconf -confKey fs.defaultFS` and \
             `hdfs dfsadmin -report`.",
        ),
        (
            "RPC listener disconnected",
            "The namenode closed the connection: it is no namenode's RPC port, it is stopping, or it wants Kerberos \
             (HADOOP_CONF_DIR with core-site.xml).",
        ),
        ("QuotaExceededException", "The directory's quota is used up: raise it, or remove old hours."),
    ];
    MENDS.iter().find(|(text, _)| says.contains(text)).map(|(_, mend)| *mend)
}

impl Remote {
    /// The answer to a request. Over HDFS with a limit of time; other stores' clients have their own.
    ///
    /// # Errors
    /// The request's own, or one that says that there was no answer within [`REQUEST`].
    pub(super) async fn within<T>(&self, asked: impl Future<Output = Result<T>>) -> Result<T> {
        if !self.hdfs {
            return asked.await;
        }
        let late = |_| failed(format!("it did not answer within {} s", REQUEST.as_secs()));
        tokio::time::timeout(REQUEST, asked).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
    }

    /// Removes the directories above what was deleted, as far as they are empty: lists walk through all there are.
    pub(super) async fn clear_dirs(&self, name: &str) {
        let mut left = name;
        while let Some((dir, _)) = left.rsplit_once('/') {
            // One that is not empty is refused.
            if self.within(self.store.delete(&self.key(dir))).await.is_err() {
                break;
            }
            left = dir;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namenode_is_a_host_with_or_without_a_port() {
        for url in ["hdfs://namenode:9000/profiles", "hdfs://namenode/profiles"] {
            let remote = Remote::open(url, false).unwrap();
            assert_eq!((remote.url(), remote.root.as_str(), remote.hdfs), (url, "profiles", true));
        }
        let error = Remote::open("hdfs://namenode:x/y", false).unwrap_err().to_string();
        assert!(error.contains("invalid port") && error.contains("hdfs://NAMENODE:PORT/PATH"), "{error}");
    }

    #[test]
    fn what_a_namenode_says_is_told_with_the_mend() {
        let remote = Remote::open("hdfs://namenode:9000/x", false).unwrap();
        for (says, slug, mend) in [
            (
                "RPC error: org.apache.hadoop.security.AccessControlException Permission denied: user=x",
                "denied",
                "HADOOP_USER_NAME",
            ),
            ("No valid SASL mechanism found", "denied", "kinit"),
            (
                "RPC error: org.apache.hadoop.hdfs.server.namenode.SafeModeException Cannot create /x",
                "failed",
                "safe mode",
            ),
            (
                "IO error occurred while communicating with HDFS: Connection refused (os error 111)",
                "failed",
                "dfsadmin",
            ),
            (
                "RPC error: org.apache.hadoop.ipc.StandbyException not supported in state standby",
                "failed",
                "nameservice",
            ),
        ] {
            let error = remote.error("write", "v1/a", &failed(says));
            assert_eq!(error.slug(), slug, "{error}");
            let told = error.to_string();
            assert!(
                told.contains(mend) && told.contains(says) && told.contains("hdfs://namenode:9000/x"),
                "{told}"
            );
        }
    }

    #[test]
    fn nobody_who_listens_is_an_error_within_seconds() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let remote = Remote::open(&format!("hdfs://127.0.0.1:{port}/x"), false).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let error = runtime.block_on(remote.get("v1/a", 10)).unwrap_err();
        assert_eq!(error.slug(), "failed", "{error}");
        assert!(error.to_string().contains("listens there"), "{error}");
    }
}
