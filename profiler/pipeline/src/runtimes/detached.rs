//! Probes that are taken away, on a thread of their own: the kernel waits half a second for each on a busy machine, and the
//! sampling thread waits for nobody.

use emberscope_capture::Detached;
use emberscope_supervise::Beat;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// Longest for one file's probes.
const STUCK: Duration = Duration::from_secs(60);
/// Probes of one file that are taken away by themselves: those on names, allocations and pauses.
const OF_A_FILE: usize = 3;
/// Probes that may wait. What is beyond stays on its file until there is room ([`has_room`]).
const WAITING: usize = 2 * OF_A_FILE;

/// None: it cannot be started.
static THREAD: LazyLock<Option<SyncSender<Detached>>> = LazyLock::new(start);
/// Probes that are not gone yet.
static GOING: AtomicUsize = AtomicUsize::new(0);

/// Whether a file's probes may be handed in: they are taken away while nobody waits.
pub fn has_room() -> bool {
    GOING.load(Ordering::Acquire) + OF_A_FILE <= WAITING
}

/// Has probes taken away; they stay in the kernel a moment longer. Where no thread can be started, or too many wait, they are
/// taken away here.
pub fn take_away(detached: Detached) {
    if !detached.is_empty()
        && let Some(thread) = THREAD.as_ref()
    {
        GOING.fetch_add(1, Ordering::AcqRel);
        // What the queue does not take comes back, and is dropped.
        if thread.try_send(detached).is_err() {
            GOING.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn start() -> Option<SyncSender<Detached>> {
    let (thread, queue) = sync_channel::<Detached>(WAITING);
    let body = move |beat: &Beat| {
        while let Ok(detached) = queue.recv() {
            beat.busy();
            drop(detached);
            GOING.fetch_sub(1, Ordering::AcqRel);
            beat.idle();
        }
    };
    match emberscope_supervise::spawn("probes", STUCK, body) {
        Ok(_) => Some(thread),
        Err(error) => {
            tracing::warn!(%error, "no thread takes probes away: the sampling thread waits for it");
            None
        }
    }
}
