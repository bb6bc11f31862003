//! Answers from blocks and journals that something else brings: an archive, for one.
//!
//! In: a [`Shelf`], which shows what a question may touch, the newest first. Out: a [`Store`] that only answers. A
//! block's files may be missing until they are asked for: a [`Fetch`] brings them then, and looks at their checksums.
//! Limits are the shelf's: it decides what is held.

use super::asking::{Add, Parts, asked_of_parts};
use super::block::{Block, Fetch};
use super::door::{Store, StoreUsage};
use super::error::StoreError;
use super::files::BlockFacts;
use super::journal;
use super::limits::AnswerLimits;
use super::part::Part;
use super::read::{Merge, Merged, MethodSums};
use super::touch::{Needs, Touch};
use super::values::{LabelValue, LabelledSeries};
use super::view::View;
use emberscope_model::{
    Answer, LabelKey, LabelSet, LabelTotal, LedgerTotal, MethodAnswer, Missing, ProcessRecord, Query,
    Selection, Summary, TimeRange, Window, nobody_waits,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Brings blocks and journals.
pub trait Shelf: Send + Sync {
    /// Shows what shares an instant with the range, the newest first, until `take` fails.
    ///
    /// # Errors
    /// What `take` fails with. [`StoreError::Away`]: what has the blocks does not answer. [`StoreError::Unreadable`]: a
    /// volume makes no sense, by the path that [`Self::set_aside`] takes. [`StoreError::Unwanted`]: nobody waits.
    fn each(
        &self,
        touch: &Touch<'_>,
        take: &mut dyn FnMut(&Volume) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;
    /// From the oldest window to the newest, as far as it is known.
    fn span(&self) -> Option<TimeRange>;
    /// A block's directory cannot be read as it is: it is not to be shown again.
    ///
    /// # Errors
    /// What passes, and ends the question ([`StoreError::Away`]).
    fn set_aside(&self, dir: &Path, says: &str) -> Result<(), StoreError>;
    /// What was set aside of what a question touches.
    ///
    /// # Errors
    /// [`StoreError::Away`]: what has the blocks does not answer.
    fn missing(&self, _: &Touch<'_>) -> Result<Missing, StoreError> {
        Ok(Missing::default())
    }
    /// Windows and bytes that the shelf holds.
    fn usage(&self) -> StoreUsage;
}

/// Bytes of a record of somebody else's journal: a window of 64 cores is some 100 KB.
const MAX_RECORD: usize = 8 << 20;
/// Memory of an open part of somebody else: a node seals one at half of `store-bytes`, 10 MiB.
const MAX_OPEN: usize = 128 << 20;

/// A block, or windows that are none yet.
#[derive(Debug)]
pub struct Volume(Kind);

#[derive(Debug)]
enum Kind {
    Block(Box<Block>),
    Part(Box<RwLock<Part>>),
}

impl Volume {
    /// A block whose files come into a directory as they are asked for.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`]: the manifest makes no sense, or is of another format.
    pub fn block(dir: PathBuf, facts: &BlockFacts, fetch: Arc<dyn Fetch>) -> Result<Self, StoreError> {
        let text = String::from_utf8_lossy(&facts.manifest);
        let manifest = super::block::Manifest::parse(&dir, &text);
        let manifest = manifest
            .map_err(|error| StoreError::Unreadable { path: dir.clone(), says: error.to_string() })?;
        Ok(Self(Kind::Block(Box::new(Block::fetched(dir, manifest, fetch)))))
    }

    /// A journal of which nothing was read yet.
    pub fn journal() -> Self {
        Self(Kind::Part(Box::default()))
    }

    /// Takes more of a journal: its header or not, then whole records. False: they make no sense here.
    pub fn append(&self, bytes: &[u8]) -> bool {
        let Kind::Part(part) = &self.0 else { return false };
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        let header = bytes.get(..journal::HEADER).filter(|header| journal::is_header(header));
        let mut rest = bytes.get(header.map_or(0, <[u8]>::len)..).unwrap_or_default();
        while !rest.is_empty() {
            let record = journal::record_length(rest).and_then(|length| rest.get(..journal::FRAME + length));
            let Some(record) = record.filter(|record| journal::is_record(record)) else { return false };
            // What a hostile record makes of its bytes is some thirty times as much.
            if record.len() > MAX_RECORD || part.bytes() > MAX_OPEN {
                return false;
            }
            if part.replay(record.get(journal::FRAME..).unwrap_or_default()).is_err() {
                return false;
            }
            rest = rest.get(record.len()..).unwrap_or_default();
        }
        true
    }

    /// From the start of the first window to the end of the last one; None: there are no windows.
    pub fn range(&self) -> Option<TimeRange> {
        match &self.0 {
            Kind::Block(block) => Some(block.range()),
            Kind::Part(part) => part.read().unwrap_or_else(PoisonError::into_inner).facts.span(),
        }
    }

    /// How many windows the volume has.
    pub fn windows(&self) -> u64 {
        match &self.0 {
            Kind::Block(block) => block.windows(),
            Kind::Part(part) => {
                part.read().unwrap_or_else(PoisonError::into_inner).facts.windows.len() as u64
            }
        }
    }

    /// Bytes of memory that the volume takes, estimated.
    pub fn kept_bytes(&self) -> usize {
        match &self.0 {
            Kind::Block(block) => block.kept_bytes(),
            Kind::Part(part) => part.read().unwrap_or_else(PoisonError::into_inner).bytes(),
        }
    }

    /// Forgets what can be read again.
    pub fn let_go(&self) {
        if let Kind::Block(block) = &self.0 {
            block.let_go();
        }
    }

    pub(super) fn view<T>(
        &self,
        take: impl FnOnce(&dyn View) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match &self.0 {
            Kind::Block(block) => take(&block.view(0)?),
            Kind::Part(part) => take(&*part.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// A store that answers from a shelf and takes nothing.
#[derive(Debug)]
pub struct ShelfStore<S> {
    shelf: S,
    window_length: Duration,
    answers: AnswerLimits,
}

impl<S: Shelf> ShelfStore<S> {
    /// A store over a shelf; `window_length` is what answers are rounded to.
    pub fn new(shelf: S, window_length: Duration, answers: AnswerLimits) -> Self {
        Self { shelf, window_length, answers }
    }

    /// The shelf that the answers come from.
    pub fn shelf(&self) -> &S {
        &self.shelf
    }

    fn merged(&self, query: &Query) -> Result<Merged, StoreError> {
        self.ask_summed::<Merge<'_>>(query, &Touch::of(query, &query.group, Needs::Trees))
    }
}

impl<S: Shelf> Parts for ShelfStore<S> {
    fn length(&self) -> Duration {
        self.window_length
    }

    fn limits(&self) -> &AnswerLimits {
        &self.answers
    }

    fn each(&self, touch: &Touch<'_>, add: &mut Add<'_>) -> Result<(), StoreError> {
        if touch.range.is_empty() {
            return Ok(());
        }
        self.shelf.each(touch, &mut |volume| {
            if nobody_waits() {
                return Err(StoreError::Unwanted);
            }
            volume.view(&mut *add)
        })
    }

    fn set_aside(&self, path: &Path, says: &str) -> Result<(), StoreError> {
        self.shelf.set_aside(path, says)
    }

    fn missing(&self, touch: &Touch<'_>) -> Result<Missing, StoreError> {
        self.shelf.missing(touch)
    }
}

impl<S: Shelf> Store for ShelfStore<S> {
    fn append(&self, _: Window) {}

    fn span(&self) -> Option<TimeRange> {
        self.shelf.span()
    }

    fn merge(&self, query: &Query) -> Result<Answer, StoreError> {
        Ok(self.merged(query)?.whole())
    }

    fn merge_largest(&self, query: &Query, max_nodes: usize) -> Result<(Answer, usize), StoreError> {
        Ok(self.merged(query)?.largest(max_nodes))
    }

    fn methods(&self, query: &Query) -> Result<MethodAnswer, StoreError> {
        self.ask_summed::<MethodSums<'_>>(query, &Touch::of(query, &[], Needs::Trees))
    }

    asked_of_parts!();

    fn relabel(&self, _: &LabelSet, _: &Arc<LabelSet>) {}

    fn forget(&self, _: &LabelSet) {}

    fn usage(&self) -> StoreUsage {
        self.shelf.usage()
    }
}
