//! The node's JVMs: a probe on each libjvm file, and the names of threads that were named before it.
//!
//! In: the registry's JVMs, some times a second, and what the reader found. Out: probes on and off, processes
//! watched, names learned. A file has its probe as long as a JVM maps it. A name is read from a JVM's memory
//! only after its probe is on: what was named before is read, what is named after is told. At most
//! [`MAX_JVMS`]; those beyond are counted, and their threads go by their comm.

use super::jvm_reader::{Found, Job, JvmReader, Library, Names};
use crate::capture::{Capture, FileId};
use crate::hotspot::JvmProblem;
use crate::model::{Pid, ProcessKey};
use crate::process::Registry;
use crate::process::threads::{Owner, Threads};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// JVMs watched at once.
const MAX_JVMS: usize = profiler_ebpf::MAX_WATCHED as usize;
/// How long after a JVM could not be read it is tried again: it may be starting.
const RETRY: Duration = Duration::from_secs(2);
/// Tries; then it stays as it is.
const MAX_TRIES: u32 = 10;
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

struct Jvm {
    naming: Naming,
    file: Option<FileId>,
    tries: u32,
    /// When it is looked at again.
    next: Option<Instant>,
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
    refused: u64,
}

impl Jvms {
    /// None yet.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { reader: JvmReader::start()?, known: HashMap::new(), probed: HashSet::new(), refused: 0 })
    }

    /// How a JVM's threads are known.
    pub fn naming(&self, key: ProcessKey) -> Option<&Naming> {
        self.known.get(&key).map(|jvm| &jvm.naming)
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
        }
    }

    /// Some times a second: JVMs that came and went, and what was found of them.
    pub fn tick(&mut self, registry: &Registry, capture: &mut Capture, threads: &mut Threads) {
        let live: HashSet<ProcessKey> =
            registry.iter().filter(|p| p.jvm && !p.exited && p.kept).map(|p| p.key).collect();
        self.known.retain(|key, _| {
            let stays = live.contains(key);
            if !stays {
                capture.unwatch_process(key.pid);
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
            let new =
                Jvm { naming: Naming::Opening, file: None, tries: 0, next: None, asked: None, wanted: true };
            self.known.insert(key, new);
        }
        for found in self.reader.poll().collect::<Vec<_>>() {
            match found {
                Found::Library(key, library) => self.opened(key, library, capture),
                Found::Names(key, names) => learn(key, &names, registry, threads),
            }
        }
        self.ask_again(threads.take_nameless());
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
                jvm.tries += 1;
                let again = problem.may_pass() && jvm.tries < MAX_TRIES;
                jvm.next = again.then(|| Instant::now() + RETRY);
                problem.to_string()
            }
        };
        if jvm.next.is_none() {
            tracing::warn!(pid = key.pid, %problem, "threads of this JVM are known by their comm only");
        }
        jvm.naming = Naming::Comm(problem);
    }

    /// Asks for libraries whose turn has come, and for names that are missing.
    fn ask_again(&mut self, nameless: Vec<(Pid, u32)>) {
        let pids: HashSet<Pid> = nameless.into_iter().map(|(pid, _)| pid).collect();
        let now = Instant::now();
        for (key, jvm) in &mut self.known {
            jvm.wanted |= pids.contains(&key.pid);
            if jvm.next.is_some_and(|next| now >= next) && self.reader.submit(Job::Library(*key)) {
                jvm.next = None;
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
