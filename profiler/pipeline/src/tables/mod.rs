//! The threads that give the kernel's walker its unwind tables, so that the sampling thread never reads a target's files.
//!
//! In: processes that map code, run another program, end, are sampled. Out: tables in the walker's maps, and counts.
//! One thread (`teller`) tells the walker what is known, within a millisecond of the event; another (`builder`), of low
//! priority, reads files. At most [`MAX_WAITING`] requests wait; what is turned away comes again when the process is
//! sampled.

mod budget;
mod builder;
mod lane;
mod large;
mod maps;
mod queue;
mod teller;
mod waiting;

use emberscope_capture::TableMaps;
use emberscope_model::{Pid, RawTask, TaskEvent, Tenant};
use emberscope_process::Registry;
use emberscope_unwind::table::{Counts, Disk, Held, Made};
use profiler_ebpf::PAGE_SHIFT;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use large::Large;
pub use maps::Maps;

/// Requests that wait: a node's processes at the start, and some. 40 bytes each, taken at once.
const MAX_WAITING: usize = 8_192;

/// Pages of code of files in parts of which the teller is told in a second, of one process: a new path through a library has some ten.
/// A process may return to any address that it likes.
const MAX_RAN: usize = 256;
/// Processes of which it is told so in a second.
const MAX_RUNNING: usize = 256;

/// What the teller is asked or told.
enum Ask {
    /// A process of this tenant's mapped code.
    Mapped(Pid, Tenant),
    /// A process was made by another, whose list it has.
    Forked(Pid, Tenant),
    /// A process runs another program.
    Replaced(Pid, Tenant),
    /// A process's first thread ended.
    Ended(Pid),
    /// Processes were sampled.
    Used(Vec<(Pid, Tenant)>),
    /// A process ran code of files in parts, at these addresses.
    Ran(Pid, Vec<u64>),
    /// A file was read.
    Made(Box<Made>),
    /// Nobody asks any more.
    Stop,
}

/// What is shown of unwind tables.
#[derive(Clone, Debug, Default)]
pub struct TableCounts {
    /// What the keeper of tables counted.
    pub tables: Counts,
    /// Bytes of slabs in the kernel.
    pub slab_bytes: u64,
    /// Processes that wait for a look, and files that wait to be read.
    pub waiting: usize,
    /// Requests that were turned away, and files that gave way to others'.
    pub turned_away: u64,
    /// The largest tables, each with its file.
    pub largest: Arc<[Held]>,
    /// Of each process with a list: its files, and the bytes of their tables.
    pub shares: Arc<HashMap<Pid, (usize, usize)>>,
}

/// What the teller tells.
struct Told {
    counts: Arc<Mutex<TableCounts>>,
    large: Large,
}

/// The door of the threads that keep unwind tables.
pub struct Tables {
    asks: Option<SyncSender<Ask>>,
    /// Processes that were sampled since the last tick.
    sampled: HashMap<Pid, Tenant>,
    /// Those of them of which the teller was told already.
    told: HashSet<Pid>,
    large: Large,
    /// Pages of such code of which the teller was told in this second.
    ran: HashMap<Pid, HashSet<u64>>,
    counts: Arc<Mutex<TableCounts>>,
    turned_away: u64,
}

impl Tables {
    /// Starts the threads; without maps nothing is done. Tables are kept in `dir`.
    ///
    /// # Errors
    /// The kernel starts no thread. A directory that cannot be used is none: tables are built anew at each start.
    pub fn start(maps: Option<TableMaps>, dir: Option<&Path>) -> std::io::Result<Self> {
        let (counts, large) = (Arc::new(Mutex::new(TableCounts::default())), Large::default());
        let mut tables = Self {
            asks: None,
            sampled: HashMap::new(),
            told: HashSet::new(),
            large: large.clone(),
            ran: HashMap::new(),
            counts: Arc::clone(&counts),
            turned_away: 0,
        };
        let Some(maps) = maps else { return Ok(tables) };
        let disk = dir.and_then(|dir| {
            let disk = Disk::open(dir);
            disk.inspect_err(|error| {
                tracing::warn!(dir = %dir.display(), %error, "unwind tables are built anew at each start");
            })
            .ok()
        });
        let (asks, queue) = sync_channel(MAX_WAITING);
        let told = Told { counts, large };
        tables.asks = teller::start(maps, disk, (asks.clone(), queue), told)?.then_some(asks);
        Ok(tables)
    }

