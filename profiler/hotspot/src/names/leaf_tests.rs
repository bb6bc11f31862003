//! Who calls a leaf routine, on real JVMs: such a call has no debug info for where it returns. In a program whose
//! inlined methods each call routines of their own, every call in the compiled code is looked at. With debug info for
//! each instruction all must be right, without it those in the loops.

use super::JavaFrame;
use super::tests::{blobs, frame, namer, start};
use emberscope_target::memory::Memory as _;
use emberscope_testkit::jdks::all_jdks;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register};
use profiler_ebpf::{JavaFrameTag, UserFrame};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Routines by their names' ends or beginnings, and the methods of Leaf.java that alone call them.
const CALLERS: [(&str, &str); 7] = [
    ("dsin", "sines"),
    ("dcos", "cosines"),
    ("dexp", "exponents"),
    ("dpow", "powers"),
    ("dcbrt", "roots"),
    ("jbyte", "copies"),
    ("updateBytesCRC32", "sums"),
];
/// What C2 would else leave alone is inlined, and soon.
const INLINED: [&str; 5] = [
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=inline,Leaf.*",
    "-XX:Tier3InvocationThreshold=50",
    "-XX:Tier4InvocationThreshold=300",
    "-XX:+UseG1GC",
];

/// Where calls of known addresses lead and where they return.
fn calls(code: &[u8], from: u64) -> Vec<(u64, u64)> {
    let (mut found, mut loaded) = (Vec::new(), None);
    for instruction in Decoder::with_ip(64, code, from, DecoderOptions::NONE).iter() {
        let instruction: Instruction = instruction;
        match instruction.code() {
            Code::Call_rel32_64 => found.push((instruction.near_branch_target(), instruction.next_ip())),
            Code::Mov_r64_imm64 if instruction.op0_register() == Register::R10 => {
                loaded = Some(instruction.immediate64());
                continue;
            }
            Code::Call_rm64 if instruction.op0_register() == Register::R10 => {
                found.extend(loaded.map(|target| (target, instruction.next_ip())));
            }
            _ => {}
        }
        loaded = None;
    }
    found
}

/// The method of the program that a frame's chain is in; None: in none but `run` and `main`.
fn inner(named: &[JavaFrame]) -> Option<&str> {
    let method =
        |frame: &JavaFrame| CALLERS.iter().find(|(_, m)| frame.name.strip_prefix("Leaf.") == Some(m));
    named.iter().find_map(method).map(|(_, method)| *method)
}

/// Calls of a routine: all, and those that are its caller's by name.
type Counts = (usize, usize);

/// What is found, by routine.
fn check(jdk: &Path, flags: &[&str]) -> BTreeMap<&'static str, Counts> {
    let flags = [&INLINED[..], flags].concat();
    let Some(java) = start(jdk, &flags, &["Leaf"], Duration::from_millis(1500)) else {
        return BTreeMap::new();
    };
    let (mut namer, memory) = namer(&java);
    let (nmethods, _) = blobs(&mut namer, &memory);
    let mut batch = namer.batch(&memory);
    let mut seen = BTreeMap::new();
    for head in nmethods {
        let own = frame(JavaFrameTag::Compiled, head.code.0, head.compile_id, UserFrame::FLAG_RETURN_ADDRESS);
        let Ok(named) = batch.name(&own) else { continue };
        let outermost = named.last().map(|frame| frame.name.to_string()).unwrap_or_default();
        if !["Leaf.run", "Leaf.main"].contains(&&*outermost) {
            continue;
        }
        let mut code = vec![0; (head.code.1 - head.code.0) as usize];
        if memory.read(head.code.0, &mut code).is_err() {
            continue;
        }
        for (target, back) in calls(&code, head.code.0) {
            let Ok(stub) = batch.name(&frame(JavaFrameTag::Stub, target, 0, 0)) else { continue };
            let stub = &*stub[0].name;
            let is =
                |routine: &str| if routine == "jbyte" { stub.starts_with(routine) } else { stub == routine };
            let Some((routine, method)) = CALLERS.into_iter().find(|(routine, _)| is(routine)) else {
                continue;
            };
            let caller = frame(JavaFrameTag::Compiled, back, head.compile_id, UserFrame::FLAG_RETURN_ADDRESS);
            let Ok(named) = batch.name(&caller) else { continue };
            let right = inner(&named) == Some(method);
            assert!(right || flags.len() == INLINED.len(), "{jdk:?} {flags:?}: calls {stub}: {named:?}");
            let counts: &mut Counts = seen.entry(routine).or_default();
            *counts = (counts.0 + 1, counts.1 + usize::from(right));
        }
    }
    println!("{jdk:?} {flags:?}: {seen:?}");
    seen
}

#[test]
fn calls_of_leaf_routines_are_their_inlined_callers() {
    for jdk in all_jdks() {
        for flags in [&[][..], &["-XX:+DebugNonSafepoints"]] {
            let seen = check(&jdk, flags);
            // A round that is peeled off a loop has no debug info near: it borrows from what comes behind.
            let inside = seen.values().all(|(_, right)| *right > 0);
            assert!(inside, "{jdk:?} {flags:?}: {seen:?}");
            // Which of them are routines differs with releases and processors; these are on all.
            let known = emberscope_testkit::jdks::jdks().contains(&jdk);
            let always = ["dsin", "dcos", "dexp", "dpow"].iter().all(|routine| seen.contains_key(routine));
            assert!(!known || always, "{jdk:?} {flags:?}: {seen:?}");
        }
    }
}
