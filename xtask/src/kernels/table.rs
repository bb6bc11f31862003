//! The verdicts, as a table on the terminal and as the pages docs/reference/kernels.md and kernels-arm64.md.
//!
//! In: what became of each kernel. Out: text. The page has no figures that differ from run to run, so that it changes
//! only when a kernel does.

use super::judge::{Java, Share, Verdict};
use crate::arch::Arch;
use std::collections::BTreeMap;
use std::time::Duration;

/// What became of a kernel that was asked for.
pub struct Row {
    /// Series, or `host`.
    pub name: String,
    /// The verdict, or why there is none.
    pub result: Result<Verdict, String>,
    /// How long it took.
    pub took: Duration,
}

impl Row {
    fn sampler(verdict: &Verdict) -> &'static str {
        if verdict.bpf_loop { "bpf_loop" } else { "pieces" }
    }
}

fn share(share: Option<&Share>) -> String {
    share.map_or_else(|| "-".to_owned(), ToString::to_string)
}

fn yes(what: bool) -> String {
    if what { "yes" } else { "no" }.to_owned()
}

/// A line for each kernel, and below it what is wrong and what it lacks.
pub fn terminal(rows: &[Row]) -> String {
    let head =
        ["kernel", "release", "loads", "sampler", "native", "kernel half", "both halves", "Java", "with fp"];
    let mut lines = vec![[&head[..], &["names", "time"]].concat().into_iter().map(str::to_owned).collect()];
    for row in rows {
        let Ok(verdict) = &row.result else { continue };
        lines.push(vec![
            row.name.clone(),
            verdict.release.clone().unwrap_or_else(|| "-".to_owned()),
            yes(verdict.loaded),
            Row::sampler(verdict).to_owned(),
            share(Some(&verdict.native)),
            share(verdict.kernel.as_ref()),
            share(verdict.both.as_ref()),
            match &verdict.java {
                None => "-".to_owned(),
                Some(Java::Tables(found)) => found.to_string(),
                Some(Java::FramePointers(_)) => "by fp".to_owned(),
            },
            share(verdict.frame_pointers.as_ref()),
            if verdict.java.is_some() { yes(verdict.names) } else { "-".to_owned() },
            format!("{:.0} s", row.took.as_secs_f64()),
        ]);
    }
    let mut text = aligned(&lines);
    for row in rows {
        match &row.result {
            Ok(verdict) => {
                if let Some(Java::FramePointers(why)) = &verdict.java {
                    text += &format!("{}: status says of JVMs: {why}\n", row.name);
                }
                for (program, share) in &verdict.programs {
                    text += &format!("{} {program}: {share}\n", row.name);
                }
                for (check, says) in &verdict.lacks {
                    text += &format!("{} lacks {check}: {says}\n", row.name);
                }
                for note in &verdict.notes {
                    text += &format!("{} note: {note}\n", row.name);
                }
                for failure in &verdict.failures {
                    text += &format!("{} FAILED: {failure}\n", row.name);
                }
            }
            Err(why) => text += &format!("skipped: {}: {why}\n", row.name),
        }
    }
    text
}

/// `6.1` of `6.1.0-50-cloud-amd64`.
fn series(release: &str) -> &str {
    let end = release.match_indices(|c: char| !c.is_ascii_digit()).nth(1).map_or(release.len(), |(at, _)| at);
    release.get(..end).unwrap_or_default()
}

fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |cells: &Vec<String>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect()
}

/// Where the page of an architecture is.
pub const fn page_of(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "docs/reference/kernels.md",
        Arch::Arm64 => "docs/reference/kernels-arm64.md",
    }
}

