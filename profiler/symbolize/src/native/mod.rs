//! Names addresses of programs and libraries: an open file and a file offset in, a frame out.
//!
//! Names of files without symbols of their own come from where those were put (`table`), or from servers (`debuginfod`).
//! blazesym reads the symbols, from a bounded copy of a file's symbol tables ([`emberscope_target::elf`]), one blazesym
//! symbolizer a file so that dropping it frees all of it; of a file that has many they are packed instead (`many`). Files are told apart by build id, owner and size where
//! there is a build id, so that the copies of one libjvm in ten containers cost one table; the owner is
//! in the key so that nobody can hand in a file that stands for root's. Tables are evicted, least
//! recently used first, beyond a limit of bytes; names are cached, by function where its bounds are known (`starts`) and
//! else by address, within a limit of entries.

mod debuginfod;
mod demangle;
mod go;
mod large;
mod loading;
mod mangled;
mod many;
mod module;
mod naming;
mod separate;
mod starts;
mod stripped;
mod symbols;
mod table;
#[cfg(test)]
mod tests;

use super::frames::FrameTable;
use emberscope_model::{FastMap, Frame, FrameKind, UnknownReason};
use emberscope_supervise::quarantine;
use emberscope_target::elf::ElfError;
use emberscope_target::text;
use module::Module;
use rustix::fs::Stat;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use table::{Named, Parts, Table};

pub use debuginfod::{Debuginfod, DebuginfodCounters};
pub use demangle::Mangled;
pub use loading::{Loaded, Reading};
pub use module::{ModuleId, ModuleKey};
pub use naming::{NameRead, Naming};
pub use table::By;

/// Files known at a time; beyond, all is forgotten and begins anew.
const MAX_MODULES: usize = 4096;

/// Symbol tables held at a time; each keeps two files open.
const MAX_TABLES: usize = 96;
/// A table that named nothing new for so long goes: the names that it gave stay. It comes back in some 20 ms (a libjvm).
const IDLE: Duration = Duration::from_secs(120);

/// Counts of the room's native half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NativeCounters {
    /// Debug files that servers were asked for.
    pub debuginfod: DebuginfodCounters,
    /// Files known.
    pub modules: u64,
    /// Symbol tables held.
    pub tables: u64,
    /// Bytes of symbols held for them.
    pub table_bytes: u64,
    /// Tables dropped to stay inside the limit, since start.
    pub tables_evicted: u64,
    /// Tables dropped because nothing new was asked of them for two minutes, since start.
    pub tables_rested: u64,
    /// Files without usable symbols, since start.
    pub files_without_symbols: u64,
    /// Functions, and addresses outside of known ones, whose names are cached.
    pub cached_addresses: u64,
    /// Times that this cache was full and was emptied, since start.
    pub cache_flushes: u64,
    /// Names that were kept as their files have them, by reason ([`Mangled::ALL`]), since start.
    pub mangled: [u64; Mangled::ALL.len()],
    /// Functions that were named, by how their name is known ([`By::ALL`]), since start.
    pub named: [u64; By::ALL.len()],
}

impl NativeCounters {
    fn note(&mut self, by: By) {
        let place = By::ALL.iter().position(|one| *one == by);
        if let Some(count) = place.and_then(|place| self.named.get_mut(place)) {
            *count += 1;
        }
    }
}

/// Names of native code.
pub struct Natives {
    by_key: FastMap<ModuleKey, ModuleId>,
    modules: Vec<Module>,
    /// Of addresses that are in no function with known bounds.
    names: FastMap<(ModuleId, u64), Arc<Frame>>,
    /// Functions of all modules.
    held: usize,
    /// Goes up when all [`ModuleId`]s become invalid.
    pub generation: u64,
    max_table_bytes: u64,
    max_names: usize,
    debuginfod: Option<Debuginfod>,
    counters: NativeCounters,
}

impl Natives {
    /// With limits: bytes of symbols over all files (a single one may take them all), cached addresses.
    pub fn new(max_table_bytes: u64, max_names: usize) -> Self {
        Self {
            by_key: FastMap::default(),
            modules: Vec::new(),
            names: FastMap::default(),
            held: 0,
            generation: 0,
            max_table_bytes,
            max_names,
            debuginfod: None,
            counters: NativeCounters::default(),
        }
    }

    /// Files without symbols are asked for there.
    pub fn ask_servers(&mut self, debuginfod: Debuginfod) {
        self.debuginfod = Some(debuginfod);
    }

    /// Takes in the debug files that came: the next address of such a file is named by them.
    pub fn poll(&mut self) {
        let Some(debuginfod) = &self.debuginfod else { return };
        for came in debuginfod.came() {
            let same = |key: &ModuleKey| matches!(key, ModuleKey::BuildId { id, .. } if *id == came);
            for (_, id) in self.by_key.iter().filter(|(key, _)| same(key)) {
                let Some(module) = self.modules.get_mut(id.0 as usize) else { continue };
                (module.table, module.barren) = (None, false);
                self.held -= std::mem::take(&mut module.functions).len();
                self.names.retain(|(of, _), _| of != id);
            }
        }
    }

