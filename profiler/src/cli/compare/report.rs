//! A comparison as people read it: sentences, then tables; as text and as Markdown.

use super::sections::{self, Section, growth};
use crate::cli::answer::counted;
use crate::cli::table::{Align, Table};
use crate::cli::text::{clean, percent, signed_time, time};
use emberscope_api::{Checked, Compare, ComparedRun};
use std::io;

/// A report.
pub struct Report {
    /// What is compared with what.
    pub title: String,
    /// What came of it, a sentence each.
    pub verdict: Vec<String>,
    /// Tables that have rows.
    pub sections: Vec<Section>,
    /// How figures come about.
    pub notes: Vec<String>,
    /// What both runs rest on, for standard error.
    pub beside: Vec<String>,
}

/// What is compared with what.
pub fn title(compare: &Compare<'_>) -> String {
    let name = compare.right.app_name.as_ref().or(compare.left.app_name.as_ref());
    let of = name.map(|name| format!("{name}: ")).unwrap_or_default();
    format!("{of}{} (right) against {} (left)", run_of(&compare.right), run_of(&compare.left))
}

fn run_of(run: &ComparedRun) -> String {
    let begun = run.begun.as_ref().map(|begun| format!(", began {}", begun.0)).unwrap_or_default();
    format!("{}{begun}", run.app)
}

/// What grew, for people: `stage count at Job.scala (stage 4, was 3): +21.0 % +- 1.2 %`
pub fn grew(checked: &Checked) -> String {
    let part = |of: Option<f64>| percent(of);
    let sign = if checked.growth.is_some_and(|growth| growth >= 0.0) { "+" } else { "" };
    let error = checked.error.map(|error| format!(" +- {}", part(Some(error)))).unwrap_or_default();
    format!("{} {}: {sign}{}{error}", checked.of, checked.name, part(checked.growth))
}

fn verdict(compare: &Compare<'_>) -> Vec<String> {
    let cpu = &compare.whole.cpu;
    let mut lines = Vec::new();
    let [left, right] = [time(cpu.pair.left_seconds), time(cpu.pair.right_seconds)];
    let error =
        cpu.pair.difference_error.map(|error| format!(" +- {}", time(Some(error)))).unwrap_or_default();
    let difference = cpu.pair.difference.map(signed_time).unwrap_or_default();
    lines.push(match cpu.significant {
        true => format!("Tasks used {right} of CPU instead of {left}: {} ({difference}{error}).", growth(&cpu.pair)),
        false => format!("Tasks used as much CPU as before: {right} and {left} differ by {difference}{error}, within the error."),
    });
    if !compare.significant {
        lines.push(
            "No significant difference: neither the whole nor a query, stage or method differs by more than chance explains."
                .to_owned(),
        );
    } else if let Some(method) = compare.methods.rows.first().filter(|method| method.significant) {
        let difference = method.method.own.difference.map(signed_time).unwrap_or_default();
        lines.push(format!(
            "The method that changed most: {} ({difference} of self time).",
            method.method.method.name
        ));
    }
    let only = |side: &str| {
        let stages = compare.stages.rows.iter().filter(|stage| stage.only.as_deref() == Some(side)).count();
        let queries = compare.queries.rows.iter().filter(|query| query.only.as_deref() == Some(side)).count();
        let both = [(queries, "query"), (stages, "stage")].into_iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = both.map(|(count, what)| several(count as u64, what)).collect();
        (!words.is_empty()).then(|| format!("Only the {side} run has {}.", words.join(" and ")))
    };
    lines.extend([only("left"), only("right")].into_iter().flatten());
    if let Some(judged) = &compare.judged {
        let allowed = percent(Some(judged.fail_over));
        let looked_at = several(judged.checked.len() as u64, "figure");
        lines.push(match judged.failed {
            0 => {
                format!("PASSED: of {looked_at} none grew by more than {allowed} beyond its error.")
            }
            failed => {
                format!("FAILED: of {looked_at} grew by more than {allowed} beyond their error: {failed}.")
            }
        });
        lines.extend(
            judged
                .checked
                .iter()
                .filter(|checked| checked.failed)
                .map(|checked| format!("FAILED: {}", grew(checked))),
        );
    }
    lines
}

