//! HotSpot as a [`Runtime`]: its processes opened, each for its layout, its frames' names and its threads'.

use super::libjvm::DEOPTIMIZATIONS;
use super::{Counters, Jvm, JvmFacts, JvmProblem, LibjvmFiles, Limits, Namer, Texts, Unnamed, layout};
use emberscope_model::{Frame, NameProbe, StackEnd, Tid, UnknownReason};
use emberscope_runtime::{
    Answer, DeferredFrame, Fact, Facts, Layout, Library, Meaning, Opened, Problem, Runtime, RuntimeId, Words,
};
use emberscope_target::errand::Held;
use emberscope_target::memory::Memory;
use profiler_ebpf::JavaFrameTag;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A JVM whose tables could not be read is tried again after this.
const RETRY: Duration = Duration::from_secs(1);

/// Looks for the performance counters of one JVM, which reads all its tables: one that starts makes them a moment later, and one with
/// `-XX:-UsePerfData` never.
const MAX_LOOKS: u32 = 5;

/// No other compiler than Graal uses JVMCI. Oracle programs under Graal 22.3.3 on JDK 17: 3,846 of 3,848 stacks as
/// told.
const GRAAL: &str = "Graal (or another compiler that is plugged in by JVMCI): its code is walked and named as C2's is, \
    which was held against Graal 22.3 on JDK 17 only";

const WORDS: Words = Words {
    slug: "hotspot",
    names_threads: true,
    unread: UnknownReason::JvmUnreadable,
    not_ready: StackEnd::JvmNotReady,
    not_known: StackEnd::JvmNotKnown,
    opening: "its code heaps are being looked at",
    walked: "compiled and interpreted frames are walked by the JVM's own tables",
    by_frame_pointers: "only by frame pointers, so give it -XX:+PreserveFramePointer",
    facts: &["debug_non_safepoints", "jit", "jit_says"],
    counts: &["compilations", "deoptimizations"],
};

/// Why nothing tells when a thread is named.
const SILENT: &str = "its libjvm has neither os::set_native_thread_name nor JVM_SetNativeThreadName";

/// Why nothing tells when a thread allocates.
const NO_TRACER: &str = "its libjvm has no symbol table with the AllocTracer functions of JDK 11 to 25: where it was stripped, \
    a package of debug symbols does not help, a build that keeps .symtab (Temurin's, Debian's from 11 on) does";

/// Why nothing tells when a JVM's threads are stopped.
const NO_PAUSES: &str = "its libjvm has no symbol table with RuntimeService::record_safepoint_begin, its end and \
    VM_Operation::evaluate of JDK 11 to 25: where it was stripped, as Debian's 8 is, a package of debug symbols does not help";

/// What is known of all JVMs.
#[derive(Debug, Default)]
pub struct HotSpot {
    files: LibjvmFiles,
    texts: Texts,
}

impl Runtime for HotSpot {
    fn id(&self) -> RuntimeId {
        RuntimeId::HOTSPOT
    }

    fn words(&self) -> &'static Words {
        &WORDS
    }

    /// OpenJ9 has a libjvm too, and is told apart when it is opened.
    fn marks(&self) -> &'static [&'static str] {
        &["/libjvm.so"]
    }

    fn open(&self, dir: &Path, start_ticks: u64) -> Result<Box<dyn Opened>, Problem> {
        let jvm = Jvm::open(dir, start_ticks, &self.files)?;
        Ok(Box::new(OpenJvm {
            jvm,
            dir: dir.into(),
            namer: None,
            failed: None,
            counters: Counters::default(),
            looks: 0,
            texts: self.texts.clone(),
            limits: Limits::default(),
        }))
    }

    /// A pc with its compile id never means another method. A `Method*` may be another's once its class is unloaded,
    /// and a stub another once its code is.
    fn meaning(&self, frame: &DeferredFrame) -> Meaning {
        let compiled = frame.frame.kind == JavaFrameTag::Compiled as u8;
        if compiled { Meaning::Forever } else { Meaning::Generation }
    }
}

/// A JVM, opened once.
struct OpenJvm {
    jvm: Jvm,
    dir: PathBuf,
    namer: Option<Namer>,
    /// Why there is no namer, and since when.
    failed: Option<(JvmProblem, Instant)>,
    /// Where its performance counters are, as far as they were found, and how often they were looked for.
    counters: Counters,
    looks: u32,
    texts: Texts,
    limits: Limits,
}

impl OpenJvm {
    /// What names the JVM's frames, made when they are first asked for.
    fn namer(&mut self) -> Result<&mut Namer, JvmProblem> {
        if let Some((problem, since)) = &self.failed
            && since.elapsed() < RETRY
        {
            return Err(problem.clone());
        }
        if self.namer.is_none() {
            let made = self.jvm.namer(self.limits).map(|namer| namer.sharing(&self.texts));
            self.failed = made.as_ref().err().map(|problem| (problem.clone(), Instant::now()));
            self.namer = Some(made?);
        }
        self.namer.as_mut().ok_or(JvmProblem::NotReady)
    }
}

impl Opened for OpenJvm {
    fn layout(&mut self) -> Result<Layout, Problem> {
        let layout = layout(&self.jvm, 0)?;
        Ok(Layout::new(RuntimeId::HOTSPOT, &layout.to_bytes()))
    }

