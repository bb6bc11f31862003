//! The node's processes of runtimes: what the kernel's walker must know of each, a probe on each file by which threads are
//! named, and the names of threads that were named before it.
//!
//! In: the registry's processes, some times a second, and what the reader found. Out: layouts handed to the walker
//! (`layouts`), probes on and off, processes watched, names learned (`names`); and the state of each, for the status. A file
//! has its probe as long as a process maps it, and a while longer (`probed`). A name is read from a process's memory only after its probe is on: what was
//! named before is read, what is named after is told. At most [`MAX_WATCHED`], divided among tenants (`fair`); those beyond are
//! counted, and their threads go by their comm. Nothing here is one runtime's.

mod comms;
mod counts;
mod detached;
mod fair;
mod kernel;
mod layouts;
mod names;
mod pauses;
mod probed;
mod reader;
mod states;
#[cfg(test)]
mod tests;

pub use comms::comm;
use counts::Counts;
use emberscope_model::{FileId, ProcessKey, Refusals};
use emberscope_process::Registry;
use emberscope_process::threads::Threads;
use emberscope_runtime::{Layout, Readers, RuntimeId, Words};
use emberscope_symbolize::Symbolizer;
pub use kernel::Kernel;
pub use pauses::Pauses;
use probed::Probed;
use reader::{Found, Reader};
use states::Tries;
pub use states::{Allocations, Naming, Walking};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

/// Processes watched at once.
const MAX_WATCHED: usize = profiler_ebpf::MAX_WATCHED as usize;
/// For so long the first layout of a process is expected at any moment: most take some ten milliseconds.
const READS: Duration = Duration::from_secs(1);

struct Watched {
    runtime: RuntimeId,
    naming: Naming,
    walking: Walking,
    allocations: Allocations,
    pauses: Pauses,
    file: Option<FileId>,
    /// Tries at finding where names are given.
    library: Tries,
    /// Tries at reading the process's layout.
    layout: Tries,
    /// Since when the layout is being read, where the walker has none.
    reading: Option<Instant>,
    /// Number of the layout that was asked for last: one with another number was read from the program that the
    /// process ran before.
    incarnation: u32,
    /// The layout that the walker has, and when the next readings are due that may tell more.
    given: Option<Layout>,
    settling: Vec<Instant>,
    counts: Counts,
    /// When its threads' names were asked for last.
    asked: Option<Instant>,
    /// Whether names are missing.
    wanted: bool,
}

/// All processes of runtimes that are watched, and the files that have a probe.
pub struct Processes {
    reader: Reader,
    known: HashMap<ProcessKey, Watched>,
    probed: Probed,
    /// Number of the layout that was asked for last.
    incarnation: u32,
    /// When the kernel was asked last whether it still has the layouts.
    looked: Option<Instant>,
    refused: Refusals,
    /// What all have counted since the daemon began, by the counts' names.
    counted: BTreeMap<&'static str, u64>,
}

impl Processes {
    /// No processes yet.
    pub fn new(readers: Readers) -> Self {
        let counted = counts::none_yet(readers.runtimes());
        Self {
            reader: Reader::of(readers),
            known: HashMap::new(),
            probed: Probed::default(),
            incarnation: 0,
            looked: None,
            refused: Refusals::default(),
            counted,
        }
    }

    /// How a process's threads are known.
    pub fn naming(&self, key: ProcessKey) -> Option<&Naming> {
        self.known.get(&key).map(|process| &process.naming)
    }

    /// How a process's allocations are known.
    pub fn allocations(&self, key: ProcessKey) -> Option<&Allocations> {
        self.known.get(&key).map(|process| &process.allocations)
    }

    /// How a process's stacks are walked.
    pub fn walking(&self, key: ProcessKey) -> Option<&Walking> {
        self.known.get(&key).map(|process| &process.walking)
    }

