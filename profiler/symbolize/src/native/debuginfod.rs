//! Debug files from debuginfod servers; only where the configuration names servers.
//!
//! In: build ids of files whose own symbols were taken out and are not on the node. Out: debug files in a directory of
//! ours, `HEX.debug`, and the ids of those that came. One thread fetches, one file at a time, over the protocol of
//! debuginfod(8): `GET URL/buildid/HEX/debuginfo`. A file must be an ELF file of that build id. A server that says 404
//! is not asked for that file again until the next start; one that fails, five times at most. Nothing waits for the file.

use emberscope_model::scrub;
use emberscope_supervise::Beat;
use emberscope_target::elf::Headers;
use emberscope_target::text::hex;
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};
use ureq::tls::{RootCerts, TlsConfig};

/// Files that wait.
const MAX_WAITING: usize = 256;
/// Build ids that are not asked for twice.
const MAX_ASKED: usize = 16_384;
/// Largest file: libjvm's of JDK 17 has 230 MB.
const MAX_FILE: u64 = 1 << 30;
/// Of the directory; over it, the files that came first go.
const MAX_BYTES: u64 = 2 << 30;
/// For one file.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Longest for one file, with all servers at their longest.
const STUCK: Duration = Duration::from_secs(1800);
/// Until a server is asked again that failed; then twice that, and so on.
const AGAIN: Duration = Duration::from_secs(30);
const TRIES: u32 = 5;

/// Counts since start.
#[derive(Debug, Default)]
pub struct Counts {
    fetched: AtomicU64,
    absent: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

/// Files that were asked for, since start, by what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DebuginfodCounters {
    /// Came, or were there from before.
    pub fetched: u64,
    /// No server has them.
    pub absent: u64,
    /// Servers could not be asked, or what they sent is not that file.
    pub failed: u64,
    /// Not asked for because too many waited.
    pub dropped: u64,
}

/// Asks for files.
pub struct Debuginfod {
    dir: PathBuf,
    asks: SyncSender<Box<[u8]>>,
    came: Receiver<Box<[u8]>>,
    asked: BTreeSet<Box<[u8]>>,
    counts: Arc<Counts>,
}

/// What came of asking the servers for a file.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Here,
    Absent,
    Failed,
}

impl Debuginfod {
    /// Starts the thread. `servers` are URLs without a slash at the end, asked in that order.
    /// # Errors
    /// `dir` cannot be made or is not the daemon's own, or the thread cannot be started.
    pub fn start(servers: Vec<String>, dir: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        own(dir)?;
        let (asks, queue) = sync_channel(MAX_WAITING);
        let (done, came) = channel();
        let counts = Arc::new(Counts::default());
        let mut fetcher = Fetcher {
            agent: agent(),
            servers,
            dir: dir.to_owned(),
            done,
            counts: Arc::clone(&counts),
            again: VecDeque::new(),
        };
        emberscope_supervise::spawn("debuginfod", STUCK, move |beat| fetcher.run(&queue, beat))?;
        Ok(Self { dir: dir.to_owned(), asks, came, asked: BTreeSet::new(), counts })
    }

    /// Where files are once they came.
    pub fn places(&self) -> Places {
        Places(self.dir.clone())
    }

