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
    give_way: &'static [&'static str],
}

impl Table {
    /// An empty one.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), notes: Vec::new(), give_way: &[] }
    }
    /// Columns that are left out, the first one first, where the table is wider than the terminal.
    pub fn give_way(&mut self, columns: &'static [&'static str]) {
        self.give_way = columns;
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
    /// Writes it, for a terminal `room` characters wide, or whole. The last column, when it is
    /// left-aligned, is not padded.
    pub fn write(&self, out: &mut dyn Write, room: Option<usize>) -> io::Result<()> {
        let (shown, hidden) = self.fit(room.unwrap_or(usize::MAX));
        let head: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            let cells = shown.iter().filter_map(|&(column, width)| {
                let (cell, (_, align)) = row.get(column).zip(self.columns.get(column))?;
                Some(match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                })
            });
            writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        if !hidden.is_empty() {
            writeln!(
                out,
                "no room for: {}; a wider terminal shows them, and --json has all",
                hidden.join(", ")
            )?;
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "{}", clean(note)))
    }
    /// The columns that fit, each with its width, and the names of those left out.
    fn fit(&self, room: usize) -> (Vec<(usize, usize)>, Vec<&'static str>) {
        let width = |(column, (name, _)): (usize, &(&str, Align))| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            (column, cells.chain([name.chars().count()]).max().unwrap_or(0))
        };
        let mut shown: Vec<_> = self.columns.iter().enumerate().map(width).collect();
        let mut hidden = Vec::new();
        for &name in self.give_way {
            let whole: usize = shown.iter().map(|(_, width)| width + 2).sum();
            if whole <= room.saturating_add(2) {
                break;
            }
            let before = shown.len();
            shown.retain(|(column, _)| self.columns.get(*column).is_some_and(|(column, _)| *column != name));
            if shown.len() < before {
                hidden.push(name);
            }
        }
        (shown, hidden)
    }
}

/// Characters on a line of the terminal that standard output is; None where it is none.
pub fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Seconds for people: `1.23 s`; empty when not known.
pub fn seconds(seconds: Option<f64>) -> String {
    seconds.map(|seconds| format!("{seconds:.2} s")).unwrap_or_default()
}

/// A short time in seconds for people: `0.43 ms`, `17.7 ms`, `3.70 s`; empty when not known.
pub fn time(seconds: Option<f64>) -> String {
    seconds.map(|seconds| signed_time(seconds).replacen('+', "", 1)).unwrap_or_default()
}

/// The same for a difference, with its sign.
pub fn signed_time(seconds: f64) -> String {
    let ms = 1e3 * seconds;
    match ms.abs() {
        // Rounded to one decimal it would say 1000.0 ms.
        999.95.. => format!("{seconds:+.2} s"),
        10.0.. => format!("{ms:+.1} ms"),
        _ => format!("{ms:+.2} ms"),
    }
}

/// A time with its relative standard error: `1.02 s +- 3.0 %`; empty when not known.
pub fn time_within(seconds: Option<f64>, error: Option<f64>) -> String {
    match error {
        Some(error) if seconds.is_some() => format!("{} +- {:.1} %", time(seconds), 100.0 * error),
        _ => time(seconds),
    }
}

/// Bytes for people: `512 B`, `1.2 KiB`; empty when not known.
pub fn bytes(bytes: Option<u64>) -> String {
    let Some(bytes) = bytes else { return String::new() };
    let mut amount = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1023.95 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") };
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

/// A share for people: `12.34 %`; empty when not known.
pub fn percent(share: Option<f64>) -> String {
    share.map(|share| format!("{:.2} %", 100.0 * share)).unwrap_or_default()
}

/// A share with its standard error: `12.34 +- 0.50 %`; empty when not known.
pub fn percent_within(share: Option<f64>, error: Option<f64>) -> String {
    match (share, error) {
        (Some(share), Some(error)) => format!("{:.2} +- {:.2} %", 100.0 * share, 100.0 * error),
        (share, _) => percent(share),
    }
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
        table.write(&mut out, None).unwrap();
        let want = "APP             SAMPLES  NAME\n\
                    a                     7  x\\u{1b}[2J\\u{a}y\n\
                    application_1  12345678  -\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn figures_are_for_people() {
        assert_eq!((seconds(Some(1.234)), seconds(None)), ("1.23 s".to_owned(), String::new()));
        assert_eq!((percent(Some(0.125)), percent(None)), ("12.50 %".to_owned(), String::new()));
        assert_eq!(percent_within(Some(0.5), Some(0.0125)), "50.00 +- 1.25 %");
        assert_eq!(
            (percent_within(Some(0.5), None), percent_within(None, Some(0.1))),
            ("50.00 %".to_owned(), String::new())
        );
        let times = [0.0, 0.00043, 0.009994, 0.0177, 0.99994, 0.99996, 3700.0];
        let want = ["0.00 ms", "0.43 ms", "9.99 ms", "17.7 ms", "999.9 ms", "1.00 s", "3700.00 s"];
        assert_eq!(times.map(|seconds| time(Some(seconds))), want);
        assert_eq!((signed_time(0.0042), signed_time(-2.5)), ("+4.20 ms".to_owned(), "-2.50 s".to_owned()));
        assert_eq!(time_within(Some(4.0), Some(0.05)), "4.00 s +- 5.0 %");
        assert_eq!(
            (time_within(Some(4.0), None), time_within(None, Some(0.1))),
            ("4.00 s".to_owned(), String::new())
        );
        let sizes = [0, 1023, 1536, 1 << 20, u64::MAX];
        assert_eq!(sizes.map(|n| bytes(Some(n))), ["0 B", "1023 B", "1.5 KiB", "1.0 MiB", "16777216.0 TiB"]);
        assert_eq!((time(None), bytes(None)), Default::default());
    }

    #[test]
    fn columns_give_way_to_a_narrow_terminal() {
        let columns =
            [("A", Align::Left), ("SEEN", Align::Left), ("USED", Align::Right), ("NAME", Align::Left)];
        let mut table = Table::new(&columns);
        table.row(["1".into(), "10:00:00".into(), "5".into(), "count".into()]);
        table.give_way(&["GONE", "SEEN", "USED"]);
        let written = |room| {
            let mut out = Vec::new();
            table.write(&mut out, Some(room)).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(24), "A  SEEN      USED  NAME\n1  10:00:00     5  count\n");
        let note =
            |names: &str| format!("no room for: {names}; a wider terminal shows them, and --json has all\n");
        assert_eq!(written(23), format!("A  USED  NAME\n1     5  count\n{}", note("SEEN")));
        assert_eq!(written(3), format!("A  NAME\n1  count\n{}", note("SEEN, USED")));
    }

    proptest! {
        #[test]
        fn nothing_acts_after_cleaning(text in any::<String>()) {
            prop_assert!(!clean(&text).chars().any(acts));
        }
    }
}
