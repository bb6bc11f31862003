//! Names of threads: probes on the functions by which a runtime gives them, and what was named before there was a probe.
//!
//! In: what the reader found of a runtime's file and of a process's threads. Out: probes on and off, names learned.

use super::kernel::Kernel;
use super::reader::{Job, Names};
use super::states::{Allocations, Naming};
use super::{Pauses, Processes, fair};
use emberscope_capture::MAX_PROBES;
use emberscope_model::{FileId, Pid, ProcessKey, Tenant};
use emberscope_process::Registry;
use emberscope_process::threads::{Owner, OwnerKind, Threads};
use emberscope_runtime::{Library, Problem};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How often the names of one process are read, at most.
const NAMES_EVERY: Duration = Duration::from_secs(5);

impl Processes {
    /// The file by which threads are named was looked at.
    pub(super) fn opened(
        &mut self,
        key: ProcessKey,
        library: Result<Library, Problem>,
        kernel: &mut dyn Kernel,
        registry: &Registry,
    ) {
        let tenant = registry.by_key(key).map(|process| process.tenant).unwrap_or_default();
        let has_place =
            library.as_ref().is_ok_and(|library| self.has_place(tenant, library.id, kernel, registry));
        let Some(process) = self.known.get_mut(&key) else { return };
        process.wanted = true;
        if library.is_ok() && !has_place {
            process.library.in_a_moment(Instant::now());
            process.naming = Naming::Comm("probes of other files are being taken away first".into());
            return;
        }
        let problem = match library {
            Ok(library) => match attach(key.pid, &library, kernel) {
                Ok(naming) => {
                    self.probed.maps(library.id, tenant);
                    (process.naming, process.file) = (naming, Some(library.id));
                    process.allocations = watch_allocations(&library, kernel);
                    process.pauses = Pauses::watch(&library, kernel);
                    if let Allocations::None(problem) = &process.allocations {
                        tracing::warn!(pid = key.pid, %problem, "allocations of this process are not sampled");
                    }
                    return;
                }
                Err(error) => error,
            },
            Err(problem) => {
                process.library.failed(&problem, Instant::now());
                problem.to_string()
            }
        };
        if process.library.next.is_none() {
            tracing::warn!(pid = key.pid, %problem, "threads of this process are known by their comm only");
        }
        process.allocations = Allocations::None(problem.clone());
        process.pauses = Pauses::None(problem.clone());
        process.naming = Naming::Comm(problem);
    }

    /// Asks for libraries whose turn has come, and for names that are missing.
    pub(super) fn ask_names(&mut self, nameless: Vec<(Pid, u32)>) {
        let pids: HashSet<Pid> = nameless.into_iter().map(|(pid, _)| pid).collect();
        let now = Instant::now();
        for (key, process) in &mut self.known {
            process.wanted |= pids.contains(&key.pid);
            if process.library.due(now) && self.reader.submit((process.runtime, *key), Job::Library) {
                process.library.next = None;
            }
            if process.naming == Naming::None {
                continue;
            }
            let due = process.asked.is_none_or(|asked| now.duration_since(asked) >= NAMES_EVERY);
            let asks = process.wanted && due && process.naming != Naming::Opening;
            if asks && self.reader.submit((process.runtime, *key), Job::Names) {
                (process.asked, process.wanted) = (Some(now), false);
            }
        }
    }

    /// Whether a file may have probes now; false: in a moment, when others are gone.
    pub(super) fn has_place(
        &mut self,
        tenant: Tenant,
        id: FileId,
        kernel: &mut dyn Kernel,
        registry: &Registry,
    ) -> bool {
        if self.probed.contains(id) {
            return true;
        }
        if kernel.has_going(id) || self.probed.waits(tenant) {
            return false;
        }
        if !kernel.probes_are_full() {
            return true;
        }
        kernel.may_take_away() && {
            self.make_room(tenant, kernel, registry);
            true
        }
    }

