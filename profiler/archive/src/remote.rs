//! An object store by its URL: put, get, list and delete by name, with errors that say what to do.
//!
//! In: `s3://`, `gs://`, `abfs://`, `hdfs://` or `file://` with a bucket and a prefix; credentials and endpoints from the
//! usual environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`, `HADOOP_*`). Out: bytes by name below the prefix. Requests have a
//! limit of time and few tries of their own: who asks waits and asks again.
//!
//! Limits: a minute a request (`open`), [`PART`] bytes of a file in memory.

mod error;
mod hdfs;
mod open;

use bytes::Bytes;
pub use error::{DownloadError, RemoteError};
use futures_util::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// What is sent at once of a large file. S3 wants 5 MiB at least.
const PART: usize = 8 << 20;

/// An object in a list, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// The object's name below the prefix.
    pub name: String,
    /// The object's length.
    pub bytes: u64,
    /// When it was put, milliseconds since the Unix epoch.
    pub put_ms: i64,
}

impl Object {
    fn of(name: String, meta: &ObjectMeta) -> Self {
        Self { name, bytes: meta.size, put_ms: meta.last_modified.timestamp_millis() }
    }
}

/// An object store below a prefix.
#[derive(Clone, Debug)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    root: String,
    url: String,
    mend: &'static str,
    /// Whether names are files in directories, and the client sets no limit of time.
    hdfs: bool,
    /// Changes after which all fail, for tests of broken off copies.
    #[cfg(test)]
    pub(super) changes: Option<Arc<std::sync::atomic::AtomicI64>>,
}

