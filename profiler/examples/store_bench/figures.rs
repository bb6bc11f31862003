//! A table of figures: each with what it rests on, its bar, and what Pyroscope needed for the same.

/// What an answer took, in milliseconds, each time.
pub struct Times {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

impl Times {
    /// Of these, on the clock and on all CPUs.
    pub fn new(times: Vec<(f64, f64)>) -> Self {
        let (mut wall, mut cpu): (Vec<f64>, Vec<f64>) = times.into_iter().unzip();
        wall.sort_by(f64::total_cmp);
        cpu.sort_by(f64::total_cmp);
        Self { wall, cpu }
    }
    /// How many.
    pub fn n(&self) -> usize {
        self.wall.len()
    }
    /// The figure that this share of them is not above: the nearest rank.
    pub fn quantile(&self, share: f64) -> f64 {
        quantile(&self.wall, share)
    }
    /// The same of CPU time, which other work on the machine changes less.
    pub fn cpu(&self, share: f64) -> f64 {
        quantile(&self.cpu, share)
    }
    /// Smallest and largest.
    pub fn spread(&self) -> String {
        format!("{:.1} to {:.1}", self.quantile(0.0), self.quantile(1.0))
    }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// A line.
pub struct Line {
    /// What was measured.
    pub what: String,
    /// How often.
    pub n: usize,
    /// The figure.
    pub figure: f64,
    /// CPU time of the process for it, in the same unit.
    pub cpu: Option<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// Smallest to largest, where there are several.
    pub spread: String,
    /// At most this.
    pub bar: Option<f64>,
    /// Pyroscope's figure, as the project's plan gives it (commit 3fe6a457, on such data). It was not measured here.
    pub pyroscope: Option<f64>,
}

impl Line {
    /// One that was measured once.
    pub fn once(what: impl Into<String>, figure: f64, unit: &'static str, bar: Option<f64>) -> Self {
        Self { what: what.into(), n: 1, figure, cpu: None, unit, spread: String::new(), bar, pyroscope: None }
    }
    /// Beside Pyroscope's.
    pub fn beside(self, pyroscope: f64) -> Self {
        Self { pyroscope: Some(pyroscope), ..self }
    }
    /// Whether it is over its bar.
    pub fn fails(&self) -> bool {
        self.bar.is_some_and(|bar| self.figure.is_nan() || self.figure > bar)
    }
}

/// Median and 99th of a hundred, with their bars.
pub fn lines(
    what: &str,
    times: &Times,
    p50: Option<f64>,
    p99: Option<f64>,
    pyroscope: Option<f64>,
) -> Vec<Line> {
    let line = |name: &str, share, bar, pyroscope| Line {
        what: format!("{what}, {name}"),
        n: times.n(),
        figure: times.quantile(share),
        cpu: Some(times.cpu(share)),
        unit: "ms",
        spread: times.spread(),
        bar,
        pyroscope,
    };
    vec![line("p50", 0.5, p50, pyroscope), line("p99", 0.99, p99, None)]
}

/// Prints the table. False: a figure is over its bar.
pub fn print(lines: &[Line]) -> bool {
    println!(
        "\n{:<58} {:>5} {:>12} {:<9} {:<19} {:>9} {:>9} {:<5} {:>10} {:>7}",
        "figure", "n", "seen", "", "smallest to largest", "of CPU", "bar", "holds", "Pyroscope", "ratio"
    );
    for line in lines {
        let bar = line.bar.map_or("-".to_owned(), |bar| format!("<= {bar}"));
        let holds = match line.bar {
            None => "-",
            Some(_) if line.fails() => "NO",
            Some(_) => "yes",
        };
        let cpu = line.cpu.map_or("-".to_owned(), |cpu| format!("{cpu:.1}"));
        let known = line.pyroscope.map_or("-".to_owned(), |figure| figure.to_string());
        let ratio = line.pyroscope.map_or("-".to_owned(), |other| format!("{:.1}", other / line.figure));
        println!(
            "{:<58} {:>5} {:>12.3} {:<9} {:<19} {:>9} {:>9} {:<5} {:>10} {:>7}",
            line.what, line.n, line.figure, line.unit, line.spread, cpu, bar, holds, known, ratio
        );
    }
    println!(
        "Pyroscope's figures are those of the project's plan (commit 3fe6a457 on such data), not of this run;\n\
         its ingest went at ten times the pace."
    );
    !lines.iter().any(Line::fails)
}
