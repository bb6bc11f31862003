//! What `check.sh` left behind.
//!
//! In: its directory. Out: facts, answers and logs; what is not there is empty, which the judge takes for a failure.

use crate::oracle::stack::{Stack, stacks};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// `fact NAME=VALUE` lines; the last of a name holds.
    pub facts: BTreeMap<String, String>,
    /// `emberscope doctor --json`.
    pub doctor: Value,
    /// `emberscope status --json`.
    pub status: Value,
    /// Stacks, grouped by `pid`.
    pub stacks: Vec<Stack>,
    /// Stacks of the application, grouped by `role` and `stage`.
    pub spark: Vec<Stack>,
    /// `emberscope stages --json` of it.
    pub stages: Value,
    /// What the daemon, or `emberscope record`, logged.
    pub log: String,
}

impl Outcome {
    /// Reads it: the console, and what is in `out`.
    pub fn read(dir: &Path) -> Self {
        let text = |name: &str| {
            String::from_utf8_lossy(&std::fs::read(dir.join("out").join(name)).unwrap_or_default())
                .into_owned()
        };
        let json = |name: &str| serde_json::from_str(&text(name)).unwrap_or(Value::Null);
        Self {
            // A guest that died half way has told some on its console.
            facts: facts(&(text("../console.log") + "\n" + &text("facts"))),
            doctor: json("doctor.json"),
            status: json("status.json"),
            stacks: stacks(&json("graph.json")),
            spark: stacks(&json("spark.json")),
            stages: json("stages.json"),
            log: text("daemon.log"),
        }
    }

    /// A fact's value.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.get(name).map(String::as_str)
    }

    /// The stacks of a program, by the fact that tells its pid.
    pub fn of(&self, program: &str) -> Vec<&Stack> {
        let Some(pid) = self.fact(program) else { return Vec::new() };
        self.stacks.iter().filter(|stack| stack.label("pid") == Some(pid)).collect()
    }

    /// What the doctor found of a check: `ok`, `limited` or `missing`.
    pub fn checked(&self, check: &str) -> Option<&str> {
        let findings = self.doctor["findings"].as_array()?;
        findings.iter().find(|finding| finding["check"] == check)?["status"].as_str()
    }

    /// The daemon's warnings and errors.
    pub fn warnings(&self) -> Vec<&str> {
        let grave =
            |line: &&str| [" WARN ", " ERROR ", "emberscope: "].iter().any(|mark| line.contains(mark));
        self.log.lines().filter(grave).collect()
    }
}

/// The console ends lines with a carriage return, and firmware writes in front of the first.
fn facts(text: &str) -> BTreeMap<String, String> {
    let fact = |line: &str| {
        let (name, value) = line.trim_end().split_once("fact ")?.1.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn facts_come_from_console_and_file() {
        let found = facts("\u{1b}[2Jfact up=6.1.0-50-cloud-amd64\r\nnoise\nfact graph=4\nfact graph=0\n");
        assert_eq!(found.get("up").map(String::as_str), Some("6.1.0-50-cloud-amd64"));
        assert_eq!(found.get("graph").map(String::as_str), Some("0"));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn an_empty_directory_is_an_empty_outcome() {
        let outcome = Outcome::read(Path::new("/no/such/directory"));
        assert!(outcome.facts.is_empty() && outcome.stacks.is_empty() && outcome.of("native").is_empty());
        assert_eq!(outcome.checked("btf"), None);
    }

    #[test]
    fn checks_and_warnings_are_found() {
        let outcome = Outcome {
            doctor: json!({"findings": [{"check": "btf", "status": "ok"}, {"check": "bpf loop", "status": "limited"}]}),
            log: "2026 INFO a\n2026  WARN emberscope::x: b\nemberscope: c\n".into(),
            ..Outcome::default()
        };
        assert_eq!(outcome.checked("bpf loop"), Some("limited"));
        assert_eq!(outcome.warnings().len(), 2);
    }
}
