//! Why an object store did not do what was asked, in words that say what to mend.

use super::{Remote, hdfs};

/// Characters of a cause that are shown: servers answer with pages.
const MAX_CAUSE: usize = 400;

/// Why the object store did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The URL is none that is known.
    #[error(
        "{url}: {says}; an archive is s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, \
             abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX, hdfs://NAMENODE:PORT/PATH or file:///DIRECTORY"
    )]
    Url {
        /// The text that was given as the URL.
        url: String,
        /// What is wrong with it.
        says: String,
    },
    /// The store refuses who asks.
    #[error(
        "{url} refuses to {what}: the credentials are missing, wrong, or not allowed to. {mend} It says: {says}"
    )]
    Denied {
        /// URL of the store.
        url: String,
        /// A verb and the object's name: `write v1/…`.
        what: String,
        /// Where credentials are looked for.
        mend: &'static str,
        /// The client's error with its causes, cut off.
        says: String,
    },
    /// The object, or the bucket, is not there.
    #[error("{url} cannot {what}: there is no such object or bucket. It says: {says}")]
    Missing {
        /// URL of the store.
        url: String,
        /// A verb and the object's name: `write v1/…`.
        what: String,
        /// The client's error with its causes, cut off.
        says: String,
    },
    /// Anything else: away, slow, full.
    #[error("{url} cannot {what}: {says}")]
    Failed {
        /// URL of the store.
        url: String,
        /// A verb and the object's name: `write v1/…`.
        what: String,
        /// The cause: the client's error, or this machine's.
        says: String,
    },
}

impl RemoteError {
    /// A word of a closed list, for counters.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Url { .. } => "url",
            Self::Denied { .. } => "denied",
            Self::Missing { .. } => "missing",
            Self::Failed { .. } => "failed",
        }
    }
}

/// Why an object is not a file here.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The object store refuses, or does not answer.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// This machine's disk: the file cannot be made or written.
    #[error("{0}")]
    Disk(std::io::Error),
}

impl Remote {
    /// Whether an error is one object's, and not the store's: it has too many bytes, or it is refused while lists are given (it
    /// must be restored or needs a key of its writer's). Costs a list where it is refused.
    pub(crate) async fn is_of_object(&self, error: &RemoteError) -> bool {
        let refused = match error {
            RemoteError::Failed { says, .. } if says.starts_with("it has more than") => return true,
            RemoteError::Failed { says, .. } => says.contains("status code: 400"),
            RemoteError::Denied { .. } => true,
            RemoteError::Url { .. } | RemoteError::Missing { .. } => false,
        };
        refused && self.dirs("v1").await.is_ok()
    }

    /// What an error of the client means.
    pub(super) fn error(&self, what: &str, name: &str, error: &object_store::Error) -> RemoteError {
        let (url, what, whole) = (self.url.clone(), format!("{what} {name}"), whole(error));
        let says: String = whole.chars().take(MAX_CAUSE).collect();
        let has = |texts: &[&str]| texts.iter().any(|text| whole.contains(text));
        // What a list is refused with is known by the answer's text alone.
        let refused = has(&["status code: 403", "status code: 401"]) || self.hdfs && hdfs::refuses(&whole);
        let mend = if self.hdfs { hdfs::mend(&whole) } else { None };
        // Without credentials of its own the client asks the machine for some, at this address of all clouds.
        let nobody = has(&["169.254.169.254", "metadata.google.internal"]);
        match error {
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                RemoteError::Denied { url, what, mend: self.mend, says }
            }
            _ if refused || nobody => RemoteError::Denied { url, what, mend: self.mend, says },
            object_store::Error::NotFound { .. } => RemoteError::Missing { url, what, says },
            _ if has(&["status code: 404"]) => RemoteError::Missing { url, what, says },
            _ => {
                let says = mend.map(|mend| format!("{mend} It says: {says}")).unwrap_or(says);
                RemoteError::Failed { url, what, says }
            }
        }
    }
}

/// What is shown of an error and its causes.
pub(super) fn cause(error: &object_store::Error) -> String {
    whole(error).chars().take(MAX_CAUSE).collect()
}

/// An error with its causes, in one line.
fn whole(error: &object_store::Error) -> String {
    let mut says = error.to_string();
    let mut inner = std::error::Error::source(error);
    while let Some(error) = inner {
        let more = error.to_string();
        if !says.contains(&more) {
            says = format!("{says}: {more}");
        }
        inner = error.source();
    }
    says.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_refuses_is_known_by_its_answer() {
        let remote = Remote::open("s3://bucket/x", false).unwrap();
        let of = |says: &str| {
            let source = format!("Error performing list request: {says}").into();
            remote.error("list", "v1", &object_store::Error::Generic { store: "S3", source })
        };
        for (says, slug) in [
            ("Server returned non-2xx status code: 403 Forbidden: SignatureDoesNotMatch", "denied"),
            ("Server returned non-2xx status code: 401 Unauthorized", "denied"),
            ("Error performing PUT http://169.254.169.254/latest/api/token", "denied"),
            ("Server returned non-2xx status code: 404 Not Found: NoSuchBucket", "missing"),
            ("tcp connect error: Connection refused", "failed"),
        ] {
            let error = of(says);
            assert_eq!(error.slug(), slug, "{error}");
            assert!(
                error.to_string().contains("s3://bucket/x") && error.to_string().contains(says),
                "{error}"
            );
        }
        assert!(of("status code: 403").to_string().contains("AWS_ACCESS_KEY_ID"));
    }
}
