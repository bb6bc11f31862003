//! What becomes of a name that was found: it is shown as people write it, and kept. Names of a file whose symbols are too many to be
//! held ([`super::large`]) are read in the file, each when its function runs, on any thread.

use super::large::Large;
use super::module::offset_name;
use super::symbols::unversioned;
use super::table::{By, Named};
use super::{ModuleId, Natives};
use crate::frames::FrameTable;
use emberscope_model::{Frame, FrameKind};
use emberscope_supervise::quarantine::{self, Item};
use emberscope_target::text;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// A symbol, and the addresses around the one that was asked for that have it too.
pub type Symbol = (String, Range<u64>);

/// Reads the name of an address.
pub struct Naming {
    item: Item,
    large: Arc<Large>,
    address: u64,
}

/// What came of it: the name, if there is one there; None: the file could not be read, or is left alone.
pub type NameRead = Option<Option<Symbol>>;

impl Naming {
    /// In the open file.
    pub fn read(self, file: &File) -> NameRead {
        let Ok(_reading) = quarantine::enter(|| self.item) else { return None };
        let found = self.large.name(file, self.address).ok()?;
        Some(found.map(|(symbol, holds)| (unversioned(&symbol).to_owned(), holds)))
    }
}

impl Natives {
    /// What it takes to name an offset, where that takes the file each time, and its name is not known.
    pub fn naming(&self, id: ModuleId, offset: u64) -> Option<Naming> {
        let module = self.modules.get(id.0 as usize)?;
        let (large, address) = module.table.as_ref()?.large(offset)?;
        if self.cached(id, offset).is_some() {
            return None;
        }
        Some(Naming { item: module.item.clone(), large: Arc::clone(large), address })
    }

    /// Takes the name that was read. None: what is known of the file went meanwhile.
    pub fn take_name(
        &mut self,
        (id, offset): (ModuleId, u64),
        found: Option<Symbol>,
        frames: &mut FrameTable,
    ) -> Option<Arc<Frame>> {
        let module = self.modules.get(id.0 as usize)?;
        let table = module.table.as_ref()?;
        let named = found.filter(|(symbol, _)| !symbol.is_empty());
        let named = named.and_then(|found| table.in_large(offset, found));
        let Ok(_reading) = quarantine::enter(|| module.item.clone()) else {
            return Some(self.left_alone(id, frames));
        };
        self.keep(id, offset, named, frames)
    }

    /// Keeps what was found at an offset; None: the file is not known any more.
    pub(super) fn keep(
        &mut self,
        id: ModuleId,
        offset: u64,
        found: Option<Named>,
        frames: &mut FrameTable,
    ) -> Option<Arc<Frame>> {
        let module = self.modules.get_mut(id.0 as usize)?;
        module.used = Instant::now();
        let (name, holds) = match found {
            Some(Named { symbol, by, mangled, holds }) => {
                let name = match by {
                    By::Bounds => offset_name(&module.name, holds.start),
                    _ if mangled => module.demangle(symbol, &mut self.counters),
                    _ => symbol,
                };
                self.counters.note(by);
                (text::bounded(name.as_bytes(), text::MAX_NAME), Some(holds))
            }
            None => (offset_name(&module.name, offset), None),
        };
        let frame = frames.intern(Frame::new(FrameKind::Native, name, Arc::clone(&module.name)));
        if frame.unknown.is_some() {
            // There was no room for it: there may be, the next time.
            return Some(frame);
        }
        if self.names.len() + self.held >= self.max_names {
            self.names.clear();
            self.modules.iter_mut().for_each(|module| module.functions.clear());
            (self.held, self.counters.cache_flushes) = (0, self.counters.cache_flushes + 1);
        }
        let module = self.modules.get_mut(id.0 as usize);
        match holds.filter(|holds| holds.end - holds.start > 1).zip(module) {
            Some((holds, module)) => {
                let before = module.functions.insert(holds.start, (holds.end, Arc::clone(&frame)));
                self.held += usize::from(before.is_none());
            }
            None => {
                self.names.insert((id, offset), Arc::clone(&frame));
            }
        }
        Some(frame)
    }
}
