//! Who called an intrinsic: each stands in the loops of two methods that C2 inlines, seventy to thirty by construction
//! (tests/jobs/Intrinsics.java). Many are routines that compiled code calls without debug info for where they return.
//! And whether the routines have names of their own.

use super::*;
use emberscope_hotspot::{JavaFrame, Limits};
use emberscope_model::FrameKind;
use std::sync::Arc;

/// What C2 would else leave alone is inlined here.
const INLINED: [&str; 2] = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=inline,Intrinsics*::*"];
/// The methods, and their shares.
const SHARES: [(&str, f64); 2] = [("seven", 0.7), ("three", 0.3)];
/// Seen over truth may be off by so much, and three times the sampling error.
const OFF: f64 = 0.03;
/// Of the samples in stubs, percent that have the stub's own name.
const OWN_NAMES: usize = 99;
/// How many samples are wanted of all intrinsics together, and how long is waited for them.
const SAMPLES: usize = 20_000;
const PATIENCE: Duration = Duration::from_secs(60);
/// Intrinsics whose own shares may be off: on 17 `exp` and `fmod` were (a quarter and two thirds of the first method's samples had
/// the thread's own method alone; `fmod` is an instruction there and no call). Where callers are not borrowed at all, most are.
const MAY_BE_OFF: usize = 3;
/// Of one intrinsic, below which its shares say nothing.
const FEW: usize = 150;

/// Samples of one intrinsic.
#[derive(Default)]
struct Counts {
    all: usize,
    in_method: [usize; 2],
    /// By the leaf's name.
    leaves: BTreeMap<String, usize>,
}

impl Counts {
    fn add(&mut self, chain: &[&JavaFrame], count: usize) {
        self.all += count;
        for (slot, (method, _)) in self.in_method.iter_mut().zip(SHARES) {
            let is = |frame: &&JavaFrame| frame.name.rsplit_once('.').is_some_and(|(_, name)| name == method);
            *slot += if chain.iter().any(is) { count } else { 0 };
        }
        let leaf = chain.first().map(|frame| frame.name.to_string()).unwrap_or_default();
        *self.leaves.entry(leaf).or_default() += count;
    }

    /// What was seen over the truth, and how far it may be off.
    fn ratios(&self) -> [(f64, f64); 2] {
        let all = self.all as f64;
        [0, 1].map(|i| {
            let share = SHARES[i].1;
            (self.in_method[i] as f64 / all / share, OFF + 3.0 * ((1.0 - share) / share / all).sqrt())
        })
    }

    /// Prints it; whether it holds.
    fn print(&self, name: &str) -> bool {
        let ratios = self.ratios();
        let mut leaves: Vec<_> = self.leaves.iter().map(|(name, n)| (*n, name)).collect();
        leaves.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
        leaves.truncate(3);
        println!(
            "    {name}: {:.3} and {:.3} of the truth, may be off by {:.3} and {:.3}, n {}; {leaves:?}",
            ratios[0].0, ratios[1].0, ratios[0].1, ratios[1].1, self.all
        );
        ratios.iter().all(|(seen, off)| (seen - 1.0).abs() <= *off)
    }
}

/// A stack's frames of Java by name, the leaf first; None where one has none.
fn named<'a>(
    stack: &RawStack,
    names: &'a HashMap<(u64, u32, u8, u8), Arc<[JavaFrame]>>,
) -> Option<Vec<&'a JavaFrame>> {
    let mut chain = Vec::new();
    for frame in stack.user.iter().filter(|frame| !frame.is_native()) {
        chain.extend(names.get(&key(frame))?.iter());
    }
    Some(chain)
}

fn key(frame: &UserFrame) -> (u64, u32, u8, u8) {
    (frame.value, frame.cookie, frame.kind, frame.flags)
}

/// The intrinsic whose thread's outermost method this is.
fn worker(frame: &JavaFrame) -> Option<&str> {
    frame.name.strip_prefix("Intrinsics$")?.strip_suffix(".run")
}

