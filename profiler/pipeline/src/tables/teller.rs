//! The thread that tells the walker which tables the code of a process has.
//!
//! In: requests, and files that were read. Out: the walker's maps. A program that started, or mapped code, is looked at
//! at once, as long as that takes no more than a tenth of a core; else a moment later, together with what it mapped
//! meanwhile. Files that nobody knows go to a builder, in the order of `lane`; large ones to another, so that none
//! waits behind them.

use super::budget::Budget;
use super::lane::{Lane, Rank};
use super::maps::Maps;
use super::queue::Queue;
use super::waiting::{self, Waiting};
use super::{Ask, MAX_WAITING, TableCounts, Told, builder};
use emberscope_capture::TableMaps;
use emberscope_model::Pid;
use emberscope_supervise::Beat;
use emberscope_unwind::table::{Disk, Found, Inode, Keeper, Limits, Made, Missing, Wanted};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// From a process's first new mapping to the look at it, where there is much to look at.
const DELAY: Duration = Duration::from_millis(30);
/// From a file's table to the look at a process that waits for it and was not sampled: others of its files come
/// meanwhile.
const GATHER: Duration = Duration::from_millis(300);
/// How often what there is is told, while it changes.
const TELL: Duration = Duration::from_millis(200);
/// Tables that are told one by one.
const LARGEST: usize = 128;
/// Share of a core that looks at once may take.
const SHARE: f64 = 0.1;
/// CPU time that those looks may take ahead: a node's processes at the start.
const AHEAD: Duration = Duration::from_millis(100);
/// How often what is not used any more goes.
const SWEEP: Duration = Duration::from_secs(10);
/// Files with more unwind information than this are the other builder's. libjvm's has 4 MB.
const LARGE: u64 = 8 << 20;
/// Longest for one process: 65,000 mappings take a second or two.
const STUCK: Duration = Duration::from_secs(30);

/// Starts the teller, and the builder; whether it did. On a machine whose code is not walked by tables, or where the keeper cannot
/// be made, neither is started: that is logged.
///
/// # Errors
/// The kernel starts no thread.
pub fn start(
    maps: TableMaps,
    disk: Option<Disk>,
    (asks, queue): (SyncSender<Ask>, Receiver<Ask>),
    told: Told,
) -> io::Result<bool> {
    if !emberscope_arch::OWN.tables {
        tracing::info!(arch = emberscope_arch::OWN.name, "native code is walked by frame pointers only");
        return Ok(false);
    }
    let keeper = match Keeper::new(Maps(maps), Limits::default()) {
        Ok(keeper) => keeper,
        Err(error) => {
            tracing::warn!(%error, "native code is walked by frame pointers only");
            return Ok(false);
        }
    };
    let keys = || keeper.keys().clone();
    let usual = builder::start(builder::USUAL, keys(), disk.clone(), asks.clone())?;
    let large = builder::start(builder::LARGE, keys(), disk, asks)?;
    let mut teller = Teller {
        keeper,
        queue: Queue::default(),
        budget: Budget::new(SHARE, AHEAD),
        usual: Lane::new(usual, LARGE),
        large: Lane::new(large, u64::MAX),
        waiting: Waiting::new(waiting::MAX_BYTES),
        sampled: HashSet::new(),
        told,
    };
    emberscope_supervise::spawn("unwind-tables", STUCK, move |beat| teller.run(&queue, beat)).map(|_| true)
}

struct Teller {
    keeper: Keeper<Maps>,
    queue: Queue,
    budget: Budget,
    usual: Lane,
    /// Of files that were found to be large.
    large: Lane,
    /// The files of both and those that are read now, with the processes that wait for each.
    waiting: Waiting,
    /// Processes that were sampled since the last sweep.
    sampled: HashSet<Pid>,
    told: Told,
}