    /// Lets go of tables that were not needed for a while.
    pub fn rest(&mut self) {
        self.rest_after(IDLE);
    }

    fn rest_after(&mut self, idle: Duration) {
        let all = self.modules.iter_mut();
        for module in all.filter(|module| module.table.is_some() && module.used.elapsed() >= idle) {
            module.table = None;
            self.counters.tables_rested += 1;
        }
    }

    /// Makes `file` known.
    pub fn module(&mut self, name: &str, file: &File, stat: &Stat) -> ModuleId {
        self.known(name, ModuleKey::of(file, stat))
    }

    /// The same of one whose headers were read.
    pub fn known(&mut self, name: &str, key: ModuleKey) -> ModuleId {
        if let Some(id) = self.by_key.get(&key) {
            return *id;
        }
        if self.modules.len() >= MAX_MODULES {
            self.forget_all();
        }
        let id = ModuleId(self.modules.len() as u32);
        self.modules.push(Module::new(name, key.item(name)));
        self.by_key.insert(key, id);
        id
    }

    /// The name of `offset` if it needs no file.
    pub fn cached(&self, id: ModuleId, offset: u64) -> Option<Arc<Frame>> {
        let functions = &self.modules.get(id.0 as usize)?.functions;
        match functions.range(..=offset).next_back() {
            Some((_, (end, frame))) if offset < *end => Some(Arc::clone(frame)),
            _ => self.names.get(&(id, offset)).cloned(),
        }
    }

    /// Whether naming a new address of it takes the file.
    pub fn wants_file(&self, id: ModuleId) -> bool {
        self.modules.get(id.0 as usize).is_some_and(|m| m.table.is_none() && !m.barren)
    }

    /// Names `offset`; `file` is needed when [`Natives::wants_file`] says so. A file without a symbol there
    /// gives `library+0x1234`, the offset being the file's.
    pub fn name(
        &mut self,
        id: ModuleId,
        offset: u64,
        file: Option<(&File, &Path)>,
        frames: &mut FrameTable,
    ) -> Arc<Frame> {
        if let Some(frame) = self.cached(id, offset) {
            return frame;
        }
        // Its symbols are taken apart, and one of them demangled.
        let module = self.modules.get(id.0 as usize);
        let Ok(_reading) = module.map(|module| quarantine::enter(|| module.item.clone())).transpose() else {
            return self.left_alone(id, frames);
        };
        if self.wants_file(id)
            && let Some((file, path)) = file
        {
            self.load(id, file, path);
        }
        let Some(module) = self.modules.get(id.0 as usize) else {
            return frames.intern(Frame::new(FrameKind::Native, format!("?+0x{offset:x}"), ""));
        };
        let found = module.table.as_ref().and_then(|table| table.name(offset));
        self.keep(id, offset, found, frames).unwrap_or_else(|| self.left_alone(id, frames))
    }

    /// A frame of a file that is not read. It is not kept: the quarantine ends.
    fn left_alone(&self, id: ModuleId, frames: &mut FrameTable) -> Arc<Frame> {
        let module = self.modules.get(id.0 as usize).map(|module| Arc::clone(&module.name));
        frames.intern(Frame::unknown(UnknownReason::Quarantined, module.unwrap_or_default()))
    }

    /// Counts.
    pub fn counters(&self) -> NativeCounters {
        NativeCounters {
            modules: self.modules.len() as u64,
            tables: self.modules.iter().filter(|m| m.table.is_some()).count() as u64,
            table_bytes: self.table_bytes(),
            cached_addresses: (self.names.len() + self.held) as u64,
            debuginfod: self.debuginfod.as_ref().map(Debuginfod::counters).unwrap_or_default(),
            ..self.counters
        }
    }

    fn table_bytes(&self) -> u64 {
        self.modules.iter().filter_map(|m| m.table.as_ref()).map(|table| table.bytes).sum()
    }

    fn forget_all(&mut self) {
        self.by_key.clear();
        self.modules.clear();
        self.names.clear();
        self.held = 0;
        self.generation += 1;
        self.counters.cache_flushes += 1;
    }
}

/// The functions at offsets of a file, from symbols of at most about `limit` bytes, as frames of native code get them.
///
/// # Errors
/// The file is not one of our ELF, its headers lie, its symbols take more than `limit` bytes, or it cannot be read.
pub fn names(file: &File, offsets: &[u64], limit: u64) -> Result<Vec<Option<String>>, ElfError> {
    let table = Table::of(Parts::read(file, Path::new("/"), |_| None, limit)?);
    let name = |offset: &u64| {
        let named = match table.large(*offset) {
            Some((large, address)) => table.in_large(*offset, large.name(file, address).ok()??),
            None => table.name(*offset),
        };
        let Named { symbol, mangled, .. } = named?;
        let shown = if mangled { demangle::demangle(&symbol).0.ok().flatten() } else { None };
        Some(text::bounded(shown.unwrap_or(symbol).as_bytes(), text::MAX_NAME))
            .filter(|name| !name.is_empty())
    };
    Ok(offsets.iter().map(name).collect())
}
