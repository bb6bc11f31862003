//! Outcomes of good kernels, old ones, and wrong stacks.

use super::*;
use serde_json::{Value, json};
use std::rc::Rc;

fn stack(pid: u32, count: usize, frames: &[(&str, &str)]) -> Stack {
    let frame = |(kind, name): &(&str, &str)| {
        Rc::new(Frame { kind: (*kind).to_owned(), name: (*name).to_owned(), ..Frame::default() })
    };
    Stack { frames: frames.iter().map(frame).collect(), labels: vec![format!("pid={pid}")], count }
}

fn native(calls: usize) -> Vec<(&'static str, &'static str)> {
    let mut frames = vec![("native", "libc.so.6+0x891f4"), ("native", "work")];
    if calls == 20 {
        frames.insert(0, ("native", "libc.so.6+0x10989c"));
    }
    frames.extend(vec![("native", "down"); calls]);
    frames.push(("native", "leaf"));
    frames
}

fn java(run: (&'static str, &'static str), calls: usize) -> Vec<(&'static str, &'static str)> {
    let mut frames = vec![("native", "libc.so.6+0x891f4"), ("native", "thread_native_entry(Thread*)")];
    frames.extend([run, ("java", "Walk$$Lambda.run"), ("java", "Walk.lambda$main$0")]);
    frames.extend(vec![("java", "Walk.deep"); calls]);
    frames.push(("java", "Walk.leaf"));
    frames
}

const RUN: (&str, &str) = ("java", "java.lang.Thread.run");

/// A kernel on which all is as it must be.
fn good(bpf_loop: bool) -> Outcome {
    let facts = [
        ("up", "6.1.0"),
        ("doctor", "0"),
        ("graph", "0"),
        ("stopped", "0"),
        ("native", "1"),
        ("syscall", "2"),
        ("java", "3"),
        ("javafp", "4"),
    ];
    let state = if bpf_loop { "ok" } else { "limited" };
    let walked = if bpf_loop { "code_tables" } else { "frame_pointers" };
    let jvm = |pid: u32, stacks: &str| json!({"pid": pid, "stacks": stacks, "stacks_say": "why", "threads": "probe"});
    let read = [("native", "main"), ("native", "read"), ("kernel", "do_syscall_64"), ("kernel", "vfs_read")];
    let read = if bpf_loop { &read[..] } else { &read[2..] };
    let run = if bpf_loop { RUN } else { ("stub", "Interpreter") };
    Outcome {
        facts: facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        doctor: json!({"findings": [
            {"check": "bpf loop", "status": state, "mend": "No bpf_loop"},
            {"check": "task pt regs", "status": state, "mend": "none"},
            {"check": "cgroups", "status": "limited", "mend": "mount"},
            {"check": "uprobes", "status": "ok", "mend": Value::Null},
        ]}),
        status: json!({"jvms": [jvm(3, walked), jvm(4, walked)]}),
        stacks: vec![
            stack(1, 99, &native(20)),
            stack(1, 1, &native(19)),
            stack(2, 50, read),
            stack(3, 50, &java(RUN, 21)),
            stack(4, 50, &java(run, 21)),
        ],
        ..Outcome::default()
    }
}

#[test]
fn a_good_kernel_has_no_failure() {
    let verdict = judge(&good(true), Mode::Full);
    assert_eq!(verdict.failures, Vec::<String>::new());
    assert_eq!(verdict.native.to_string(), "99 of 100");
    assert!(verdict.both.is_some() && verdict.names && verdict.lacks.is_empty());
    assert!(matches!(verdict.java, Some(Java::Tables(share)) if share.right == 50));
}

#[test]
fn what_an_old_kernel_cannot_do_is_no_failure_where_it_is_said() {
    let mut outcome = good(false);
    let verdict = judge(&outcome, Mode::Full);
    assert_eq!(verdict.failures, Vec::<String>::new());
    assert_eq!(verdict.java, Some(Java::FramePointers("why".into())));
    assert!(verdict.both.is_none());
    assert_eq!(verdict.lacks.len(), 2);
    // Claimed and not held.
    outcome.status["jvms"][0]["stacks"] = json!("code_tables");
    outcome.stacks[3] = stack(3, 50, &[("java", "Walk.leaf")]);
    let verdict = judge(&outcome, Mode::Full);
    assert_eq!(verdict.failures, ["Java stacks: 0 of 50 are right, most often Walk.leaf"]);
}

