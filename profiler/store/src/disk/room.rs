//! What goes so that the rest fits: blocks that are too old, too many, or in the way on a full disk.
//!
//! The oldest go first, whole, and their windows are counted by reason. On a full disk that is a choice
//! ([`WhenFull`]): the oldest block goes for the newest windows, or nothing new is written until there is room.

use super::health::Failing;
use super::*;
use std::time::Instant;

/// How long a file system may take to count as free what was removed.
const SETTLED: Duration = Duration::from_secs(10);

/// Why a block goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Age,
    Bytes,
    Full,
}

impl Shared {
    /// The oldest blocks go, by age and by bytes.
    pub(super) fn retain(&self) {
        // Without it the next start ages less, and a full disk is told by what else it refuses.
        if let Err(error) = self.clock.keep() {
            tracing::debug!(%error, "the time by which windows grow old is not kept");
        }
        let oldest_kept = self.clock.age().minus(self.config.retention_age);
        loop {
            let (journal, _) = self.journal_bytes();
            let held = read(&self.held);
            let bytes = journal + held.blocks.iter().map(|block| block.bytes()).sum::<u64>();
            drop(held);
            let Some(oldest) = self.oldest() else { return };
            let reason = match (oldest.range().until < oldest_kept, bytes > self.config.retention_bytes) {
                (true, _) => Reason::Age,
                (false, true) => Reason::Bytes,
                (false, false) => return,
            };
            if !self.remove(&oldest, reason) {
                return;
            }
        }
    }

    /// Why nothing is to be written now: less of the file system is free than is kept free.
    pub(super) fn is_short(&self) -> std::io::Result<()> {
        // Some file systems give back a moment later what was removed (XFS, btrfs): blocks are not to go for that.
        let removed =
            lock(&self.removed).filter(|(when, _)| when.elapsed() < SETTLED).map_or(0, |(_, bytes)| bytes);
        self.config.keep_free.has_room(&self.config.dir, removed)
    }

    /// Makes room where less is free than is to be.
    pub(super) fn keep_free(&self) {
        while self.config.when_full == WhenFull::DropOldest && self.is_short().is_err() {
            let Some(oldest) = self.oldest() else { return };
            if !self.remove(&oldest, Reason::Full) {
                return;
            }
        }
    }

    /// Makes room where what failed says that the disk is full. False: it says something else, blocks are not to go
    /// for that, or none is left.
    pub(super) fn make_room(&self, what: Failing) -> bool {
        if self.config.when_full == WhenFull::Stop || !lock(&self.health).is_full(what) {
            return false;
        }
        self.oldest().is_some_and(|oldest| self.remove(&oldest, Reason::Full))
    }

    /// Makes room until the journal takes what waits for it.
    pub(super) fn make_room_for_journal(&self) {
        while self.journal_bytes().1 > 0 && self.make_room(Failing::Journal) {
            self.flush();
        }
    }

    fn oldest(&self) -> Option<Arc<Block>> {
        read(&self.held).blocks.iter().min_by_key(|block| block.range().until).cloned()
    }

    /// False: it is not answered for any more, but stays on the disk.
    fn remove(&self, block: &Block, reason: Reason) -> bool {
        write(&self.held).blocks.retain(|known| known.part() != block.part());
        let mut health = lock(&self.health);
        match reason {
            Reason::Age => health.dropped_windows_for_age += block.windows(),
            Reason::Bytes => health.dropped_windows_for_bytes += block.windows(),
            Reason::Full => health.dropped_windows_for_full += block.windows(),
        }
        drop(health);
        // Those that it took the place of, where they could not be removed then: without it they would be read again.
        let mut old =
            block.merged().iter().map(|name| block.dir().with_file_name(name)).filter(|dir| dir.exists());
        let bytes = block.bytes();
        let removed = old.try_for_each(|dir| start::remove(&dir));
        let removed = removed.and_then(|()| start::remove(block.dir()));
        if removed.is_ok() && reason == Reason::Full {
            let mut known = lock(&self.removed);
            let before = known.filter(|(when, _)| when.elapsed() < SETTLED).map_or(0, |(_, bytes)| bytes);
            *known = Some((Instant::now(), before + bytes));
        }
        match removed {
            Ok(()) => lock(&self.health).went_well(Failing::Remove),
            Err(ref error) => lock(&self.health).failed(Failing::Remove, &error.to_string()),
        }
        removed.is_ok()
    }
}
