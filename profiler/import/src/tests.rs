//! Folded stacks and pprof, and what the formats share.

use super::*;
use emberscope_export::pprof as written;
use emberscope_model::{Frame, FrameKind, LabelKey, SampleKind, WallTime};
use proptest::prelude::*;
use prost::Message;
use std::sync::Arc;

pub fn told() -> Told {
    Told {
        range: None,
        written_ns: 1_795_334_403_000_000_000,
        period: Some(Duration::from_millis(10)),
        nanoseconds: false,
        events: Events::Cpu,
        window: Duration::from_secs(10),
        class_of: |name| if name.starts_with("GC") { ThreadClass::Gc } else { ThreadClass::Other },
    }
}

/// Its stacks as annotated folded lines, sorted.
pub fn folded(imported: &Imported) -> Vec<String> {
    let mut sums: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for row in imported.windows.iter().flat_map(|window| &window.rows) {
        let names: Vec<String> =
            row.stack.frames.iter().map(|frame| format!("{}{}", frame.name, frame.kind.suffix())).collect();
        let name = if names.is_empty() { "(no frames)".to_owned() } else { names.join(";") };
        *sums.entry(name).or_default() += row.count;
    }
    sums.into_iter().map(|(stack, count)| format!("{stack} {count}")).collect()
}

fn text(text: &str) -> Result<Imported, ImportError> {
    read(text.as_bytes(), None, &told())
}

#[test]
fn folded_stacks_of_async_profiler() {
    let lines = "java/lang/Thread.run_[0];a/B.work_[j];a/B.inner_[i];a/B.c1_[1];asm_fault_[k] 7\n\
                 [GC Thread#0 tid=12];start_thread;GCTaskThread::run;memcpy 3\n\
                 # a remark\n\n\
                 java.lang.Thread.run;Foo$$Lambda$14.0x00007fd6a4000a08.apply;libc.so.6;finish.isra.0 2\r\n\
                 (no frames) 1";
    let imported = text(lines).unwrap();
    assert_eq!(
        folded(&imported),
        [
            "(no frames) 1",
            "java.lang.Thread.run_[0];a.B.work_[j];a.B.inner_[i];a.B.c1_[j];asm_fault_[k] 7",
            "java.lang.Thread.run_[j];Foo$$Lambda.apply_[j];libc.so.6;finish.isra.0 2",
            "start_thread;GCTaskThread::run;memcpy 3",
        ]
    );
    assert_eq!((imported.sampled.count, imported.sampled.weight, imported.stackless), (13, 130_000_000, 1));
    assert!(imported.guessed, "the time is the file's");
    assert_eq!(imported.range.from, WallTime(1_795_334_400_000_000_000));
    let classes: Vec<&str> =
        imported.windows[0].rows.iter().map(|row| row.labels.get(LabelKey::ThreadClass)).collect();
    assert_eq!(classes.iter().filter(|class| **class == "gc").count(), 1);
    assert!(imported.windows[0].rows.iter().all(|row| row.labels.get(LabelKey::Source) == "folded"));
}

#[test]
fn labels_before_the_frames_are_labels() {
    let mut imported = text("stage=3;thread_class=task;main;x=1 4\nstage=(none);main 1\n").unwrap();
    assert_eq!(folded(&imported), ["main 1", "main;x=1 4"]);
    imported.label(&[(LabelKey::App, "etl".to_owned()), (LabelKey::Stage, "9".to_owned())]);
    let mut sets: Vec<String> = imported.windows[0]
        .rows
        .iter()
        .map(|row| format!("{:?}", row.labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>()))
        .collect();
    sets.sort();
    assert_eq!(
        sets,
        [
            "[\"app=etl\", \"stage=3\", \"thread_class=task\", \"source=folded\"]",
            "[\"app=etl\", \"stage=9\", \"source=folded\"]"
        ],
        "a label of the file's own stays"
    );
}

#[test]
fn numbers_may_be_nanoseconds_and_must_be_told_to_be_samples() {
    let nanoseconds = Told { nanoseconds: true, ..told() };
    let imported = read(&b"a;b 25000000\nc 1\n"[..], None, &nanoseconds).unwrap();
    assert_eq!((imported.sampled.count, imported.sampled.weight), (4, 25_000_001));
    let silent = Told { period: None, ..told() };
    let error = read(&b"a 1\n"[..], None, &silent).unwrap_err().to_string();
    assert!(error.contains("--hz") && error.contains("100"), "{error}");
}

#[test]
fn wrong_lines_say_where() {
    let says = |lines: &str| text(lines).unwrap_err().to_string();
    assert!(says("a;b 1\na;b\n").starts_with("line 2 has no count"), "{}", says("a;b 1\na;b\n"));
    assert!(says("a;b 1\na b\n").starts_with("line 2 does not end in a whole number"));
    assert!(says("a -1\n").starts_with("line 1"));
    assert!(says(&format!("a 1\n{} 1\n", "x".repeat(limits::LINE))).starts_with("line 2 is longer"));
    assert!(says(&format!("{} 1\n", "x;".repeat(limits::FRAMES + 1))).contains("65536 frames"));
    assert!(matches!(text(""), Err(ImportError::Empty)));
    assert!(says("a 0\n").contains("1 of lines that count 0"));
}

