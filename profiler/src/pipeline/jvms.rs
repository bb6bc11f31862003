//! The node's JVMs: a probe on each libjvm file, the names of threads that were named before it, and what the
//! kernel's walker must know of each.
//!
//! In: the registry's JVMs, some times a second, and what the reader found. Out: probes on and off, processes
//! watched, names learned (`names`), layouts handed to the walker (`layouts`). A file has its probe as long as a JVM maps
//! it. A name is read from a JVM's memory only after its probe is on: what was named before is read, what is named after
//! is told. At most [`MAX_JVMS`], divided among tenants (`fair`); those beyond are counted, and their threads go by their
//! comm.

mod fair;
mod layouts;
mod names;
mod states;

use super::jvm_reader::{Found, Job, JvmReader};
use crate::capture::Capture;
use crate::model::{FileId, ProcessKey, Refusals};
use crate::process::Registry;
use crate::process::threads::Threads;
use crate::symbolize::Symbolizer;
use profiler_ebpf::JvmLayout;
use states::Tries;
pub use states::{Naming, Walking};
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// JVMs watched at once.
const MAX_JVMS: usize = profiler_ebpf::MAX_WATCHED as usize;

struct Jvm {
    naming: Naming,
    walking: Walking,
    file: Option<FileId>,
    /// At finding where names are given.
    library: Tries,
    /// At reading its code heaps.
    layout: Tries,
    /// Number of the layout that was asked for last: one with another number was read from the program that the
    /// process ran before.
    incarnation: u32,
    /// The layout that the walker has, and when the next readings are due that may tell more.
    given: Option<JvmLayout>,
    settling: Vec<Instant>,
    /// Its threads' names were asked for.
    asked: Option<Instant>,
    /// Names that are missing.
    wanted: bool,
}

/// All of them.
pub struct Jvms {
    reader: JvmReader,
    known: HashMap<ProcessKey, Jvm>,
    /// Files with a probe.
    probed: HashSet<FileId>,
    /// Number of the JVM whose code heaps were asked for last.
    incarnation: u32,
    /// When the kernel was asked last whether it still has the layouts.
    looked: Option<Instant>,
    refused: Refusals,
}

impl Jvms {
    /// None yet.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            reader: JvmReader::start()?,
            known: HashMap::new(),
            probed: HashSet::new(),
            incarnation: 0,
            looked: None,
            refused: Refusals::default(),
        })
    }

    /// How a JVM's threads are known.
    pub fn naming(&self, key: ProcessKey) -> Option<&Naming> {
        self.known.get(&key).map(|jvm| &jvm.naming)
    }

    /// How a JVM's stacks are walked.
    pub fn walking(&self, key: ProcessKey) -> Option<&Walking> {
        self.known.get(&key).map(|jvm| &jvm.walking)
    }

    /// JVMs watched.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// JVMs turned away since the start because too many were watched.
    pub fn refused(&self) -> u64 {
        self.refused.total()
    }

    /// The same by whose they were.
    pub fn refusals(&self) -> (&'static str, &Refusals) {
        ("jvms", &self.refused)
    }

    /// A process replaced its program: whatever it was, it is looked at anew.
    pub fn on_exec(&mut self, key: ProcessKey, capture: &mut Capture) {
        if self.known.remove(&key).is_some() {
            capture.unwatch_process(key.pid);
            capture.forget_jvm(key.pid);
        }
    }

    /// Some times a second: JVMs that came and went, and what was found of them.
    pub fn tick(
        &mut self,
        registry: &Registry,
        capture: &mut Capture,
        threads: &mut Threads,
        symbolizer: &mut Symbolizer,
    ) {
        let live = registry.iter().filter(|p| p.jvm && !p.exited && p.kept).map(|p| (p.tenant, p.key));
        let known = |key: &ProcessKey| self.known.contains_key(key);
        let live = fair::chosen(live.collect(), MAX_JVMS, known, &mut self.refused);
        let chosen: HashSet<ProcessKey> = live.iter().map(|(_, key)| *key).collect();
        self.known.retain(|key, _| {
            let stays = chosen.contains(key);
            if !stays {
                capture.unwatch_process(key.pid);
                capture.forget_jvm(key.pid);
            }
            stays
        });
        for (tenant, key) in live {
            if self.known.contains_key(&key) {
                continue;
            }
            if self.known.len() >= MAX_JVMS || !self.reader.submit(Job::Library(key)) {
                self.refused.add(tenant);
                continue;
            }
            if let Err(error) = capture.watch_process(key.pid, None) {
                tracing::warn!(pid = key.pid, %error, "this JVM's threads are not asked for what they use");
            }
            let at_once = Tries { made: 0, next: Some(Instant::now()) };
            let new = Jvm {
                naming: Naming::Opening,
                walking: Walking::Opening,
                file: None,
                library: Tries::default(),
                layout: at_once,
                incarnation: 0,
                given: None,
                settling: Vec::new(),
                asked: None,
                wanted: true,
            };
            self.known.insert(key, new);
        }
        for found in self.reader.poll().collect::<Vec<_>>() {
            match found {
                Found::Library(key, library) => self.opened(key, library, capture, registry),
                Found::Layout(key, number, layout) => {
                    self.laid_out((key, number), layout, capture, symbolizer);
                }
                Found::Names(key, names) => names::learn(key, &names, registry, threads),
            }
        }
        self.ask_layouts(capture, symbolizer);
        self.ask_names(threads.take_nameless());
        self.drop_probes(capture);
    }
}
