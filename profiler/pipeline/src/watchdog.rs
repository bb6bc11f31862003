//! Tells the service manager and the log whether sampling goes on.
//!
//! In: the threads' beats. Out: `WATCHDOG=1` while all is well, several times in the manager's period (`WatchdogSec=`), so
//! that it starts a daemon anew that hangs; a `STATUS=` line and a line in the log when that changes. Nothing here waits
//! for another thread.

use crate::Lifecycle;
use emberscope_supervise::rights;
use emberscope_supervise::{Health, Weight};
use std::io;
use std::time::Duration;

/// How often it looks where no service manager waits for it.
const EVERY: Duration = Duration::from_secs(5);
/// Looks in the manager's period: one may come late.
const LOOKS: u32 = 4;

/// Starts the thread; it ends with the daemon.
///
/// # Errors
/// The kernel starts no thread.
pub(super) fn start(life: Lifecycle) -> io::Result<()> {
    let every = life.watchdog().map_or(EVERY, |period| (period / LOOKS).min(EVERY));
    let body = move |beat: &emberscope_supervise::Beat| {
        let mut said = None;
        loop {
            let health = emberscope_supervise::health();
            // Whether it fails is the manager's to see: by silence.
            let done = beat.work(|| {
                if health.check().is_ok() {
                    life.alive();
                }
                let says = says(&health);
                if said.as_ref() != Some(&says) {
                    tell(&health, &says, said.is_some(), &life);
                    said = Some(says);
                }
            });
            if done.is_err() {
                said = None;
            }
            if life.sleep(every) {
                return;
            }
        }
    };
    let beat = emberscope_supervise::beat("watchdog", Duration::from_secs(15), Weight::Degraded);
    let thread = std::thread::Builder::new().name("watchdog".to_owned());
    let run = move || {
        rights::keep_only("watchdog");
        emberscope_supervise::run(&beat, body);
    };
    thread.spawn(run).map(|_| ())
}

/// One line of the state. Without the seconds, which change each time.
fn says(health: &Health) -> String {
    let stuck = |weight| {
        let all = health.threads.iter().filter(move |state| state.weight == weight && state.is_stuck());
        all.map(|state| state.thread).collect::<Vec<_>>().join(", ")
    };
    match (health.check(), stuck(Weight::Vital), stuck(Weight::Degraded)) {
        (Ok(()), _, none) if none.is_empty() => "sampling".to_owned(),
        (Ok(()), _, threads) => format!("sampling; stuck: {threads}"),
        (Err(_), none, _) if none.is_empty() => {
            "not healthy: windows that are over are not stored".to_owned()
        }
        (Err(_), threads, _) => format!("not healthy; stuck: {threads}"),
    }
}

fn tell(health: &Health, says: &str, again: bool, life: &Lifecycle) {
    life.status(says);
    match (health.check(), health.degraded()) {
        (Err(why), _) => tracing::error!(why, "not healthy"),
        (Ok(()), stuck) if !stuck.is_empty() => tracing::warn!(?stuck, "sampling goes on, with less"),
        (Ok(()), _) if again => tracing::info!("healthy again"),
        (Ok(()), _) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_supervise::ThreadState;

    #[test]
    fn a_line_names_what_is_stuck_and_stays_the_same_while_it_is() {
        let limit = Duration::from_secs(15);
        let state = |thread, weight, seconds| ThreadState {
            thread,
            busy_for: Some(Duration::from_secs(seconds)),
            limit,
            weight,
        };
        let line = |threads| says(&Health { threads, ..Health::default() });
        assert_eq!(line(vec![]), "sampling");
        assert_eq!(line(vec![state("push", Weight::Degraded, 16)]), "sampling; stuck: push");
        let sampler = |seconds| line(vec![state("sampler", Weight::Vital, seconds)]);
        assert_eq!(sampler(16), "not healthy; stuck: sampler");
        assert_eq!(sampler(16), sampler(17));
        let late = Health { current: Some(Duration::from_secs(31)), ..Health::default() };
        assert_eq!(says(&late), "not healthy: windows that are over are not stored");
    }
}
