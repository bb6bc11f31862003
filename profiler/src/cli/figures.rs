//! The figures of stages, tasks and classes, as the API tells them.
//!
//! In: JSON. Out: cells of a table. Exact figures are the kernel's accounts of a thread, sampled ones
//! rest on samples and have an error; a cell never mixes them. A figure that is not told is an empty cell.

use super::text;
use emberscope_api::{Exact, Figures, Instant};
use emberscope_model::SampleKind;

/// Figures as cells.
pub trait Cells {
    /// A time from the accounts.
    fn exact_time(&self, of: fn(&Exact) -> f64) -> String;
    /// Two counts from the accounts, as `1/2`.
    fn exact_pair(&self, of: fn(&Exact) -> (u64, u64)) -> String;
    /// Bytes from the accounts.
    fn exact_bytes(&self, of: fn(&Exact) -> u64) -> String;
    /// What samples of a kind weigh, with its error; empty without samples.
    fn sampled(&self, kind: SampleKind) -> String;
    /// There is nothing in it.
    fn is_empty(&self) -> bool;
}

impl Cells for Figures {
    fn exact_time(&self, of: fn(&Exact) -> f64) -> String {
        text::time(self.exact.as_ref().map(of))
    }
    fn exact_pair(&self, of: fn(&Exact) -> (u64, u64)) -> String {
        self.exact.as_ref().map(of).map(|(a, b)| format!("{a}/{b}")).unwrap_or_default()
    }
    fn exact_bytes(&self, of: fn(&Exact) -> u64) -> String {
        text::bytes(self.exact.as_ref().map(of))
    }
    fn sampled(&self, kind: SampleKind) -> String {
        match self.sampled.samples {
            0 => String::new(),
            _ => text::amount_within(self.sampled.amount(kind), self.sampled.sampling_error, kind),
        }
    }
    fn is_empty(&self) -> bool {
        self.exact.is_none() && self.sampled.samples == 0
    }
}

/// What was sampled of a stage or a task: of CPU time that of its own threads, for helpers and Python workers have columns of
/// their own; of any other kind that of all of them, with the error of all.
pub fn sampled(own: &Figures, others: [&Figures; 2], kind: SampleKind) -> String {
    if kind == SampleKind::Cpu {
        return own.sampled(kind);
    }
    let all = || [own].into_iter().chain(others).map(|figures| &figures.sampled);
    let samples = all().fold(0u64, |sum, sampled| sum.saturating_add(sampled.samples));
    let amount: f64 = all().filter_map(|sampled| sampled.amount(kind)).sum();
    match samples {
        0 => String::new(),
        n => text::amount_within(Some(amount), (kind.facts().error)(n), kind),
    }
}

/// Head of the column of what was sampled: the kind's own, but for times that exact columns have names of.
pub const fn head(kind: SampleKind) -> &'static str {
    match kind {
        SampleKind::Cpu => "SAMPLED",
        SampleKind::Wall => "SAMPLED WALL",
        _ => kind.facts().column,
    }
}

/// The line under a table that has figures of both kinds, sampled ones of a kind of samples: how they come about.
pub fn how<'a>(rows: impl IntoIterator<Item = &'a Figures>, kind: SampleKind) -> String {
    let sampled = format!("{}: from n samples, +- the standard error 1/sqrt(n)", head(kind));
    if rows.into_iter().all(|figures| figures.exact.is_none()) {
        return format!(
            "the kernel's accounts have no figures for these (emberscope status may say why); {sampled}"
        );
    }
    format!("exact, from the kernel's accounts of each thread, except {sampled}")
}

/// The line that says of whom the column of what was sampled is; None of CPU time, whose other columns say it.
pub fn whose(kind: SampleKind) -> Option<String> {
    let of_all = "of the tasks' own threads, of threads that tasks started and of Python workers together";
    (kind != SampleKind::Cpu).then(|| format!("{}: {}, {of_all}", head(kind), kind.facts().title))
}

