//! What the registry keeps of one process, and what it counts.

use super::RegistryConfig;
use super::clients::ClientOf;
use super::late::Late;
use crate::discovery::Candidate;
use crate::facts::ProcessFacts;
use crate::identity::{Identity, PythonSide, Runtime};
use crate::labels;
use emberscope_model::{LabelSet, Pid, ProcessKey, ProcessRecord, Role, RuntimeId, Tenant, cgroup_of};
use std::sync::Arc;
use std::time::Instant;

/// Counts since the start; `processes` and `exited` are as of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Processes kept now.
    pub processes: usize,
    /// Those of them that exited and wait for their last samples.
    pub exited: usize,
    /// Processes read from /proc.
    pub reads: u64,
    /// Reads that did not all come in time: the process's memory did not (FUSE, or many mappings).
    pub late: u64,
    /// Processes that were gone before they could be read.
    pub gone: u64,
    /// Processes that were there, but not readable.
    pub unreadable: u64,
    /// Live processes forgotten because the registry was full; seen again, they are read again.
    pub evicted: u64,
    /// Execs whose program was read later than at once.
    pub execs_deferred: u64,
    /// Execs forgotten because too many waited; their program is read with their next sample.
    pub execs_dropped: u64,
    /// Questions asked of drivers and Workers.
    pub asked: u64,
    /// Questions put off because the discovery thread was busy, or enough about that user's processes waited.
    pub asks_refused: u64,
    /// Relabels given out: labels that became known late.
    pub relabels: u64,
    /// Claims on an application (or on a driver) that were refused: another user's, or nobody's.
    pub conflicts: u64,
}

/// One process, as others see it.
#[derive(Clone, Debug)]
pub struct Process {
    /// Pid and start; the start is 0 when the process was gone before it could be read.
    pub key: ProcessKey,
    /// Labels of its samples, but for those of a thread.
    pub labels: Arc<LabelSet>,
    /// What is kept with the windows; its `jvm` is for the symbolizer to fill.
    pub record: Arc<ProcessRecord>,
    /// Program name, at most 15 bytes but of kernel threads.
    pub comm: Arc<str>,
    /// Whether the user wants its samples.
    pub kept: bool,
    /// The runtime whose mark is in a mapped file's path; what it is to Spark rests on its being a JVM.
    pub runtime: RuntimeId,
    /// What the process is to Spark.
    pub role: Role,
    /// Which side of PySpark, for Python.
    pub python: Option<PythonSide>,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// Its own pid in its PID namespace: the one in names of perf maps and attach sockets.
    pub inner_pid: Pid,
    /// Parent at the time of reading.
    pub ppid: Pid,
    /// Whether it has no command line, and so no user memory.
    pub kernel_thread: bool,
    /// Whether it ended.
    pub exited: bool,
    /// Whose share of the bounded tables the process takes.
    pub tenant: Tenant,
    /// The part of its cgroup that is the tenant's; empty when it was not read.
    pub cgroup: Arc<str>,
}

impl Process {
    /// Whether libjvm.so is mapped.
    pub fn is_jvm(&self) -> bool {
        self.runtime == RuntimeId::HOTSPOT
    }
}

/// What was told of a driver from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Application id by an executor's `--driver-url`: the surest.
    pub by_url: Option<String>,
    /// Those executors are a cluster's: started by its service, not by the driver's user.
    pub by_service: bool,
    /// Application id, name and user by its own web server.
    pub by_rest: Option<crate::discovery::RestApp>,
}

/// One process, as the registry knows it.
#[derive(Debug)]
pub(super) struct Entry {
    pub process: Process,
    /// What the process is by itself. Boxed, as [`Self::settled`]: a table has up to twice the places that it uses.
    pub own: Box<Identity>,
    /// What it is with what parents and discovery added.
    pub settled: Box<Identity>,
    pub told: Option<Told>,
    /// Of which driver the process is, or was, a client.
    pub client_of: Option<ClientOf>,
    pub parent: Option<ProcessKey>,
    pub netns: String,
    /// The tick of its last sample.
    pub last_used: u64,
    /// The process has exec'd since it was read.
    pub stale: bool,
    /// The process waits to be checked, since events of its user's were lost.
    pub suspect: bool,
    /// Not all could be read in time: when it is read again.
    pub late: Option<Late>,
    /// The tick at which it was last looked at after its exit.
    pub checked_at: Option<u64>,
    pub exited_at: Option<Instant>,
    /// When it was read.
    pub seen: Instant,
    /// The number of the look at which the process was last asked whether it is a JVM by now.
    pub looked: u64,
    /// Whether it was looked at whether what the process says of itself is believed.
    pub judged: bool,
}

