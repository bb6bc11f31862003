//! The thread that gives the kernel's walker its unwind tables, so that the sampling thread never reads a target's files.
//!
//! In: processes that map code, run another program, end, are sampled. Out: tables in the walker's maps, and counts.
//! A process is looked at a moment after it mapped something, so that a program's libraries are read once and a
//! program that ends at once is not read at all; one that is sampled and not known goes first. At most [`MAX_WAITING`]
//! requests wait; what is turned away comes again when the process is sampled.

use crate::capture::TableMaps;
use crate::model::{Pid, RawTask, TaskEvent};
use crate::process::Registry;
use crate::unwind::table::{Counts, Disk, Keeper, Limits, Walker, WalkerError};
use profiler_ebpf::ProcessTables;
use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests that wait: a node's processes at the start, and some.
const MAX_WAITING: usize = 32_768;
/// From a process's first new mapping to the look at it.
const DELAY: Duration = Duration::from_millis(30);
/// How often what is not used any more goes.
const SWEEP: Duration = Duration::from_secs(10);
/// Below the sampling thread and what the machine is there for, but not starved on a busy one.
const NICE: i32 = 5;
/// Files with more unwind information than this wait until every process was looked at. libjvm's has 4 MB.
const LARGE: u64 = 8 << 20;

enum Ask {
    Mapped(Pid),
    Replaced(Pid),
    Ended(Pid),
    Used(Vec<Pid>),
}

/// What is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableCounts {
    /// Of the tables.
    pub tables: Counts,
    /// Memory in the kernel.
    pub slab_bytes: u64,
    /// Processes that wait for a look.
    pub waiting: usize,
    /// Requests that were turned away.
    pub turned_away: u64,
}

/// The thread's door.
pub struct Tables {
    asks: Option<SyncSender<Ask>>,
    /// Sampled since the last tick.
    sampled: HashSet<Pid>,
    counts: Arc<Mutex<TableCounts>>,
    turned_away: u64,
}

impl Tables {
    /// Starts the thread; without maps nothing is done. Tables are kept in `dir`.
    pub fn start(maps: Option<TableMaps>, dir: Option<&Path>) -> std::io::Result<Self> {
        let counts = Arc::new(Mutex::new(TableCounts::default()));
        let mut tables = Self { asks: None, sampled: HashSet::new(), counts, turned_away: 0 };
        let Some(maps) = maps else { return Ok(tables) };
        let disk = dir.and_then(|dir| {
            let disk = Disk::open(dir);
            disk.inspect_err(|error| {
                tracing::warn!(dir = %dir.display(), %error, "unwind tables are built anew at each start");
            })
            .ok()
        });
        let (asks, queue) = sync_channel(MAX_WAITING);
        let counts = Arc::clone(&tables.counts);
        let run = move || {
            // Of this thread alone (setpriority(2), C library/kernel differences).
            let _ = rustix::process::setpriority_process(None, NICE);
            match Keeper::new(Maps(maps), disk, Limits::default()) {
                Ok(keeper) => Thread {
                    keeper,
                    due: VecDeque::new(),
                    large: VecDeque::new(),
                    waiting: HashSet::new(),
                    counts,
                }
                .run(&queue),
                Err(error) => tracing::warn!(%error, "native code is walked by frame pointers only"),
            }
        };
        std::thread::Builder::new().name("unwind-tables".into()).spawn(run)?;
        tables.asks = Some(asks);
        Ok(tables)
    }

    /// All processes that live, JVMs first.
    pub fn begin(&mut self, registry: &Registry) {
        let mut live: Vec<_> = registry.iter().filter(|p| !p.exited).map(|p| (!p.jvm, p.key.pid)).collect();
        live.sort_unstable();
        live.into_iter().for_each(|(_, pid)| self.ask(Ask::Mapped(pid)));
    }

    /// A process mapped code.
    pub fn mapped(&mut self, pid: Pid) {
        self.ask(Ask::Mapped(pid));
    }

    /// A process runs another program, or was made.
    pub fn on_task(&mut self, task: &RawTask) {
        match task.event {
            TaskEvent::Exec => self.ask(Ask::Replaced(task.pid)),
            TaskEvent::Fork { parent_pid, .. } if parent_pid != task.pid => self.ask(Ask::Mapped(task.pid)),
            TaskEvent::Fork { .. } | TaskEvent::Exit => {}
        }
    }

