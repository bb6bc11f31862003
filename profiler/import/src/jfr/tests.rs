//! Recordings made here: what is taken, what is left out, and what is wrong.

use super::super::tests::{folded, told};
use super::super::{Events, Format, ImportError, Told};
use super::fake::{
    ALLOCATION, CPU_TIME, EXECUTION, Fake, IN_TLAB, MONITOR_ENTER, NATIVE, OUTSIDE_TLAB, PARK, RECORDING,
    WALL,
};
use emberscope_model::{LabelKey, SampleKind};
use proptest::prelude::*;

/// 2026-11-22T08:00:03Z.
const START: u64 = 1_795_334_403_000_000_000;

fn read(bytes: &[u8], told: &Told) -> Result<super::Imported, ImportError> {
    super::super::read(bytes, None, told)
}

fn jdk(compressed: bool) -> Fake {
    let mut fake = Fake::new(compressed, START);
    fake.usual();
    fake.setting(EXECUTION, "period", "20 ms");
    fake.setting(NATIVE, "period", "40 ms");
    fake
}

#[test]
fn samples_of_the_jdk_in_windows_of_their_time() {
    for compressed in [true, false] {
        let mut fake = jdk(compressed);
        for ms in [0, 20, 6_999] {
            fake.sample(EXECUTION, ms, 1, 1, 1);
        }
        fake.sample(EXECUTION, 7_000, 1, 3, 1);
        fake.sample(EXECUTION, 7_001, 2, 99, 1);
        fake.sample(NATIVE, 7_001, 1, 1, 1);
        fake.other(ALLOCATION, 0, &[1, 1, 1, 64]);
        let imported = read(&fake.bytes(), &told()).unwrap();
        assert_eq!(imported.format, Format::Jfr);
        let windows: Vec<(u64, u64)> = imported
            .windows
            .iter()
            .map(|w| (w.range.from.0 / 1_000_000_000 % 60, w.rows.iter().map(|row| row.count).sum()))
            .collect();
        assert_eq!(windows, [(0, 3), (10, 2)], "three before 08:00:10, two from then on");
        assert_eq!(
            folded(&imported),
            ["(no frames) 1", "a.b.Busy.main_[0];a.b.Busy.spin_[j] 3", "a.b.Busy.spin_[j] 1"]
        );
        assert_eq!((imported.sampled.count, imported.sampled.weight), (5, 100_000_000));
        assert_eq!((imported.truncated, imported.stackless), (1, 1));
        assert_eq!(imported.by, "JFR, jdk.ExecutionSample every 20 ms");
        let out: Vec<(&str, u64)> =
            imported.left_out.iter().map(|out| (out.what.split(' ').next().unwrap(), out.count)).collect();
        assert_eq!(out, [("jdk.NativeMethodSample", 1), ("jdk.ObjectAllocationSample", 1)]);
        let frame = &imported.windows[0].rows[0].stack.frames[1];
        assert_eq!((frame.line, frame.signature.as_deref()), (12, Some("(int)void")));
        let labels = &imported.windows[0].rows[0].labels;
        assert_eq!((labels.get(LabelKey::Source), labels.get(LabelKey::ThreadClass)), ("jfr", "other"));
    }
}

#[test]
fn names_that_a_jvm_makes_up_are_folded() {
    for name in [
        "a/Foo$$Lambda$14.0x00007fd6a4000a08",
        "a/Foo$$Lambda$14+0x00007fd6a4000a08",
        "a/Foo$$Lambda/0x00007fd6a4000a08",
    ] {
        assert_eq!(super::super::name::method(name, "run"), "a.Foo$$Lambda.run", "{name}");
    }
}

#[test]
fn chunks_follow_each_other() {
    let chunk = |ms| {
        let mut fake = jdk(true);
        fake.sample(EXECUTION, ms, 1, 1, 1);
        fake.bytes()
    };
    let imported = read(&[chunk(0), chunk(60_000), chunk(0)].concat(), &told()).unwrap();
    assert_eq!((imported.sampled.count, imported.windows.len()), (3, 2));
    let whole = chunk(0);
    let error = read(&[&whole[..], &whole[..100]].concat(), &told()).unwrap_err().to_string();
    let place =
        format!("byte {} (chunk 2) begins a chunk of {} bytes of which 100", whole.len(), whole.len());
    assert!(error.starts_with(&place) && error.contains("JFR.dump"), "{error}");
    let error = read(&[&whole[..], b"garbage"].concat(), &told()).unwrap_err().to_string();
    assert!(error.contains("(chunk 2) is no beginning of a chunk"), "{error}");
}

