//! A line of the table: a figure, the samples or tasks it rests on, its bar, and whether it holds.

/// A line.
pub struct Row {
    what: String,
    n: f64,
    figure: String,
    bar: String,
    /// None: told, not judged.
    holds: Option<bool>,
}

impl Row {
    /// A figure seen against the true one, in percent. It is within its bar when it is at most the bar plus
    /// 0.7/sqrt(n), n being the samples that it rests on.
    pub fn deviation(what: impl Into<String>, seen: f64, truth: f64, unit: &str, bar: f64, n: f64) -> Self {
        let error = 70.0 / n.max(1.0).sqrt();
        Self::off(what.into(), (seen, truth, unit), (bar, Some(error)), n)
    }

    /// The same for CPU seconds of a process that had a share of a CPU. A tick hits it with that probability, so the
    /// deviation of n samples is sqrt((1 - share) / n): two of them are the sampling error, where that is more.
    pub fn deviation_of_share(
        what: impl Into<String>,
        (seen, truth): (f64, f64),
        bar: f64,
        (n, share): (f64, f64),
    ) -> Self {
        let error = 100.0 * (2.0 * (1.0 - share).clamp(0.0, 1.0).sqrt()).max(0.7) / n.max(1.0).sqrt();
        Self::off(what.into(), (seen, truth, "s"), (bar, Some(error)), n)
    }

    /// The same for an exact figure: no sampling error.
    pub fn exact(what: impl Into<String>, seen: f64, truth: f64, unit: &str, bar: f64, n: usize) -> Self {
        Self::off(what.into(), (seen, truth, unit), (bar, None), n as f64)
    }

    /// How far a figure is off the true one: in percent of that, or in points where it is in percent itself.
    fn off(
        what: String,
        (seen, truth, unit): (f64, f64, &str),
        (bar, error): (f64, Option<f64>),
        n: f64,
    ) -> Self {
        let off = if unit == "%" { seen - truth } else { (seen / truth - 1.0) * 100.0 };
        Self {
            what,
            n,
            figure: format!("{seen:.3} {unit}, truth {truth:.3} {unit}: {off:+.2} %"),
            bar: error.map_or(format!("{bar} %"), |error| format!("{bar} + {error:.2} %")),
            holds: Some(off.abs() <= bar + error.unwrap_or(0.0)),
        }
    }

    /// At most so many of n.
    pub fn at_most(what: impl Into<String>, count: usize, bar: usize, n: usize) -> Self {
        let holds = Some(count <= bar && n > 0);
        Self { what: what.into(), n: n as f64, figure: count.to_string(), bar: format!("<= {bar}"), holds }
    }

    /// A share of n, in percent, at least the bar.
    pub fn share(what: impl Into<String>, part: usize, bar: f64, n: usize) -> Self {
        let share = part as f64 / n.max(1) as f64 * 100.0;
        Self {
            what: what.into(),
            n: n as f64,
            figure: format!("{share:.2} %"),
            bar: format!(">= {bar} %"),
            holds: Some(share >= bar && n > 0),
        }
    }

    /// Something that is so or is not.
    pub fn is(what: impl Into<String>, figure: impl Into<String>, bar: &str, holds: bool, n: usize) -> Self {
        Self {
            what: what.into(),
            n: n as f64,
            figure: figure.into(),
            bar: bar.to_owned(),
            holds: Some(holds),
        }
    }

    /// A figure without a bar.
    pub fn told(what: impl Into<String>, figure: impl Into<String>, n: usize) -> Self {
        Self { what: what.into(), n: n as f64, figure: figure.into(), bar: "-".to_owned(), holds: None }
    }

    /// Whether it is outside its bar.
    pub fn fails(&self) -> bool {
        self.holds == Some(false)
    }
}

/// Prints the table.
pub fn print(rows: &[Row]) {
    println!("\n{:<62} {:>8}  {:<58} {:<14} holds", "figure", "n", "seen", "bar");
    for Row { what, n, figure, bar, holds } in rows {
        let holds = match holds {
            None => "-",
            Some(true) => "yes",
            Some(false) => "NO",
        };
        println!("{what:<62} {n:>8.0}  {figure:<58} {bar:<14} {holds}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_hold_as_they_say() {
        // 0.7/sqrt(100) is 7 %.
        assert!(!Row::deviation("a", 107.9, 100.0, "s", 1.0, 100.0).fails());
        assert!(Row::deviation("a", 108.1, 100.0, "s", 1.0, 100.0).fails());
        assert!(!Row::deviation("a", 62.1, 70.0, "%", 1.0, 100.0).fails());
        assert!(Row::exact("a", 101.1, 100.0, "s", 1.0, 5).fails());
        assert!(Row::exact("a", f64::NAN, 0.0, "s", 1.0, 5).fails());
        assert!(!Row::at_most("a", 0, 0, 1).fails() && Row::at_most("a", 1, 0, 9).fails());
        // What rests on nothing proves nothing.
        assert!(Row::at_most("a", 0, 0, 0).fails() && Row::share("a", 0, 99.0, 0).fails());
        assert!(!Row::share("a", 99, 99.0, 100).fails() && !Row::told("a", "", 0).fails());
    }
}
