//! The PySpark application: a stage that the JVM computes, and one that Python does.

use super::super::outcome::Outcome;
use super::{Share, Verdict};
use crate::oracle::stack::Stack;

/// How far a stage's CPU time may be from what was measured there, of that: a task's own clock begins after its thread does, and ends
/// before; on an emulated CPU that is some 60 ms.
const OF_CPU: f64 = 0.05;

/// The stage of each half of the application, by its samples, and their CPU time against what Spark and Python measured.
pub fn judge(outcome: &Outcome, verdict: &mut Verdict) {
    if outcome.fact("done") != Some("yes") {
        let ended = outcome.fact("application").unwrap_or("none");
        verdict.failures.push(format!("the application did not end well: exit code {ended}"));
    }
    let stacks: Vec<&Stack> = outcome.spark.iter().collect();
    let of_stage = |stack: &Stack, half: &str| {
        let stage = outcome.fact(&format!("{half}.stage"));
        stage.is_some() && stack.label("stage") == stage
    };
    let runs_task = |stack: &Stack| {
        stack.is_rooted() && stack.java().iter().any(|frame| frame.name.ends_with("TaskRunner.run"))
    };
    let in_java = |stack: &Stack| of_stage(stack, "jvm") && stack.has_java_leaf();
    let java = Share::of(&stacks, in_java, runs_task);
    let in_python = |stack: &Stack| of_stage(stack, "python") && stack.label("role") == Some("python");
    let has =
        |stack: &Stack, name: &str| stack.user().any(|frame| frame.name.split(' ').next() == Some(name));
    let is_named = |stack: &Stack| {
        has(stack, "_run_module_as_main")
            && !stack.user().any(|frame| frame.name.starts_with("[unknown: python"))
    };
    let python = Share::of(&stacks, in_python, is_named);
    // The rest is the start of the worker, which imports what it needs.
    let burns = Share::of(&stacks, in_python, |stack| has(stack, "burn"));
    if burns.right * 2 < burns.of {
        verdict
            .failures
            .push(format!("{burns} samples of Python's stage are in the function that it is for"));
    }
    for (name, share) in [("application in Java", java), ("application in Python", python)] {
        verdict.expect(&format!("stacks of the {name}"), &share);
        verdict.programs.push((name, share));
    }
    for (name, half, measured, place) in [
        ("CPU time of its tasks", "jvm", "jvm.cpu_ns", "/exact/cpu_seconds"),
        ("CPU time of their Python workers", "python", "python.workers_ns", "/python/exact/cpu_seconds"),
    ] {
        let stages = outcome.stages["stages"].as_array().map_or(&[][..], Vec::as_slice);
        let row = stages.iter().find(|row| row["stage"].as_str() == outcome.fact(&format!("{half}.stage")));
        let ours = row.and_then(|row| row.pointer(place)?.as_f64());
        let theirs = outcome.fact(measured).and_then(|ns| ns.parse::<f64>().ok()).map(|ns| ns / 1e9);
        let said = match (ours, theirs) {
            (Some(ours), Some(theirs)) if (ours - theirs).abs() <= theirs * OF_CPU => continue,
            (ours, theirs) => format!("{name}: {ours:?} s, measured there {theirs:?} s"),
        };
        verdict.failures.push(said);
    }
}