    /// Has it fetched, unless that was tried before.
    pub fn ask(&mut self, id: &[u8]) {
        let usual = (8..=64).contains(&id.len());
        if !usual || self.asked.len() >= MAX_ASKED || !self.asked.insert(id.into()) {
            return;
        }
        if self.asks.try_send(id.into()).is_err() {
            self.asked.remove(id);
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Files that came since the last call.
    pub fn came(&self) -> impl Iterator<Item = Box<[u8]>> + '_ {
        self.came.try_iter()
    }

    /// Counts.
    pub fn counters(&self) -> DebuginfodCounters {
        let Counts { fetched, absent, failed, dropped } = &*self.counts;
        DebuginfodCounters {
            fetched: fetched.load(Relaxed),
            absent: absent.load(Relaxed),
            failed: failed.load(Relaxed),
            dropped: dropped.load(Relaxed),
        }
    }
}

/// Makes sure that nobody else can put files there. Who owns it already asks for nothing: the unit's filter of system
/// calls has no chown(2).
fn own(dir: &Path) -> io::Result<()> {
    let us = rustix::process::geteuid().as_raw();
    if std::fs::metadata(dir)?.uid() != us {
        std::os::unix::fs::chown(dir, Some(us), None)?;
    }
    Ok(())
}

/// TLS by the certificates that the machine trusts: a company's own server too.
fn agent() -> ureq::Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    ureq::Agent::config_builder()
        .tls_config(tls)
        .timeout_global(Some(TIMEOUT))
        .timeout_connect(Some(Duration::from_secs(10)))
        .http_status_as_error(false)
        .user_agent(concat!("emberscope/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// Where files are once they came.
pub struct Places(PathBuf);

impl Places {
    /// That of a build id.
    pub fn of(&self, id: &[u8]) -> PathBuf {
        place(&self.0, id)
    }
}

fn place(dir: &Path, id: &[u8]) -> PathBuf {
    dir.join(format!("{}.debug", hex(id)))
}

struct Fetcher {
    agent: ureq::Agent,
    servers: Vec<String>,
    dir: PathBuf,
    done: Sender<Box<[u8]>>,
    counts: Arc<Counts>,
    /// Files whose servers failed: when they are asked again, and how often they were.
    again: VecDeque<(Instant, u32, Box<[u8]>)>,
}

impl Fetcher {
    fn run(&mut self, queue: &Receiver<Box<[u8]>>, beat: &Beat) {
        loop {
            let due = self.again.iter().map(|(at, ..)| *at).min();
            let wait = due.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            let (tries, id) = match queue.recv_timeout(wait) {
                Ok(id) => (0, id),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let Some(at) = self.again.iter().position(|(at, ..)| Some(*at) == due) else { continue };
                    let Some((_, tries, id)) = self.again.remove(at) else { continue };
                    (tries, id)
                }
            };
            match beat.work(|| self.fetch(&id)).unwrap_or(Outcome::Failed) {
                Outcome::Here => {
                    self.counts.fetched.fetch_add(1, Relaxed);
                    if self.done.send(id).is_err() {
                        return;
                    }
                }
                Outcome::Absent => {
                    self.counts.absent.fetch_add(1, Relaxed);
                }
                Outcome::Failed if tries + 1 < TRIES && self.again.len() < MAX_WAITING => {
                    self.again.push_back((Instant::now() + AGAIN * 2u32.pow(tries), tries + 1, id));
                }
                Outcome::Failed => {
                    self.counts.failed.fetch_add(1, Relaxed);
                }
            }
        }
    }

    fn fetch(&self, id: &[u8]) -> Outcome {
        let place = place(&self.dir, id);
        if is_of(&place, id) {
            return Outcome::Here;
        }
        let mut outcome = Outcome::Absent;
        for server in &self.servers {
            let url = format!("{server}/buildid/{}/debuginfo", hex(id));
            match self.download(&url, &place, id) {
                Ok(true) => return Outcome::Here,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(url = %scrub(&url), %error, "no debug file from this server");
                    outcome = Outcome::Failed;
                }
            }
        }
        outcome
    }

    /// False: the server does not have it.
    fn download(&self, url: &str, place: &Path, id: &[u8]) -> io::Result<bool> {
        let answer = self.agent.get(url).call().map_err(io::Error::other)?;
        match answer.status().as_u16() {
            200 => {}
            404 => return Ok(false),
            other => return Err(io::Error::other(format!("the server answered with status {other}"))),
        }
        let part = place.with_extension("part");
        let mut body = answer.into_body().into_with_config().limit(MAX_FILE).reader();
        let kept = self.keep(&mut body, &part, place, id);
        if kept.is_err() {
            // What is left of it is made anew by the next try.
            let _ = std::fs::remove_file(&part);
        }
        kept.map(|()| true)
    }

    fn keep(&self, body: &mut impl Read, part: &Path, place: &Path, id: &[u8]) -> io::Result<()> {
        let mut file = File::create(part)?;
        let bytes = io::copy(body, &mut file)?;
        if !is_of(part, id) {
            let what = format!("{bytes} bytes came that are no ELF file of build id {}", hex(id));
            return Err(io::Error::other(what));
        }
        self.make_room(bytes);
        std::fs::rename(part, place)
    }

    /// The oldest files go.
    fn make_room(&self, bytes: u64) {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "debug"))
            .filter_map(|entry| {
                entry.metadata().ok().map(|meta| (meta.modified().ok(), meta.len(), entry.path()))
            })
            .collect();
        files.sort_unstable();
        let mut held: u64 = files.iter().map(|(_, len, _)| len).sum();
        for (_, len, path) in files {
            if held + bytes <= MAX_BYTES {
                return;
            }
            if std::fs::remove_file(path).is_ok() {
                held -= len;
            }
        }
    }
}

/// Whether a file has that build id.
fn is_of(path: &Path, id: &[u8]) -> bool {
    let read = || {
        let file = File::open(path).ok()?;
        let headers = Headers::read(&file, file.metadata().ok()?.len()).ok()?;
        headers.build_id(&file)
    };
    read().as_deref() == Some(id)
}

#[cfg(test)]
mod tests;
