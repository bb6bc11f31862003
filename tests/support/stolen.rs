//! CPU time that the hypervisor takes from this machine, and when (steal time, proc_stat(5)). It is on no thread's account: who
//! takes a thread's CPU time and its waiting for a CPU from the time that passed has what was stolen from it in the rest.

use anyhow::Result;
use emberscope_model::WallTime;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use xtask::bench::procfs::machine;

/// Between two looks.
const STEP: Duration = Duration::from_millis(50);
/// Of the kernel's counts, in a second (USER_HZ).
const TICKS: f64 = 100.0;

/// When it was looked at, as the API tells a time, and all CPUs' ticks until then.
type Looks = Mutex<Vec<(String, u64)>>;

/// Looks at it until it is dropped.
pub struct Stolen(Arc<Looks>);

impl Stolen {
    /// Begins.
    pub fn watch() -> Result<Self> {
        let looks: Arc<Looks> = Arc::default();
        look(&looks)?;
        let weak = Arc::downgrade(&looks);
        std::thread::spawn(move || {
            while weak.upgrade().is_some_and(|looks| look(&looks).is_ok()) {
                std::thread::sleep(STEP);
            }
        });
        Ok(Self(looks))
    }

    /// Seconds that were stolen from all CPUs together between two times, RFC 3339 in UTC and all of one length (so that the order of
    /// text is the order of time), and up to a step before and after.
    pub fn between(&self, from: &str, until: &str) -> f64 {
        seconds(&self.0.lock().unwrap_or_else(PoisonError::into_inner), from, until)
    }
}

fn look(looks: &Looks) -> Result<()> {
    let ticks = machine()?.stolen;
    let mut looks = looks.lock().unwrap_or_else(PoisonError::into_inner);
    looks.push((WallTime::now().to_string(), ticks));
    Ok(())
}

fn seconds(looks: &[(String, u64)], from: &str, until: &str) -> f64 {
    let before = looks.partition_point(|(time, _)| time.as_str() <= from).saturating_sub(1);
    let after = looks.partition_point(|(time, _)| time.as_str() < until).min(looks.len().saturating_sub(1));
    let ticks = |at: usize| looks.get(at).map_or(0, |(_, ticks)| *ticks);
    ticks(after).saturating_sub(ticks(before)) as f64 / TICKS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stolen_between_two_times() {
        let looks: Vec<_> = [("10", 1), ("20", 1), ("30", 5), ("40", 7)]
            .into_iter()
            .map(|(time, ticks)| (time.to_owned(), ticks))
            .collect();
        assert_eq!(seconds(&looks, "12", "18"), 0.0);
        assert_eq!(seconds(&looks, "12", "22"), 0.04);
        assert_eq!(seconds(&looks, "20", "40"), 0.06);
        assert_eq!(seconds(&looks, "00", "99"), 0.06);
        assert_eq!(seconds(&[], "00", "99"), 0.0);
    }

    #[test]
    fn it_is_looked_at_again_and_again() {
        let stolen = Stolen::watch().unwrap();
        let from = WallTime::now().to_string();
        while stolen.0.lock().unwrap().len() < 3 {
            std::thread::sleep(STEP);
        }
        assert!(stolen.between(&from, &WallTime::now().to_string()) >= 0.0);
    }
}
