//! The node's JVMs: a probe on each libjvm file, the names of threads that were named before it, and what the
//! kernel's walker must know of each.
//!
//! In: the registry's JVMs, some times a second, and what the reader found. Out: probes on and off, processes
//! watched, names learned, layouts handed to the walker. A file has its probe as long as a JVM maps it. A name is read from a JVM's memory
//! only after its probe is on: what was named before is read, what is named after is told. At most
//! [`MAX_JVMS`]; those beyond are counted, and their threads go by their comm.

use super::jvm_reader::{Found, Job, JvmReader, Library, Names};
use crate::aggregate::ClockReading;
use crate::capture::Capture;
use crate::hotspot::JvmProblem;
use crate::model::{FileId, Pid, ProcessKey};
use crate::process::Registry;
use crate::process::threads::{Owner, Threads};
use crate::symbolize::{Symbolizer, Walked};
use profiler_ebpf::JvmLayout;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// JVMs watched at once.
const MAX_JVMS: usize = profiler_ebpf::MAX_WATCHED as usize;
/// How long after a JVM could not be read it is tried again: it may be starting.
const RETRY: Duration = Duration::from_secs(2);
/// Tries that come at the next look instead: HotSpot makes its code heaps some 30 ms after libjvm is mapped.
const SOON: u32 = 10;
/// Tries; then it stays as it is.
const MAX_TRIES: u32 = 20;
/// How long after the first reading of a layout it is read again: HotSpot makes the return barrier of its virtual
/// threads and its compiler's counters a moment after its code heaps (`init_globals`, JDK 17 to 25).
const SETTLED: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(20)];
/// How often it is looked whether the kernel still has the layouts.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the names of one JVM are read, at most.
const NAMES_EVERY: Duration = Duration::from_secs(5);

/// How a JVM's threads are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Not known yet.
    Opening,
    /// The probe on `os::set_native_thread_name` tells each name.
    Native,
    /// The probe on `JVM_SetNativeThreadName` does, by Strings.
    Strings,
    /// Only by what the kernel calls them: why.
    Comm(String),
}

impl Naming {
    /// Stable short name, for the status.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Native => "probe",
            Self::Strings => "string_probe",
            Self::Comm(_) => "comm",
        }
    }
    /// A sentence for people.
    pub fn says(&self) -> String {
        match self {
            Self::Opening => "its libjvm is being looked at".into(),
            Self::Native => "each name is seen as it is given".into(),
            Self::Strings => {
                "each name is seen as it is given, by its String: libjvm has no symbol table".into()
            }
            Self::Comm(why) => format!("stages and tasks are not known: {why}"),
        }
    }
}

/// How the kernel walks a JVM's stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walking {
    /// Not known yet.
    Opening,
    /// By what the JVM's own tables tell of its code.
    CodeTables,
    /// By frame pointers only: why.
    FramePointers(String),
}

impl Walking {
    /// Stable short name, for the status.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::CodeTables => "code_tables",
            Self::FramePointers(_) => "frame_pointers",
        }
    }
    /// A sentence for people.
    pub fn says(&self) -> String {
        match self {
            Self::Opening => "its code heaps are being looked at".into(),
            Self::CodeTables => "compiled and interpreted frames are walked by the JVM's own tables".into(),
            Self::FramePointers(why) => {
                format!("only by frame pointers, so give it -XX:+PreserveFramePointer: {why}")
            }
        }
    }
}

/// Tries at something that a JVM may not be ready for.
#[derive(Debug, Default)]
struct Tries {
    made: u32,
    next: Option<Instant>,
}

