//! Programs that tell their own stacks, on each Java and under each [set](super::sets) of flags: the share of
//! samples whose stack is as told, frame by frame, inlined frames included.
//!
//! A leaf whose inlined part says that it is borrowed counts as right if the rest is; the row `split` judges the
//! borrowed part. How many these are is printed.

use super::sets::{SETS, Set};
use super::{Bench, SHOWN, ends, java, judged, percent, print_worst};
use crate::bench::row::Row;
use crate::launch::Daemon;
use crate::oracle::Report;
use crate::setup::runtime::{MAJORS, Runtime};
use anyhow::Result;
use std::collections::BTreeMap;

/// Of n stacks, in percent.
const BAR: f64 = 99.5;

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let daemon = bench.daemon("oracle-daemon")?;
    let mut rows = Vec::new();
    let mut all = Report::default();
    for major in bench.majors(&MAJORS) {
        let Some(java) = java(major, skipped, "oracle") else { continue };
        for set in SETS {
            let asked =
                bench.options.sets.is_empty() || bench.options.sets.iter().any(|name| name == set.name);
            if asked && (set.majors.0..=set.majors.1).contains(&major) {
                let what = format!("oracle, Java {major}, set {}", set.name);
                match of_set(bench, &daemon, &java, set, skipped, &mut all) {
                    Ok(more) => rows.extend(more),
                    // An old or small Java may not have the flag.
                    Err(why) => skipped.push(format!("{what}: {}", last_line(&why))),
                }
            }
        }
    }
    println!("differences in all: {} of {} samples are not as told", all.n() - all.right(), all.n());
    print_worst("difference", &all.worst(SHOWN), all.n());
    rows.push(Row::share("oracle: all programs together", all.right(), BAR, all.n()));
    rows.push(Row::told(
        "oracle: cut before any frame that says whose it is",
        all.nobodys.to_string(),
        all.n(),
    ));
    daemon.stop()?;
    Ok(rows)
}

fn of_set(
    bench: &Bench,
    daemon: &Daemon,
    java: &Runtime,
    set: &Set,
    skipped: &mut Vec<String>,
    all: &mut Report,
) -> Result<Vec<Row>> {
    let asked =
        |name: &&str| bench.options.programs.is_empty() || bench.options.programs.iter().any(|p| p == name);
    let programs: Vec<&str> = set.programs.iter().copied().filter(asked).collect();
    if programs.is_empty() {
        return Ok(Vec::new());
    }
    println!("-- Java {}, {}: {}", java.major, set.name, programs.join(" "));
    let ran = bench.programs(java, set.flags, &programs, bench.options.seconds)?;
    let mut rows = Vec::new();
    for told in &ran.told {
        let what = format!("oracle: Java {}, {}, {}", java.major, set.name, told.name);
        let range = match &told.range {
            Ok(range) => *range,
            Err(why) => {
                skipped.push(format!("{what}: {why}"));
                continue;
            }
        };
        let (report, seen) = judged(daemon, &ran, told, range)?;
        if percent(report.right(), report.n()) < BAR {
            println!("{what}: ends: {}", ends(&seen.quality));
            print_worst("difference", &report.worst(SHOWN), report.n());
        }
        let figure = format!(
            "{:.2} % as told, {:.2} % without what is borrowed",
            percent(report.right(), report.n()),
            percent(report.equal, report.n())
        );
        let holds = report.n() > 0 && percent(report.right(), report.n()) >= BAR;
        rows.push(Row::is(what, figure, &format!(">= {BAR} %"), holds, report.n()));
        all.equal += report.equal;
        all.borrowed += report.borrowed;
        all.nobodys += report.nobodys;
        let different: BTreeMap<String, usize> = report.different;
        for (how, n) in different {
            *all.different.entry(how).or_default() += n;
        }
    }
    Ok(rows)
}

/// What a JVM that does not start says is the end of its output.
fn last_line(why: &anyhow::Error) -> String {
    let text = format!("{why:#}");
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let said = lines.iter().find(|line| line.contains("Unrecognized") || line.contains("not supported"));
    said.or(lines.first()).map_or_else(String::new, |line| (*line).to_owned())
}
