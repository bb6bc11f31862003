//! Probes that are taken away, on a thread of their own: the kernel waits half a second for each on a busy machine, and the
//! sampling thread waits for nobody.

use emberscope_capture::Detached;
use emberscope_supervise::Beat;
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// Longest for one file's probes.
const STUCK: Duration = Duration::from_secs(60);
/// Probes that may wait: of one file, those on names, allocations and pauses. New probes on a file wait until its old ones are
/// gone, so there must not be many before them.
const WAITING: usize = 3;

/// Has probes taken away; they stay in the kernel a moment longer. Where no thread can be started, or too many wait, they are
/// taken away here.
pub fn take_away(detached: Detached) {
    static THREAD: OnceLock<Option<SyncSender<Detached>>> = OnceLock::new();
    if !detached.is_empty()
        && let Some(thread) = THREAD.get_or_init(start)
    {
        // What the queue does not take comes back, and is dropped.
        let _ = thread.try_send(detached);
    }
}

fn start() -> Option<SyncSender<Detached>> {
    let (thread, queue) = sync_channel::<Detached>(WAITING);
    let body = move |beat: &Beat| {
        while let Ok(detached) = queue.recv() {
            beat.busy();
            drop(detached);
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
