//! What an outcome is worth: right stacks out of how many, and what must not be.
//!
//! In: an [`Outcome`]. Out: a [`Verdict`]. What a kernel cannot do is no failure where the daemon says so.

mod spark;

use super::Mode;
use super::outcome::Outcome;
use super::programs::{interrupted, is_java, is_native, is_up_and_down, is_walk, names};
use crate::oracle::stack::{Frame, Stack};
use std::fmt;

/// A program's stacks are right when so many of a hundred are: a tick may come between two instructions of a call.
const BAR: usize = 98;
/// Fewer samples than these say nothing.
const ENOUGH: usize = 30;

/// How many of a program's samples have the stack they must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Right ones.
    pub right: usize,
    /// All that were to be judged.
    pub of: usize,
    /// The commonest wrong one, root first.
    pub wrong: Option<String>,
}

impl Share {
    /// Judges the stacks that `counts` picks.
    fn of(stacks: &[&Stack], counts: impl Fn(&Stack) -> bool, right: impl Fn(&Stack) -> bool) -> Self {
        let mut share = Self::default();
        let mut most = 0;
        for stack in stacks.iter().filter(|stack| counts(stack)) {
            share.of += stack.count;
            if right(stack) {
                share.right += stack.count;
            } else if stack.count > most {
                most = stack.count;
                share.wrong = Some(shown(stack));
            }
        }
        share
    }

    /// Whether the bar is held.
    pub fn good(&self) -> bool {
        self.of >= ENOUGH && self.right * 100 >= self.of * BAR
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.right, self.of)
    }
}

/// How a JVM without flags is walked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Java {
    /// By its own tables.
    Tables(Share),
    /// By frame pointers, which its code does not keep; status says so.
    FramePointers(String),
}

/// What became of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// `uname -r`; None: it did not come up.
    pub release: Option<String>,
    /// The doctor says that bpf_loop is there.
    pub bpf_loop: bool,
    /// All programs were loaded and attached, and samples came.
    pub loaded: bool,
    /// `spin 20 thread`.
    pub native: Share,
    /// Samples of `spin syscall` in the kernel, right with kernel frames by name; None: not asked.
    pub kernel: Option<Share>,
    /// The same, with their user half; None: this kernel gives none.
    pub both: Option<Share>,
    /// `Walk deep 20`; None: not asked.
    pub java: Option<Java>,
    /// The same with -XX:+PreserveFramePointer.
    pub frame_pointers: Option<Share>,
    /// Programs of many kinds, by the names of their facts; none: not asked.
    pub programs: Vec<(&'static str, Share)>,
    /// Names of threads come by a probe.
    pub names: bool,
    /// Check and sentence of what the doctor finds lacking in the kernel.
    pub lacks: Vec<(String, String)>,
    /// The daemon's warnings: on a slow guest some events are lost at the start.
    pub notes: Vec<String>,
    /// What is wrong, a line each.
    pub failures: Vec<String>,
}

/// Checks of the doctor that are about the kernel, and not the guest's surroundings.
const OF_KERNEL: [&str; 12] = [
    "capabilities",
    "ring buffer",
    "perf event programs",
    "btf",
    "bpf loop",
    "task pt regs",
    "raw tracepoints",
    "mmap events",
    "uprobes",
    "thread accounts",
    "task iterator",
    "kptr restrict",
];

