//! What the clients met, as a table: requests, errors, times, bytes; a row for each route, and one for all.

use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of a MiB.
pub const MIB: f64 = 1024.0 * 1024.0;

/// By route.
pub type Routes = BTreeMap<&'static str, Met>;

/// What a route's clients met.
#[derive(Default)]
pub struct Met {
    seconds: Vec<f64>,
    bytes: u64,
    errors: BTreeMap<String, u64>,
}

impl Met {
    /// 200, with so many bytes, so long after the question.
    pub fn answered(&mut self, after: Duration, bytes: u64) {
        self.seconds.push(after.as_secs_f64());
        self.bytes += bytes;
    }

    /// Anything else.
    pub fn failed(&mut self, error: String) {
        *self.errors.entry(error).or_default() += 1;
    }

    /// Takes another's figures.
    pub fn add(&mut self, other: Self) {
        self.seconds.extend(other.seconds);
        self.bytes += other.bytes;
        for (error, count) in other.errors {
            *self.errors.entry(error).or_default() += count;
        }
    }
}

/// Prints it; how many errors there were.
pub fn print(met: Routes, seconds: u64) -> u64 {
    println!(
        "{:<52} {:>8} {:>7} {:>9} {:>9} {:>9} {:>9}",
        "", "n", "errors", "p50 ms", "p99 ms", "max ms", "MiB"
    );
    let mut all = Met::default();
    for (path, route) in met {
        line(path, &route);
        all.add(route);
    }
    line("all", &all);
    println!("{:.1} answers a second", all.seconds.len() as f64 / seconds as f64);
    for (error, count) in &all.errors {
        println!("error, {count} times: {error}");
    }
    all.errors.values().sum()
}

fn line(name: &str, met: &Met) {
    let at = |part: f64| crate::bench::stats::quantile(&met.seconds, part) * 1e3;
    let errors: u64 = met.errors.values().sum();
    println!(
        "{name:<52} {:>8} {errors:>7} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
        met.seconds.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        met.bytes as f64 / MIB
    );
}
