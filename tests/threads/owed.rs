//! Short waits of a thread that stands still for long afterwards, as one of a pool does after its task.

use super::*;
use emberscope_model::{RawWait, SampleKind};
use profiler_ebpf::PartyKind;
use std::io::Write as _;

/// Waits of a millisecond; together they are not long enough to be told.
const WAITS: u64 = 25;
/// A stack is walked each so much of waiting: one of fifty waits.
const EVERY_NS: u64 = 50_000_000;
/// Waits that the program does not count, at most: for its name, and for memory.
const BESIDE: u64 = 5;

#[test]
fn short_waits_are_known_while_their_thread_stands_still() {
    let Some((features, _guard)) = host("owed_waits") else { return };
    let others = vec![(SampleKind::OffCpu, EVERY_NS)];
    let mut capture = start(&CaptureConfig { others, ..config() }, &features);
    if !capture.has_waits() {
        return skip("owed_waits", "waits cannot be sampled here");
    }
    watch(&mut capture, &fixture(), "set_name");
    let mut command = Command::new(fixture());
    let command = command.args(["owes", &WAITS.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the fixture starts");
    let mut go = child.stdin.take().expect("piped");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let mut program = Program(child, out);
    // Whose process it is is forgotten at an exec, which may come after the spawn.
    program.line();
    capture.set_party(program.pid(), PartyKind::Executor, program.pid()).expect("there is room");
    go.write_all(b"\n").expect("it reads");
    let mut line = String::new();
    program.1.read_line(&mut line).expect("text");
    let passed = number(line.split_whitespace().nth(1).expect("a figure"));
    let mut events = Vec::new();
    record(&mut capture, Duration::from_millis(300), &mut events);

    let of_program = |wait: &RawWait| wait.sample.pid == program.pid();
    let told = events.iter().filter_map(|event| match event {
        RawEvent::Wait(wait) if of_program(wait) => Some(wait),
        _ => None,
    });
    let (told, waits) = sums(told);
    let mut open = capture.open_waits(u64::MAX, 0);
    open.retain(of_program);
    let [goes_on, owed @ ..] = &open[..] else { panic!("it waits for nothing") };
    assert!(!goes_on.several && owed.iter().all(|owed| owed.several));
    let (owed, more) = sums(owed.iter());
    // What is not walked is neither told nor lost; naming itself may have made the thread wait, too.
    let (least, most) = (WAITS * 1_000_000, passed + EVERY_NS);
    assert!((least..=most).contains(&(told + owed)), "{told} and {owed} of {passed} ns");
    assert!((WAITS..=WAITS + BESIDE).contains(&(waits + more)), "{waits} and {more} waits of {WAITS}");
}

/// Nanoseconds of waiting, and how many waits.
fn sums<'a>(waits: impl Iterator<Item = &'a RawWait>) -> (u64, u64) {
    waits.fold((0, 0), |(ns, waits), wait| (ns + wait.sample.weight, waits + u64::from(wait.sample.detail)))
}