impl Remote {
    /// The URL by which it was opened.
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
    ///
    /// # Errors
    /// [`RemoteError::Denied`], [`RemoteError::Missing`] (no such bucket) or [`RemoteError::Failed`]. Whether the
    /// object is there then is not known; one of that name is whole, the old or the new.
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), RemoteError> {
        self.allow(name)?;
        let done = self.within(self.store.put(&self.key(name), bytes.into())).await;
        done.map(|_| ()).map_err(|error| self.error("write", name, &error))
    }

    /// Puts a file, part by part where it is large: it is there as a whole or not at all. Out: the file's bytes.
    ///
    /// # Errors
    /// The file cannot be read ([`RemoteError::Failed`]), or as for [`Self::put`]. Parts that were sent are dropped.
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
        let upload = self.within(self.store.put_multipart(&self.key(name))).await;
        let mut upload = upload.map_err(|error| failed(&error))?;
        let mut next = first;
        while !next.is_empty() {
            if let Err(error) = self.within(upload.put_part(next.into())).await {
                // What it keeps of the parts its own rules remove, where this is not heard.
                let _ = self.within(upload.abort()).await;
                return Err(failed(&error));
            }
            next = chunk(&mut file).map_err(local)?;
            bytes += next.len() as u64;
        }
        self.within(upload.complete()).await.map(|_| bytes).map_err(|error| failed(&error))
    }

    /// An object's bytes, at most that many. None: it is not there.
    ///
    /// # Errors
    /// The store refuses or does not answer, or the object has more than `most` bytes ([`RemoteError::Failed`]).
    pub async fn get(&self, name: &str, most: u64) -> Result<Option<Bytes>, RemoteError> {
        let options =
            GetOptions { range: Some(GetRange::Bounded(0..most.saturating_add(1))), ..GetOptions::default() };
        let key = self.key(name);
        let read = async { self.store.get_opts(&key, options).await?.bytes().await };
        match self.within(read).await {
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

    /// Writes an object into a new file, chunk by chunk: its bytes and CRC-32. Over `most` bytes it stops, and the
    /// count shows that. None: the object is not there.
    ///
    /// # Errors
    /// `DownloadError::Remote`: the store refuses, or breaks off. `DownloadError::Disk`: the file is there already,
    /// or takes no more. What was written then stays: who asked removes it.
    pub async fn download(
        &self,
        name: &str,
        path: &Path,
        most: u64,
    ) -> Result<Option<(u64, u32)>, DownloadError> {
        let failed = |error: &object_store::Error| DownloadError::Remote(self.error("give", name, error));
        let mut chunks = match self.within(self.store.get(&self.key(name))).await {
            Ok(result) => result.into_stream(),
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let mut file = File::create_new(path).map_err(DownloadError::Disk)?;
        let (mut bytes, mut sum) = (0, crc32fast::Hasher::new());
        while let Some(chunk) = self.within(chunks.try_next()).await.transpose() {
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

    /// All objects below a name, in the order of their names.
    ///
    /// # Errors
    /// The store refuses or does not answer, or there are more than `most` objects ([`RemoteError::Failed`]).
    pub async fn list(&self, below: &str, most: usize) -> Result<Vec<Object>, RemoteError> {
        let mut count = 0;
        let in_bounds = |_: &str| {
            count += 1;
            count <= most
        };
        let objects = self.list_while(below, in_bounds).await?;
        let (what, says) = match count > most {
            true => (
                format!("has more than {most} objects"),
                "narrow the time range, or run `emberscope compact`",
            ),
            false => ("has an object that cannot be listed".to_owned(), "a part of its name is empty"),
        };
        objects.ok_or_else(|| RemoteError::Failed {
            url: self.url.clone(),
            what: format!("be read: {below} {what}"),
            says: says.to_owned(),
        })
    }

    /// The same while `in_bounds` says so of each name. None: it said no, or there is an object that cannot be listed: the
    /// client takes no name with an empty part (`a//b`), `.` or `..`, and with it nothing of the list.
    ///
    /// # Errors
    /// The store refuses or does not answer.
    pub(super) async fn list_while(
        &self,
        below: &str,
        mut in_bounds: impl FnMut(&str) -> bool,
    ) -> Result<Option<Vec<Object>>, RemoteError> {
        let key = self.key(below);
        let mut stream = self.store.list(Some(&key));
        let mut all = Vec::new();
        while let Some(next) = self.within(stream.try_next()).await.transpose() {
            let meta = match next {
                Err(object_store::Error::InvalidPath { .. }) => return Ok(None),
                next => next.map_err(|error| self.error("list", below, &error))?,
            };
            let Some(name) = self.name(meta.location.as_ref()) else { continue };
            if !in_bounds(&name) {
                return Ok(None);
            }
            all.push(Object::of(name, &meta));
        }
        all.sort();
        Ok(Some(all))
    }

    /// An object's name and length. None: it is not there.
    ///
    /// # Errors
    /// The store refuses or does not answer.
    pub async fn head(&self, name: &str) -> Result<Option<Object>, RemoteError> {
        match self.within(self.store.head(&self.key(name))).await {
            Ok(meta) => Ok(Some(Object::of(name.to_owned(), &meta))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.error("give", name, &error)),
        }
    }

    /// The names of what is directly below a name and has more below it, in order.
    ///
    /// # Errors
    /// The store refuses or does not answer.
    pub async fn dirs(&self, below: &str) -> Result<Vec<String>, RemoteError> {
        let listed = self.within(self.store.list_with_delimiter(Some(&self.key(below)))).await;
        let listed = listed.map_err(|error| self.error("list", below, &error))?;
        let last = |key: &Key| key.filename().map(str::to_owned);
        let mut all: Vec<String> = listed.common_prefixes.iter().filter_map(last).collect();
        all.sort();
        Ok(all)
    }

    /// Deletes an object; one that is not there is deleted already.
    ///
    /// # Errors
    /// The store refuses or does not answer: whether the object is there is not known then.
    pub async fn delete(&self, name: &str) -> Result<(), RemoteError> {
        self.allow(name)?;
        match self.within(self.store.delete(&self.key(name))).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(self.error("delete", name, &error)),
        }
        if self.hdfs {
            self.clear_dirs(name).await;
        }
        Ok(())
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
}

fn chunk(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(PART as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