/// The page. Only kernels with a whole verdict are on it.
pub fn page(rows: &[Row], arch: Arch) -> String {
    let whole = |row: &Row| Some((row.name.clone(), row.result.as_ref().ok()?.clone()));
    let verdicts: Vec<(String, Verdict)> = rows.iter().filter_map(whole).collect();
    let (title, how) = head(arch);
    let mut text = format!("# {title}\n\n{how}{LEGEND}");
    for (name, verdict) in &verdicts {
        let release = verdict.release.as_deref().unwrap_or_default();
        // What a machine's own is called says nothing to others.
        let kernel = match name.as_str() {
            "host" => format!("{}, not Debian's", series(release)),
            _ => release.to_owned(),
        };
        let depth = match verdict.java {
            Some(Java::FramePointers(_)) => "127",
            _ if verdict.bpf_loop => "512",
            _ => "130 to 512",
        };
        let java = match &verdict.java {
            Some(Java::Tables(_)) => "whole",
            Some(Java::FramePointers(_)) => "by frame pointers",
            None => "not yet",
        };
        let halves = if verdict.both.is_some() { "kernel and user" } else { "kernel only" };
        let state = if verdict.failures.is_empty() { "right" } else { "**wrong**" };
        text += &format!(
            "| {kernel} | {state} | {depth} | {halves} | {java} | {} |\n",
            match verdict.java {
                None => "not tried",
                Some(_) if verdict.names => "as they are given",
                Some(_) => "by comm",
            }
        );
    }
    let mut lacking: BTreeMap<&(String, String), Vec<&str>> = BTreeMap::new();
    for (name, verdict) in &verdicts {
        for lack in &verdict.lacks {
            lacking.entry(lack).or_default().push(name);
        }
    }
    text += "\n## What they lack\n\n";
    if lacking.is_empty() {
        text += "Nothing.\n";
    } else {
        text += "| kernel | check of `emberscope doctor` | what it says |\n|---|---|---|\n";
        for ((check, says), names) in lacking {
            text += &format!("| {} | {check} | {says}. |\n", names.join(", "));
        }
    }
    text
}

/// Title and first paragraph of an architecture's page.
const fn head(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => (
            "Kernels",
            "\
Made by `cargo xtask kernels --write-docs`, which boots Debian's cloud kernels in qemu, loads and attaches the
programs there, and samples a native and a Java program of known stacks. `emberscope doctor` says the same of
the kernel that it runs on; features are probed for, never versions.
",
        ),
        Arch::Arm64 => (
            "Kernels on arm64",
            "\
Made by `cargo xtask kernels --arch arm64 --write-docs`, which boots Debian's cloud kernels in qemu, by emulation on
x86-64, loads and attaches the programs there, and samples a native program that keeps no frame pointers and one in Java, of
known stacks; with `--java` JVMs of many kinds instead.
`emberscope doctor` says the same of the kernel that it runs on; features are probed for, never versions.
",
        ),
    }
}

const LEGEND: &str = "
- *stacks*: at least 98 of 100 samples have exactly the frames that the program has.
- *frames*: the deepest user stack.
- *in system calls*: which halves of its stack a sample has that hit the kernel.
- *Java*: stacks of a JVM without flags; `by frame pointers` are whole only with `-XX:+PreserveFramePointer`, with
  methods that were inlined left out and interpreted ones without their names.
- *names of threads*, and so stages and tasks.

| kernel | stacks | frames | in system calls | Java | names of threads |
|---|---|---|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let share = |right| Share { right, of: 100, wrong: None };
        let old = Verdict {
            release: Some("5.10.0-46".into()),
            loaded: true,
            native: share(99),
            kernel: Some(share(98)),
            java: Some(Java::FramePointers("only by frame pointers".into())),
            frame_pointers: Some(share(100)),
            names: true,
            lacks: vec![("bpf loop".into(), "No bpf_loop".into())],
            ..Verdict::default()
        };
        let new = Verdict {
            release: Some("6.18.1".into()),
            bpf_loop: true,
            both: Some(share(99)),
            java: Some(Java::Tables(share(3))),
            failures: vec!["Java stacks: 3 of 100 are right".into()],
            ..old.clone()
        };
        let row = |name: &str, result| Row { name: name.into(), result, took: Duration::from_secs(90) };
        vec![row("5.10", Ok(old)), row("host", Ok(new)), row("6.12", Err("no network".into()))]
    }

    #[test]
    fn the_terminal_has_figures_failures_and_skips() {
        let text = terminal(&rows());
        for part in [
            "99 of 100  98 of 100",
            "by fp",
            "5.10 lacks bpf loop: No bpf_loop\n",
            "host FAILED: Java stacks: 3 of 100 are right\n",
            "skipped: 6.12: no network\n",
            "90 s",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn the_page_has_no_figures_that_change() {
        let text = page(&rows(), Arch::X86_64);
        for part in [
            "| 5.10.0-46 | right | 127 | kernel only | by frame pointers | as they are given |\n",
            "| 6.18, not Debian's | **wrong** | 512 | kernel and user | whole | as they are given |\n",
            "| 5.10, host | bpf loop | No bpf_loop. |\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains(" of 100 |") && !text.contains("6.12 |"));
    }
}