#[test]
fn cpu_time_samples_are_better_than_execution_samples() {
    let mut fake = jdk(true);
    fake.sample(EXECUTION, 0, 1, 1, 1);
    fake.cpu_time(5, 1, 1, 4_000);
    fake.cpu_time(9, 2, 2, 12_000);
    let imported = read(&fake.bytes(), &told()).unwrap();
    assert_eq!((imported.sampled.count, imported.sampled.weight), (2, 16_000_000));
    assert_eq!(folded(&imported)[0], "GC::work;do_sys_[k] 1");
    assert_eq!(imported.left_out[0].what, "jdk.ExecutionSample");
    assert_eq!(imported.windows[0].rows[0].labels.get(LabelKey::Source), "jfr-cpu-time");
    assert_eq!(CPU_TIME, 104);
}

#[test]
fn what_is_no_time_on_a_cpu_is_left_out_unless_asked_for() {
    let agent = |event: &str| {
        let mut fake = Fake::new(true, START);
        fake.usual();
        fake.setting(RECORDING, "version", "4.5");
        fake.setting(RECORDING, "event", event);
        fake.setting(EXECUTION, "interval", "10000000");
        fake.setting(EXECUTION, "wall", "50000000");
        fake.sample(EXECUTION, 0, 1, 1, 1);
        fake.sample(WALL, 0, 1, 1, 1);
        fake.sample(WALL, 0, 1, 1, 2);
        fake.bytes()
    };
    let cpu = read(&agent("cpu"), &told()).unwrap();
    assert_eq!((cpu.sampled.count, cpu.sampled.weight), (1, 10_000_000));
    assert_eq!(cpu.by, "async-profiler 4.5, jdk.ExecutionSample every 10 ms");
    assert_eq!(cpu.left_out.iter().map(|out| out.count).collect::<Vec<_>>(), [3, 3]);
    let wall = read(&agent("cpu"), &Told { events: Events::Wall, ..told() }).unwrap();
    assert_eq!((wall.sampled.count, wall.sampled.weight), (3, 150_000_000), "of threads that could run");
    assert_eq!(wall.windows[0].rows[0].labels.get(LabelKey::Source), "async-profiler-wall");
    let error = read(&agent("cache-misses"), &told()).unwrap_err().to_string();
    assert!(error.contains("no samples of CPU time") && error.contains("event cache-misses"), "{error}");
}

fn asked(events: Events) -> Told {
    Told { events, period: None, ..told() }
}

#[test]
fn allocations_are_of_a_class_and_of_the_better_event() {
    let mut fake = jdk(true);
    fake.other(IN_TLAB, 0, &[1, 1, 4, 24, 65_536]);
    fake.other(OUTSIDE_TLAB, 1, &[1, 1, 1, 1_000_000]);
    fake.sample(EXECUTION, 0, 1, 1, 1);
    let alloc = asked(Events::Kind(SampleKind::Alloc));
    let imported = read(&fake.bytes(), &alloc).unwrap();
    assert_eq!((imported.kind, imported.windows[0].rows[0].kind), (SampleKind::Alloc, SampleKind::Alloc));
    assert_eq!((imported.sampled.count, imported.sampled.weight), (2, 1_065_536));
    let main = "a.b.Busy.main_[0];a.b.Busy.spin_[j]";
    assert_eq!(folded(&imported), [format!("{main};a.b.Busy 1"), format!("{main};byte[] 1")]);
    assert_eq!(imported.by, "JFR, jdk.ObjectAllocationInNewTLAB");
    assert_eq!(imported.left_out[0].what, "jdk.ExecutionSample");
    fake.other(ALLOCATION, 1, &[1, 1, 4, 3_000_000]);
    let imported = read(&fake.bytes(), &alloc).unwrap();
    assert_eq!((imported.sampled.count, imported.sampled.weight), (1, 3_000_000));
    assert_eq!(imported.by, "JFR, jdk.ObjectAllocationSample");
    assert!(imported.left_out.iter().any(|out| out.what.contains("InNewTLAB") && out.count == 2));
    let error = read(&jdk(true).bytes(), &alloc).unwrap_err().to_string();
    assert_eq!(error, "it has no samples of allocated memory");
}

