//! Probes that are taken away, on a thread of their own: the kernel waits half a second for each on a busy machine, and the
//! sampling thread waits for nobody.

use emberscope_capture::Detached;
use emberscope_supervise::Beat;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Longest for one file's probes.
const STUCK: Duration = Duration::from_secs(60);

/// Has probes taken away; they stay in the kernel a moment longer. Where no thread can be started they are gone at once.
pub fn take_away(detached: Detached) {
    static THREAD: OnceLock<Option<Sender<Detached>>> = OnceLock::new();
    if !detached.is_empty()
        && let Some(thread) = THREAD.get_or_init(start)
    {
        // Dropped here, should the thread be gone.
        let _ = thread.send(detached);
    }
}

fn start() -> Option<Sender<Detached>> {
    let (thread, queue) = channel::<Detached>();
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
