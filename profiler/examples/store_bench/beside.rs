//! What a task's thread has beside its CPU time: samples of waits and of allocations.
//!
//! In: which kinds, and the hour's stacks and labels. Out: for each tick of a core the samples of these kinds, about as many as
//! on real jobs: a thread that waits half of the time has ten stacks of waits a second (one each 50 ms), one that allocates
//! 13 MB a second has 25 samples. Waits weigh what they lasted, allocations a period or, outside of a buffer, their own size.

use super::hour::Random;
use emberscope_model::{Frame, FrameKind, LabelKey, LabelSet, LabelSetBuilder, SampleKind, Stack};
use std::collections::HashMap;
use std::sync::Arc;

/// Ticks of a core a second.
const TICKS: u64 = 99;
/// Kinds, and how many samples of each a core has a second.
const RATES: [(SampleKind, u64); 2] = [(SampleKind::OffCpu, 10), (SampleKind::Alloc, 25)];
/// Of a stage's stacks the first so many wait and allocate; drawn by Zipf's law, as those of CPU time.
const PLACES: usize = 40;
/// Bytes of which one is sampled.
const EVERY: u64 = 512 << 10;
/// Classes that are allocated.
const CLASSES: usize = 60;
/// Why tasks wait, and the JDK's method by which they do.
const WAYS: [(&str, &str); 4] = [
    ("shuffle", "java.util.concurrent.LinkedBlockingQueue.take"),
    ("lock", "java.util.concurrent.locks.ReentrantLock.lock"),
    ("network", "sun.nio.ch.NioSocketImpl.read"),
    ("storage", "sun.nio.ch.FileDispatcherImpl.pread0"),
];
/// The kernel's functions in which any of them waits.
const KERNEL: [&str; 4] = ["entry_SYSCALL_64_after_hwframe", "do_syscall_64", "x64_sys_call", "schedule"];
/// The JVM's functions that allocate.
const JVM: [&str; 3] = ["OptoRuntime::new_array_C", "MemAllocator::allocate", "AllocTracer::send_allocation"];
/// Sets of labels that are kept: those of some windows.
const KEPT: usize = 4096;

/// A sample of another kind.
pub struct Drawn {
    /// Its kind.
    pub kind: SampleKind,
    /// Place of its stack among its stage's.
    pub place: usize,
    /// Its weight.
    pub weight: u64,
}

/// Makes them.
pub struct Beside {
    kinds: Vec<(SampleKind, u64)>,
    random: Random,
    frames: HashMap<(FrameKind, String), Arc<Frame>>,
    stacks: HashMap<(SampleKind, usize), Arc<Stack>>,
    /// By the task, and the place of the reason in [`WAYS`].
    labels: HashMap<(u64, usize), Arc<LabelSet>>,
}

impl Beside {
    /// Of these kinds those that are beside CPU time.
    pub fn new(kinds: &[SampleKind]) -> Self {
        Self {
            kinds: RATES.into_iter().filter(|(kind, _)| kinds.contains(kind)).collect(),
            random: Random(43),
            frames: HashMap::new(),
            stacks: HashMap::new(),
            labels: HashMap::new(),
        }
    }

    /// How many kinds.
    pub fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// The sample of a core's tick of the n-th kind, if there is one.
    pub fn draw(&mut self, n: usize) -> Option<Drawn> {
        let (kind, rate) = *self.kinds.get(n)?;
        if self.random.below(TICKS) >= rate {
            return None;
        }
        let place = ((PLACES + 1) as f64).powf(self.random.share()) as usize;
        Some(Drawn { kind, place: place.clamp(1, PLACES) - 1, weight: self.weight(kind) })
    }

    fn weight(&mut self, kind: SampleKind) -> u64 {
        let random = &mut self.random;
        match (kind, random.below(10)) {
            // Half of the records are of one wait, half of many short ones that are 50 ms together.
            (SampleKind::OffCpu, 0..5) => 200_000 + random.below(200_000_000),
            (SampleKind::OffCpu, _) => 50_000_000 + random.below(8_000_000),
            // One of ten is larger than a period.
            (_, 0) => EVERY + 8 * random.below(EVERY),
            _ => EVERY,
        }
    }

    /// The stack of a kind that goes on from the hour's stack of this number.
    pub fn stack(&mut self, kind: SampleKind, number: usize, from: &Stack) -> Arc<Stack> {
        if let Some(known) = self.stacks.get(&(kind, number)) {
            return known.clone();
        }
        let mut frames = from.frames.to_vec();
        for (kind, name) in end(kind, number) {
            let new = || Arc::new(Frame::new(kind, name.clone(), ""));
            frames.push(self.frames.entry((kind, name.clone())).or_insert_with(new).clone());
        }
        let stack = Arc::new(Stack { frames: frames.into(), end: from.end });
        self.stacks.insert((kind, number), stack.clone());
        stack
    }

    /// The labels of such a sample of a task that has these: of a wait with its reason, and the lock.
    pub fn labels(
        &mut self,
        (kind, number): (SampleKind, usize),
        task: u64,
        labels: &Arc<LabelSet>,
    ) -> Arc<LabelSet> {
        if kind != SampleKind::OffCpu {
            return labels.clone();
        }
        if self.labels.len() > KEPT {
            self.labels.clear();
        }
        let (reason, _) = way(number);
        let new = || {
            let set = LabelSetBuilder::from_set(labels).set(LabelKey::Wait, reason);
            let set = match reason {
                "lock" => set
                    .set(LabelKey::Lock, "java.util.concurrent.locks.ReentrantLock$NonfairSync")
                    .set(LabelKey::LockOwner, "Executor task launch worker"),
                _ => set,
            };
            Arc::new(set.build())
        };
        self.labels.entry((task, number % WAYS.len())).or_insert_with(new).clone()
    }
}

fn way(number: usize) -> (&'static str, &'static str) {
    WAYS[number % WAYS.len()]
}

/// The frames at the leaf's end.
fn end(kind: SampleKind, number: usize) -> Vec<(FrameKind, String)> {
    let named = |kind: FrameKind, names: &[&str]| -> Vec<(FrameKind, String)> {
        names.iter().map(|name| (kind, (*name).to_owned())).collect()
    };
    match kind {
        SampleKind::OffCpu => {
            let (reason, method) = way(number);
            let mut frames = named(FrameKind::JavaCompiled, &[method]);
            frames.extend(named(FrameKind::Kernel, &KERNEL));
            frames.push((FrameKind::Kernel, format!("{reason}_wait")));
            frames
        }
        _ => {
            let mut frames = named(FrameKind::Native, &JVM);
            frames.push((FrameKind::Class, format!("org.apache.spark.sql.Row{}[]", number % CLASSES)));
            frames
        }
    }
}
