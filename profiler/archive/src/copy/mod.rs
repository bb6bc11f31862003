//! Copies a store to an archive while its daemon writes it: finished blocks as they are, the open part in pieces.
//!
//! In: the store's directory, read as any other program could. Out: objects. What is there is found in the archive
//! itself at the start, so nothing is remembered elsewhere, and a copy that was broken off anywhere goes on. Every
//! object is put under a name that says its content: twice is once.
//!
//! A thread of its own, at a low priority, which shares nothing with sampling but the disk. When the archive fails it
//! waits, up to [`LONGEST_WAIT`]; what waits for it is on the disk, not in memory. Limits: [`PIECE`] bytes of a journal
//! in memory, and 8 MiB of a file.

mod blocks;
mod counts;
mod heart;
mod merged;
#[cfg(test)]
pub(super) mod once;
mod pieces;

pub use counts::ArchiveUsage;

use super::layout;
use super::remote::{Remote, RemoteError};
use counts::Counts;
use emberscope_supervise::{Beat, faults};
use heart::Heart;
#[cfg(test)]
pub(super) use heart::of as heart_of;
use pieces::Sent;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Notify;

/// How often it looks for what is new: with a window of 10 s the archive is some 25 s behind.
const EVERY: Duration = Duration::from_secs(15);
/// The first wait after a failure; each is twice the one before.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Longest for one round: the first copies all that the disk holds.
const STUCK: Duration = Duration::from_secs(6 * 3600);
/// Bytes of a journal that are sent as one.
const PIECE: usize = 4 << 20;

/// What is copied, and where to.
#[derive(Clone, Debug)]
pub struct ArchiverConfig {
    /// The store's directory.
    pub store: PathBuf,
    /// The node's name, as labels have it.
    pub node: String,
    /// URL of the archive.
    pub url: String,
    /// Time from a round that went well to the next.
    pub every: Duration,
}

impl ArchiverConfig {
    /// The defaults for a directory, a node and an archive.
    pub fn new(store: impl Into<PathBuf>, node: impl Into<String>, url: impl Into<String>) -> Self {
        Self { store: store.into(), node: node.into(), url: url.into(), every: EVERY }
    }
}

/// Why a round was broken off.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("the store's files cannot be read: {0}")]
    Disk(#[from] io::Error),
}

impl CopyError {
    const fn slug(&self) -> &'static str {
        match self {
            Self::Remote(error) => error.slug(),
            Self::Disk(_) => "disk",
        }
    }
}

/// A block that was copied: how its manifest was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copied {
    crc32: u32,
    changed: Option<SystemTime>,
}

/// One store's way to one archive.
#[derive(Debug)]
struct Copying {
    config: ArchiverConfig,
    host: String,
    remote: Remote,
    counts: Arc<Mutex<Counts>>,
    /// What the archive holds of this node was read.
    learnt: bool,
    /// Blocks that the archive has, by name.
    copied: HashMap<String, Copied>,
    /// Blocks that are on the disk, with the names of those that they took the place of.
    merged: HashMap<String, Vec<String>>,
    /// Objects of blocks that were there at the start and are not known to be whole: file and bytes.
    found: HashMap<String, HashMap<String, u64>>,
    /// Open and sealed parts, by the block that they will be.
    sent: HashMap<String, Sent>,
    /// Journals' blocks, by part.
    names: HashMap<u64, String>,
    /// Blocks that waited in the last round.
    waiting: Vec<String>,
    last_pieces: Instant,
}

