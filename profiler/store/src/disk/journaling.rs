//! The open part and its journal: one change, then its record.
//!
//! A record is handed to the kernel before [`Shared::append`] returns, so that a kill loses nothing; the
//! flush to the disk happens on a thread of its own, so that sampling never waits for it. A record that the
//! disk does not take waits in memory, in order, and is tried again at each window and every [`RETRY`].
//! Limit: [`MAX_PENDING`]; over it the part's journal is given up (counted), and the next part begins a new one.

use super::super::journal::Segment;
use super::health::Failing;
use super::*;
use emberscope_model::SparkFact;
use emberscope_supervise::Beat;
use std::fs::File;

/// Records that wait for the disk: some ten minutes of 64 cores, hours of an ordinary node.
const MAX_PENDING: usize = 8 << 20;
/// How often what failed is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(5);

/// The open part's journal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    segment: Option<Segment>,
    pending: VecDeque<Vec<u8>>,
    pending_bytes: usize,
    /// Records of this part were given up: what follows would make no sense without them.
    given_up: bool,
    /// Something was written since the last flush; the file is new.
    dirty: bool,
    new: bool,
    /// Bytes of the journals of sealed parts.
    pub sealed_bytes: u64,
}

impl Journal {
    /// A journal that goes on with a file of the start before.
    pub fn going_on(segment: Segment) -> Self {
        Self { segment: Some(segment), dirty: true, ..Self::default() }
    }

    fn length(&self) -> u64 {
        self.segment.as_ref().map_or(0, Segment::length)
    }
}

impl Shared {
    pub(super) fn append(&self, window: &Window) {
        let mut journal = lock(&self.journal);
        if self.is_full(window.range.from) {
            self.seal_with(&mut journal);
        }
        let mut open = write(&self.open);
        let (number, record) = (open.number, open.part.append(window));
        drop(open);
        self.record(&mut journal, number, record, 1);
    }

    /// Changes labels: in the open part now, elsewhere soon.
    pub(super) fn change(&self, task: Task) {
        let mut journal = lock(&self.journal);
        let mut open = write(&self.open);
        let (number, record) = (open.number, task.apply(&mut open.part));
        drop(open);
        if let Some(record) = record {
            self.record(&mut journal, number, record, 0);
        }
        drop(journal);
        lock(&self.tasks).push_back(task);
        self.wake.notify_all();
    }

    /// Keeps what Spark says with the windows of the open part. False: it has none, and a journal begins with a window.
    pub(super) fn learn(&self, facts: &[SparkFact]) -> bool {
        let mut journal = lock(&self.journal);
        let mut open = write(&self.open);
        if open.part.facts.windows.is_empty() {
            return false;
        }
        let counts = |part: &Part| (part.spark.taken(), part.spark.refused());
        let before = counts(&open.part);
        let (number, record) = (open.number, open.part.learn(facts));
        let after = counts(&open.part);
        drop(open);
        let mut health = lock(&self.health);
        health.facts += after.0 - before.0;
        health.facts_refused += after.1 - before.1;
        drop(health);
        if let Some(record) = record {
            self.record(&mut journal, number, record, 0);
        }
        true
    }

    /// Whether a window belongs to another stretch of time than the open part, or that is large.
    fn is_full(&self, from: WallTime) -> bool {
        let open = read(&self.open);
        let Some(first) = open.part.facts.windows.first() else { return false };
        let stretch = |time: WallTime| time.floor(self.config.block_length);
        stretch(first.range.from) != stretch(from) || open.part.bytes() >= self.config.memory_bytes / 2
    }

    /// Seals the open part, if anything is in it.
    pub(super) fn seal(&self) {
        self.seal_with(&mut lock(&self.journal));
    }

    fn seal_with(&self, journal: &mut Journal) {
        if read(&self.open).part.facts.windows.is_empty() {
            return;
        }
        let old = std::mem::take(journal);
        journal.sealed_bytes = old.sealed_bytes + old.length();
        let mut held = write(&self.held);
        let mut open = write(&self.open);
        let number = open.number;
        let next = OpenPart { number: number + 1, part: Part::default() };
        let part = std::mem::replace(&mut *open, next).part;
        held.sealed.push_back((number, Arc::new(part)));
        drop((open, held));
        lock(&self.tasks).push_back(Task::Seal);
        self.wake.notify_all();
    }

    fn record(&self, journal: &mut Journal, number: u64, record: Vec<u8>, windows: u64) {
        if journal.given_up {
            lock(&self.health).unjournaled_windows += windows;
            return;
        }
        journal.pending_bytes += record.len();
        journal.pending.push_back(record);
        self.write_pending(journal, number);
        if journal.pending_bytes > MAX_PENDING {
            lock(&self.health).unjournaled_windows += journal.pending.len() as u64;
            journal.pending.clear();
            (journal.pending_bytes, journal.given_up) = (0, true);
        }
    }

    fn write_pending(&self, journal: &mut Journal, number: u64) {
        while !journal.pending.is_empty() {
            if let Err(error) = self.write_record(journal, number) {
                lock(&self.health).failed(Failing::Journal, &error.to_string());
                return;
            }
            if let Some(record) = journal.pending.pop_front() {
                journal.pending_bytes -= record.len();
            }
            journal.dirty = true;
            lock(&self.health).went_well(Failing::Journal);
        }
        self.wake.notify_all();
    }

    /// The first that waits, into the part's file, which is made for the first of all.
    fn write_record(&self, journal: &mut Journal, number: u64) -> std::io::Result<()> {
        self.is_short()?;
        let segment = match &mut journal.segment {
            Some(segment) => segment,
            None => {
                journal.new = true;
                journal.segment.insert(Segment::create(&self.journal_dir(), number, Fsync::Never)?)
            }
        };
        journal.pending.front().map_or(Ok(()), |record| segment.append(record))
    }

    /// Tries again what failed, and flushes what was written.
    pub(super) fn flush(&self) {
        let mut journal = lock(&self.journal);
        if !journal.pending.is_empty() {
            let number = read(&self.open).number;
            self.write_pending(&mut journal, number);
        }
        if !journal.dirty || self.config.fsync == Fsync::Never {
            return;
        }
        let file = journal.segment.as_ref().map(Segment::file);
        let new = std::mem::take(&mut journal.new);
        journal.dirty = false;
        // The journal goes on while the disk is at work.
        drop(journal);
        let synced = match file {
            None => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(file)) if new => {
                file.sync_all().and_then(|()| File::open(self.journal_dir())?.sync_all())
            }
            Some(Ok(file)) => file.sync_data(),
        };
        match synced {
            Ok(()) => lock(&self.health).went_well(Failing::Sync),
            Err(error) => {
                let mut journal = lock(&self.journal);
                (journal.dirty, journal.new) = (true, journal.new || new);
                drop(journal);
                lock(&self.health).failed(Failing::Sync, &error.to_string());
            }
        }
    }

    /// Bytes of all journals, and of records that wait.
    pub(super) fn journal_bytes(&self) -> (u64, u64) {
        let journal = lock(&self.journal);
        (journal.sealed_bytes + journal.length(), journal.pending_bytes as u64)
    }
}

/// Flushes the journal until the store goes.
pub(super) fn run(shared: &Shared, beat: &Beat) {
    loop {
        let tasks = lock(&shared.tasks);
        if shared.stopping.load(Ordering::Relaxed) {
            return;
        }
        let (tasks, _) = shared.wake.wait_timeout(tasks, RETRY).unwrap_or_else(PoisonError::into_inner);
        drop(tasks);
        // What was not flushed is, with what comes later.
        let _ = beat.work(|| shared.flush());
    }
}
