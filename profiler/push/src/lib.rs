//! Sends closed windows to a Pyroscope server (`push.v1.PusherService/Push`) or an OTLP receiver, for who keeps profiles
//! there too.
//!
//! In: windows, as they are stored. Out: for Pyroscope a profile (pprof) for each of their label sets, but for what tells
//! single tasks and processes apart; for OTLP one for each process, with tasks; and what became of them. A thread of its own packs and sends: nothing waits for the
//! server. What it does not take at once is tried again with longer and longer pauses (`PAUSES`), up to
//! `MAX_QUEUED` bytes, nearly all of them in files, which the next start finds; then the oldest go. Everything that is not
//! sent is counted with a reason.

mod otlp;
mod profiles;
mod queue;
mod send;
mod spool;
#[cfg(test)]
mod tests;
mod wire;

pub use queue::{PushDrop, PushState};
pub use spool::{HasRoom, Keep};

use emberscope_model::{TimeRange, Window};
use emberscope_supervise::Beat;
use profiles::Packed;
use queue::Queue;
use send::{Sender, Sent};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Windows that wait to be packed: packing one takes some milliseconds, a request up to [`send::TIMEOUT`].
const MAX_WINDOWS: usize = 16;
/// Bytes of packed profiles that wait: hours of an ordinary node.
const MAX_QUEUED: u64 = 32 << 20;
/// Longest for one request or window: over a request's own time-out.
const STUCK: Duration = Duration::from_secs(120);
/// First and longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Pyroscope takes nothing older (`validation.reject-older-than`, by default an hour); OTLP has no such rule, and is given no
/// more.
const MAX_AGE: Duration = Duration::from_secs(3600);

/// What the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// push.v1 over Connect.
    Pyroscope,
    /// opentelemetry-proto's profiles (v1development) over HTTP.
    Otlp,
}

impl Protocol {
    /// Every protocol, in the order in which pushers are started.
    pub const ALL: &'static [Self] = &[Self::Pyroscope, Self::Otlp];
    /// The setting that names its server, and the key of its state in the status.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Pyroscope => "push",
            Self::Otlp => "push_otlp",
        }
    }
}

/// The server that windows are pushed to.
#[derive(Clone, Debug)]
pub struct PushConfig {
    /// What that server speaks.
    pub protocol: Protocol,
    /// Base URL of the server: `http://pyroscope:4040`.
    pub url: String,
    /// Tenant (`X-Scope-OrgID`), where the server has several.
    pub tenant: Option<String>,
}

/// Pushes until it is dropped; what waits then stays in files, or is counted as dropped.
#[derive(Debug)]
pub struct Pusher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the pushing thread has in common with others. Its queue is its own: nobody waits for the queue's disk.
#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    wake: Condvar,
    stopping: AtomicBool,
}

#[derive(Debug)]
struct Inner {
    windows: Vec<(TimeRange, Vec<emberscope_model::Row>)>,
    /// Windows that found no room in `windows`.
    missed: u64,
    /// The queue's state, as the thread told it last.
    state: PushState,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change of it is one statement.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, queue: &Queue) {
        self.lock().state = queue.state();
    }
}

impl Pusher {
    /// Starts the thread that packs and sends. The server is not asked yet. Without `keep` all that waits does so in memory.
    ///
    /// # Errors
    /// The kernel starts no thread.
    pub fn start(config: PushConfig, keep: Option<Keep>) -> io::Result<Self> {
        Self::with_pauses(config, keep, PAUSES)
    }

    fn with_pauses(config: PushConfig, keep: Option<Keep>, pauses: (Duration, Duration)) -> io::Result<Self> {
        let mut queue = Queue::new(&config.url, MAX_QUEUED, keep);
        let inner = Inner { windows: Vec::new(), missed: 0, state: queue.state() };
        let shared = Arc::new(Shared {
            inner: Mutex::new(inner),
            wake: Condvar::new(),
            stopping: AtomicBool::new(false),
        });
        let ours = Arc::clone(&shared);
        let (name, pack): (_, Pack) = match config.protocol {
            Protocol::Pyroscope => ("push", profiles::pack),
            Protocol::Otlp => ("push-otlp", otlp::pack),
        };
        let mut sender = Sender::new(config);
        let thread = emberscope_supervise::spawn(name, STUCK, move |beat| {
            run(&ours, &mut queue, (&mut sender, pack), pauses, beat);
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Takes a closed window. Does not wait.
    pub fn offer(&self, window: &Window) {
        if window.rows.is_empty() {
            return;
        }
        let rows = window.rows.clone();
        let mut inner = self.shared.lock();
        if inner.windows.len() >= MAX_WINDOWS {
            // Nobody knows yet how many profiles it would have been.
            inner.missed += 1;
            return;
        }
        inner.windows.push((window.range, rows));
        drop(inner);
        self.shared.wake.notify_all();
    }

    /// What became of what was offered so far.
    pub fn state(&self) -> PushState {
        let inner = self.shared.lock();
        let mut state = inner.state.clone();
        if let Some(count) = state.dropped.get_mut(PushDrop::QueueFull as usize) {
            *count += inner.missed;
        }
        state
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        drop(self.shared.lock());
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes requests of a window.
type Pack = fn(TimeRange, &[emberscope_model::Row]) -> Packed;

/// Packs and sends until it is to stop.
fn run(
    shared: &Shared,
    queue: &mut Queue,
    (sender, pack): (&mut Sender, Pack),
    (first, longest): (Duration, Duration),
    beat: &Beat,
) {
    let mut pause = first;
    let mut next = Instant::now();
    loop {
        shared.tell(queue);
        let mut inner = shared.lock();
        while !shared.stopping.load(Ordering::Relaxed) && inner.windows.is_empty() {
            let wait = next.saturating_duration_since(Instant::now());
            if !queue.is_empty() && wait.is_zero() {
                break;
            }
            let wait = if queue.is_empty() { longest } else { wait };
            inner = shared.wake.wait_timeout(inner, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        let windows = std::mem::take(&mut inner.windows);
        drop(inner);
        for (range, rows) in windows {
            // Nobody knows how many profiles it would have been.
            if beat.work(|| queue.add(pack(range, &rows))).is_err() {
                queue.drop_one(PushDrop::Failed);
            }
        }
        if shared.stopping.load(Ordering::Relaxed) {
            beat.busy();
            queue.end();
            shared.tell(queue);
            return;
        }
        if Instant::now() < next {
            continue;
        }
        queue.drop_older(MAX_AGE);
        shared.tell(queue);
        let sent = match beat.work(|| Some(sender.send(&queue.first()?))) {
            Ok(Some(sent)) => sent,
            Ok(None) => continue,
            Err(panicked) => Sent::Later(panicked.to_string()),
        };
        match sent {
            Sent::Taken => queue.taken(),
            Sent::Partly { refused, says } => queue.partly(refused, says),
            Sent::Refused(says) => queue.refused(says),
            Sent::Later(says) => {
                queue.failed(says);
                next = Instant::now() + pause;
                pause = (pause * 2).min(longest);
                continue;
            }
        }
        pause = first;
        next = Instant::now();
    }
}