impl Tries {
    /// One failed; false when it was the last.
    fn failed(&mut self, problem: &JvmProblem, now: Instant) -> bool {
        self.made += 1;
        let again = problem.may_pass() && self.made < MAX_TRIES;
        self.next = again.then(|| if self.made < SOON { now } else { now + RETRY });
        again
    }
    fn due(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| now >= next)
    }
}

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
    refused: u64,
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
            refused: 0,
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
        self.refused
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
        let live: HashSet<ProcessKey> =
            registry.iter().filter(|p| p.jvm && !p.exited && p.kept).map(|p| p.key).collect();
        self.known.retain(|key, _| {
            let stays = live.contains(key);
            if !stays {
                capture.unwatch_process(key.pid);
                capture.forget_jvm(key.pid);
            }
            stays
        });
        for key in live {
            if self.known.contains_key(&key) {
                continue;
            }
            if self.known.len() >= MAX_JVMS || !self.reader.submit(Job::Library(key)) {
                self.refused += 1;
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
                Found::Library(key, library) => self.opened(key, library, capture),
                Found::Layout(key, number, layout) => {
                    self.laid_out((key, number), layout, capture, symbolizer);
                }
                Found::Names(key, names) => learn(key, &names, registry, threads),
            }
        }
        self.ask_again(threads.take_nameless(), capture, symbolizer);
        self.drop_probes(capture);
    }

    fn opened(&mut self, key: ProcessKey, library: Result<Library, JvmProblem>, capture: &mut Capture) {
        let Some(jvm) = self.known.get_mut(&key) else { return };
        jvm.wanted = true;
        let problem = match library {
            Ok(library) => match attach(key.pid, &library, capture) {
                Ok(naming) => {
                    self.probed.insert(library.id);
                    (jvm.naming, jvm.file) = (naming, Some(library.id));
                    return;
                }
                Err(error) => error,
            },
            Err(problem) => {
                jvm.library.failed(&problem, Instant::now());
                problem.to_string()
            }
        };
        if jvm.library.next.is_none() {
            tracing::warn!(pid = key.pid, %problem, "threads of this JVM are known by their comm only");
        }
        jvm.naming = Naming::Comm(problem);
    }

    /// Hands a JVM's layout to the kernel's walker.
    fn laid_out(
        &mut self,
        (key, incarnation): (ProcessKey, u32),
        layout: Result<JvmLayout, JvmProblem>,
        capture: &mut Capture,
        symbolizer: &mut Symbolizer,
    ) {
        let Some(jvm) = self.known.get_mut(&key).filter(|jvm| jvm.incarnation == incarnation) else { return };
        let settling = jvm.walking == Walking::CodeTables;
        let same = |given: &JvmLayout, layout: &JvmLayout| JvmLayout { incarnation, ..*given } == *layout;
        let why = match layout {
            Ok(layout) if settling && jvm.given.is_some_and(|given| same(&given, &layout)) => return,
            // What the walker has is as right as before.
            Err(_) if settling => return,
            Ok(layout) => match capture.set_jvm(key.pid, &layout) {
                Ok(true) => {
                    jvm.given = Some(layout);
                    if settling {
                        return;
                    }
                    let now = Instant::now();
                    jvm.settling = SETTLED.iter().rev().map(|after| now + *after).collect();
                    jvm.walking = Walking::CodeTables;
                    symbolizer.jvm_walked(key, Walked::From(ClockReading::take().monotonic_ns));
                    return;
                }
                // It runs another program by now, or ended, as an event will say; or that was lost.
                Ok(false) => {
                    jvm.layout.failed(&JvmProblem::NotReady, Instant::now());
                    return;
                }
                Err(error) => error.to_string(),
            },
            Err(JvmProblem::Gone) => return,
            Err(problem) if jvm.layout.failed(&problem, Instant::now()) => return,
            Err(problem) => problem.to_string(),
        };
        never_walked(key, jvm, why, symbolizer);
    }

    /// Asks for libraries whose turn has come, and for names that are missing.
    fn ask_again(&mut self, nameless: Vec<(Pid, u32)>, capture: &mut Capture, symbolizer: &mut Symbolizer) {
        let pids: HashSet<Pid> = nameless.into_iter().map(|(pid, _)| pid).collect();
        let now = Instant::now();
        let look = self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK_EVERY);
        self.looked = if look { Some(now) } else { self.looked };
        for (key, jvm) in &mut self.known {
            jvm.wanted |= pids.contains(&key.pid);
            if look && jvm.walking == Walking::CodeTables && !capture.has_jvm(key.pid) {
                // The kernel dropped it: it ran another program or ended, and that event is on its way or lost.
                jvm.walking = Walking::Opening;
                jvm.layout = Tries { made: 0, next: Some(now) };
            }
            let settling = jvm.walking == Walking::CodeTables;
            let due = jvm.settling.last().is_some_and(|at| now >= *at);
            if jvm.layout.due(now) || settling && due {
                // Never 0: that is what an empty place of the walker's memory holds.
                self.incarnation = self.incarnation.checked_add(1).unwrap_or(1);
                let expected = if settling { Ok(()) } else { capture.expect_jvm(key.pid) };
                if let Err(error) = expected {
                    jvm.layout.next = None;
                    never_walked(*key, jvm, error.to_string(), symbolizer);
                    continue;
                }
                if self.reader.submit(Job::Layout(*key, self.incarnation)) {
                    (jvm.layout.next, jvm.incarnation) = (None, self.incarnation);
                    if settling {
                        jvm.settling.pop();
                    }
                }
            }
            if jvm.library.due(now) && self.reader.submit(Job::Library(*key)) {
                jvm.library.next = None;
            }
            let due = jvm.asked.is_none_or(|asked| now.duration_since(asked) >= NAMES_EVERY);
            if jvm.wanted && due && jvm.naming != Naming::Opening && self.reader.submit(Job::Names(*key)) {
                (jvm.asked, jvm.wanted) = (Some(now), false);
            }
        }
    }

    /// Takes away the probes of files that no JVM maps any more.
    fn drop_probes(&mut self, capture: &mut Capture) {
        let used: HashSet<FileId> = self.known.values().filter_map(|jvm| jvm.file).collect();
        for id in self.probed.extract_if(|id| !used.contains(id)) {
            if let Err(error) = capture.unwatch_names(id) {
                tracing::warn!(?id, %error, "a probe stays although no JVM needs it");
            }
        }
    }
}