/// What is known, else nothing.
pub fn known(text: &Option<String>) -> String {
    text.clone().unwrap_or_default()
}

/// A moment, without its date where all of the answer is of one day; empty where it is not known.
pub fn moment(time: Option<&Instant>, from: &str, until: &str) -> String {
    let time = time.map_or("", |time| &time.0);
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
    use emberscope_api::SparkCpu;

    #[test]
    fn what_is_not_told_is_an_empty_cell() {
        let nothing: Figures = serde_json::from_str(r#"{"exact":null,"sampled":{"samples":0}}"#).unwrap();
        assert!(nothing.is_empty());
        assert_eq!(nothing.exact_time(|exact| exact.cpu_seconds), "");
        assert_eq!(nothing.sampled(SampleKind::Cpu), "");
        let sampled: Figures =
            serde_json::from_str(r#"{"sampled":{"samples":400,"cpu_seconds":4.04,"sampling_error":0.05}}"#)
                .unwrap();
        assert_eq!(sampled.sampled(SampleKind::Cpu), "4.04 s +- 5.0 %");
        let how = |rows: [&Figures; 2]| how(rows, SampleKind::Cpu);
        assert!(how([&nothing, &sampled]).starts_with("the kernel's accounts have no figures"));
        let exact = Figures { exact: Some(Exact::default()), ..Figures::default() };
        assert!(how([&nothing, &exact]).starts_with("exact, "));
        assert!(!sampled.is_empty());
    }

    #[test]
    fn what_is_sampled_of_other_kinds_is_of_all_threads() {
        let of = |json: &str| serde_json::from_str::<Figures>(json).unwrap();
        let own = of(r#"{"sampled":{"samples":300,"allocated_bytes":1048576,"sampling_error":0.0577}}"#);
        let helpers = of(r#"{"sampled":{"samples":100,"allocated_bytes":524288,"sampling_error":0.1}}"#);
        let none = Figures::default();
        assert_eq!(sampled(&own, [&helpers, &none], SampleKind::Alloc), "1.5 MiB +- 5.0 %");
        assert_eq!(sampled(&none, [&none, &none], SampleKind::Alloc), "");
        let cpu = of(r#"{"sampled":{"samples":400,"cpu_seconds":4.04,"sampling_error":0.05}}"#);
        assert_eq!(sampled(&cpu, [&cpu, &none], SampleKind::Cpu), "4.04 s +- 5.0 %");
        assert_eq!((whose(SampleKind::Cpu), head(SampleKind::Cpu)), (None, "SAMPLED"));
        let line = how([&own], SampleKind::Alloc);
        assert!(line.ends_with("ALLOCATED: from n samples, +- the standard error 1/sqrt(n)"), "{line}");
        assert!(whose(SampleKind::Alloc).unwrap().starts_with("ALLOCATED: allocated memory, of the tasks'"));
    }

    #[test]
    fn sparks_cpu_is_both_of_its_clocks() {
        let cpu = |json| serde_json::from_str::<SparkCpu>(json).unwrap().seconds();
        assert_eq!(cpu(r#"{"executor_cpu_ns":1500000000,"deserialize_cpu_ns":500000000}"#), Some(2.0));
        assert_eq!(cpu(r#"{"executor_cpu_ns":null}"#), None);
    }

    #[test]
    fn a_date_is_left_out_within_a_day() {
        let moment = |time: &str, from, until| moment(Some(&Instant(time.to_owned())), from, until);
        let (from, until) = ("2026-11-21T10:00:00.000Z", "2026-11-21T11:00:00.000Z");
        assert_eq!(moment("2026-11-21T10:00:03.120Z", from, until), "10:00:03.120Z");
        assert_eq!(moment("2026-11-20T23:59:59.000Z", from, until), "2026-11-20T23:59:59.000Z");
        assert_eq!(moment("2026-11-21T10:00:03.120Z", from, "2026-11-22T00:00:00.000Z").len(), 24);
        assert_eq!(moment("", from, until), "");
    }
}
