//! Tables of threads that a neighbour fills: the others' have their places.

use super::*;
use emberscope_capture::{Loss, UserLoss};
use emberscope_model::SampleKind;
use profiler_ebpf::PartyKind;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

const FLOODER: u32 = 64002;
const CALM: u32 = 64003;
const PLACES: u32 = 400;

/// Threads of a program that named themselves, and those that have no number.
fn named(events: &[RawEvent], pid: Pid) -> (usize, usize) {
    let mut named = threads(events, pid);
    named.retain(|thread| thread.cause == ThreadCause::Named);
    (named.len(), named.iter().filter(|thread| thread.name_seq == 0).count())
}

/// The fixture, where every user may run it; while the directory lives.
fn program_for_all() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("is ours");
    let program = dir.path().join("names");
    std::fs::copy(fixture(), &program).expect("copied");
    (dir, program)
}

#[test]
fn a_user_with_many_threads_leaves_places_for_others() {
    let Some((features, _guard)) = host("shared_table") else { return };
    let (_dir, program) = program_for_all();
    let mut capture = start(&CaptureConfig { max_threads: PLACES, ..config() }, &features);
    watch(&mut capture, &program, "set_name");
    let mut events = Vec::new();
    let spread = |capture: &mut Capture, events: &mut Vec<RawEvent>, uid, count: usize| {
        let mut command = Command::new(&program);
        let count_text = count.to_string();
        let command = command.args(["spread", &count_text]).uid(uid).gid(uid).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the fixture starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let program = Program(child, out);
        let end = Instant::now() + PATIENCE;
        while named(events, program.pid()).0 < count && Instant::now() < end {
            record(capture, Duration::from_millis(50), events);
        }
        assert_eq!(named(events, program.pid()).0, count);
        program
    };
    let flood = spread(&mut capture, &mut events, FLOODER, 500);
    let calm = spread(&mut capture, &mut events, CALM, 50);
    let without = named(&events, flood.pid()).1;
    assert!((300..=310).contains(&without), "one user may have half of them: {without}");
    assert_eq!(named(&events, calm.pid()).1, 0);
    let places: Vec<UserLoss> = capture.lost_by_user();
    let places = places.iter().filter(|loss| loss.what == Loss::Place).collect::<Vec<_>>();
    assert_eq!(places, [&UserLoss { uid: FLOODER, what: Loss::Place, count: without as u64 }]);

    // His places are free when he has ended; as a user of Spark he may have more.
    drop(flood);
    record(&mut capture, Duration::from_millis(300), &mut events);
    capture.set_spark_users([FLOODER].into());
    let spark = spread(&mut capture, &mut events, FLOODER, 250);
    assert_eq!(named(&events, spark.pid()).1, 0);
}

/// The kernel's table of threads whose waits are watched: threads of others that run tasks have their places, too.
#[test]
fn a_user_with_many_tasks_leaves_places_for_others_waits() {
    let Some((features, _guard)) = host("shared_waiters") else { return };
    let (_dir, program) = program_for_all();
    let others = vec![(SampleKind::OffCpu, 10_000_000)];
    let mut capture = start(&CaptureConfig { others, ..config() }, &features);
    if !capture.has_waits() {
        return skip("shared_waiters", "waits cannot be sampled here");
    }
    watch(&mut capture, &program, "set_name");
    let mut events = Vec::new();
    // How many of a program's threads are waiters, once all of them have a name.
    let tasks = |capture: &mut Capture, events: &mut Vec<RawEvent>, uid, count: usize| {
        let mut command = Command::new(&program);
        let command = command.args(["tasks", &count.to_string()]).uid(uid).gid(uid);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        capture.set_party(child.id(), PartyKind::Executor, child.id()).expect("there is room");
        child.stdin.take().expect("piped").write_all(b"\n").expect("it reads");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let program = Program(child, out);
        let end = Instant::now() + PATIENCE;
        while named(events, program.pid()).0 < count && Instant::now() < end {
            record(capture, Duration::from_millis(50), events);
        }
        assert_eq!(named(events, program.pid()), (count, 0));
        record(capture, Duration::from_millis(300), events);
        // All that began, whenever.
        let waits = capture.open_waits(u64::MAX, 0);
        let waiters = waits.iter().filter(|wait| wait.sample.pid == program.pid() && !wait.several).count();
        (program, waiters)
    };
    let (flood, waiters) = tasks(&mut capture, &mut events, FLOODER, 1300);
    assert!((1020..=1030).contains(&waiters), "one user may have half of them: {waiters}");
    let (_calm, calm) = tasks(&mut capture, &mut events, CALM, 100);
    assert_eq!(calm, 100);
    let losses = capture.lost_by_user();
    let losses = losses.iter().filter(|loss| loss.what == Loss::Waiter).collect::<Vec<_>>();
    let without = 1300 - waiters as u64;
    assert_eq!(losses, [&UserLoss { uid: FLOODER, what: Loss::Waiter, count: without }]);
    assert_eq!(capture.lost().get(DropReason::WaitersFull), without);

    // His places are free when he has ended.
    drop(flood);
    record(&mut capture, Duration::from_millis(300), &mut events);
    let (_again, waiters) = tasks(&mut capture, &mut events, FLOODER, 900);
    assert_eq!(waiters, 900);
}