    fn name(&mut self, frames: &[DeferredFrame]) -> Vec<Answer> {
        if let Err(problem) = self.namer() {
            let why = match problem {
                JvmProblem::Gone => Unnamed::Gone,
                JvmProblem::Exhausted => Unnamed::Exhausted,
                _ => Unnamed::Unreadable,
            };
            return vec![Err(why.reason()); frames.len()];
        }
        let (Some(namer), Ok(memory)) = (&mut self.namer, self.jvm.memory()) else {
            return vec![Err(WORDS.unread); frames.len()];
        };
        let named = namer.name_all(memory, frames.iter().map(|frame| (frame.frame, frame.generation)));
        let one = |java: &super::JavaFrame| Frame {
            signature: java.signature.clone(),
            line: java.line,
            approximate: java.approximate,
            ..Frame::new(java.kind, java.name.clone(), "")
        };
        named
            .into_iter()
            .map(|answer| match answer {
                // They come innermost first, as scopes are chained.
                Ok(java) => Ok(java.iter().rev().map(one).collect()),
                Err(why) => Err(why.reason()),
            })
            .collect()
    }

    fn facts(&mut self) -> Result<Facts, Problem> {
        Ok(told(self.namer()?.facts()))
    }

    /// Of deoptimisations HotSpot counts uncommon traps and frames that are taken back to the interpreter: seen on JDK 17 and 25, the
    /// first word is the sum of all reasons'.
    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        if self.counters.compiles.is_none() && self.looks < MAX_LOOKS {
            self.looks += 1;
            let found = self.jvm.with(|memory, vm| Ok(Counters::find(memory, vm)));
            self.counters = found.unwrap_or_default();
        }
        let Ok(memory) = self.jvm.memory() else { return Vec::new() };
        let compilations = self.counters.compiles.and_then(|at| memory.u64(at).ok());
        let traps = self.jvm.libjvm().local_address(DEOPTIMIZATIONS);
        let traps = traps.and_then(|at| memory.u32(at).ok()).map(u64::from);
        let told = WORDS.counts.iter().zip([compilations, traps]);
        told.filter_map(|(name, count)| Some((*name, count?))).collect()
    }

    fn share(&mut self, held: usize) {
        self.limits = Limits::of_each(held);
        if let Some(namer) = &mut self.namer {
            namer.set_limits(self.limits);
        }
    }

    fn library(&mut self) -> Result<Library, Problem> {
        let libjvm = self.jvm.libjvm();
        let (id, probe, allocations) = (libjvm.id, libjvm.probe, libjvm.allocations);
        let (pauses, operations) = (libjvm.pauses, libjvm.operations());
        let file = libjvm.file.fd().and_then(|file| file.try_clone_to_owned().ok());
        let file = File::from(file.ok_or(JvmProblem::Exhausted)?);
        let strings = match probe {
            Some(NameProbe::JavaName { .. }) => Some(self.jvm.string_layout()?),
            Some(NameProbe::NativeName { .. }) | None => None,
        };
        let names = probe.into_iter().flat_map(|probe| match probe {
            NameProbe::NativeName { offset, by_java } => [Some(offset), by_java],
            NameProbe::JavaName { offset } => [Some(offset), None],
        });
        let tracer = allocations.into_iter().flat_map(|probe| [probe.in_new_tlab, probe.outside_tlab]);
        let stops = pauses.into_iter().flat_map(|probe| [probe.begin, probe.operation, probe.end]);
        for offset in names.flatten().chain(tracer).chain(stops) {
            // The kernel reads the page that gets the probe, on the thread that asks for it (copy_insn,
            // kernel/events/uprobes.c): it comes here, or that thread never asks.
            file.read_exact_at(&mut [0], offset).map_err(|_| JvmProblem::File("its code cannot be read"))?;
        }
        let (probe, allocations) = (probe.ok_or(SILENT), allocations.ok_or(NO_TRACER));
        let pauses = pauses.map(|probe| (probe, operations.by_address().collect())).ok_or(NO_PAUSES);
        Ok(Library { id, file: Held::new(file, &self.dir), probe, strings, allocations, pauses })
    }

    fn thread_names(&mut self) -> Result<Vec<(Tid, String)>, Problem> {
        Ok(self.jvm.thread_names()?.names)
    }
}

/// A JVM's facts in the order of [`WORDS`].
fn told(facts: &JvmFacts) -> Facts {
    let (jit, says) = if facts.jvmci_compiler { ("graal", GRAAL) } else { ("hotspot", "C1 and C2") };
    let values = [Fact::Flag(facts.debug_non_safepoints), Fact::Text(jit), Fact::Text(says)];
    Facts(WORDS.facts.iter().copied().zip(values).collect())
}

impl From<JvmProblem> for Problem {
    fn from(problem: JvmProblem) -> Self {
        match problem {
            JvmProblem::Gone => Self::Gone,
            JvmProblem::Exhausted => Self::Exhausted,
            problem if problem.may_pass() => Self::NotNow(problem.to_string()),
            problem => Self::Never(problem.to_string()),
        }
    }
}
