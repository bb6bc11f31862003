//! Names of JVMs' threads: probes on the functions that give them, and what was named before there was a probe.
//!
//! In: what the reader found of a libjvm file and of a JVM's threads. Out: probes on and off, names learned.

use super::states::Naming;
use super::{Jvms, fair};
use crate::capture::{Capture, MAX_PROBES};
use crate::hotspot::JvmProblem;
use crate::model::{FileId, Pid, ProcessKey};
use crate::pipeline::jvm_reader::{Job, Library, Names};
use crate::process::Registry;
use crate::process::threads::{Owner, Threads};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How often the names of one JVM are read, at most.
const NAMES_EVERY: Duration = Duration::from_secs(5);

impl Jvms {
    /// A libjvm file was looked at.
    pub(super) fn opened(
        &mut self,
        key: ProcessKey,
        library: Result<Library, JvmProblem>,
        capture: &mut Capture,
        registry: &Registry,
    ) {
        if let Ok(library) = &library {
            self.make_room(key, library.id, capture, registry);
        }
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

    /// Asks for libraries whose turn has come, and for names that are missing.
    pub(super) fn ask_names(&mut self, nameless: Vec<(Pid, u32)>) {
        let pids: HashSet<Pid> = nameless.into_iter().map(|(pid, _)| pid).collect();
        let now = Instant::now();
        for (key, jvm) in &mut self.known {
            jvm.wanted |= pids.contains(&key.pid);
            if jvm.library.due(now) && self.reader.submit(Job::Library(*key)) {
                jvm.library.next = None;
            }
            let due = jvm.asked.is_none_or(|asked| now.duration_since(asked) >= NAMES_EVERY);
            if jvm.wanted && due && jvm.naming != Naming::Opening && self.reader.submit(Job::Names(*key)) {
                (jvm.asked, jvm.wanted) = (Some(now), false);
            }
        }
    }

    /// Where as many files have a probe as may: takes one from a tenant whose files are more than his share, unless
    /// that is whose JVM this is.
    fn make_room(&mut self, key: ProcessKey, id: FileId, capture: &mut Capture, registry: &Registry) {
        if self.probed.contains(&id) || capture.name_probes() < MAX_PROBES {
            return;
        }
        let mappers = self.known.iter().filter_map(|(key, jvm)| Some((*key, jvm.file?)));
        let tenant = |key| registry.by_key(key).map(|process| process.tenant);
        let files = fair::of_files(mappers.filter_map(|(key, file)| Some((tenant(key)?, file))));
        let Some(loser) = tenant(key).and_then(|tenant| fair::gives_way(&files, MAX_PROBES, tenant)) else {
            return;
        };
        for jvm in self.known.values_mut().filter(|jvm| jvm.file == Some(loser)) {
            (jvm.file, jvm.naming) =
                (None, Naming::Comm("its user has more copies of libjvm than his share".into()));
        }
        self.drop_probes(capture);
    }

    /// Takes away the probes of files that no JVM maps any more.
    pub(super) fn drop_probes(&mut self, capture: &mut Capture) {
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
    let Some(probe) = library.probe else {
        return Err("its libjvm has neither os::set_native_thread_name nor JVM_SetNativeThreadName".into());
    };
    if library.strings.is_some() {
        capture.watch_process(pid, library.strings).map_err(|e| e.to_string())?;
    }
    let file = library.file.fd().ok_or("its file is closed")?;
    capture.watch_names(library.id, file, probe).map_err(|e| e.to_string())?;
    Ok(if library.strings.is_some() { Naming::Strings } else { Naming::Native })
}

/// Takes in the names that a JVM's threads had.
pub(super) fn learn(key: ProcessKey, names: &Names, registry: &Registry, threads: &mut Threads) {
    let Some(process) = registry.by_key(key) else { return };
    let (labels, role, tenant) = (&process.labels, process.role, process.tenant);
    let owner = Owner { pid: key.pid, labels, role, jvm: true, tenant };
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
