//! Tables for terminals.
//!
//! In: cells of any text. Out: aligned columns in which nothing acts on the terminal (text.rs). A table that
//! is wider than the terminal leaves out the columns that it was told may go, and says which.

use super::text::clean;
use std::borrow::Cow;
use std::io::{self, Write};

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
    columns: Vec<(Cow<'static, str>, Align)>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
    give_way: &'static [&'static str],
    cut_last: bool,
}

/// Characters that are left of a text that is cut, at least.
const CUT: usize = 24;

impl Table {
    /// An empty table with these columns.
    pub fn new<N: Into<Cow<'static, str>> + Clone>(columns: &[(N, Align)]) -> Self {
        let columns = columns.iter().map(|(name, align)| (name.clone().into(), *align)).collect();
        Self { columns, rows: Vec::new(), notes: Vec::new(), give_way: &[], cut_last: false }
    }
    /// Columns that are left out, the first one first, where the table is wider than the terminal.
    pub fn give_way(&mut self, columns: &'static [&'static str]) {
        self.give_way = columns;
    }
    /// The last column holds long texts for people: they are cut to the terminal before a column gives way.
    pub fn cut_last(&mut self) {
        self.cut_last = true;
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
    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// Writes the table, for a terminal `room` characters wide, or whole. The last column, when it is left-aligned,
    /// is not padded.
    ///
    /// # Errors
    /// The writer takes no more.
    pub fn write(&self, out: &mut dyn Write, room: Option<usize>) -> io::Result<()> {
        let (shown, hidden) = self.fit(room.unwrap_or(usize::MAX));
        let head: Vec<String> = self.columns.iter().map(|(name, _)| name.to_string()).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            let cells = shown.iter().filter_map(|&(column, width)| {
                let (cell, (_, align)) = row.get(column).zip(self.columns.get(column))?;
                let cell = cut(cell, width);
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
        let width = |(column, (name, _)): (usize, &(Cow<'static, str>, Align))| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            (column, cells.chain([name.chars().count()]).max().unwrap_or(0))
        };
        let mut shown: Vec<_> = self.columns.iter().enumerate().map(width).collect();
        let over = |shown: &[(usize, usize)]| {
            let whole: usize = shown.iter().map(|(_, width)| width + 2).sum();
            whole.saturating_sub(2).saturating_sub(room)
        };
        let cuttable =
            shown.last().filter(|_| self.cut_last).map_or(0, |(_, width)| width.saturating_sub(CUT));
        let mut hidden = Vec::new();
        for &name in self.give_way {
            if over(&shown) <= cuttable {
                break;
            }
            let before = shown.len();
            shown.retain(|(column, _)| self.columns.get(*column).is_some_and(|(column, _)| *column != name));
            if shown.len() < before {
                hidden.push(name);
            }
        }
        let cut = over(&shown).min(cuttable);
        if let Some((_, width)) = shown.last_mut() {
            *width -= cut;
        }
        (shown, hidden)
    }
}

/// The first characters of a text that is longer.
fn cut(text: &str, width: usize) -> Cow<'_, str> {
    match text.char_indices().nth(width) {
        Some(_) => Cow::Owned(text.chars().take(width.saturating_sub(1)).chain(['…']).collect()),
        None => Cow::Borrowed(text),
    }
}

/// Characters on a line of the terminal that standard output is; None where it is none.
pub fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn columns_give_way_to_a_narrow_terminal() {
        let columns =
            [("A", Align::Left), ("SEEN", Align::Left), ("USED", Align::Right), ("NAME", Align::Left)];
        let mut table = Table::new(&columns);
        table.row(["1".into(), "10:00:00".into(), "5".into(), "count".into()]);
        table.give_way(&["GONE", "SEEN", "USED"]);
        let written = |table: &Table, room| {
            let mut out = Vec::new();
            table.write(&mut out, Some(room)).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&table, 24), "A  SEEN      USED  NAME\n1  10:00:00     5  count\n");
        let note =
            |names: &str| format!("no room for: {names}; a wider terminal shows them, and --json has all\n");
        assert_eq!(written(&table, 23), format!("A  USED  NAME\n1     5  count\n{}", note("SEEN")));
        assert_eq!(written(&table, 3), format!("A  NAME\n1  count\n{}", note("SEEN, USED")));
        table.row(["2".into(), "10:00:00".into(), "5".into(), "é".repeat(40)]);
        table.cut_last();
        let cut = |kept| format!("{}…\n", "é".repeat(kept));
        assert!(written(&table, 50).ends_with(&cut(30)), "{}", written(&table, 50));
        assert_eq!(written(&table, 50).lines().next_back().unwrap().chars().count(), 50);
        assert!(
            written(&table, 43).ends_with(&cut(23)) && written(&table, 42).contains(&cut(32)),
            "{}",
            written(&table, 42)
        );
    }
}