#[test]
fn waits_for_monitors_and_locks_have_their_lock_and_last_as_long() {
    let mut fake = jdk(true);
    fake.setting(MONITOR_ENTER, "threshold", "20 ms");
    // 08:00:09 to 08:00:21: in three windows.
    fake.other(MONITOR_ENTER, 6_000, &[12_000_000, 1, 1, 1, 2]);
    fake.other(PARK, 7_000, &[500_000, 1, 1, 5]);
    fake.other(PARK, 7_000, &[900_000, 1, 1, 6]);
    let imported = read(&fake.bytes(), &asked(Events::Lock)).unwrap();
    assert_eq!((imported.kind, imported.sampled.count), (SampleKind::OffCpu, 2));
    let sums: Vec<u64> =
        imported.windows.iter().map(|w| w.rows.iter().map(|row| row.weight / 1_000_000).sum()).collect();
    assert_eq!(sums, [1_000, 10_500, 1_000]);
    let labels = |key| imported.windows[1].rows.iter().map(|row| row.labels.get(key)).collect::<Vec<_>>();
    assert_eq!(labels(LabelKey::Wait), ["lock", "lock"]);
    let locks = ["a.b.Busy", "java.util.concurrent.locks.ReentrantLock$NonfairSync"];
    assert_eq!(
        (labels(LabelKey::Lock), labels(LabelKey::LockOwner)),
        (locks.to_vec(), vec!["GC Thread#0", ""])
    );
    assert_eq!(imported.remarks, ["jdk.JavaMonitorEnter shorter than 20 ms is not in the recording"]);
    assert_eq!(imported.left_out[0].what, "jdk.ThreadPark of what is no lock");
    // One that ends after the end of time is refused, and takes no time.
    fake.other(MONITOR_ENTER, 0, &[i64::MAX / 1_000, 1, 1, 1, 2]);
    assert!(matches!(
        read(&fake.bytes(), &asked(Events::Lock)),
        Err(ImportError::Time(_) | ImportError::Windows)
    ));
}

#[test]
fn threads_that_slept_are_waits() {
    let mut fake = Fake::new(true, START);
    fake.usual();
    fake.setting(RECORDING, "version", "4.5");
    fake.setting(RECORDING, "event", "wall");
    fake.setting(EXECUTION, "wall", "50000000");
    fake.sample(WALL, 0, 1, 1, 1);
    fake.sample(WALL, 0, 1, 1, 2);
    let imported = read(&fake.bytes(), &asked(Events::Kind(SampleKind::OffCpu))).unwrap();
    assert_eq!(
        (imported.kind, imported.sampled.count, imported.sampled.weight),
        (SampleKind::OffCpu, 3, 150_000_000)
    );
    assert_eq!(imported.left_out[0].count, 3);
    let error = super::super::read(&b"a 1"[..], None, &asked(Events::Lock)).unwrap_err().to_string();
    assert!(error.contains("--events lock would choose"), "{error}");
}

#[test]
fn who_samples_how_often_must_be_said_by_somebody() {
    let mut fake = Fake::new(true, START);
    fake.usual();
    fake.sample(EXECUTION, 0, 1, 1, 1);
    let silent = Told { period: None, ..told() };
    assert!(matches!(read(&fake.bytes(), &silent), Err(ImportError::NoPeriod(_))));
    assert_eq!(read(&fake.bytes(), &told()).unwrap().sampled.weight, 10_000_000, "told");
    fake.setting(EXECUTION, "period", "20 ms");
    assert_eq!(read(&fake.bytes(), &silent).unwrap().sampled.weight, 20_000_000);
    let remarks = read(&fake.bytes(), &told()).unwrap().remarks;
    assert!(remarks[0].contains("--hz and --period were not used"), "{remarks:?}");
    let early = Fake::new(true, 1_000_000_000);
    let early = {
        let mut fake = early;
        fake.usual();
        fake.sample(EXECUTION, 0, 1, 1, 1);
        fake
    };
    assert!(matches!(read(&early.bytes(), &told()), Err(ImportError::Time(_))));
    let timed = Told {
        range: Some(emberscope_model::TimeRange {
            from: emberscope_model::WallTime(1),
            until: emberscope_model::WallTime(2),
        }),
        ..told()
    };
    assert!(matches!(read(&fake.bytes(), &timed), Err(ImportError::HasTimes)));
}

#[test]
fn hostile_headers_are_refused() {
    let whole = jdk(true).bytes();
    let with = |at: usize, bytes: &[u8]| {
        let mut out = whole.clone();
        out[at..at + bytes.len()].copy_from_slice(bytes);
        read(&out, &told()).unwrap_err().to_string()
    };
    assert!(with(5, &[1]).contains("version 1.1"));
    assert!(with(8, &[0; 8]).contains("still being written"));
    assert!(with(8, &[0x7f; 8]).contains("begins a chunk of"));
    assert!(with(8, &[0, 0, 0, 0, 0, 0, 0, 3]).contains("chunk of 3 bytes"));
    assert!(with(24, &[0xff; 8]).contains("metadata"));
    assert!(with(56, &[0; 8]).contains("has no time"));
    assert!(with(68, &[0]).contains("event of 0 bytes"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn spoilt_recordings_are_read_or_refused(spoilt in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), compressed in any::<bool>()) {
        let mut fake = jdk(compressed);
        fake.sample(EXECUTION, 0, 1, 1, 1);
        fake.sample(WALL, 3, 2, 2, 1);
        fake.cpu_time(5, 1, 1, 4_000);
        let mut bytes = fake.bytes();
        for (place, byte) in spoilt {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes, &told());
    }
}