/// A program of the mode [`Mode::Java`], and what its stacks are.
type Kind = (&'static str, fn(&Stack) -> bool);
const KINDS: [Kind; 5] = [
    ("compiled", is_walk),
    ("interpreted", is_walk),
    ("mixed", is_walk),
    ("inlined", is_walk),
    ("jni", is_up_and_down),
];

/// Judges what the mode runs.
pub fn judge(outcome: &Outcome, mode: Mode) -> Verdict {
    let mut verdict = Verdict {
        release: outcome.fact("up").map(str::to_owned),
        bpf_loop: outcome.checked("bpf loop") == Some("ok"),
        loaded: outcome.fact("graph") == Some("0") && !outcome.stacks.is_empty(),
        lacks: lacks(outcome),
        ..Verdict::default()
    };
    if verdict.release.is_none() {
        verdict.failures.push("the kernel did not come up".to_owned());
        return verdict;
    }
    if outcome.fact("doctor") != Some("0") {
        verdict.failures.push("the doctor says that nothing can be sampled".to_owned());
    }
    let (grave, notes): (Vec<&str>, _) =
        outcome.warnings().into_iter().partition(|line| !line.contains(" WARN "));
    verdict.failures.extend(grave.into_iter().map(|line| format!("the daemon said: {line}")));
    verdict.notes = notes.into_iter().map(str::to_owned).collect();
    if !verdict.loaded {
        verdict.failures.push("nothing was sampled".to_owned());
        return verdict;
    }
    let has_user = |stack: &Stack| stack.user().next().is_some();
    verdict.native = Share::of(&outcome.of("native"), has_user, is_native);
    verdict.expect("the native program's stacks", &verdict.native.clone());
    if mode == Mode::Quick {
        return verdict;
    }
    match mode {
        Mode::Full => {
            syscalls(outcome, &mut verdict);
            java(outcome, &mut verdict);
        }
        Mode::Spark => spark::judge(outcome, &mut verdict),
        Mode::Java | Mode::Quick => kinds(outcome, &mut verdict),
    }
    if outcome.fact("stopped") != Some("0") {
        verdict.failures.push("the daemon did not end well when it was asked to".to_owned());
    }
    verdict
}

impl Verdict {
    fn expect(&mut self, what: &str, share: &Share) {
        if !share.good() {
            let wrong = share.wrong.as_ref().map(|stack| format!(", most often {stack}")).unwrap_or_default();
            self.failures.push(format!("{what}: {share} are right{wrong}"));
        }
    }
}

fn syscalls(outcome: &Outcome, verdict: &mut Verdict) {
    let stacks = outcome.of("syscall");
    let reads = |stack: &Stack| names(stack, "kernel").any(|name| name.contains("vfs_read"));
    let in_kernel = |stack: &Stack| names(stack, "kernel").next().is_some();
    let kernel = Share::of(&stacks, in_kernel, |stack| reads(stack) || interrupted(stack));
    verdict.expect("stacks in the kernel", &kernel);
    verdict.kernel = Some(kernel);
    if outcome.checked("task pt regs") == Some("ok") {
        // read() of the C library leaves the frame pointer alone: its caller is left out, and main is there.
        let both = Share::of(&stacks, reads, |stack| names(stack, "native").any(|name| name == "main"));
        verdict.expect("user halves of stacks in the kernel", &both);
        verdict.both = Some(both);
    }
}

fn java(outcome: &Outcome, verdict: &mut Verdict) {
    let of_walk = |frame: &Frame| frame.name == "Walk.leaf" || frame.name == "Walk.deep";
    let of_leaf = |stack: &Stack| stack.user().next_back().is_some_and(of_walk);
    let jvm = |program: &str| {
        let jvms = outcome.status["jvms"].as_array().map_or(&[][..], Vec::as_slice);
        jvms.iter()
            .find(|jvm| jvm["pid"].as_u64().map(|pid| pid.to_string()).as_deref() == outcome.fact(program))
    };
    let says =
        |program: &str, what: &str| jvm(program).and_then(|jvm| jvm[what].as_str()).unwrap_or_default();
    verdict.names = says("java", "threads") == "probe" && says("javafp", "threads") == "probe";
    if !verdict.names && outcome.checked("uprobes") == Some("ok") {
        verdict.failures.push(format!("names of threads: {}", says("java", "threads_say")));
    }
    let tables = |stack: &Stack| is_java(stack, false);
    verdict.java = Some(match says("java", "stacks") {
        "frame_pointers" if !verdict.bpf_loop => Java::FramePointers(says("java", "stacks_say").to_owned()),
        _ => {
            let share = Share::of(&outcome.of("java"), of_leaf, tables);
            verdict.expect("Java stacks", &share);
            Java::Tables(share)
        }
    });
    let pointers = says("javafp", "stacks") == "frame_pointers";
    let counts = |stack: &Stack| {
        stack.user().next_back().is_some_and(|leaf| of_walk(leaf) || pointers && leaf.is_nameless_java())
    };
    let share = Share::of(&outcome.of("javafp"), counts, |stack| is_java(stack, pointers));
    verdict.expect("Java stacks with frame pointers", &share);
    verdict.frame_pointers = Some(share);
}

/// Programs in Java that are run in many ways: each sample that was taken in Java is judged.
fn kinds(outcome: &Outcome, verdict: &mut Verdict) {
    for (name, right) in KINDS {
        let share = Share::of(&outcome.of(name), Stack::has_java_leaf, right);
        verdict.expect(&format!("stacks of the JVM {name:?}"), &share);
        verdict.programs.push((name, share));
    }
}

fn lacks(outcome: &Outcome) -> Vec<(String, String)> {
    let findings = outcome.doctor["findings"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |finding: &serde_json::Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    findings
        .iter()
        .filter(|finding| finding["status"] != "ok")
        .filter(|finding| finding["check"].as_str().is_some_and(|check| OF_KERNEL.contains(&check)))
        .map(|finding| (text(finding, "check"), text(finding, "mend")))
        .collect()
}

/// A stack in a line, its middle left out.
fn shown(stack: &Stack) -> String {
    let names: Vec<&str> = stack.frames.iter().map(|frame| frame.name.as_str()).collect();
    if names.len() <= 12 {
        return names.join(";");
    }
    let (head, tail) = (&names[..8], &names[names.len() - 4..]);
    format!("{};({} more);{}", head.join(";"), names.len() - 12, tail.join(";"))
}

#[cfg(test)]
mod tests;
