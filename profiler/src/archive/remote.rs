//! An object store by its URL: put, get, list and delete by name, with errors that say what to do.
//!
//! In: `s3://`, `gs://`, `abfs://` or `file://` with a bucket and a prefix; credentials and endpoints from the usual
//! environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`). Out: bytes by name below the prefix. Requests have a limit of time and
//! few tries of their own: who asks waits and asks again.
//!
//! Limits: [`REQUEST`] a request, [`PART`] bytes of a file in memory.

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{
    ClientConfigKey, GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt, RetryConfig,
};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest that one request may take.
const REQUEST: Duration = Duration::from_secs(60);
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// What is sent at once of a large file. S3 wants 5 MiB at least.
const PART: usize = 8 << 20;
/// Characters of a cause that are shown: servers answer with pages.
const MAX_CAUSE: usize = 400;

/// Schemes of URLs, as users write them.
pub const SCHEMES: [&str; 7] = ["s3", "s3a", "gs", "abfs", "abfss", "az", "file"];

/// Why the object store did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The URL is none that is known.
    #[error(
        "{url}: {says}; an archive is s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, \
             abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX or file:///DIRECTORY"
    )]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        says: String,
    },
    /// It refuses who asks.
    #[error(
        "{url} refuses to {what}: the credentials are missing, wrong, or not allowed to. {mend} It says: {says}"
    )]
    Denied {
        /// Which store.
        url: String,
        /// What was asked.
        what: String,
        /// Where credentials are looked for.
        mend: &'static str,
        /// What it says.
        says: String,
    },
    /// The object, or the bucket, is not there.
    #[error("{url} cannot {what}: there is no such object or bucket. It says: {says}")]
    Missing {
        /// Which store.
        url: String,
        /// What was asked.
        what: String,
        /// What it says.
        says: String,
    },
    /// Anything else: away, slow, full.
    #[error("{url} cannot {what}: {says}")]
    Failed {
        /// Which store.
        url: String,
        /// What was asked.
        what: String,
        /// What it says.
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
    /// The object store.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// This machine's disk.
    #[error("{0}")]
    Disk(std::io::Error),
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// Below the prefix.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// When it was put, milliseconds since the Unix epoch.
    pub put_ms: i64,
}

/// An object store below a prefix.
#[derive(Clone, Debug)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    root: String,
    url: String,
    mend: &'static str,
    /// Changes after which all fail, for tests of broken off copies.
    #[cfg(test)]
    pub(super) changes: Option<Arc<std::sync::atomic::AtomicI64>>,
}

