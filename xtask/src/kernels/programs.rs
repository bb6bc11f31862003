//! The stacks of the programs that a guest runs, which are known by construction.
//!
//! `spin 20 thread` is 20 calls of `down` below `work`, in `leaf`; `spin syscall` is in read(2); `Walk deep 20` is 21 calls
//! of `deep` below the thread's lambda, in `leaf`, and no call is inlined. In: a stack. Out: whether it is that.

use crate::oracle::stack::{Frame, Stack};

/// Calls of `down`, and of `deep` less one.
const CALLS: usize = 20;
/// Of `UpDown`: the thread's frames, C and what it calls; then so many calls of `down`.
const UP: [&str; 5] =
    ["java.lang.Thread.run", "UpDown$$Lambda.run", "UpDown.lambda$main$0", AROUND, "UpDown.back"];
const AROUND: &str = "UpDown.around";
const DOWN: usize = 9;
/// Frames of Java that `Walk deep` begins with.
const OUTER: [&str; 3] = ["java.lang.Thread.run", "Walk$$Lambda.run", "Walk.lambda$main$0"];

/// In the kernel for an interrupt and not for a system call.
pub fn interrupted(stack: &Stack) -> bool {
    let entries = [
        "asm_",
        "ret_from",
        "entry_SYSCALL",
        "do_syscall",
        "error_entry",
        "irq",
        "common_interrupt",
        "el0t_64_",
    ];
    names(stack, "kernel").next().is_some_and(|name| entries.iter().any(|entry| name.starts_with(entry)))
}

/// Names of a stack's frames of this kind.
pub fn names<'a>(stack: &'a Stack, kind: &'a str) -> impl Iterator<Item = &'a str> {
    stack.frames.iter().filter(move |frame| frame.kind == kind).map(|frame| frame.name.as_str())
}

/// The C library's start of a thread (of its two functions clone3 keeps no frame pointer, and may be left out; in a stripped
/// library both are known by what they do), work, the calls of down, leaf.
pub fn is_native(stack: &Stack) -> bool {
    let frames: Vec<&Frame> = stack.user().collect();
    let starts = |frame: &&&Frame| {
        ["libc.so", "start_thread", "clone", "[thread start]"]
            .iter()
            .any(|start| frame.name.trim_start_matches('_').starts_with(start))
    };
    let started = frames.iter().take_while(starts).count();
    let Some([work, down @ .., leaf]) = frames.get(started..) else { return false };
    (1..=2).contains(&started)
        && work.name == "work"
        && down.len() == CALLS
        && down.iter().all(|frame| frame.name == "down")
        && leaf.name == "leaf"
}

/// Thread.run, the lambda's two frames, the calls of deep and perhaps leaf, and the thread's start above. Between two
/// calls the last is one of deep. By frame pointers interpreted frames have no names, and others none until a perf map
/// has them: then it is the whole depth that tells. What leaf calls (Arrays.hashCode) is one more.
pub fn is_java(stack: &Stack, by_frame_pointers: bool) -> bool {
    let nameless = |frame: &Frame| by_frame_pointers && frame.is_nameless_java();
    let frames: Vec<&Frame> = stack.user().filter(|frame| frame.is_java() || nameless(frame)).collect();
    let whole = OUTER.len() + CALLS + 2;
    let expected = |at: usize| match OUTER.get(at) {
        Some(name) => name,
        None if at + 1 < whole => "Walk.deep",
        None => "Walk.leaf",
    };
    let called = frames.len() == whole + 1 && frames.last().is_some_and(|last| nameless(last));
    let frames = if called { frames.get(..whole).unwrap_or_default() } else { &frames[..] };
    let deep_enough = frames.len() == whole || frames.last().is_some_and(|last| last.name == "Walk.deep");
    stack.is_rooted()
        && deep_enough
        && frames.len() > OUTER.len()
        && frames.len() <= whole
        && frames.iter().enumerate().all(|(at, frame)| frame.name == expected(at) || nameless(frame))
}

/// `Walk deep 20`, wherever it was interrupted: the thread's frames, the calls of `deep`, and below the last one `leaf` and what
/// that calls, or below any one its lambda, which the interpreter calls by a method handle. Before them it compares strings.
pub fn is_walk(stack: &Stack) -> bool {
    let names: Vec<&str> = stack.java().into_iter().map(|frame| frame.name.as_str()).collect();
    let Some(rest) = names.strip_prefix(&OUTER) else { return false };
    let deep = rest.iter().take_while(|name| **name == "Walk.deep").count();
    let all = |names: &[&str], some: &[&str]| {
        names.iter().all(|name| some.iter().any(|part| name.starts_with(part)))
    };
    let leads_on = match rest.get(deep..).unwrap_or_default() {
        ["Walk.leaf"] | ["Walk.leaf", "java.util.Arrays.hashCode"] => deep == CALLS + 1,
        strings if deep == 0 => all(strings, &["java.lang.String"]),
        lambda => all(lambda, &["Walk$$Lambda", "Walk.lambda$deep", "java.lang.invoke."]),
    };
    stack.is_rooted() && deep <= CALLS + 1 && leads_on
}

/// `UpDown`, likewise: Java, the C that it calls, and the Java that this calls. A call that is inlined into the one before it may be
/// one too many, where the leaf has no debug info of its own.
pub fn is_up_and_down(stack: &Stack) -> bool {
    let names: Vec<&str> = stack.java().into_iter().map(|frame| frame.name.as_str()).collect();
    let (up, down) = names.split_at(names.len().min(UP.len()));
    let mut behind = stack.user().map(|frame| frame.name.as_str()).skip_while(|name| *name != AROUND);
    stack.is_rooted()
        && up.len() >= OUTER.len()
        && UP.starts_with(up)
        && (up.len() < UP.len() || behind.nth(1) == Some("Java_UpDown_around"))
        && down.len() <= DOWN + 1
        && down.iter().all(|name| *name == "UpDown.down")
}