    /// A process's last thread ended.
    pub fn ended(&mut self, pid: Pid) {
        self.ask(Ask::Ended(pid));
    }

    /// A process was sampled.
    pub fn sampled(&mut self, pid: Pid) {
        if self.asks.is_some() {
            self.sampled.insert(pid);
        }
    }

    /// Once a second.
    pub fn tick(&mut self) {
        if !self.sampled.is_empty() {
            let used = self.sampled.drain().collect();
            self.ask(Ask::Used(used));
        }
    }

    /// What there is.
    pub fn counts(&self) -> TableCounts {
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        TableCounts { turned_away: self.turned_away, ..counts }
    }

    fn ask(&mut self, ask: Ask) {
        if self.asks.as_ref().is_some_and(|asks| asks.try_send(ask).is_err()) {
            self.turned_away += 1;
        }
    }
}

struct Thread {
    keeper: Keeper<Maps>,
    /// Who is looked at, in order.
    due: VecDeque<(Instant, Pid)>,
    /// Who has large files, for when nobody is due.
    large: VecDeque<Pid>,
    waiting: HashSet<Pid>,
    counts: Arc<Mutex<TableCounts>>,
}

impl Thread {
    fn run(mut self, asks: &Receiver<Ask>) {
        let mut sweep = Instant::now() + SWEEP;
        loop {
            let now = Instant::now();
            let idle = if self.large.is_empty() { sweep } else { now };
            let next = self.due.front().map_or(sweep, |(due, _)| *due).min(idle);
            match asks.recv_timeout(next.saturating_duration_since(now)) {
                Ok(ask) => {
                    self.take(ask);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Some((_, pid)) = self.due.pop_front_if(|(due, _)| *due <= now) {
                self.waiting.remove(&pid);
                if self.look(pid, LARGE) && !self.large.contains(&pid) {
                    self.large.push_back(pid);
                }
            } else if let Some(pid) = self.large.pop_front() {
                self.look(pid, u64::MAX);
            }
            if now >= sweep {
                sweep = now + SWEEP;
                self.keeper.sweep(Path::new("/proc"));
            }
            self.publish();
        }
    }

    fn take(&mut self, ask: Ask) {
        match ask {
            Ask::Mapped(pid) => self.later(pid),
            Ask::Replaced(pid) => {
                self.keeper.forget(pid);
                self.later(pid);
            }
            Ask::Ended(pid) => {
                self.keeper.forget(pid);
                if self.waiting.remove(&pid) {
                    self.due.retain(|(_, other)| *other != pid);
                }
            }
            Ask::Used(pids) => {
                for pid in pids {
                    if self.keeper.used(pid) && self.waiting.insert(pid) {
                        self.due.push_front((Instant::now(), pid));
                    }
                }
            }
        }
    }

    fn later(&mut self, pid: Pid) {
        if self.waiting.len() < MAX_WAITING && self.waiting.insert(pid) {
            self.due.push_back((Instant::now() + DELAY, pid));
        }
    }

    /// Whether something large is left.
    fn look(&mut self, pid: Pid, most: u64) -> bool {
        let dir = PathBuf::from(format!("/proc/{pid}"));
        self.keeper.look(&dir, pid, most).unwrap_or_else(|error| {
            tracing::debug!(pid, %error, "no unwind tables for this process");
            self.keeper.forget(pid);
            false
        })
    }

    fn publish(&self) {
        let counts = TableCounts {
            tables: self.keeper.counts(),
            slab_bytes: self.keeper.walker().0.bytes(),
            waiting: self.due.len() + self.large.len(),
            turned_away: 0,
        };
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }
}

/// The walker's maps.
struct Maps(TableMaps);

impl Walker for Maps {
    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), WalkerError> {
        self.0.write(address, words).map_err(|e| WalkerError(e.to_string()))
    }
    fn rule(&mut self, number: u32, rule: u64) -> Result<(), WalkerError> {
        self.0.rule(number, rule).map_err(|e| WalkerError(e.to_string()))
    }
    fn set(&mut self, pid: Pid, tables: ProcessTables) -> Result<(), WalkerError> {
        self.0.set(pid, tables).map_err(|e| WalkerError(e.to_string()))
    }
    fn forget(&mut self, pid: Pid) {
        self.0.forget(pid);
    }
    fn free_slabs(&mut self, empty: &dyn Fn(u32) -> bool) {
        self.0.free_slabs(empty);
    }
}
