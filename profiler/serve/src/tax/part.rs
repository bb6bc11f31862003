//! One part of the tax: CPU time of a class in a process, and sums of such.
//!
//! In: figures from the ledger or from samples. Out: rows of the answer. Errors: a sampled time of n samples that weigh
//! w together has the variance w²/n; an exact one has none; so sums over both have the sampled parts'. A
//! part p of a whole P has a share p/P with the variance ((1-s)² var(p) + s² var(P-p)) / P², which for
//! samples of one weight is s(1-s)/n.

use crate::figures::seconds;
use emberscope_api as api;
use emberscope_model::{LedgerSums, sampling_error};

/// Where a CPU time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Ledger,
    Samples,
    Mixed,
}

impl Source {
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Samples => "samples",
            Self::Mixed => "mixed",
        }
    }
    /// The source of a sum of two times.
    pub fn with(self, other: Self) -> Self {
        if self == other { self } else { Self::Mixed }
    }
}

/// How many samples there are, and their weight in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampled {
    pub samples: u64,
    pub weight: u64,
}

impl Sampled {
    pub fn add(&mut self, samples: u64, weight: u64) {
        self.samples = self.samples.saturating_add(samples);
        self.weight = self.weight.saturating_add(weight);
    }
    fn variance(self) -> f64 {
        (self.weight as f64).powi(2) / self.samples.max(1) as f64
    }
}

/// A CPU time and how sure it is.
#[derive(Clone, Copy, Debug, Default)]
struct Time {
    ns: u64,
    variance: f64,
}

impl Time {
    fn add(&mut self, other: Self) {
        self.ns = self.ns.saturating_add(other.ns);
        self.variance += other.variance;
    }
    /// Relative standard error; None of what is exact, and of nothing.
    fn error(self) -> Option<f64> {
        (self.variance > 0.0 && self.ns > 0).then(|| self.variance.sqrt() / self.ns as f64)
    }
}

/// A part, or a sum of parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    source: Option<Source>,
    user: Time,
    system: Time,
    beside: Sampled,
}

impl Part {
    /// A part known from the ledger, with the samples that stand beside it.
    pub fn exact(sums: &LedgerSums, beside: Sampled) -> Self {
        let (user, system) = sums.user_and_system_ns();
        let time = |ns| Time { ns, variance: 0.0 };
        Self { source: Some(Source::Ledger), user: time(user), system: time(system), beside }
    }
    /// A part known from samples, by what these hit.
    pub fn sampled(user: Sampled, system: Sampled) -> Self {
        let time = |s: Sampled| Time { ns: s.weight, variance: s.variance() };
        let mut beside = user;
        beside.add(system.samples, system.weight);
        Self { source: Some(Source::Samples), user: time(user), system: time(system), beside }
    }
    /// Adds another part.
    pub fn add(&mut self, other: &Self) {
        self.source = match (self.source, other.source) {
            (Some(a), Some(b)) => Some(a.with(b)),
            (a, b) => a.or(b),
        };
        self.user.add(other.user);
        self.system.add(other.system);
        self.beside.add(other.beside.samples, other.beside.weight);
    }
    /// Where the CPU time of the part comes from; None: there is none.
    pub fn source(&self) -> Option<Source> {
        self.source
    }
    /// Whether nothing was used and nothing sampled.
    pub fn is_empty(&self) -> bool {
        self.cpu().ns == 0 && self.beside.samples == 0
    }
    fn cpu(&self) -> Time {
        let mut sum = self.user;
        sum.add(self.system);
        sum
    }
    fn share_error(&self, whole: &Self) -> Option<f64> {
        let (part, whole) = (self.cpu(), whole.cpu());
        if whole.ns == 0 || whole.variance <= 0.0 {
            return None;
        }
        let share = part.ns as f64 / whole.ns as f64;
        let rest = (whole.variance - part.variance).max(0.0);
        let variance = (1.0 - share).powi(2) * part.variance + share.powi(2) * rest;
        Some(variance.sqrt() / whole.ns as f64)
    }
    /// Its figures.
    pub fn answer(&self) -> api::Part {
        api::Part {
            cpu_seconds: Some(seconds(self.cpu().ns)),
            user_seconds: Some(seconds(self.user.ns)),
            system_seconds: Some(seconds(self.system.ns)),
            cpu_error: self.cpu().error(),
            user_error: self.user.error(),
            system_error: self.system.error(),
            samples: self.beside.samples,
            sampled_cpu_seconds: Some(seconds(self.beside.weight)),
            sampling_error: sampling_error(self.beside.samples),
        }
    }
    /// The same, as a part of a whole.
    pub fn answer_of(&self, whole: &Self, class: Option<&'static str>) -> api::PartOf {
        api::PartOf {
            thread_class: class.map(Into::into),
            source: self.source.or(whole.source).map(|source| source.slug().into()),
            part: self.answer(),
            share: crate::answer::share(self.cpu().ns, whole.cpu().ns),
            share_error: self.share_error(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::share_error;
    use serde_json::{Value, json};

    fn sampled(samples: u64) -> Sampled {
        Sampled { samples, weight: samples * 10 }
    }

    #[test]
    fn errors_of_samples_are_those_of_the_page() {
        let part = Part::sampled(sampled(60), sampled(40));
        let mut whole = Part::sampled(sampled(300), sampled(0));
        whole.add(&part);
        let json = json!(part.answer_of(&whole, None));
        let is = |key: &str, want: Option<f64>| {
            let got = json[key].as_f64();
            assert!(got.zip(want).is_some_and(|(a, b)| (a - b).abs() < 1e-12), "{key}: {got:?} {want:?}");
        };
        is("cpu_error", sampling_error(100));
        is("user_error", sampling_error(60));
        is("system_error", sampling_error(40));
        is("share", Some(0.25));
        is("share_error", share_error(100, 400));
    }

    #[test]
    fn what_is_exact_has_no_error_and_a_sum_has_its_sampled_parts() {
        let mut sums = LedgerSums::default();
        sums.accounts.cpu_ns = 3_000;
        let exact = Part::exact(&sums, sampled(290));
        let json = json!(exact.answer_of(&exact, None));
        assert_eq!((&json["cpu_error"], &json["share_error"]), (&Value::Null, &Value::Null));
        assert_eq!((&json["source"], &json["samples"]), (&json!("ledger"), &json!(290)));
        let mut sum = exact;
        sum.add(&Part::sampled(sampled(100), sampled(0)));
        let json = json!(sum.answer_of(&sum, None));
        assert_eq!((&json["source"], &json["cpu_seconds"]), (&json!("mixed"), &json!(4e-6)));
        // 1,000 of 4,000 are off by a tenth.
        assert!((json["cpu_error"].as_f64().unwrap() - 0.025).abs() < 1e-12);
        assert_eq!(Part::default().answer().cpu_error, None);
    }
}