    /// Where as many files have a probe as may: takes those away that no process maps, else of a tenant whose files are more
    /// than his share, unless that is whose process this is.
    fn make_room(&mut self, tenant: Tenant, kernel: &mut dyn Kernel, registry: &Registry) {
        if let Some(unused) = self.probed.unused() {
            return self.take_away(unused, kernel);
        }
        let mappers = self.known.iter().filter_map(|(key, process)| Some((*key, process.file?)));
        let owner = |key| registry.by_key(key).map(|process| process.tenant);
        let files = fair::of_files(mappers.filter_map(|(key, file)| Some((owner(key)?, file))));
        let Some(loser) = fair::gives_way(&files, MAX_PROBES, tenant) else { return };
        for process in self.known.values_mut().filter(|process| process.file == Some(loser)) {
            let why = "its user has more copies of libjvm than his share";
            (process.file, process.naming) = (None, Naming::Comm(why.into()));
            process.allocations = Allocations::None(why.into());
            process.pauses = Pauses::None(why.into());
        }
        self.take_away(loser, kernel);
    }

    /// Takes away the probes of files that no process has mapped for a while, as many as can be taken away without waiting.
    pub(super) fn drop_probes(&mut self, kernel: &mut dyn Kernel) {
        let used: HashSet<FileId> = self.known.values().filter_map(|process| process.file).collect();
        let now = Instant::now();
        self.probed.are_used(&used, now);
        while let Some(id) = self.probed.goes(now)
            && kernel.may_take_away()
        {
            self.take_away(id, kernel);
        }
    }

    fn take_away(&mut self, id: FileId, kernel: &mut dyn Kernel) {
        self.probed.remove(id);
        let gone = [kernel.unwatch_names(id), kernel.unwatch_allocations(id), kernel.unwatch_pauses(id)];
        for error in gone.into_iter().filter_map(Result::err) {
            tracing::warn!(?id, %error, "a probe stays although no process needs it");
        }
    }
}

/// Puts a probe on the file; what then tells the names, or why nothing does.
fn attach(pid: Pid, library: &Library, kernel: &mut dyn Kernel) -> Result<Naming, String> {
    let probe = library.probe?;
    if library.strings.is_some() {
        kernel.watch_process(pid, library.strings).map_err(|e| e.to_string())?;
    }
    let file = library.file.fd().ok_or("its file is closed")?;
    kernel.watch_names(library.id, file, probe).map_err(|e| e.to_string())?;
    Ok(if library.strings.is_some() { Naming::Strings } else { Naming::Native })
}

/// Puts the probes on allocations on the file, where they are asked for; what then is known of them.
fn watch_allocations(library: &Library, kernel: &mut dyn Kernel) -> Allocations {
    let Some(file) = library.file.fd() else { return Allocations::None("its file is closed".into()) };
    // A file that does not tell is a state only where allocations are asked for.
    match (library.allocations, kernel.samples_allocations()) {
        (_, false) => Allocations::Off,
        (Err(why), true) => Allocations::None(why.into()),
        (Ok(probe), true) => match kernel.watch_allocations(library.id, file, probe) {
            Ok(()) => Allocations::Probed,
            Err(error) => Allocations::None(error.to_string()),
        },
    }
}

/// Takes in the names that a process's threads had.
pub(super) fn learn(key: ProcessKey, names: &Names, registry: &Registry, threads: &mut Threads) {
    let Some(process) = registry.by_key(key) else { return };
    let (labels, role, tenant) = (&process.labels, process.role, process.tenant);
    let owner = Owner { pid: key.pid, labels, role, kind: OwnerKind::Jvm, tenant };
    for (tid, comm) in &names.comms {
        // The first thread's comm is the program's.
        if *tid != key.pid {
            threads.learn_comm(&owner, *tid, comm);
        }
    }
    match &names.full {
        Ok(full) => full.iter().for_each(|(tid, name)| threads.learn(&owner, *tid, 0, name.as_bytes())),
        Err(Problem::Gone) => {}
        Err(problem) => tracing::debug!(pid = key.pid, %problem, "thread names are not read"),
    }
}