/// Puts a probe on the file; what then tells the names, or why nothing does.
fn attach(pid: Pid, library: &Library, capture: &mut Capture) -> Result<Naming, String> {
    use std::os::fd::AsFd;
    let Some(probe) = library.probe else {
        return Err("its libjvm has neither os::set_native_thread_name nor JVM_SetNativeThreadName".into());
    };
    if library.strings.is_some() {
        capture.watch_process(pid, library.strings).map_err(|e| e.to_string())?;
    }
    capture.watch_names(library.id, library.file.as_fd(), probe).map_err(|e| e.to_string())?;
    Ok(if library.strings.is_some() { Naming::Strings } else { Naming::Native })
}

fn never_walked(key: ProcessKey, jvm: &mut Jvm, why: String, symbolizer: &mut Symbolizer) {
    tracing::warn!(pid = key.pid, problem = %why, "stacks of this JVM are followed by frame pointers only");
    symbolizer.jvm_walked(key, Walked::Never);
    jvm.walking = Walking::FramePointers(why);
}

fn learn(key: ProcessKey, names: &Names, registry: &Registry, threads: &mut Threads) {
    let Some(process) = registry.by_key(key) else { return };
    let owner = Owner { pid: key.pid, labels: &process.labels, role: process.role, jvm: true };
    for (tid, comm) in &names.comms {
        // The first thread's comm is the program's.
        if *tid != key.pid {
            threads.learn_comm(&owner, *tid, comm);
        }
    }
    match &names.java {
        Ok(java) => java.iter().for_each(|(tid, name)| threads.learn(&owner, *tid, 0, name.as_bytes())),
        Err(JvmProblem::Gone) => {}
        Err(problem) => tracing::debug!(pid = key.pid, %problem, "thread names are not read"),
    }
}
