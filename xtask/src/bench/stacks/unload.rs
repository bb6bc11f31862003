//! 10,000 classes that are made, compiled, and unloaded: none of their frames may bear another's name.
//!
//! Class and method carry the same number (tests/jobs/oracle/Storms.java). In one stack there is one number; a
//! window has only numbers of classes that lived in it. A frame without a name is honest and is counted apart.

use super::{Bench, WINDOW_MS, java, percent, print_worst, seen};
use crate::bench::row::Row;
use crate::oracle::{Frame, Stack};
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// Classes at least, and frames that must have been looked at.
const CLASSES: u64 = 10_000;
const FRAMES: usize = 100_000;
/// Seconds; a class takes five milliseconds.
const SECONDS: u64 = 70;

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for major in bench.majors(&[17, 25]) {
        let Some(java) = java(major, skipped, "unload") else { continue };
        let daemon = bench.daemon("unload-daemon")?;
        let ran = bench.programs(&java, &["-XX:MaxMetaspaceSize=64m"], &["unload"], SECONDS)?;
        let range = ran
            .told
            .first()
            .context("the program told nothing")?
            .range
            .clone()
            .map_err(anyhow::Error::msg)?;
        let made = made(&ran.text);
        let mut count = Count::default();
        for from in (range.0..range.1).step_by(WINDOW_MS as usize) {
            let seen = seen(&daemon, &format!("pid={}", ran.jvm.pid()), (from, from + WINDOW_MS))?;
            let lived = lived(&made, (from, from + WINDOW_MS));
            seen.stacks.iter().for_each(|stack| count.add(stack, lived));
        }
        // A starved daemon counts them in a later window than theirs, where their class may have gone.
        let late = daemon.json("/api/v1/status")?["quality"]["late_samples"].as_u64().unwrap_or(0);
        daemon.stop()?;
        let classes = made.last().map_or(0, |(number, _)| *number);
        println!(
            "   Java {major}: {classes} classes; {} frames named, {} wrong, {} without a name ({:.2} %)",
            count.named,
            count.wrong.values().sum::<usize>(),
            count.nameless,
            percent(count.nameless, count.named + count.nameless)
        );
        println!("   Java {major}: {late} samples came after their window had closed");
        let mut worst: Vec<(&str, usize)> = count.wrong.iter().map(|(how, n)| (how.as_str(), *n)).collect();
        worst.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        worst.truncate(super::SHOWN);
        print_worst("wrong", &worst, count.named);
        count.shown.iter().for_each(|stack| println!("      {stack}"));
        let wrong = count.wrong.values().sum();
        let what = format!("unload: Java {major}, frames with a wrong name");
        rows.push(Row::at_most(what, wrong, 0, count.named));
        let what = format!("unload: Java {major}, classes made; frames looked at");
        let holds = classes >= CLASSES && count.named >= FRAMES;
        rows.push(Row::is(what, classes.to_string(), &format!(">= {CLASSES}; {FRAMES}"), holds, count.named));
    }
    Ok(rows)
}

/// Numbers and when they were made, Unix milliseconds.
fn made(text: &str) -> Vec<(u64, u64)> {
    let words = |line: &str| {
        let (number, at) = line.strip_prefix("storm ")?.split_once(' ')?;
        Some((number.parse().ok()?, at.parse().ok()?))
    };
    text.lines().filter_map(words).collect()
}

/// Lowest and highest number that may be seen in a range of time: every tenth is told when it is made.
fn lived(made: &[(u64, u64)], (from, until): (u64, u64)) -> (u64, u64) {
    let low = made.iter().rfind(|(_, at)| *at < from).map_or(0, |(number, _)| number.saturating_sub(1));
    let high = made.iter().find(|(_, at)| *at > until).map_or(u64::MAX, |(number, _)| *number);
    (low, high)
}

#[derive(Default)]
struct Count {
    named: usize,
    nameless: usize,
    wrong: BTreeMap<String, usize>,
    /// The first stacks with a wrong name: Java frames, the outermost first, with their kinds.
    shown: Vec<String>,
}

impl Count {
    fn add(&mut self, stack: &Stack, (low, high): (u64, u64)) {
        let java = stack.java();
        let storm = |name: &str| -> Option<(u64, u64)> {
            let (class, method) = name.strip_prefix("Storm")?.split_once('.')?;
            let class = class.parse().ok()?;
            Some((class, method.strip_prefix("burn").map_or(Some(class), |number| number.parse().ok())?))
        };
        let numbers: Vec<(u64, u64)> = java.iter().filter_map(|frame| storm(&frame.name)).collect();
        let first = numbers.first().map(|(class, _)| *class);
        for (class, method) in &numbers {
            self.named += stack.count;
            let how = if class != method {
                "class and method differ"
            } else if Some(*class) != first {
                "another class than the stack's others"
            } else if *class < low {
                "a class that had gone"
            } else if *class > high {
                "a class that had not come"
            } else {
                continue;
            };
            *self.wrong.entry(how.to_owned()).or_default() += stack.count;
            if self.shown.len() < super::SHOWN {
                let told = |frame: &Frame| {
                    let approximate = if frame.approximate { "~" } else { "" };
                    format!("{}{approximate} [{}]", frame.name, frame.kind)
                };
                let frames: Vec<String> = stack.user().map(told).collect();
                self.shown.push(format!("{} times, {how}: {}", stack.count, frames.join(";")));
            }
        }
        // What Unload.once calls is a class of the storm or its making.
        let called =
            java.iter().position(|frame| frame.name == "Unload.once").and_then(|at| java.get(at + 1));
        let known =
            |name: &str| name.starts_with("Storm") || name.starts_with("Made.") || name.starts_with("java.");
        if let Some(frame) = called.filter(|frame| !known(&frame.name)) {
            let how = match frame.name.chars().all(|c| c.is_ascii_graphic()) {
                true => format!("{} called by Unload.once", frame.name),
                false => "bytes that are no name".to_owned(),
            };
            *self.wrong.entry(how).or_default() += stack.count;
        }
        self.nameless += stack.count * stack.user().filter(|frame| frame.is_nameless_java()).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn numbers_tell_wrong_names() {
        let frame = |name: &str| {
            Rc::new(Frame { kind: "java".to_owned(), name: name.to_owned(), ..Frame::default() })
        };
        let stack = |names: &[&str]| Stack {
            frames: names.iter().map(|n| frame(n)).collect(),
            count: 1,
            ..Stack::default()
        };
        let mut count = Count::default();
        let range = (5, 20);
        count.add(&stack(&["Unload.once", "Storm000007.applyAsLong", "Storm000007.burn000007"]), range);
        assert_eq!((count.named, count.wrong.len()), (2, 0));
        count.add(&stack(&["Storm000007.burn000008"]), range);
        count.add(&stack(&["Storm000007.burn000007", "Storm000009.burn000009"]), range);
        count.add(&stack(&["Storm000021.burn000021"]), range);
        count.add(&stack(&["Unload.once", "Programs.down"]), range);
        assert_eq!((count.named, count.wrong.values().sum::<usize>(), count.wrong.len()), (6, 4, 4));
        let made = made("storm 0 100\nnoise\nstorm 10 200\nstorm 20 300\n");
        assert_eq!((lived(&made, (250, 260)), lived(&made, (90, 310))), ((9, 20), (0, u64::MAX)));
    }
}
