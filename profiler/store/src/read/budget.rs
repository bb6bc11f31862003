//! What a query may cost: time, and bytes read from blocks.
//!
//! In: [`AnswerLimits`]. Out: an error that names the limit, asked for between two blocks; so is whether anybody
//! still waits. Bytes are counted by the thread that reads them.

use crate::error::StoreError;
use crate::limits::AnswerLimits;
use emberscope_model::nobody_waits;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

thread_local! {
    static READ: Cell<u64> = const { Cell::new(0) };
}

/// This thread read so many bytes of a block.
pub(crate) fn was_read(bytes: usize) {
    READ.set(READ.get().wrapping_add(bytes as u64));
}

/// What one query has cost, against its limits.
#[derive(Debug)]
pub(crate) struct Budget<'a> {
    limits: &'a AnswerLimits,
    begun: Instant,
    bytes: AtomicU64,
}

impl<'a> Budget<'a> {
    /// The budget of a query that begins now.
    pub fn new(limits: &'a AnswerLimits) -> Self {
        Self { limits, begun: Instant::now(), bytes: AtomicU64::new(0) }
    }

    /// Whether the query is to go on.
    ///
    /// # Errors
    /// [`StoreError::Unwanted`]: nobody waits for the answer any more. [`StoreError::TooLong`]: the query took longer
    /// than it may.
    pub fn check(&self) -> Result<(), StoreError> {
        if nobody_waits() {
            return Err(StoreError::Unwanted);
        }
        match self.begun.elapsed() > self.limits.time {
            true => Err(StoreError::TooLong { limit: self.limits.time }),
            false => Ok(()),
        }
    }

    /// Reads a block, if that is still to be done.
    ///
    /// # Errors
    /// As [`Self::check`], before the block is read; what `read` fails with; [`StoreError::TooMuch`]: with this block
    /// the query has read more bytes than it may.
    pub fn read<T>(&self, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.check()?;
        let before = READ.get();
        let result = read()?;
        let own = READ.get().wrapping_sub(before);
        let all = self.bytes.fetch_add(own, Ordering::Relaxed).saturating_add(own);
        match all > self.limits.bytes {
            true => Err(StoreError::TooMuch { limit: self.limits.bytes }),
            false => Ok(result),
        }
    }
}
