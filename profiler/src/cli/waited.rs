//! `WAITED FOR` of stages and tasks: where their time went that was no computing.
//!
//! In: `waited` of a row, and its exact figures. Out: a cell with the largest parts of the threads' wall time: each reason,
//! the run queue as `cpu`, and the cgroup's quota as `throttled`.

use emberscope_api::{Exact, Waited};

/// Head of the column.
pub const HEAD: &str = "WAITED FOR";
/// What the column means, for the line below the table.
pub const NOTE: &str = "WAITED FOR: the largest parts of the threads' wall time in which they did not run; cpu is the run queue, \
     throttled the cgroup's quota of CPU time";
/// Parts that a cell shows.
const SHOWN: usize = 2;
/// Parts of the wall time below this are left out.
const LEAST: f64 = 0.01;

/// The cell; empty where waits are not sampled.
pub fn cell(waited: Option<&Waited>, exact: Option<&Exact>) -> String {
    let (Some(waited), Some(exact)) = (waited, exact) else { return String::new() };
    let throttled = exact.throttled_seconds;
    let queued = [("cpu", exact.run_delay_seconds - throttled), ("throttled", throttled)];
    let mut parts: Vec<(&str, f64)> =
        waited.by.iter().map(|(reason, seconds)| (&**reason, *seconds)).chain(queued).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let share = |seconds: f64| seconds / exact.wall_seconds.max(f64::MIN_POSITIVE);
    let shown = parts.iter().filter(|(_, seconds)| share(*seconds) >= LEAST).take(SHOWN);
    let text: Vec<String> =
        shown.map(|(reason, seconds)| format!("{reason} {:.0} %", share(*seconds) * 100.0)).collect();
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_api::Figures;

    #[test]
    fn the_largest_parts_of_the_wall_time() {
        let figures: Figures =
            serde_json::from_str(r#"{"exact":{"wall_seconds":10.0,"run_delay_seconds":2.0}}"#).unwrap();
        let of = |json| serde_json::from_str::<Waited>(json).unwrap();
        let all = of(r#"{"seconds":5.1,"by":{"gc":0.05,"lock":1.05,"shuffle":4.0}}"#);
        assert_eq!(cell(Some(&all), figures.exact.as_ref()), "shuffle 40 %, cpu 20 %");
        assert_eq!(cell(Some(&of(r#"{"by":{"gc":0.05}}"#)), figures.exact.as_ref()), "cpu 20 %");
        assert_eq!(cell(None, figures.exact.as_ref()), "");
        let quota = r#"{"exact":{"wall_seconds":10.0,"run_delay_seconds":5.0,"throttled_seconds":4.5}}"#;
        let quota: Figures = serde_json::from_str(quota).unwrap();
        assert_eq!(cell(Some(&all), quota.exact.as_ref()), "throttled 45 %, shuffle 40 %");
        assert_eq!(cell(Some(&all), None), "");
    }
}
