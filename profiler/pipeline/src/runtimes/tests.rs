//! A second runtime, made up and tiny, the whole way: recognised in a /proc of its own, told to a kernel that only takes
//! notes, its frames out of the ring's bytes named, its state and reasons shown. HotSpot stands beside it all the time.

use super::*;
use crate::stacks::{Entry, StackCache, StackToken};
use emberscope_capture::{CaptureError, decode};
use emberscope_hotspot::HotSpot;
use emberscope_model::{
    AllocProbe, FileId, Frame, FrameKind, NameProbe, PauseProbe, Pid, RawEvent, StackEnd, StringLayout,
    Tenant, UnknownReason,
};
use emberscope_process::RegistryConfig;
use emberscope_process::threads::Limits;
use emberscope_runtime::{
    Answer, DeferredFrame, Fact, Facts, Meaning, Opened, Problem, Runtime, Runtimes, Words,
};
use emberscope_symbolize::{SymbolizerConfig, Target};
use emberscope_testkit::FakeProc;
use profiler_ebpf::{RecordKind, RuntimeHead, StackRecord, UserFrame};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

mod counts;
mod kernel;
mod probes;
use kernel::*;

const FAKE: RuntimeId = RuntimeId(200);
const START: u64 = 100;
/// Kinds of its frames: a function with one inlined in it; one that is gone.
const FUNCTION: u8 = 1;
const GONE: u8 = 2;
/// Code of the process without a file.
const GENERATED: u64 = 0x60_0010;

static WORDS: Words = Words {
    slug: "fake",
    names_threads: false,
    unread: UnknownReason::NoSymbol,
    not_ready: StackEnd::CodeTableTooLong,
    not_known: StackEnd::FrameNotUnderstood,
    opening: "its offsets are being looked at",
    walked: "functions are walked by its offsets",
    by_frame_pointers: "only natively",
    facts: &["flavour", "believed"],
    counts: &["turns", "never_told"],
};

struct Fake {
    believed: bool,
}

impl Runtime for Fake {
    fn id(&self) -> RuntimeId {
        FAKE
    }
    fn words(&self) -> &'static Words {
        &WORDS
    }
    fn marks(&self) -> &'static [&'static str] {
        &["/libfake1.", "/libfake2."]
    }
    fn open(&self, dir: &Path, start_ticks: u64) -> Result<Box<dyn Opened>, Problem> {
        assert!(dir.join("stat").exists() && start_ticks == START);
        Ok(Box::new(OpenFake { believed: self.believed, turns: 40 }))
    }
    fn meaning(&self, frame: &DeferredFrame) -> Meaning {
        if frame.frame.kind == FUNCTION { Meaning::Forever } else { Meaning::Generation }
    }
}

struct OpenFake {
    believed: bool,
    turns: u64,
}

impl Opened for OpenFake {
    fn layout(&mut self) -> Result<Layout, Problem> {
        if !self.believed {
            return Err(Problem::Never("fake offsets not believed".to_owned()));
        }
        Ok(Layout::new(FAKE, &[5; size_of::<RuntimeHead>() + 8]))
    }
    fn name(&mut self, frames: &[DeferredFrame]) -> Vec<Answer> {
        let name = |frame: &DeferredFrame| {
            if !self.believed {
                return Err(WORDS.unread);
            }
            match frame.frame.kind {
                FUNCTION => Ok(["outer", "inlined"]
                    .map(|name| Frame {
                        line: frame.frame.cookie,
                        ..Frame::new(FrameKind::Python, format!("{name}_{:x}", frame.frame.value), "fake.f")
                    })
                    .into()),
                _ => Err(UnknownReason::Unloaded),
            }
        };
        frames.iter().map(name).collect()
    }
    fn facts(&mut self) -> Result<Facts, Problem> {
        Ok(Facts(vec![("flavour", Fact::Text("plain")), ("believed", Fact::Flag(self.believed))]))
    }
    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        self.turns += 2;
        vec![("turns", self.turns)]
    }
}

/// All that the pipeline joins for it.
struct Scene {
    // Its directory goes with it.
    _proc: FakeProc,
    registry: Registry,
    kernel: FakeKernel,
    threads: Threads,
    symbolizer: Symbolizer,
    processes: Processes,
    stacks: StackCache,
    target: Target,
}

impl Scene {
    fn new(believed: bool) -> Self {
        // The readers look at the true /proc/PID, where somebody must be.
        let pid = std::process::id();
        let proc = FakeProc::new();
        let maps = "00400000-00452000 r-xp 00000000 08:02 173521 /opt/lib/libfake2.7.so\n\
                    00600000-00700000 rwxp 00000000 00:00 0 \n";
        proc.process(pid, 1, "fake", START).words(&["fake"]).file("maps", maps.as_bytes());
        let runtimes = Runtimes::new(vec![Box::new(HotSpot::default()), Box::new(Fake { believed })]);
        let mut registry = Registry::new(RegistryConfig {
            proc_root: proc.path(),
            passwd: proc.passwd(),
            marks: runtimes.marks(),
            ..RegistryConfig::host("n1")
        });
        let process = registry.get(pid);
        assert_eq!((process.runtime, process.is_jvm()), (FAKE, false));
        let key = process.key;
        let readers = Readers::new(runtimes);
        let config = SymbolizerConfig {
            proc_root: proc.path(),
            readers: readers.clone(),
            ..SymbolizerConfig::default()
        };
        Self {
            _proc: proc,
            registry,
            kernel: FakeKernel::default(),
            threads: Threads::new(Limits::default(), 0),
            symbolizer: Symbolizer::new(config),
            processes: Processes::new(readers),
            stacks: StackCache::default(),
            target: Target { key, uid: 0, gid: 0, nspid: pid, tenant: Tenant::default() },
        }
    }