#[test]
fn packed_files_and_broken_packing() {
    let packed = written::packed(b"main;work 3\n");
    assert_eq!(folded(&read(&*packed, None, &told()).unwrap()), ["main;work 3"]);
    let cut = &packed[..packed.len() - 6];
    assert!(matches!(read(cut, None, &told()), Err(ImportError::Read(_))));
}

fn profile(stacks: &[(&[Frame], u64, u64)]) -> written::Profile {
    let range =
        TimeRange { from: WallTime(1_795_334_403_000_000_000), until: WallTime(1_795_334_463_000_000_000) };
    let mut all = written::Stacks::new(range, SampleKind::Cpu);
    for (frames, count, weight) in stacks {
        let frames: Vec<Arc<Frame>> = frames.iter().cloned().map(Arc::new).collect();
        all.add(&frames, *count, *weight);
    }
    all.finish()
}

fn java(name: &str) -> Frame {
    Frame { signature: Some("(int)void".into()), line: 7, ..Frame::new(FrameKind::JavaCompiled, name, "") }
}

#[test]
fn our_own_pprof_comes_back() {
    let native = Frame::new(FrameKind::Native, "memcpy", "libc.so.6");
    let unknown = Frame::unknown(emberscope_model::UnknownReason::NoPerfMap, "");
    let run = java("java.lang.Thread.run");
    let bytes = profile(&[
        (&[run.clone(), native.clone()], 3, 30),
        (&[run.clone(), unknown.clone()], 2, 25),
        (&[], 1, 10),
    ]);
    let imported =
        read(&*written::packed(&bytes.encode_to_vec()), None, &Told { period: None, ..told() }).unwrap();
    assert_eq!((imported.sampled.count, imported.sampled.weight, imported.stackless), (6, 65, 1));
    assert_eq!(imported.range.duration(), Duration::from_secs(60), "one window, of the profile's own span");
    assert!(!imported.guessed);
    let mut stacks: Vec<Vec<Frame>> = imported.windows[0]
        .rows
        .iter()
        .map(|row| row.stack.frames.iter().map(|frame| (**frame).clone()).collect())
        .collect();
    stacks.sort_by_key(Vec::len);
    assert!(
        stacks.contains(&vec![run.clone(), native]) && stacks.contains(&vec![run, unknown]),
        "{stacks:?}"
    );
    let at = Told { range: Some(imported.range), ..told() };
    assert!(matches!(read(&*bytes.encode_to_vec(), None, &at), Err(ImportError::HasTimes)));
}

#[test]
fn a_profile_of_something_else_is_refused() {
    let mut other = profile(&[(&[java("a.B.c")], 3, 30)]);
    let place = other.string_table.iter().position(|text| text == "cpu").unwrap();
    other.string_table[place] = "inuse_space".to_owned();
    other.period_type = None;
    let error =
        read(&*other.encode_to_vec(), Some(Format::Pprof), &Told { period: None, ..told() }).unwrap_err();
    assert!(error.to_string().contains("samples/count, inuse_space/nanoseconds"), "{error}");
    let mut negative = profile(&[(&[java("a.B.c")], 3, 30)]);
    negative.sample[0].value[1] = -4;
    let error = read(&*negative.encode_to_vec(), None, &told()).unwrap_err().to_string();
    assert!(error.contains("sample 0 has a negative value"), "{error}");
    let mut lost = profile(&[(&[java("a.B.c")], 3, 30)]);
    lost.sample[0].location_id[0] = 77;
    let error = read(&*lost.encode_to_vec(), None, &told()).unwrap_err().to_string();
    assert!(error.contains("location 77"), "{error}");
    let error = read(&b"\x01\x02\x03 nothing of the kind"[..], None, &told()).unwrap_err().to_string();
    assert!(error.contains("no pprof profile") && error.contains("--format"), "{error}");
}

proptest! {
    #[test]
    fn anything_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for format in Format::ALL {
            let _ = read(&*bytes, Some(format), &told());
        }
    }

    #[test]
    fn a_spoilt_profile_is_read_or_refused(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5)) {
        let mut bytes = profile(&[(&[java("a.B.c"), java("a.B.d")], 3, 30)]).encode_to_vec();
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&*bytes, Some(Format::Pprof), &told());
    }

    /// What folded stacks are written from comes back as it was.
    #[test]
    fn folded_lines_come_back(lines in prop::collection::btree_map("[a-z_]{1,8}(;[a-z_:]{1,8}){0,5}", 1_u64..1000, 1..20)) {
        let file: String = lines.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect();
        let imported = text(&file).unwrap();
        let want: Vec<String> = lines.iter().map(|(stack, count)| format!("{stack} {count}")).collect();
        prop_assert_eq!(folded(&imported), want);
    }
}