#[test]
fn wrong_stacks_are_failures_with_the_commonest_of_them() {
    let mut outcome = good(true);
    outcome.stacks[1].count = 3;
    outcome.stacks[4] = stack(4, 50, &java(RUN, 20));
    let verdict = judge(&outcome, Mode::Full);
    assert_eq!(verdict.failures.len(), 2, "{:?}", verdict.failures);
    assert!(
        verdict.failures[0].starts_with("the native program's stacks: 99 of 102 are right, most often libc")
    );
    assert!(verdict.failures[1].starts_with("Java stacks with frame pointers: 0 of 50"));
}

#[test]
fn a_kernel_that_does_not_come_up_or_refuses_is_told() {
    assert_eq!(judge(&Outcome::default(), Mode::Full).failures, ["the kernel did not come up"]);
    let mut outcome = good(true);
    outcome.facts.insert("graph".into(), "4".into());
    outcome.log = "emberscope: this kernel refuses the BPF program `sample`\n".into();
    let verdict = judge(&outcome, Mode::Full);
    assert!(!verdict.loaded);
    assert!(verdict.failures[0].contains("refuses the BPF program") && verdict.failures.len() == 2);
}

#[test]
fn by_frame_pointers_the_depth_tells_where_names_are_missing() {
    let unnamed = ("unknown", "[unknown: not in perf map]");
    let of = |calls: usize, callee: bool| {
        let mut frames = java(unnamed, calls);
        frames[2..].fill(unnamed);
        frames.extend(callee.then_some(unnamed));
        is_java(&stack(4, 1, &frames), true)
    };
    assert!(of(21, false) && of(21, true));
    assert!(!of(20, false) && !of(22, true));
    assert!(!is_java(&stack(4, 1, &java(unnamed, 21)), false));
}

#[test]
fn quick_judges_the_native_program_alone() {
    let mut outcome = good(true);
    outcome.stacks.truncate(1);
    outcome.facts.remove("stopped");
    assert!(judge(&outcome, Mode::Quick).failures.is_empty());
    outcome.stacks[0].count = ENOUGH - 1;
    assert_eq!(judge(&outcome, Mode::Quick).failures.len(), 1);
}

#[test]
fn jvms_of_many_kinds_are_judged_by_all_their_samples() {
    let mut outcome = good(true);
    let up = ["java.lang.Thread.run", "UpDown$$Lambda.run", "UpDown.lambda$main$0", "UpDown.around"];
    let mut jni = vec![("native", "thread_native_entry(Thread*)")];
    jni.extend(up.map(|name| ("java", name)));
    jni.extend([("native", "Java_UpDown_around"), ("native", "jni_invoke_static"), ("java", "UpDown.back")]);
    jni.extend([("java", "UpDown.down"); 9]);
    for (at, name) in ["compiled", "interpreted", "mixed", "inlined"].into_iter().enumerate() {
        outcome.facts.insert(name.into(), format!("{}", 10 + at));
        outcome.stacks.push(stack(10 + at as u32, 50, &java(RUN, 21)));
    }
    outcome.facts.insert("jni".into(), "20".into());
    outcome.stacks.push(stack(20, 50, &jni));
    let verdict = judge(&outcome, Mode::Java);
    assert_eq!(verdict.failures, Vec::<String>::new());
    assert_eq!(verdict.programs.len(), 5);
    // A call that is missing; the innermost frames alone; C that is not there.
    let cut = java(RUN, 20);
    outcome.stacks.push(stack(10, 5, &cut));
    outcome.stacks.push(stack(11, 5, &cut[5..]));
    jni.remove(5);
    outcome.stacks.push(stack(20, 5, &jni));
    assert_eq!(judge(&outcome, Mode::Java).failures.len(), 3);
}