fn several(count: u64, thing: &str) -> String {
    match (count, thing) {
        (1, _) => format!("1 {thing}"),
        (_, "query") => format!("{count} queries"),
        _ => counted(count, thing),
    }
}

fn notes(compare: &Compare<'_>) -> Vec<String> {
    let mut notes = vec![
        "Figures are of tasks, their helpers and Python workers: CPU time by the kernel's accounts, of operators and methods by \
         samples. +- is the standard error: of exact figures by how tasks of one index differ between the runs, of sampled ones \
         sqrt(l^2/m + r^2/n) of times l and r of m and n samples. What all tasks of a run share, such as a slower machine, is in \
         no error."
            .to_owned(),
        "Within error: a difference of at most twice its error is none.".to_owned(),
    ];
    for (side, run) in [("left", &compare.left), ("right", &compare.right)] {
        if run.unnamed_stages > 0 {
            let stages = several(run.unnamed_stages, "stage");
            notes.push(format!(
                "Spark gave no name for {stages} of the {side} run: these are matched by order alone."
            ));
        }
    }
    notes
}

impl Report {
    /// Of an answer.
    pub fn new(compare: &Compare<'_>) -> Self {
        let sections = [
            sections::whole(compare),
            sections::queries(compare),
            sections::stages(compare),
            sections::operators(compare),
            sections::methods(compare),
            sections::settings(compare),
        ];
        let line = |side: &str, run: &ComparedRun| {
            let samples = several(run.basis.quality.samples, "sample");
            let says = match &*run.spark.says {
                "" => String::new(),
                says => format!("; Spark's names: {says}"),
            };
            format!("{side}: {} in {}, {samples} of tasks{says}", run_of(run), several(run.stages, "stage"))
        };
        Self {
            title: title(compare),
            verdict: verdict(compare),
            sections: sections.into_iter().filter(|section| !section.rows.is_empty()).collect(),
            notes: notes(compare),
            beside: vec![line("left", &compare.left), line("right", &compare.right)],
        }
    }

    /// As text for a terminal so wide, or whole.
    ///
    /// # Errors
    /// None that memory does not have.
    pub fn text(&self, room: Option<usize>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut put = |line: &str| {
            out.extend(clean(line).as_bytes());
            out.push(b'\n');
        };
        put(&self.title);
        self.verdict.iter().for_each(|line| put(line));
        for section in &self.sections {
            out.extend(format!("\n{}\n", section.title).bytes());
            let mut table = Table::new(&section.columns);
            table.give_way(&["MODULE", "PLAN", "WAITED", "TASKS", "TOTAL", "SHARE"]);
            table.cut_last();
            section.rows.iter().for_each(|row| table.row(row.iter().cloned()));
            if section.cut > 0 {
                table.note(format!("and {}: see them with --limit", counted(section.cut, "more row")));
            }
            table.write(&mut out, room)?;
        }
        out.push(b'\n');
        for note in &self.notes {
            out.extend(clean(note).as_bytes());
            out.push(b'\n');
        }
        Ok(out)
    }

    /// As Markdown, with tables as GitHub and GitLab draw them.
    pub fn markdown(&self) -> String {
        let mut out = format!("## {}\n\n", cell(&self.title));
        for line in &self.verdict {
            out.push_str(&format!("- {}\n", cell(line)));
        }
        for section in &self.sections {
            let names: Vec<&str> = section.columns.iter().map(|(name, _)| *name).collect();
            let aligns =
                section.columns.iter().map(|(_, align)| if *align == Align::Right { "---:" } else { "---" });
            out.push_str(&format!(
                "\n### {}\n\n| {} |\n|{}|\n",
                section.title,
                names.join(" | "),
                aligns.collect::<Vec<_>>().join("|")
            ));
            for row in &section.rows {
                let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
                out.push_str(&format!("| {} |\n", cells.join(" | ")));
            }
            if section.cut > 0 {
                out.push_str(&format!("\nand {}\n", counted(section.cut, "more row")));
            }
        }
        for note in &self.notes {
            out.push_str(&format!("\n{}\n", cell(note)));
        }
        out
    }
}

/// Text in which nothing is Markdown, HTML or a cell's end.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '!' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}