impl Entry {
    pub fn new(
        config: &RegistryConfig,
        facts: &ProcessFacts,
        own: Identity,
        settled: Identity,
        parent: Option<ProcessKey>,
    ) -> Self {
        let cgroup = cgroup_of(&facts.cgroup);
        let process = Process {
            key: facts.key(),
            tenant: Tenant::new(false, facts.uid, &cgroup),
            cgroup: cgroup.into(),
            comm: facts.comm.as_str().into(),
            runtime: facts.runtime,
            uid: facts.uid,
            gid: facts.gid,
            inner_pid: facts.inner_pid(),
            ppid: facts.ppid,
            kernel_thread: facts.words.is_empty() && !facts.late,
            ..blank(facts.key())
        };
        let mut entry = Self::with(process, own, settled);
        entry.parent = parent;
        entry.late = facts.late.then(Late::default);
        entry.netns.clone_from(&facts.netns);
        entry.label(config);
        entry
    }

    /// The entry of a process that was gone before it could be read.
    pub fn gone(config: &RegistryConfig, pid: Pid, identity: Identity, comm: &str) -> Self {
        let process =
            Process { comm: comm.into(), exited: pid != 0, ..blank(ProcessKey { pid, start_ticks: 0 }) };
        let mut entry = Self::with(process, identity.clone(), identity);
        entry.exited_at = Some(entry.seen);
        entry.label(config);
        entry
    }

    fn with(process: Process, own: Identity, settled: Identity) -> Self {
        Self {
            process,
            own: Box::new(own),
            settled: Box::new(settled),
            told: None,
            client_of: None,
            parent: None,
            netns: String::new(),
            last_used: 0,
            stale: false,
            suspect: false,
            late: None,
            checked_at: None,
            exited_at: None,
            seen: Instant::now(),
            looked: 0,
            judged: false,
        }
    }

    /// Where the process's sockets are, for discovery.
    pub fn candidate(&self) -> Candidate {
        Candidate { key: self.process.key, netns: self.netns.clone(), uid: self.process.uid }
    }

    /// The process ended; the first time counts.
    pub fn exit(&mut self) {
        self.process.exited = true;
        self.exited_at.get_or_insert_with(Instant::now);
    }

    /// Puts the settled identity into labels and record. Returns the labels that were.
    pub fn label(&mut self, config: &RegistryConfig) -> Arc<LabelSet> {
        let (identity, process) = (&self.settled, &mut self.process);
        let labels = Arc::new(labels::build(
            &config.node,
            &config.run_names,
            identity,
            &process.comm,
            process.key.pid,
        ));
        let app = identity.app.as_deref();
        let of_an_app =
            app.is_some() || identity.role == Role::Driver || identity.python == Some(PythonSide::Driver);
        (process.role, process.python) = (identity.role, identity.python);
        process.tenant.spark = identity.role != Role::Other;
        process.kept = !of_an_app
            || config.keep.matches(app, identity.app_name.as_deref(), identity.executor.as_deref());
        process.record = Arc::new(ProcessRecord {
            key: process.key,
            labels: labels.clone(),
            host: identity.host.clone(),
            cores: identity.cores,
            program: identity.program.clone(),
            jvm: None,
        });
        std::mem::replace(&mut process.labels, labels)
    }

    /// Whether the program may yet map libjvm: the `java` launcher does some milliseconds after its exec.
    pub fn may_become_jvm(&self) -> bool {
        !self.process.is_jvm() && !self.process.exited && self.own.runtime == Runtime::Java
    }
}

fn blank(key: ProcessKey) -> Process {
    let labels = Arc::new(LabelSet::default());
    Process {
        key,
        record: Arc::new(ProcessRecord {
            key,
            labels: labels.clone(),
            host: String::new(),
            cores: 0,
            program: String::new(),
            jvm: None,
        }),
        labels,
        comm: "".into(),
        kept: true,
        runtime: RuntimeId::NATIVE,
        role: Role::Other,
        python: None,
        uid: 0,
        gid: 0,
        inner_pid: key.pid,
        ppid: 0,
        kernel_thread: false,
        exited: false,
        tenant: Tenant::default(),
        cgroup: "".into(),
    }
}
