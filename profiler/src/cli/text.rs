//! Text for terminals.
//!
//! In: names from outside (applications, methods, processes) that may hold anything. Out: text in which
//! nothing moves the cursor, changes colours or reorders a line, and tables with aligned columns.

use std::borrow::Cow;
use std::io::{self, Write};

/// Text with every character that a terminal would act on written as `\u{1b}`.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Controls (C0, DEL, C1), line separators and the marks that change the direction of text.
pub(super) fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Side to which a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// A table with a heading line.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    /// An empty one.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), notes: Vec::new() }
    }
    /// Adds a row; an empty cell shows as `-`.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let shown = |cell: String| if cell.is_empty() { "-".to_owned() } else { clean(&cell).into_owned() };
        self.rows.push(cells.into_iter().map(shown).collect());
    }
    /// Adds a line below the rows.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }
    /// It has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// Writes it. The last column, when it is left-aligned, is not padded.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let head: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let lines = || std::iter::once(&head).chain(&self.rows);
        let width = |column: usize| {
            lines().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        for row in lines() {
            let mut line = String::new();
            for ((cell, (_, align)), width) in row.iter().zip(&self.columns).zip(&widths) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                match align {
                    Align::Left => line.push_str(&format!("{cell:<width$}")),
                    Align::Right => line.push_str(&format!("{cell:>width$}")),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "{}", clean(note)))
    }
}

/// Seconds for people: `1.23 s`; empty when not known.
pub fn seconds(seconds: Option<f64>) -> String {
    seconds.map(|seconds| format!("{seconds:.2} s")).unwrap_or_default()
}

/// A share for people: `12.34 %`; empty when not known.
pub fn percent(share: Option<f64>) -> String {
    share.map(|share| format!("{:.2} %", 100.0 * share)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_table_is_aligned_and_harmless() {
        let mut table = Table::new(&[("APP", Align::Left), ("SAMPLES", Align::Right), ("NAME", Align::Left)]);
        table.row(["a".into(), "7".into(), "x\u{1b}[2J\ny".into()]);
        table.row(["application_1".into(), "12345678".into(), String::new()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let want = "APP             SAMPLES  NAME\n\
                    a                     7  x\\u{1b}[2J\\u{a}y\n\
                    application_1  12345678  -\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn figures_are_for_people() {
        assert_eq!((seconds(Some(1.234)), seconds(None)), ("1.23 s".to_owned(), String::new()));
        assert_eq!((percent(Some(0.125)), percent(None)), ("12.50 %".to_owned(), String::new()));
    }

    proptest! {
        #[test]
        fn nothing_acts_after_cleaning(text in any::<String>()) {
            prop_assert!(!clean(&text).chars().any(acts));
        }
    }
}
