//! Open parts of an archive, read from their pieces and kept in memory while they grow.
//!
//! In: the pieces of a part that follow each other. Out: a [`Volume`]; pieces that are new since the last question are
//! read alone. What was read is known by its last piece: where that became part of a larger one its bytes are
//! compared, and where they are others the part is read anew (a node that lost its last seconds in a power cut).
//!
//! Limit: bytes of all parts; over it those asked longest ago go, and are read again when they are asked for.

use super::super::cache::BringError;
use super::super::layout::Piece;
use super::super::remote::Remote;
use emberscope_store::Volume;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most that one piece may have: the copying makes them of 4 MiB, or of one record.
const MAX_PIECE: u64 = 16 << 20;

/// The parts that are kept, by their key ([`super::Wanted::key`]).
#[derive(Debug)]
pub(super) struct OpenVolumes {
    limit: usize,
    parts: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Part>>>>,
    asked: AtomicU64,
}

#[derive(Debug)]
struct Part {
    volume: Arc<Volume>,
    /// The last piece that was read.
    last: Option<Piece>,
    asked: u64,
}

impl Part {
    fn new() -> Self {
        Self { volume: Arc::new(Volume::journal()), last: None, asked: 0 }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A table that is whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenVolumes {
    pub fn new(limit: usize) -> Self {
        Self { limit, parts: Mutex::default(), asked: AtomicU64::new(0) }
    }

    /// A part with all its pieces.
    ///
    /// # Errors
    /// `BringError::Away`: the archive does not give a piece. `BringError::Bad`: a piece is not as it was written, or
    /// the pieces are not those of one journal; nothing is kept of the part in the latter case.
    pub async fn bring(
        &self,
        remote: &Remote,
        key: &str,
        pieces: &[Piece],
    ) -> Result<Arc<Volume>, BringError> {
        let part = lock(&self.parts)
            .entry(key.to_owned())
            .or_insert_with(|| Arc::new(tokio::sync::Mutex::new(Part::new())))
            .clone();
        // Two questions read a part's pieces once.
        let mut part = part.lock().await;
        part.asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if !part.read(remote, pieces).await? {
            *part = Part::new();
            if !part.read(remote, pieces).await? {
                *part = Part::new();
                return Err(BringError::Bad(format!("the pieces of {key} are not those of one journal")));
            }
        }
        Ok(part.volume.clone())
    }

    /// Bytes of memory of all parts but those that are being read.
    pub fn bytes(&self) -> usize {
        let parts: Vec<_> = lock(&self.parts).values().cloned().collect();
        parts.iter().filter_map(|part| Some(part.try_lock().ok()?.volume.kept_bytes())).sum()
    }

    /// Lets the parts asked longest ago go until the rest fits.
    pub fn trim(&self) {
        let mut parts = lock(&self.parts);
        let size = |part: &Arc<tokio::sync::Mutex<Part>>| {
            let part = part.try_lock().ok()?;
            Some((part.asked, part.volume.kept_bytes()))
        };
        let mut sizes: Vec<(u64, usize, String)> = (parts.iter())
            .filter_map(|(key, part)| size(part).map(|(asked, bytes)| (asked, bytes, key.clone())))
            .collect();
        sizes.sort_by_key(|(asked, ..)| std::cmp::Reverse(*asked));
        let mut sum = 0;
        for (_, bytes, key) in sizes {
            sum += bytes;
            if sum > self.limit {
                parts.remove(&key);
            }
        }
    }
}

impl Part {
    fn end(&self) -> u64 {
        self.last.as_ref().map_or(0, |piece| piece.until)
    }

    /// Reads what is new. False: it does not go on from what was read.
    async fn read(&mut self, remote: &Remote, pieces: &[Piece]) -> Result<bool, BringError> {
        if pieces.last().map_or(0, |piece| piece.until) < self.end() {
            return Ok(false);
        }
        for piece in pieces {
            let end = self.end();
            if piece.until <= end {
                continue;
            }
            let name = piece.name();
            let bytes = match remote.get(&name, MAX_PIECE).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    let bad = remote.is_of_object(&error).await;
                    return Err(if bad {
                        BringError::Bad(error.to_string())
                    } else {
                        BringError::Away(error)
                    });
                }
            };
            // It was joined with others, or its block is there, since the list was read: what is known so far will do.
            let Some(bytes) = bytes else { return Ok(true) };
            if bytes.len() as u64 != piece.until - piece.from || crc32fast::hash(&bytes) != piece.crc32 {
                return Err(BringError::Bad(format!("{name} is not as it was written")));
            }
            if let Some(last) = self.last.as_ref().filter(|last| piece.from < last.until) {
                let place = |at: u64| usize::try_from(at.saturating_sub(piece.from)).unwrap_or(usize::MAX);
                let known = bytes.get(place(last.from)..place(last.until));
                if piece.from > last.from || known.is_none_or(|known| crc32fast::hash(known) != last.crc32) {
                    return Ok(false);
                }
            }
            let skip = usize::try_from(end.saturating_sub(piece.from)).unwrap_or(usize::MAX);
            let new = bytes.get(skip..).unwrap_or_default();
            // What a panic leaves is never shown: the part is read anew, or set aside.
            let appended = AssertUnwindSafe(|| self.volume.append(new));
            if !catch_unwind(appended).unwrap_or(false) {
                return Ok(false);
            }
            self.last = Some(piece.clone());
        }
        Ok(true)
    }
}
