//! What an answer rests on: which windows it holds, how many samples, how many were lost.
//!
//! In: the head of a JSON answer, the `X-Emberscope-*` headers of any other, or a recording's own
//! [`Answer`]. Out: a line for people, on standard error, so that tables stay tables. What a daemon of
//! another version does not send reads as nothing.

use super::client::Answered;
use super::text;
use emberscope_api::{Head, Weight};
use emberscope_model::{Answer, SampleKind};
use serde_json::Value;

/// Names of missing parts in the line.
const MAX_NAMED: usize = 3;

/// What an answer rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Basis {
    kind: SampleKind,
    from: String,
    until: String,
    windows: u64,
    samples: u64,
    lost: u64,
    truncated: u64,
    missing: u64,
    names: Vec<String>,
    note: String,
}

impl From<Head> for Basis {
    fn from(Head { basis, note, .. }: Head) -> Self {
        Self {
            kind: SampleKind::asked(&basis.kind).unwrap_or_default(),
            from: basis.range.from.0,
            until: basis.range.until.0,
            windows: basis.windows,
            samples: basis.quality.samples,
            lost: basis.quality.lost,
            truncated: basis.quality.truncated,
            missing: basis.quality.missing,
            names: basis.quality.missing_parts.into_iter().map(|part| told(&part.name, &part.says)).collect(),
            note: note.unwrap_or_default(),
        }
    }
}

impl From<&Answered> for Basis {
    fn from(answered: &Answered) -> Self {
        Self::from_headers(answered, "x-emberscope")
    }
}

impl From<&Answer> for Basis {
    fn from(answer: &Answer) -> Self {
        Self {
            kind: answer.quality.kind,
            from: answer.range.from.to_string(),
            until: answer.range.until.to_string(),
            windows: answer.windows as u64,
            samples: answer.quality.samples,
            lost: answer.quality.lost.samples(),
            truncated: answer.quality.truncated,
            missing: answer.quality.missing.count,
            names: answer.quality.missing.parts.iter().map(|part| told(&part.name, &part.says)).collect(),
            note: String::new(),
        }
    }
}

/// What samples of a kind weigh together, for people; empty where the answer does not say.
pub fn amount(weight: &Weight, kind: SampleKind) -> String {
    match weight.of(kind) {
        Some(whole) if kind.facts().amount.of == 1 => whole.to_string(),
        other => text::seconds(other.and_then(Value::as_f64)),
    }
}

/// What is missing: a block by its name, of a node also why.
fn told(name: &str, says: &str) -> String {
    match name.starts_with("node ") && !says.is_empty() {
        true => format!("{name} {says}"),
        false => name.to_owned(),
    }
}

/// `1 thing` or `2 things`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

impl Basis {
    /// From the headers whose names begin with `prefix`; of a difference the left side's are
    /// `x-emberscope-left`.
    pub fn from_headers(answered: &Answered, prefix: &str) -> Self {
        let text = |name: &str| answered.header(&format!("{prefix}-{name}")).to_owned();
        let number = |name: &str| text(name).parse().unwrap_or(0);
        Self {
            kind: SampleKind::asked(&text("type")).unwrap_or_default(),
            from: text("from"),
            until: text("until"),
            windows: number("windows"),
            samples: number("samples"),
            lost: number("lost"),
            truncated: number("truncated"),
            missing: number("missing"),
            names: text("missing-parts").split(", ").map(str::to_owned).collect(),
            note: text("note"),
        }
    }

    /// What the answer's samples count.
    pub fn kind(&self) -> SampleKind {
        self.kind
    }

    /// First instant that is in, first that is out, RFC 3339.
    pub fn range(&self) -> (&str, &str) {
        (&self.from, &self.until)
    }

    /// Samples in the answer.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// All of it in a line, for people.
    pub fn line(&self) -> String {
        let (windows, samples) = (counted(self.windows, "window"), counted(self.samples, "sample"));
        // Each of n samples is one of a Poisson process: 1/sqrt(n).
        let error = match self.samples {
            0 => String::new(),
            n => format!(" (+- {:.1} %)", 100.0 / (n as f64).sqrt()),
        };
        let missing = self.missing();
        format!(
            "{windows} from {} until {}: {samples}{error}, {} lost on the node, {} with a stack cut short{missing}",
            self.from, self.until, self.lost, self.truncated
        )
    }

    /// What there is no answer of, at the end of a line.
    fn missing(&self) -> String {
        match self.missing {
            0 => String::new(),
            n => format!("; MISSING: {}{}", counted(n, "part"), self.named(n)),
        }
    }

    /// The first of those parts by name.
    fn named(&self, all: u64) -> String {
        let some: Vec<&str> = self.names.iter().take(MAX_NAMED).map(String::as_str).collect();
        match all.saturating_sub(some.len() as u64) {
            _ if some.iter().all(|name| name.is_empty()) => String::new(),
            0 => format!(" ({})", some.join(", ")),
            more => format!(" ({} and {more} more)", some.join(", ")),
        }
    }

    /// A sentence that says why there is nothing.
    pub fn nothing(&self, what: &str, chosen: &str) -> String {
        if !self.note.is_empty() {
            return format!("no {what}: {}", self.note);
        }
        let chosen = if chosen.is_empty() { String::new() } else { format!(" with {chosen}") };
        format!("no {what}{chosen} from {} until {}{}", self.from, self.until, self.missing())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basis(json: &str) -> Basis {
        serde_json::from_str::<Head>(json).unwrap().into()
    }

    #[test]
    fn the_line_tells_windows_samples_and_losses() {
        let whole = basis(
            r#"{"range":{"from":"A","until":"B"},"windows":6,"window_seconds":10,
                "quality":{"samples":400,"lost":2,"truncated":7,"frames":9}}"#,
        );
        assert_eq!(
            whole.line(),
            "6 windows from A until B: 400 samples (+- 5.0 %), 2 lost on the node, 7 with a stack cut short"
        );
        assert_eq!(whole.nothing("app", "user=x"), "no app with user=x from A until B");
        let quality = r#"{"quality":{"samples":4,"missing":5,"missing_parts":[{"name":"a"},{"name":"b"}]}}"#;
        let holes = basis(quality);
        assert!(holes.line().ends_with("; MISSING: 5 parts (a, b and 3 more)"), "{}", holes.line());
        let empty = basis(r#"{"note":"No window has closed yet."}"#);
        assert_eq!(empty.nothing("app", ""), "no app: No window has closed yet.");
        assert!(empty.line().contains("0 windows") && empty.line().contains(": 0 samples, 0 lost"));
    }
}