impl Remote {
    /// Opens an archive by its URL. Nothing is asked of it yet; a directory is made where `make` says so.
    pub fn open(url: &str, make: bool) -> Result<Self, RemoteError> {
        // The first provider of a process stays; all who ask here ask for the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let refused = |says: String| RemoteError::Url { url: url.to_owned(), says };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refused("this is no URL".to_owned()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let says = |error: object_store::Error| refused(cause(&error).chars().take(MAX_CAUSE).collect());
        if scheme != "file" && bucket.is_empty() {
            return Err(refused("it names no bucket".to_owned()));
        }
        let retry =
            RetryConfig { max_retries: 2, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() };
        let client = [
            (ClientConfigKey::Timeout, format!("{} seconds", REQUEST.as_secs())),
            (ClientConfigKey::ConnectTimeout, format!("{} seconds", CONNECT.as_secs())),
        ];
        let (store, mend): (Arc<dyn ObjectStore>, _) = match scheme {
            "s3" | "s3a" => {
                let plain = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"];
                let http =
                    plain.iter().any(|name| std::env::var(name).is_ok_and(|url| url.starts_with("http://")));
                let builder =
                    AmazonS3Builder::from_env().with_url(format!("s3://{bucket}")).with_retry(retry);
                let builder = (client.into_iter())
                    .fold(builder, |b, (key, value)| b.with_config(AmazonS3ConfigKey::Client(key), value));
                let store =
                    if http { builder.with_allow_http(true) } else { builder }.build().map_err(says)?;
                (
                    Arc::new(store),
                    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_ENDPOINT_URL, where it is not \
                                   Amazon's), or give the machine a role.",
                )
            }
            "gs" => {
                let builder = GoogleCloudStorageBuilder::from_env()
                    .with_url(format!("gs://{bucket}"))
                    .with_retry(retry);
                let builder = (client.into_iter())
                    .fold(builder, |b, (key, value)| b.with_config(GoogleConfigKey::Client(key), value));
                (
                    Arc::new(builder.build().map_err(says)?),
                    "Set GOOGLE_APPLICATION_CREDENTIALS to a key file, or give \
                                                            the machine a service account.",
                )
            }
            "abfs" | "abfss" | "az" => {
                let builder = MicrosoftAzureBuilder::from_env()
                    .with_url(format!("{scheme}://{bucket}"))
                    .with_retry(retry);
                let builder = (client.into_iter())
                    .fold(builder, |b, (key, value)| b.with_config(AzureConfigKey::Client(key), value));
                (
                    Arc::new(builder.build().map_err(says)?),
                    "Set AZURE_STORAGE_ACCOUNT_NAME and \
                                                            AZURE_STORAGE_ACCOUNT_KEY, or give the machine an identity.",
                )
            }
            "file" => {
                let dir = Path::new("/").join(prefix);
                if !bucket.is_empty() || prefix.is_empty() {
                    return Err(refused("a directory is written with three slashes".to_owned()));
                }
                if make {
                    std::fs::create_dir_all(&dir).map_err(|error| refused(error.to_string()))?;
                }
                let store = LocalFileSystem::new_with_prefix(&dir).map_err(says)?;
                let mend = "The daemon's user must be able to write there.";
                return Ok(Self {
                    store: Arc::new(store.with_automatic_cleanup(true)),
                    root: String::new(),
                    url: url.to_owned(),
                    mend,
                    #[cfg(test)]
                    changes: None,
                });
            }
            other => return Err(refused(format!("{other}:// is not known"))),
        };
        let root = prefix.trim_matches('/').to_owned();
        Ok(Self {
            store,
            root,
            url: url.trim_end_matches('/').to_owned(),
            mend,
            #[cfg(test)]
            changes: None,
        })
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Fails when a test says so.
    fn allow(&self, _name: &str) -> Result<(), RemoteError> {
        #[cfg(test)]
        if let Some(left) = &self.changes
            && left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) <= 0
        {
            let (url, says) = (self.url.clone(), "broken off".to_owned());
            return Err(RemoteError::Failed { url, what: format!("write {_name}"), says });
        }
        Ok(())
    }