fn lock(counts: &Mutex<Counts>) -> std::sync::MutexGuard<'_, Counts> {
    // Plain numbers.
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Copying {
    /// Copies all that is new.
    async fn round(&mut self) -> Result<(), CopyError> {
        if !self.learnt {
            self.learn().await?;
            self.learnt = true;
        }
        // Before the blocks: a running job is seen soon, however much else waits.
        self.send_pieces().await?;
        self.copy_blocks().await?;
        self.clear_pieces().await
    }

    /// Reads what the archive has of this node.
    async fn learn(&mut self) -> Result<(), CopyError> {
        self.found.clear();
        let below = layout::blocks(&self.host);
        for object in self.remote.list(&below, usize::MAX).await? {
            let rest = object.name.strip_prefix(&below).and_then(|rest| rest.strip_prefix('/'));
            if let Some((block, file)) = rest.and_then(|rest| rest.split_once('/')) {
                self.found.entry(block.to_owned()).or_default().insert(file.to_owned(), object.bytes);
            }
        }
        self.learn_pieces().await
    }
}

/// The thread that copies.
#[derive(Debug)]
pub struct Archiver {
    counts: Arc<Mutex<Counts>>,
    url: String,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Archiver {
    /// Starts to copy. The archive is not asked yet: what it refuses is counted by the thread.
    ///
    /// # Errors
    /// [`RemoteError::Url`]: the URL cannot be one of an archive, or its directory cannot be made.
    /// [`RemoteError::Failed`]: there is no thread. Nothing runs then.
    pub fn start(config: ArchiverConfig) -> Result<Self, RemoteError> {
        let remote = Remote::open(&config.url, true)?;
        let (counts, stop, url) =
            (Arc::new(Mutex::new(Counts::new())), Arc::new(Notify::new()), config.url.clone());
        let failed = |error: io::Error| RemoteError::Failed {
            url: url.clone(),
            what: "be copied to".to_owned(),
            says: error.to_string(),
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(2).build();
        let runtime = runtime.map_err(failed)?;
        let heart = Heart::new(&config, remote.clone(), counts.clone());
        let mut copying = Copying::new(config, remote, counts.clone());
        let until = stop.clone();
        let mut runtime = Some(runtime);
        let thread = emberscope_supervise::spawn("archive", STUCK, move |beat| {
            // Only this thread: to Linux a priority is a thread's.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 10);
            // After a panic what the archive has is read again.
            copying.learnt = false;
            if let Some(runtime) = &runtime {
                runtime.block_on(async {
                    tokio::select! {
                        () = copying.run(beat) => {}
                        () = heart.run() => {}
                        // What was being sent is sent again another time.
                        () = until.notified() => heart.stop().await,
                    }
                });
            }
            if let Some(runtime) = runtime.take() {
                runtime.shutdown_background();
            }
        });
        Ok(Self { counts, url: url.clone(), stop, thread: Some(thread.map_err(failed)?) })
    }

    /// What was copied and what waits, to be asked for from any thread.
    pub fn watch(&self) -> impl Fn() -> ArchiveUsage + Send + Sync + 'static {
        let (counts, url) = (self.counts.clone(), self.url.clone());
        move || lock(&counts).usage(&url)
    }

    /// What was copied and what waits.
    pub fn usage(&self) -> ArchiveUsage {
        lock(&self.counts).usage(&self.url)
    }
}

impl Drop for Archiver {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Copying {
    fn new(config: ArchiverConfig, remote: Remote, counts: Arc<Mutex<Counts>>) -> Self {
        Self {
            host: layout::part(&config.node),
            config,
            remote,
            counts,
            learnt: false,
            copied: HashMap::new(),
            merged: HashMap::new(),
            found: HashMap::new(),
            sent: HashMap::new(),
            names: HashMap::new(),
            waiting: Vec::new(),
            last_pieces: Instant::now(),
        }
    }

    async fn run(&mut self, beat: &Beat) {
        let mut wait = FIRST_WAIT;
        loop {
            beat.busy();
            faults::point("archive");
            let round = self.round().await;
            beat.idle();
            match round {
                Ok(()) => {
                    lock(&self.counts).went_well(&self.config.url);
                    wait = FIRST_WAIT;
                    tokio::time::sleep(self.config.every).await;
                }
                Err(error) => {
                    lock(&self.counts).failed(error.slug(), &error.to_string());
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }
}