/// Each intrinsic's callers have their shares, and stubs their names.
fn intrinsics(test: &str, major: u32, flags: &[&str]) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(java) = java(test, major) else { return };
    let flags = [&INLINED[..], flags].concat();
    let Some(child) = start(test, &java, &flags, &["Intrinsics"]) else { return };
    let pid: Pid = child.0.id();
    let (mut capture, jvm) = sampled(&features, &java, &flags, pid);
    let (mut events, begun) = (Vec::new(), Instant::now());
    let is_ours = |event: &RawEvent| matches!(event, RawEvent::Sample(sample) if sample.pid == pid);
    while events.iter().filter(|event| is_ours(event)).count() < SAMPLES && begun.elapsed() < PATIENCE {
        record(&mut capture, Duration::from_secs(1), &mut events);
    }
    let stacks = stacks_of(pid, events).0;
    let mut namer = jvm.namer(Limits::default()).expect("a namer");
    let mut frames = HashMap::new();
    for (stack, _) in stacks.values() {
        let deferred = stack.user.iter().filter(|frame| !frame.is_native());
        frames.extend(deferred.map(|frame| (key(frame), (*frame, stack.generation))));
    }
    let keys: Vec<_> = frames.keys().copied().collect();
    let answers = namer
        .name_all(jvm.memory().expect("its memory"), keys.iter().filter_map(|key| frames.get(key).copied()));
    let names: HashMap<_, _> =
        keys.into_iter().zip(answers).filter_map(|(key, answer)| Some((key, answer.ok()?))).collect();
    drop(child);

    let mut found: BTreeMap<String, Counts> = BTreeMap::new();
    let (mut unnamed, mut stubs, mut nameless) = (0, 0, BTreeMap::<String, usize>::new());
    for (stack, count) in stacks.values() {
        let Some(chain) = named(stack, &names) else {
            unnamed += count;
            continue;
        };
        if let Some(leaf) = chain.first().filter(|leaf| leaf.kind == FrameKind::Stub) {
            stubs += count;
            if leaf.name.starts_with("StubRoutines") {
                *nameless.entry(leaf.name.to_string()).or_default() += count;
            }
        }
        if let Some(worker) = chain.iter().find_map(|frame| worker(frame)) {
            found.entry(worker.to_owned()).or_default().add(&chain, *count);
        }
    }
    println!("JDK {major} {flags:?}: {unnamed} samples with a frame that could not be named");
    let mut all = Counts::default();
    let mut wrong = Vec::new();
    for (name, counts) in &found {
        let holds = counts.print(name);
        all.all += counts.all;
        (all.in_method[0], all.in_method[1]) =
            (all.in_method[0] + counts.in_method[0], all.in_method[1] + counts.in_method[1]);
        if !holds && counts.all >= FEW {
            wrong.push(name.as_str());
        }
    }
    let holds = all.print("all");
    println!(
        "    {} of {stubs} samples in stubs have a blob's name: {nameless:?}",
        nameless.values().sum::<usize>()
    );
    assert!(all.all > 2000 && found.len() >= 15, "{} samples of {} intrinsics", all.all, found.len());
    assert!(holds && wrong.len() <= MAY_BE_OFF, "shares of {wrong:?}");
    assert!(nameless.values().sum::<usize>() * 100 <= stubs * (100 - OWN_NAMES), "{nameless:?} of {stubs}");
}

macro_rules! intrinsics {
    ($($name:ident: $major:literal, $flags:expr;)+) => {
        $(#[test]
        fn $name() {
            intrinsics(stringify!($name), $major, &$flags);
        })+
    };
}

intrinsics! {
    callers_of_intrinsics_17: 17, [];
    callers_of_intrinsics_25: 25, [];
}

/// As [`super::all_other_jvms`].
#[test]
#[ignore = "`cargo xtask bench stacks --rows walk` runs it"]
fn callers_of_intrinsics_in_other_jvms() {
    each(&[
        ("intrinsics_8", &|name| intrinsics(name, 8, &[])),
        ("intrinsics_11", &|name| intrinsics(name, 11, &[])),
        ("intrinsics_21", &|name| intrinsics(name, 21, &[])),
        ("intrinsics_parallel_17", &|name| intrinsics(name, 17, &["-XX:+UseParallelGC"])),
        ("intrinsics_parallel_25", &|name| intrinsics(name, 25, &["-XX:+UseParallelGC"])),
        ("intrinsics_zgc_25", &|name| intrinsics(name, 25, &["-XX:+UseZGC"])),
        ("intrinsics_debug_17", &|name| intrinsics(name, 17, &DEBUG)),
        ("intrinsics_debug_25", &|name| intrinsics(name, 25, &DEBUG)),
    ]);
}

/// Debug info for every instruction.
const DEBUG: [&str; 2] = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"];
