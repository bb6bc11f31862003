//! The client of an object store, by the URL's scheme.
//!
//! In: a URL, and the usual environment for credentials and endpoints. Out: a [`Remote`], of which nothing was asked yet.

use super::error::{RemoteError, cause};
use super::{Remote, hdfs};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest that one request may take.
const REQUEST: Duration = Duration::from_secs(60);
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Where each store's credentials are looked for.
const MEND_S3: &str = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_ENDPOINT_URL, where it is not Amazon's), or \
    give the machine a role.";
const MEND_GS: &str =
    "Set GOOGLE_APPLICATION_CREDENTIALS to a key file, or give the machine a service account.";
const MEND_AZURE: &str =
    "Set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or give the machine an identity.";

/// Whether an endpoint of the environment is without TLS: who writes http:// there means it.
fn plain(names: &[&str]) -> bool {
    names.iter().any(|name| std::env::var(name).is_ok_and(|url| url.starts_with("http://")))
}

impl Remote {
    /// Opens an archive by its URL. Nothing is asked of it yet; a directory is made where `make` says so.
    ///
    /// # Errors
    /// [`RemoteError::Url`]: the text is no URL of a known scheme, names no bucket, or its client cannot be made (an
    /// environment variable that makes no sense, a directory that is not there and cannot be made).
    pub fn open(url: &str, make: bool) -> Result<Self, RemoteError> {
        // The first provider of a process stays; all who ask here ask for the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let refused = |says: String| RemoteError::Url { url: url.to_owned(), says };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refused("this is no URL".to_owned()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let says = |error: object_store::Error| refused(cause(&error));
        if !matches!(scheme, "file" | "hdfs") && bucket.is_empty() {
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
                let builder =
                    AmazonS3Builder::from_env().with_url(format!("s3://{bucket}")).with_retry(retry);
                let builder = (client.into_iter())
                    .fold(builder, |b, (key, value)| b.with_config(AmazonS3ConfigKey::Client(key), value));
                let http = plain(&["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"]);
                let builder = if http { builder.with_allow_http(true) } else { builder };
                (Arc::new(builder.build().map_err(says)?), MEND_S3)
            }
            "gs" => {
                let builder = GoogleCloudStorageBuilder::from_env()
                    .with_url(format!("gs://{bucket}"))
                    .with_retry(retry);
                let builder = (client.into_iter())
                    .fold(builder, |b, (key, value)| b.with_config(GoogleConfigKey::Client(key), value));
                (Arc::new(builder.build().map_err(says)?), MEND_GS)
            }
            "abfs" | "abfss" | "az" => {
                let builder = MicrosoftAzureBuilder::from_env()
                    .with_url(format!("{scheme}://{bucket}"))
                    .with_retry(retry);
                let builder = (client.into_iter())
                    .fold(builder, |b, (key, value)| b.with_config(AzureConfigKey::Client(key), value));
                let http = plain(&["AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"]);
                let builder = if http { builder.with_allow_http(true) } else { builder };
                (Arc::new(builder.build().map_err(says)?), MEND_AZURE)
            }
            "hdfs" => (Arc::new(hdfs::open(bucket).map_err(says)?), hdfs::MEND),
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
                    hdfs: false,
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
            hdfs: scheme == "hdfs",
            #[cfg(test)]
            changes: None,
        })
    }
}