    /// What a runtime calls things; None: it is not known.
    pub fn words(&self, runtime: RuntimeId) -> Option<&'static Words> {
        self.reader.readers().runtimes().get(runtime).map(|runtime| runtime.words())
    }

    /// How many processes are watched.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Processes turned away since the start because too many were watched.
    pub fn refused(&self) -> u64 {
        self.refused.total()
    }

    /// Processes turned away, by whose they were.
    pub fn refusals(&self) -> (&'static str, &Refusals) {
        ("jvms", &self.refused)
    }

    /// A process replaced its program: whatever it was, it is looked at anew.
    pub fn on_exec(&mut self, key: ProcessKey, kernel: &mut dyn Kernel) {
        if let Some(process) = self.known.remove(&key) {
            self.reader.forget(key);
            kernel.unwatch_process(key.pid);
            kernel.forget(process.runtime, key.pid);
        }
    }

    /// Some times a second: processes that came and went, and what was found of them.
    pub fn tick(
        &mut self,
        registry: &Registry,
        kernel: &mut dyn Kernel,
        threads: &mut Threads,
        symbolizer: &mut Symbolizer,
    ) {
        self.come_and_go(registry, kernel, symbolizer);
        self.take_found(registry, kernel, threads, symbolizer);
        self.ask_layouts(kernel, symbolizer);
        self.ask_names(threads.take_nameless());
        self.ask_counts();
        self.drop_probes(kernel);
    }

    /// Whether something is being read that changes how stacks are walked: it is taken as soon as it is there.
    pub fn await_layouts(&self) -> bool {
        let reads = |process: &Watched| process.reading.is_some_and(|since| since.elapsed() < READS);
        self.known.values().any(reads)
    }

    /// Takes in what was found since the last call.
    pub fn take_found(
        &mut self,
        registry: &Registry,
        kernel: &mut dyn Kernel,
        threads: &mut Threads,
        symbolizer: &mut Symbolizer,
    ) {
        for found in self.reader.poll().collect::<Vec<_>>() {
            match found {
                Found::Library(key, library) => self.opened(key, library, kernel, registry),
                Found::Layout(key, number, layout) => {
                    self.laid_out((key, number), layout, kernel, symbolizer)
                }
                Found::Names(key, names) => names::learn(key, &names, registry, threads),
                Found::Counts(key, counts) => self.take_counts(key, counts),
            }
        }
    }

    fn come_and_go(&mut self, registry: &Registry, kernel: &mut dyn Kernel, symbolizer: &Symbolizer) {
        let runs = |p: &&emberscope_process::Process| p.runtime != RuntimeId::NATIVE && !p.exited && p.kept;
        let runtimes: HashMap<ProcessKey, RuntimeId> =
            registry.iter().filter(runs).map(|p| (p.key, p.runtime)).collect();
        let live = registry.iter().filter(runs).map(|p| (p.tenant, p.key));
        let known = |key: &ProcessKey| self.known.contains_key(key);
        let live = fair::chosen(live.collect(), MAX_WATCHED, known, &mut self.refused);
        let chosen: HashSet<ProcessKey> = live.iter().map(|(_, key)| *key).collect();
        self.known.retain(|key, process| {
            // A program of Python that loaded a JVM is a JVM from then on.
            let same = runtimes.get(key) == Some(&process.runtime);
            let stays = same && chosen.contains(key);
            if !stays {
                kernel.unwatch_process(key.pid);
                kernel.forget(process.runtime, key.pid);
                // What it has read names the frames of the last samples, too, and is forgotten with them.
                if !same || !symbolizer.holds(*key) {
                    self.reader.forget(*key);
                }
            }
            stays
        });
        for (tenant, key) in live {
            let Some(runtime) = runtimes.get(&key).copied() else { continue };
            if self.known.contains_key(&key) {
                continue;
            }
            let threads = self.words(runtime).is_some_and(|words| words.names_threads);
            if self.known.len() >= MAX_WATCHED {
                self.refused.add(tenant);
                continue;
            }
            if threads && let Err(error) = kernel.watch_process(key.pid, None) {
                tracing::warn!(pid = key.pid, %error, "this process's threads are not asked for what they use");
            }
            self.known.insert(key, Watched::new(runtime, threads));
        }
    }
}

impl Watched {
    fn new(runtime: RuntimeId, names_threads: bool) -> Self {
        Self {
            runtime,
            naming: if names_threads { Naming::Opening } else { Naming::None },
            walking: Walking::Opening,
            allocations: Allocations::Opening,
            pauses: Pauses::Opening,
            file: None,
            // After the layout: its stacks are walked by that from now on, and what is opened for it is open then.
            library: if names_threads { Tries::at_once() } else { Tries::default() },
            layout: Tries::at_once(),
            reading: None,
            incarnation: 0,
            given: None,
            settling: Vec::new(),
            counts: Counts::default(),
            asked: None,
            wanted: true,
        }
    }
}