impl Teller {
    fn run(&mut self, asks: &Receiver<Ask>, beat: &Beat) {
        let mut sweep = Instant::now() + SWEEP;
        // When to tell what there is, if it changed.
        let (mut tell, mut changed) = (Instant::now(), true);
        loop {
            let now = Instant::now();
            let next = self.queue.due(now).map_or(sweep, |due| due.min(sweep));
            let next = if changed { next.min(tell) } else { next };
            match asks.recv_timeout(next.saturating_duration_since(now)) {
                Ok(Ask::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(ask) => {
                    // Who was sampled changes nothing that is told; a look that follows does.
                    changed |= !matches!(ask, Ask::Used(_) | Ask::Ran(..));
                    // What it told the walker of stays: each of the keeper's changes is whole, or its process's list is
                    // made anew with the next look.
                    let _ = beat.work(|| self.take(ask));
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if let Some(pid) = self.queue.next(now) {
                changed = true;
                if beat.work(|| self.look(pid)).is_err() {
                    self.keeper.forget(pid);
                }
                let _ = self.budget.take(now.elapsed(), Instant::now());
            }
            self.give_jobs();
            if now >= sweep {
                sweep = now + SWEEP;
                self.keeper.sweep(Path::new("/proc"));
                self.told.large.retain(|pid| self.keeper.knows(pid));
                self.sampled.clear();
                changed = true;
            }
            if changed && now >= tell {
                self.publish();
                (tell, changed) = (Instant::now() + TELL, false);
            }
        }
    }

    fn take(&mut self, ask: Ask) {
        match ask {
            Ask::Mapped(pid, tenant) => {
                self.keeper.belongs(pid, tenant);
                self.soon(pid);
            }
            Ask::Forked(pid, tenant) => {
                self.keeper.belongs(pid, tenant);
                self.later(pid);
            }
            Ask::Replaced(pid, tenant) => {
                self.keeper.belongs(pid, tenant);
                self.keeper.forget(pid);
                self.soon(pid);
            }
            // Other threads of it may go on: its mappings tell.
            Ask::Ended(pid) if self.keeper.knows(pid) => self.queue.now(pid),
            Ask::Ended(pid) => self.queue.forget(pid),
            Ask::Used(pids) => {
                for (pid, tenant) in pids {
                    self.keeper.belongs(pid, tenant);
                    if self.sampled.len() < MAX_WAITING {
                        self.sampled.insert(pid);
                    }
                    if self.keeper.used(pid) {
                        self.queue.now(pid);
                    }
                }
            }
            Ask::Ran(pid, addresses) => self.ran(pid, &addresses),
            Ask::Made(made) => self.made(*made),
            Ask::Stop => {}
        }
    }

    fn soon(&mut self, pid: Pid) {
        if self.budget.is_free(Instant::now()) { self.queue.now(pid) } else { self.later(pid) }
    }

    fn later(&mut self, pid: Pid) {
        self.after(DELAY, pid);
    }

    fn after(&mut self, delay: Duration, pid: Pid) {
        if self.queue.len() < MAX_WAITING {
            self.queue.later(Instant::now() + delay, pid);
        }
    }

    fn look(&mut self, pid: Pid) {
        let dir = PathBuf::from(format!("/proc/{pid}"));
        let wanted = self.keeper.look(&dir, pid).unwrap_or_else(|error| {
            tracing::debug!(pid, %error, "no unwind tables for this process");
            self.keeper.forget(pid);
            Vec::new()
        });
        self.told.large.tell(pid, self.keeper.large(pid).collect());
        wanted.into_iter().for_each(|file| self.want(pid, Box::new(file)));
        if self.waiting.is_full() {
            self.make_room();
        }
    }

    /// Has a file read for a process.
    fn want(&mut self, pid: Pid, file: Box<Wanted>) {
        let rank = self.rank(pid);
        if self.waiting.join(&file.inode, pid) {
            for lane in [&mut self.usual, &mut self.large] {
                lane.raise(&file.inode, rank);
            }
        } else {
            self.waiting.add(&file, pid);
            self.usual.add(rank, file);
        }
    }

    /// Code of files in parts ran: what has no table yet gets one.
    fn ran(&mut self, pid: Pid, addresses: &[u64]) {
        let dir = PathBuf::from(format!("/proc/{pid}"));
        for address in addresses {
            match self.keeper.missing(&dir, pid, *address) {
                Missing::Nothing => {}
                Missing::Look => self.later(pid),
                Missing::Part(part) => self.want(pid, part),
            }
        }
        if self.waiting.is_full() {
            self.make_room();
        }
        self.give_jobs();
    }

    /// Files that wait give way to others'.
    fn make_room(&mut self) {
        let order: Vec<Inode> = self.large.last_first().chain(self.usual.last_first()).cloned().collect();
        for inode in self.waiting.make_room(order, |pid| self.keeper.tenant(pid)) {
            self.usual.forget(&inode);
            self.large.forget(&inode);
        }
    }

    fn rank(&self, pid: Pid) -> Rank {
        Rank::of(self.keeper.tenant(pid).spark, self.sampled.contains(&pid))
    }

    fn made(&mut self, made: Made) {
        let file = self.usual.take(&made.inode);
        if matches!(made.found, Found::Large) {
            let ranks = self.waiting.pids(&made.inode).iter().map(|pid| self.rank(*pid));
            let rank = ranks.min().unwrap_or(Rank::Other);
            if let Some(file) = file {
                self.large.add(rank, file);
            }
            self.give_jobs();
            return;
        }
        if file.is_none() {
            drop(self.large.take(&made.inode));
        }
        let waiting = self.waiting.take(&made.inode);
        let is_part = made.inode.parted().is_some();
        // Spark's, if one of them is.
        let tenant = waiting.iter().map(|pid| self.keeper.tenant(*pid)).max().unwrap_or_default();
        match self.keeper.learn(made, tenant) {
            Ok(()) => {
                for pid in waiting {
                    match self.sampled.contains(&pid) {
                        // Other parts come with the same stacks.
                        _ if is_part => self.later(pid),
                        true => self.queue.now(pid),
                        false => self.after(GATHER, pid),
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "an unwind table is not taken"),
        }
        self.give_jobs();
    }

    /// Has the builders read the next files.
    fn give_jobs(&mut self) {
        for file in [self.usual.give_job(), self.large.give_job()].into_iter().flatten() {
            self.waiting.take(&file.inode);
        }
    }

    fn publish(&self) {
        let counts = TableCounts {
            tables: self.keeper.counts(),
            slab_bytes: self.keeper.walker().0.bytes(),
            waiting: self.queue.len() + self.waiting.len(),
            turned_away: self.waiting.given_up,
            largest: self.keeper.largest(LARGEST).into(),
            shares: Arc::new(self.keeper.pids().map(|pid| (pid, self.keeper.share(pid))).collect()),
        };
        *self.told.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }
}
