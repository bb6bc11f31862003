//! The beat of the HTTP runtime's threads.

use emberscope_supervise::Weight;
use std::time::Duration;

/// Time between two marks.
const PAUSE: Duration = Duration::from_secs(1);
/// A runtime whose tasks do not run for so long answers nobody.
const STUCK: Duration = Duration::from_secs(15);

/// Shows, as long as it runs, that tasks of the runtime run.
pub(super) async fn beat() {
    let beat = emberscope_supervise::beat("http", STUCK, Weight::Degraded);
    loop {
        beat.busy();
        tokio::time::sleep(PAUSE).await;
    }
}
