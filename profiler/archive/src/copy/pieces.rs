//! The open part, and sealed parts that are no block yet: their journals' records in pieces.
//!
//! A piece is what a journal has from one record's end to another's, under a name that says where and what (CRC-32).
//! Pieces in a row are the journal. Each round sends what came since the last; when there are [`MANY`] the last ones
//! are put again as one, so that a reader has few to read. When the block is there they go.

use super::super::layout::{self, Piece, chain};
use super::{CopyError, Copying, PIECE, lock};
use emberscope_store::{JournalReader, journals_of};
use std::io::ErrorKind;
use std::time::Instant;

/// Pieces of a part after which some become one.
const MANY: usize = 16;
/// Bytes of pieces that become one.
const LARGE: u64 = 8 << 20;

/// What was sent of a part, in a row from its beginning.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub pieces: Vec<Piece>,
}

impl Sent {
    fn end(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.until)
    }
}

impl Copying {
    /// Reads which pieces are there; those that a local journal does not have go.
    pub(super) async fn learn_pieces(&mut self) -> Result<(), CopyError> {
        self.sent.clear();
        for object in self.remote.list(&layout::open(&self.host), usize::MAX).await? {
            if let Some(piece) = Piece::of(&object.name) {
                self.sent.entry(piece.block.clone()).or_default().pieces.push(piece);
            }
        }
        for sent in self.sent.values_mut() {
            sent.pieces = chain(std::mem::take(&mut sent.pieces));
        }
        for (part, path) in journals_of(&self.config.store)? {
            let Some(journal) = unless_gone(JournalReader::open(&path))? else { continue };
            let Some(name) = self.name_of(part, &journal)? else { continue };
            let Some(sent) = self.sent.get_mut(&name) else { continue };
            // After a power cut a journal may be shorter than what was sent of it, and go on otherwise.
            let mut same = 0;
            for piece in &sent.pieces {
                let bytes = journal.range(piece.from, piece.until)?;
                if bytes.is_none_or(|bytes| crc32fast::hash(&bytes) != piece.crc32) {
                    break;
                }
                same += 1;
            }
            for piece in sent.pieces.split_off(same) {
                self.remote.delete(&piece.name()).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn send_pieces(&mut self) -> Result<(), CopyError> {
        for (part, path) in journals_of(&self.config.store)? {
            // It became a block meanwhile, and goes that way.
            let Some(journal) = unless_gone(JournalReader::open(&path))? else { continue };
            let Some(name) = self.name_of(part, &journal)? else { continue };
            if self.copied.contains_key(&name) || self.is_merged(&name) {
                continue;
            }
            let mut sent = self.sent.remove(&name).unwrap_or_default();
            let done = self.send(&name, &journal, &mut sent).await;
            self.sent.insert(name, sent);
            done?;
        }
        self.last_pieces = Instant::now();
        Ok(())
    }

    async fn send(&self, name: &str, journal: &JournalReader, sent: &mut Sent) -> Result<(), CopyError> {
        while let Some(bytes) = journal.records(sent.end(), PIECE)? {
            let piece = self.put_piece(name, sent.end(), bytes).await?;
            sent.pieces.push(piece);
        }
        if sent.pieces.len() >= MANY {
            self.join(name, journal, sent).await?;
        }
        Ok(())
    }

    async fn put_piece(&self, name: &str, from: u64, bytes: Vec<u8>) -> Result<Piece, CopyError> {
        let (length, crc32) = (bytes.len() as u64, crc32fast::hash(&bytes));
        let (host, block) = (self.host.clone(), name.to_owned());
        let piece = Piece { host, block, from, until: from + length, crc32 };
        self.remote.put(&piece.name(), bytes).await?;
        let mut counts = lock(&self.counts);
        (counts.pieces, counts.bytes) = (counts.pieces + 1, counts.bytes + length);
        Ok(piece)
    }

    /// Puts the last pieces again as one, and deletes them once it is there.
    async fn join(&self, name: &str, journal: &JournalReader, sent: &mut Sent) -> Result<(), CopyError> {
        let end = sent.end();
        let first =
            sent.pieces.iter().position(|piece| end - piece.from <= LARGE).unwrap_or(sent.pieces.len());
        let Some(from) = sent.pieces.get(first).map(|piece| piece.from) else { return Ok(()) };
        if sent.pieces.len() - first < 2 {
            return Ok(());
        }
        let Some(bytes) = journal.range(from, end)? else { return Ok(()) };
        let whole = self.put_piece(name, from, bytes).await?;
        let old = sent.pieces.split_off(first);
        sent.pieces.push(whole.clone());
        for piece in old.iter().filter(|piece| **piece != whole) {
            self.remote.delete(&piece.name()).await?;
        }
        Ok(())
    }

    /// Pieces of parts whose block is there go.
    pub(super) async fn clear_pieces(&mut self) -> Result<(), CopyError> {
        let done: Vec<String> = self.sent.keys().filter(|name| self.is_block(name)).cloned().collect();
        for name in done {
            let below = format!("{}/{name}", layout::open(&self.host));
            for object in self.remote.list(&below, usize::MAX).await? {
                self.remote.delete(&object.name).await?;
            }
            self.sent.remove(&name);
            let part = layout::part_number(&name);
            self.names.retain(|known, _| Some(*known) != part);
        }
        Ok(())
    }

    /// Whether a part is a block in the archive. After a clock that was set back its block begins before its first
    /// record, and has another name: the number tells, of a journal that was here.
    fn is_block(&self, name: &str) -> bool {
        let numbers = || self.names.iter().filter(|(_, known)| *known == name).map(|(part, _)| Some(*part));
        self.copied.contains_key(name)
            || self.is_merged(name)
            || self.copied.keys().any(|block| numbers().any(|part| part == layout::part_number(block)))
    }

    fn name_of(&mut self, part: u64, journal: &JournalReader) -> Result<Option<String>, CopyError> {
        if let Some(name) = self.names.get(&part) {
            return Ok(Some(name.clone()));
        }
        let name = journal.block_name()?;
        if let Some(name) = &name {
            self.names.insert(part, name.clone());
        }
        Ok(name)
    }
}

fn unless_gone<T>(result: std::io::Result<T>) -> Result<Option<T>, CopyError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