    /// Tells of all processes that live, JVMs first.
    pub fn begin(&mut self, registry: &Registry) {
        let mut live: Vec<_> =
            registry.iter().filter(|p| !p.exited).map(|p| (!p.is_jvm(), p.key.pid, p.tenant)).collect();
        live.sort_unstable();
        live.into_iter().for_each(|(_, pid, tenant)| self.ask(Ask::Mapped(pid, tenant)));
    }

    /// Tells that a process of this tenant's mapped code.
    pub fn mapped(&mut self, pid: Pid, tenant: Tenant) {
        self.ask(Ask::Mapped(pid, tenant));
    }

    /// A process runs another program, was made, or ends.
    pub fn on_task(&mut self, task: &RawTask, tenant: Tenant) {
        match task.event {
            TaskEvent::Exec => self.ask(Ask::Replaced(task.pid, tenant)),
            TaskEvent::Fork { parent_pid, .. } if parent_pid != task.pid => {
                self.ask(Ask::Forked(task.pid, tenant))
            }
            TaskEvent::Exit if task.tid == task.pid => {
                self.told.remove(&task.pid);
                self.ask(Ask::Ended(task.pid));
            }
            TaskEvent::Fork { .. } | TaskEvent::Exit => {}
        }
    }

    /// A process was sampled. One that was not in the last second is told at once: it may have no list.
    pub fn sampled(&mut self, pid: Pid, tenant: Tenant) {
        if self.asks.is_some() && self.sampled.insert(pid, tenant).is_none() && self.told.insert(pid) {
            self.ask(Ask::Used(vec![(pid, tenant)]));
        }
    }

    /// A process ran code at these addresses: what of it is in a file in parts may have no table yet.
    pub fn ran(&mut self, pid: Pid, addresses: impl Iterator<Item = u64>) {
        let Some(large) = self.large.of(pid) else { return };
        if self.ran.len() >= MAX_RUNNING && !self.ran.contains_key(&pid) {
            return;
        }
        let told = self.ran.entry(pid).or_default();
        let mut new = Vec::new();
        for address in addresses.filter(|address| large.iter().any(|range| range.contains(address))) {
            if told.len() < MAX_RAN && told.insert(address >> PAGE_SHIFT) {
                new.push(address);
            }
        }
        if !new.is_empty() {
            self.ask(Ask::Ran(pid, new));
        }
    }

    /// Once a second: tells who was sampled.
    pub fn tick(&mut self) {
        self.ran.clear();
        if !self.sampled.is_empty() {
            self.told = self.sampled.keys().copied().collect();
            let used = self.sampled.drain().collect();
            self.ask(Ask::Used(used));
        }
    }

    /// What tables there are, as the teller told it last.
    pub fn counts(&self) -> TableCounts {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        TableCounts { turned_away: self.turned_away + counts.turned_away, ..counts }
    }

    /// Whether no process waits for a look, and no file to be read, as the teller told it last. So it is where there are none.
    pub fn are_all_told(&self) -> bool {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        self.asks.is_none() || counts.waiting == 0 && !counts.shares.is_empty()
    }

    fn ask(&mut self, ask: Ask) {
        if self.asks.as_ref().is_some_and(|asks| asks.try_send(ask).is_err()) {
            self.turned_away += 1;
        }
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        if let Some(asks) = &self.asks {
            // The teller takes what waits, so that this does not wait for long.
            let _ = asks.send(Ask::Stop);
        }
    }
}
