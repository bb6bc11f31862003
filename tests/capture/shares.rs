//! A ring that a neighbour floods: what he loses is his own, and said to be his.
//!
//! The calm one and the flooder are users without a name, since root does other things on this machine meanwhile.

use super::*;
use emberscope_capture::{Loss, UserLoss};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

const FLOODER: u32 = 64002;
const CALM: u32 = 64003;

/// A directory that every user can run programs from.
fn open_to_all() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("is ours");
    dir
}

/// One of the programs of `cargo xtask bench hostile`.
fn attack(dir: &Path, name: &str) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../xtask/src/bench/hostile/programs");
    let program = dir.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-fno-omit-frame-pointer", "-pthread", "-o"]).arg(&program);
    assert!(cc.arg(programs.join(format!("{name}.c"))).arg("-ldl").status().expect("cc").success());
    program
}

/// A program that floods until it is dropped.
struct Flood(Vec<Child>);

impl Flood {
    fn start(program: &Path, args: &[&str], times: usize) -> Self {
        let one = || {
            let mut command = Command::new(program);
            command.args(args).uid(FLOODER).gid(FLOODER).stdout(Stdio::null());
            command.spawn().expect("the attack starts")
        };
        Self((0..times).map(|_| one()).collect())
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads now and then, as a daemon that has much else to do.
fn read_late(capture: &mut Capture, every: Duration, time: Duration, got: &mut Got) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::thread::sleep(every);
        capture.read(Duration::ZERO, &mut got.events).expect("read");
    }
}

/// By user and what it was.
fn by_user(losses: &[UserLoss]) -> BTreeMap<(u32, Loss), u64> {
    losses.iter().map(|loss| ((loss.uid, loss.what), loss.count)).collect()
}

/// Nanoseconds that a process's threads ran.
fn ran_ns(pid: Pid) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("runs").flatten();
    let ran = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    ran.sum()
}

#[test]
fn a_neighbours_samples_and_stacks_come_up_beside_a_flood_of_stacks() {
    let Some((features, _guard)) = host("flooded_ring") else { return };
    let dir = open_to_all();
    let spin = dir.path().join("spin");
    std::fs::copy(fixture(), &spin).expect("copied");
    let config = CaptureConfig { ring_bytes: Some(256 * 1024), ..at_999_hz() };
    let mut capture = start(&config, &features);
    let flood = Flood::start(&attack(dir.path(), "stacks"), &["120"], 3);
    let mut got = Got::default();
    read_late(&mut capture, Duration::from_millis(150), Duration::from_secs(1), &mut got);
    // It begins in the middle of the flood.
    let calm = Spin::spawn(Command::new(&spin).args(["20", "thread"]).uid(CALM).gid(CALM));
    let before = ran_ns(calm.pid());
    read_late(&mut capture, Duration::from_millis(150), Duration::from_secs(8), &mut got);
    let ran = ran_ns(calm.pid()) - before;
    let (losses, lost) = (by_user(&capture.lost_by_user()), capture.lost());

    let of = |user, what| losses.get(&(user, what)).copied().unwrap_or(0);
    assert!(of(FLOODER, Loss::Stack) > 500, "{losses:?}");
    assert!(of(FLOODER, Loss::Stack) > of(FLOODER, Loss::Sample), "stacks go first: {losses:?}");
    assert!(losses.keys().all(|(uid, _)| *uid != CALM), "{losses:?}");
    // Whose they were is known of all.
    let sum = |what| losses.iter().filter(|((_, w), _)| *w == what).map(|(_, count)| count).sum::<u64>();
    assert!(lost.get(DropReason::RingFullStack) >= sum(Loss::Stack));
    assert!(lost.get(DropReason::RingFullStack) - sum(Loss::Stack) < 20, "{lost:?} {losses:?}");
    drop(flood);

    let stacks = got.stacks();
    let samples = got.samples(calm.pid());
    let named = samples.iter().filter(|sample| stacks.contains_key(&sample.stack)).count();
    assert_eq!(named, samples.len(), "each has its stack");
    let want = ran as f64 * 999.0 / 1e9;
    let error = (samples.len() as f64 - want).abs();
    eprintln!("{} samples of {want:.0}; {losses:?}", samples.len());
    assert!(error <= want * 0.05 + 3.0 * want.sqrt() + 10.0, "{} of {want:.0}", samples.len());
}

#[test]
fn a_neighbours_events_come_up_beside_a_storm_of_forks() {
    let Some((features, _guard)) = host("flooded_events") else { return };
    let dir = open_to_all();
    let config = CaptureConfig { ring_bytes: Some(64 * 1024), ..at_99_hz() };
    let mut capture = start(&config, &features);
    let flood = Flood::start(&attack(dir.path(), "forks"), &["120", "fork"], 2);
    let (mut got, mut pids) = (Got::default(), BTreeSet::new());
    for _ in 0..10 {
        read_late(&mut capture, Duration::from_millis(300), Duration::from_millis(300), &mut got);
        // Now the storm has its share.
        std::thread::sleep(Duration::from_millis(200));
        for _ in 0..5 {
            let mut child = Command::new("true").uid(CALM).gid(CALM).spawn().expect("true");
            pids.insert(child.id());
            child.wait().expect("ends");
        }
    }
    read_late(&mut capture, Duration::from_millis(10), Duration::from_millis(100), &mut got);
    drop(flood);
    let losses = by_user(&capture.lost_by_user());
    eprintln!("{losses:?}");
    let lost = losses.get(&(FLOODER, Loss::Task)).copied().unwrap_or(0);
    assert!(lost > 100, "{losses:?}");
    assert!(losses.keys().all(|(uid, _)| *uid != CALM), "{losses:?}");
    for wanted in [TaskEvent::Exec, TaskEvent::Exit] {
        let came = got.events.iter().filter_map(|event| match event {
            RawEvent::Task(task) if task.event == wanted => Some(task.pid),
            _ => None,
        });
        let came: BTreeSet<Pid> = came.collect();
        let missing: Vec<_> = pids.difference(&came).collect();
        assert!(missing.is_empty(), "{wanted:?} of {missing:?}");
    }
}