    /// Puts an object, over one of that name.
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), RemoteError> {
        self.allow(name)?;
        let done = self.store.put(&self.key(name), bytes.into()).await;
        done.map(|_| ()).map_err(|error| self.error("write", name, &error))
    }

    /// Puts a file, part by part where it is large: it is there as a whole or not at all.
    pub async fn put_file(&self, name: &str, path: &Path) -> Result<u64, RemoteError> {
        let local = |error: std::io::Error| RemoteError::Failed {
            url: self.url.clone(),
            what: format!("be given {}", path.display()),
            says: error.to_string(),
        };
        let mut file = File::open(path).map_err(local)?;
        let first = chunk(&mut file).map_err(local)?;
        let mut bytes = first.len() as u64;
        if first.len() < PART {
            return self.put(name, first).await.map(|()| bytes);
        }
        let failed = |error: &object_store::Error| self.error("write", name, error);
        let mut upload = self.store.put_multipart(&self.key(name)).await.map_err(|error| failed(&error))?;
        let mut next = first;
        while !next.is_empty() {
            if let Err(error) = upload.put_part(next.into()).await {
                // What it keeps of the parts its own rules remove, where this is not heard.
                let _ = upload.abort().await;
                return Err(failed(&error));
            }
            next = chunk(&mut file).map_err(local)?;
            bytes += next.len() as u64;
        }
        upload.complete().await.map(|_| bytes).map_err(|error| failed(&error))
    }

    /// An object's bytes, at most that many. None: it is not there.
    pub async fn get(&self, name: &str, most: u64) -> Result<Option<Bytes>, RemoteError> {
        let options =
            GetOptions { range: Some(GetRange::Bounded(0..most.saturating_add(1))), ..GetOptions::default() };
        let read = match self.store.get_opts(&self.key(name), options).await {
            Ok(result) => result.bytes().await,
            Err(error) => Err(error),
        };
        match read {
            Ok(bytes) if bytes.len() as u64 > most => Err(RemoteError::Failed {
                url: self.url.clone(),
                what: format!("give {name}"),
                says: format!("it has more than {most} bytes"),
            }),
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.error("give", name, &error)),
        }
    }

    /// Writes an object into a file, chunk by chunk: its bytes and CRC-32, at most a byte more than `most`. None: it is
    /// not there.
    pub async fn download(
        &self,
        name: &str,
        path: &Path,
        most: u64,
    ) -> Result<Option<(u64, u32)>, DownloadError> {
        let failed = |error: &object_store::Error| DownloadError::Remote(self.error("give", name, error));
        let mut chunks = match self.store.get(&self.key(name)).await {
            Ok(result) => result.into_stream(),
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let mut file = File::create_new(path).map_err(DownloadError::Disk)?;
        let (mut bytes, mut sum) = (0, crc32fast::Hasher::new());
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| failed(&error))?;
            bytes += chunk.len() as u64;
            sum.update(&chunk);
            if bytes > most {
                break;
            }
            file.write_all(&chunk).map_err(DownloadError::Disk)?;
        }
        Ok(Some((bytes, sum.finalize())))
    }

    /// All objects below a name, at most that many.
    pub async fn list(&self, below: &str, most: usize) -> Result<Vec<Object>, RemoteError> {
        let key = self.key(below);
        let mut stream = self.store.list(Some(&key));
        let mut all = Vec::new();
        while let Some(next) = stream.next().await {
            let meta = next.map_err(|error| self.error("list", below, &error))?;
            if all.len() >= most {
                return Err(RemoteError::Failed {
                    url: self.url.clone(),
                    what: format!("be read: {below} has more than {most} objects"),
                    says: "narrow the time range, or run `emberscope compact`".to_owned(),
                });
            }
            if let Some(name) = self.name(meta.location.as_ref()) {
                all.push(Object { name, bytes: meta.size, put_ms: meta.last_modified.timestamp_millis() });
            }
        }
        all.sort();
        Ok(all)
    }

    /// The names of what is directly below a name and has more below it.
    pub async fn dirs(&self, below: &str) -> Result<Vec<String>, RemoteError> {
        let listed = self.store.list_with_delimiter(Some(&self.key(below))).await;
        let listed = listed.map_err(|error| self.error("list", below, &error))?;
        let last = |key: &Key| key.filename().map(str::to_owned);
        let mut all: Vec<String> = listed.common_prefixes.iter().filter_map(last).collect();
        all.sort();
        Ok(all)
    }

    /// Deletes an object; one that is not there is deleted already.
    pub async fn delete(&self, name: &str) -> Result<(), RemoteError> {
        self.allow(name)?;
        match self.store.delete(&self.key(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error("delete", name, &error)),
        }
    }

    fn key(&self, name: &str) -> Key {
        match self.root.is_empty() {
            true => Key::from(name),
            false => Key::from(format!("{}/{name}", self.root)),
        }
    }

    fn name(&self, key: &str) -> Option<String> {
        let root = Key::from(self.root.as_str());
        let rest = key.strip_prefix(root.as_ref())?;
        Some(rest.trim_start_matches('/').to_owned())
    }

    fn error(&self, what: &str, name: &str, error: &object_store::Error) -> RemoteError {
        let (url, what, whole) = (self.url.clone(), format!("{what} {name}"), cause(error));
        let says: String = whole.chars().take(MAX_CAUSE).collect();
        let has = |texts: &[&str]| texts.iter().any(|text| whole.contains(text));
        // What a list is refused with is known by the answer's text alone.
        let refused = has(&["status code: 403", "status code: 401"]);
        // Without credentials of its own the client asks the machine for some, at this address of all clouds.
        let nobody = has(&["169.254.169.254", "metadata.google.internal"]);
        match error {
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                RemoteError::Denied { url, what, mend: self.mend, says }
            }
            _ if refused || nobody => RemoteError::Denied { url, what, mend: self.mend, says },
            object_store::Error::NotFound { .. } => RemoteError::Missing { url, what, says },
            _ if has(&["status code: 404"]) => RemoteError::Missing { url, what, says },
            _ => RemoteError::Failed { url, what, says },
        }
    }
}

fn chunk(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(PART as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An error with its causes, in one line.
fn cause(error: &object_store::Error) -> String {
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
