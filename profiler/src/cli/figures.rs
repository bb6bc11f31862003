//! The figures of stages, tasks and classes, as the API tells them.
//!
//! In: JSON. Out: cells of a table. Exact figures are the kernel's accounts of a thread, sampled ones
//! rest on samples and have an error; a cell never mixes them. A figure that is not told is an empty cell.

use super::text;
use serde::{Deserialize, Deserializer};

/// For fields that are null where nothing is known: the empty text, 0.
///
/// # Errors
/// The deserializer's own: the value is of another type.
pub fn or_nothing<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// What the kernel has on threads' accounts: seconds, counts and bytes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Exact {
    pub cpu_seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub wall_seconds: f64,
    pub run_delay_seconds: f64,
    /// The part of the run delay in which the cgroup's quota was used up.
    pub throttled_seconds: f64,
    pub blocked_seconds: f64,
    pub python_wait_seconds: f64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// What samples say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Sampled {
    pub samples: u64,
    pub cpu_seconds: f64,
    /// Relative standard error of the CPU time; None without samples.
    pub sampling_error: Option<f64>,
}

/// Exact and sampled figures of the same threads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Figures {
    pub exact: Option<Exact>,
    pub sampled: Sampled,
}

impl Figures {
    /// A time from the accounts.
    pub fn exact_time(&self, of: fn(&Exact) -> f64) -> String {
        text::time(self.exact.as_ref().map(of))
    }
    /// Two counts from the accounts, as `1/2`.
    pub fn exact_pair(&self, of: fn(&Exact) -> (u64, u64)) -> String {
        self.exact.as_ref().map(of).map(|(a, b)| format!("{a}/{b}")).unwrap_or_default()
    }
    /// Bytes from the accounts.
    pub fn exact_bytes(&self, of: fn(&Exact) -> u64) -> String {
        text::bytes(self.exact.as_ref().map(of))
    }
    /// The CPU time that samples tell, with its error; empty without samples.
    pub fn sampled_time(&self) -> String {
        match &self.sampled {
            Sampled { samples: 0, .. } => String::new(),
            sampled => text::time_within(Some(sampled.cpu_seconds), sampled.sampling_error),
        }
    }
    /// Whether there is nothing in the figures.
    pub fn is_empty(&self) -> bool {
        self.exact.is_none() && self.sampled.samples == 0
    }
}

/// The line under a table that has figures of both kinds: how they come about.
pub fn how<'a>(rows: impl IntoIterator<Item = &'a Figures>) -> String {
    const SAMPLED: &str = "SAMPLED: by n samples, +- the standard error 1/sqrt(n)";
    if rows.into_iter().all(|figures| figures.exact.is_none()) {
        return format!(
            "the kernel's accounts have nothing of these (emberscope status may say why); {SAMPLED}"
        );
    }
    format!("exact, by the kernel's accounts of each thread, but {SAMPLED}")
}

/// What Spark says of its own CPU time, nanoseconds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SparkCpu {
    executor_cpu_ns: Option<u64>,
    deserialize_cpu_ns: Option<u64>,
}

impl SparkCpu {
    /// Inside tasks and reading them in, seconds; None where Spark has not told.
    pub fn seconds(&self) -> Option<f64> {
        let read_in = self.deserialize_cpu_ns.unwrap_or(0);
        Some(self.executor_cpu_ns?.saturating_add(read_in) as f64 / 1e9)
    }
}

/// A moment, without its date where all of the answer is of one day.
pub fn moment(time: &str, from: &str, until: &str) -> String {
    let day = |time: &str| time.split_once('T').map(|(day, _)| day.to_owned());
    match (time.split_once('T'), day(from)) {
        (Some((of, rest)), Some(first)) if of == first && day(until).as_ref() == Some(&first) => {
            rest.to_owned()
        }
        _ => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_is_an_empty_cell() {
        let nothing: Figures = serde_json::from_str(r#"{"exact":null,"sampled":{"samples":0}}"#).unwrap();
        assert!(nothing.is_empty());
        assert_eq!(nothing.exact_time(|exact| exact.cpu_seconds), "");
        assert_eq!(nothing.sampled_time(), "");
        let sampled: Figures =
            serde_json::from_str(r#"{"sampled":{"samples":400,"cpu_seconds":4.04,"sampling_error":0.05}}"#)
                .unwrap();
        assert_eq!(sampled.sampled_time(), "4.04 s +- 5.0 %");
        assert!(how([&nothing, &sampled]).starts_with("the kernel's accounts have nothing"));
        let exact = Figures { exact: Some(Exact::default()), ..Figures::default() };
        assert!(how([&nothing, &exact]).starts_with("exact, "));
        assert!(!sampled.is_empty());
    }

    #[test]
    fn sparks_cpu_is_both_of_its_clocks() {
        let cpu = |json| serde_json::from_str::<SparkCpu>(json).unwrap().seconds();
        assert_eq!(cpu(r#"{"executor_cpu_ns":1500000000,"deserialize_cpu_ns":500000000}"#), Some(2.0));
        assert_eq!(cpu(r#"{"executor_cpu_ns":null}"#), None);
    }

    #[test]
    fn a_date_is_left_out_within_a_day() {
        let (from, until) = ("2026-11-21T10:00:00.000Z", "2026-11-21T11:00:00.000Z");
        assert_eq!(moment("2026-11-21T10:00:03.120Z", from, until), "10:00:03.120Z");
        assert_eq!(moment("2026-11-20T23:59:59.000Z", from, until), "2026-11-20T23:59:59.000Z");
        assert_eq!(moment("2026-11-21T10:00:03.120Z", from, "2026-11-22T00:00:00.000Z").len(), 24);
        assert_eq!(moment("", from, until), "");
    }
}