    /// Until the walker knows it, or never will.
    fn settle(&mut self) -> Walking {
        let until = Instant::now() + Duration::from_secs(30);
        let mut awaited = false;
        loop {
            let Self { processes, registry, kernel, threads, symbolizer, .. } = self;
            // What is being read is taken between two looks, too.
            if awaited {
                processes.take_found(registry, kernel, threads, symbolizer);
            } else {
                processes.tick(registry, kernel, threads, symbolizer);
            }
            awaited = processes.await_layouts();
            match processes.walking(self.target.key) {
                None | Some(Walking::Opening) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                walking => return walking.cloned().unwrap(),
            }
        }
    }

    /// A stack out of the ring's bytes, named; root first.
    fn named(&mut self, frames: &[UserFrame], end: StackEnd) -> emberscope_model::Stack {
        let bytes = record(self.target.key.pid, frames, end);
        let Ok(RawEvent::Stack(raw)) = decode(&bytes) else { panic!("no stack") };
        let (hash, target) = (raw.hash, self.target);
        self.stacks.insert(raw, |_| Tenant::default());
        let symbolizer = &mut self.symbolizer;
        let StackToken(entry) = self
            .stacks
            .token(target.key, hash, |raw| Entry {
                target: Arc::new(target),
                pending: symbolizer.begin(&target, raw),
            })
            .unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        self.symbolizer.read_names();
        while self.symbolizer.reading(target.key) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
            self.symbolizer.poll();
        }
        self.symbolizer.finish(&target, &entry.pending)
    }
}

fn deferred(kind: u8, value: u64, cookie: u32) -> UserFrame {
    UserFrame { value, cookie, kind, runtime: FAKE.0, ..UserFrame::default() }
}

/// As the kernel writes it.
fn record(pid: Pid, frames: &[UserFrame], end: StackEnd) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((RecordKind::Stack as u16).to_ne_bytes());
    bytes.extend(0u16.to_ne_bytes());
    bytes.extend(((size_of::<StackRecord>() + size_of_val(frames)) as u32).to_ne_bytes());
    bytes.extend([7u64, 1_000].map(u64::to_ne_bytes).as_flattened());
    bytes.extend([pid, pid].map(u32::to_ne_bytes).as_flattened());
    bytes.extend([0, frames.len() as u16].map(u16::to_ne_bytes).as_flattened());
    bytes.extend([end as u8, 0, 0, 0]);
    bytes.extend(3u64.to_ne_bytes());
    for frame in frames {
        bytes.extend(frame.value.to_ne_bytes());
        bytes.extend(frame.cookie.to_ne_bytes());
        bytes.extend([frame.kind, frame.flags, frame.runtime, 0]);
    }
    bytes
}

#[test]
fn another_runtime_is_recognised_told_and_named() {
    let mut scene = Scene::new(true);
    let pid = scene.target.key.pid;
    let walking = scene.settle();
    assert_eq!((walking.slug(), walking.says(&WORDS)), ("code_tables", WORDS.walked.to_owned()));
    let told = &scene.kernel.layouts[&(FAKE, pid)];
    let number = RuntimeHead::INCARNATION_AT..RuntimeHead::INCARNATION_AT + 4;
    assert_ne!(told[number.clone()], [0; 4], "an incarnation of its own");
    assert!(
        told.iter().enumerate().all(|(at, byte)| number.contains(&at) || *byte == 5),
        "and the rest as told"
    );
    assert!(
        scene.kernel.watched.is_empty() && scene.processes.naming(scene.target.key) == Some(&Naming::None)
    );

    let of_nobody = UserFrame { runtime: FAKE.0 + 1, ..deferred(FUNCTION, 1, 1) };
    let frames = [deferred(FUNCTION, 0xab, 42), deferred(GONE, 0xcd, 1), of_nobody];
    let named = scene.named(&frames, StackEnd::Root);
    let names: Vec<_> = named.frames.iter().map(|frame| &*frame.name).collect();
    assert_eq!(names, ["[unknown: anonymous code]", "[unloaded]", "outer_ab", "inlined_ab"]);
    assert_eq!((named.frames[3].line, named.frames[3].kind), (42, FrameKind::Python));
    let facts = scene.symbolizer.runtime_facts(scene.target.key).unwrap();
    assert_eq!(facts.get("flavour"), Some(Fact::Text("plain")));
    assert_eq!(scene.symbolizer.jvm_facts(scene.target.key), None, "it is no JVM");

    scene.processes.on_exec(scene.target.key, &mut scene.kernel);
    assert!(scene.kernel.layouts.is_empty() && scene.processes.len() == 0, "another program runs there now");
}

#[test]
fn a_process_that_is_not_believed_says_why() {
    let mut scene = Scene::new(false);
    let walking = scene.settle();
    assert_eq!(walking.slug(), "frame_pointers");
    assert_eq!(walking.says(&WORDS), "only natively: fake offsets not believed");
    let generated = UserFrame { value: GENERATED, ..UserFrame::default() };
    let named = scene.named(&[deferred(FUNCTION, 1, 1), generated], StackEnd::NoFramePointer);
    assert_eq!(named.end, WORDS.not_known);
    assert_eq!(named.frames.last().unwrap().unknown, Some(WORDS.unread));
}
