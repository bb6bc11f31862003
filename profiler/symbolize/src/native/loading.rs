//! Reading a file's symbols, on any thread, and keeping them within the limit.

use super::debuginfod::{Debuginfod, Places};
use super::table::{Parts, Table};
use super::{MAX_TABLES, ModuleId, Natives};
use crate::native::module::Module;
use emberscope_supervise::quarantine::{self, Item};
use emberscope_target::elf::ElfError;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

/// Reads a file's symbols.
pub struct Reading {
    item: Option<Item>,
    fetched: Option<Places>,
    limit: u64,
}

/// What came of it.
pub enum Loaded {
    /// They are taken in by [`Natives::take`].
    Parts(Box<Parts>),
    /// There are none.
    Failed(ElfError),
    /// It is not there, or left alone: it may be another time.
    NotOpened,
}

impl Reading {
    /// Of the open `file`, which is (or was) at `path`.
    pub fn read(self, file: &File, path: &Path) -> Loaded {
        let Ok(_reading) = self.item.map(|item| quarantine::enter(|| item)).transpose() else {
            return Loaded::NotOpened;
        };
        let fetched = |id: &[u8]| Some(self.fetched.as_ref()?.of(id));
        match Parts::read(file, path, fetched, self.limit) {
            Ok(parts) => Loaded::Parts(Box::new(parts)),
            Err(error) => Loaded::Failed(error),
        }
    }
}

impl Natives {
    pub(super) fn load(&mut self, id: ModuleId, file: &File, path: &Path) {
        let loaded = self.reading(id).read(file, path);
        self.take(id, loaded);
    }

    /// What it takes to read a file's symbols, on any thread.
    pub fn reading(&self, id: ModuleId) -> Reading {
        Reading {
            item: self.modules.get(id.0 as usize).map(|module| module.item.clone()),
            fetched: self.debuginfod.as_ref().map(Debuginfod::places),
            limit: 2 * self.max_table_bytes,
        }
    }

    /// Takes what was read of a file.
    pub fn take(&mut self, id: ModuleId, loaded: Loaded) {
        let loaded = match loaded {
            Loaded::Parts(parts) => Ok(Table::of(*parts)),
            Loaded::Failed(error) => Err(error),
            Loaded::NotOpened => return,
        };
        let Some(module) = self.modules.get_mut(id.0 as usize) else { return };
        match loaded {
            Ok(table) => {
                if let (Some(debuginfod), Some(lacking)) = (&mut self.debuginfod, &table.lacking) {
                    debuginfod.ask(lacking);
                }
                module.table = Some(table);
            }
            Err(error) => {
                tracing::debug!(module = &*module.name, %error, "no symbols");
                module.barren = true;
                self.counters.files_without_symbols += 1;
            }
        }
        module.used = Instant::now();
        let tables = |all: &[Module]| all.iter().filter(|m| m.table.is_some()).count();
        while self.table_bytes() > self.max_table_bytes || tables(&self.modules) > MAX_TABLES {
            let oldest = self.modules.iter_mut().filter(|m| m.table.is_some()).min_by_key(|m| m.used);
            let Some(oldest) = oldest else { break };
            oldest.table = None;
            self.counters.tables_evicted += 1;
        }
    }
}
