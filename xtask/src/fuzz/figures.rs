//! What libFuzzer says at the end of a run, as a row of a table.

use std::time::Duration;

/// A run's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Inputs that were run.
    pub runs: u64,
    /// Edges that were reached.
    pub edges: u64,
    /// Inputs in the corpus.
    pub corpus: u64,
    /// Peak of resident memory, MB.
    pub peak_mb: u64,
    /// How long it took.
    pub took: Duration,
    /// Files of inputs that crash, hang or take too much memory.
    pub findings: Vec<String>,
}

impl Figures {
    /// The table's head.
    pub const HEAD: &str = "target             seconds       runs    edges   corpus  peak MB  findings";

    /// Reads what a run said on stderr.
    pub fn read(said: &str, took: Duration) -> Self {
        let mut figures = Self { took, ..Self::default() };
        for line in said.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let after =
                |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1));
            if line.starts_with('#') {
                // #1024  NEW    cov: 120 ft: 340 corp: 12/1Kb ... : the last one counts.
                let number = |text: &&str| text.split('/').next()?.parse().ok();
                figures.edges = after("cov:").and_then(number).unwrap_or(figures.edges);
                figures.corpus = after("corp:").and_then(number).unwrap_or(figures.corpus);
                let runs = words.first().and_then(|word| word.strip_prefix('#')?.parse().ok());
                figures.runs = runs.unwrap_or(figures.runs);
            }
            let last = || words.last().and_then(|word| word.parse().ok());
            match words.first() {
                Some(&"stat::number_of_executed_units:") => figures.runs = last().unwrap_or(figures.runs),
                Some(&"stat::peak_rss_mb:") => figures.peak_mb = last().unwrap_or_default(),
                _ => {}
            }
            if let Some((_, file)) = line.split_once("Test unit written to ") {
                figures.findings.push(file.trim().to_owned());
            }
        }
        figures
    }

    /// A row below [`Self::HEAD`].
    pub fn row(&self, target: &str) -> String {
        let findings = match &self.findings[..] {
            [] => "none".to_owned(),
            some => some.join(" "),
        };
        format!(
            "{target:<16} {:>9.0} {:>10} {:>8} {:>8} {:>8}  {findings}",
            self.took.as_secs_f64(),
            self.runs,
            self.edges,
            self.corpus,
            self.peak_mb,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_figures_count() {
        let said = "INFO: Seed: 1\n#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 40Mb\n\
                    #512\tNEW    cov: 33 ft: 60 corp: 7/90b lim: 4 exec/s: 0 rss: 41Mb L: 4/4 MS: 1 CopyPart-\n\
                    #900\tDONE   cov: 33 ft: 60 corp: 7/90b lim: 8 exec/s: 450 rss: 44Mb\n\
                    stat::number_of_executed_units: 901\nstat::peak_rss_mb:              45\n";
        let figures = Figures::read(said, Duration::from_secs(2));
        let wanted = Figures {
            runs: 901,
            edges: 33,
            corpus: 7,
            peak_mb: 45,
            took: Duration::from_secs(2),
            findings: Vec::new(),
        };
        assert_eq!(figures, wanted);
        assert!(figures.row("elf").ends_with("  none"));
    }

    #[test]
    fn a_crash_is_a_finding() {
        let said = "#7\tNEW    cov: 3 ft: 6 corp: 2/9b\nthread panicked at x\n\
                    artifact_prefix='/t/elf/'; Test unit written to /t/elf/crash-1\n";
        let figures = Figures::read(said, Duration::ZERO);
        assert_eq!((figures.runs, figures.findings), (7, vec!["/t/elf/crash-1".to_owned()]));
    }
}
