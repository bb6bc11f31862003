//! An nmethod's debug info, read once: a JVM's memory in, the chain of inlined methods at an address out.
//!
//! PcDescs (pcDesc.hpp) are sorted by their offset in the code and lead to scopes. The return address of a call that
//! is a safepoint has an entry of its own. Other places have none: where an instruction was interrupted, and where a
//! call returns that is no safepoint (leaf routines of the runtime and of intrinsics: `CallLeafNode`, callnode.hpp;
//! slow paths of collectors' barriers). For these the JVM takes the first entry that is not below
//! (`match_desc`, nmethod.cpp, JDK 8 to 25): C2's entry lies at the start of the last instruction that it
//! describes (`NonSafepointEmitter`, output.cpp), a poll's at the poll. All three parts are read in one or two
//! pieces.

use super::Unnamed;
use super::blobs::Head;
use super::flow;
use super::layout::CodeLayout;
use super::methods::Method;
use super::numbers::{self, Scope};
use super::runs::Runs;
use super::structure::{self, Structure, Told};
use emberscope_target::memory::{Memory, ReadError};
use std::sync::{Arc, OnceLock};

/// Bytes of a part that are read: an nmethod of a megabyte has some 200 KB of scopes and 100 KB of pcs.
const MAX_PART: u64 = 2 << 20;
/// Parts so near to each other are read as one.
const NEAR: u64 = 4096;
/// Bytes of a PcDesc: four ints, the first its offset and the second its scope's (JDK 8 to 25).
const PC_DESC: usize = 16;

/// Where a chain comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An entry for the very address.
    Exact,
    /// The first entry that is not below.
    Borrowed,
}

/// Where a frame is in an nmethod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where a call returns that has debug info of its own, or needs none.
    Entry(u64),
    /// In an instruction without debug info: one that was interrupted, or the call of a leaf routine.
    Inside(u64),
}

/// An nmethod's debug info.
#[derive(Debug)]
pub struct Code {
    /// The head as it was when all this was read.
    pub head: Head,
    /// Offset in the code and scope.
    pcs: Runs,
    scopes: Box<[u8]>,
    metadata: Box<[u64]>,
    /// Methods that had to be named so far: the nmethod's own, then by index in the metadata.
    named: Box<[OnceLock<Arc<Method>>]>,
    /// What the code's shape tells of a leaf: each entry for the code from its offset on. None: nothing.
    leaves: OnceLock<Runs>,
    /// The nmethod was interrupted before.
    interrupted: OnceLock<()>,
    excluded: u8,
}

impl Code {
    /// The index that stands for the method that was compiled.
    pub const OWN: u32 = 0;

    /// Reads what the head leads to; where that makes no sense, the nmethod has no debug info here.
    ///
    /// # Errors
    /// [`Unnamed::Gone`]: the process ended. Nothing else is an error.
    pub fn read<M: Memory>(memory: &M, layout: &CodeLayout, head: Head) -> Result<Self, Unnamed> {
        let sections = head.sections(layout);
        let read = sections.map(|s| parts(memory, [s.metadata, s.scopes, s.pcs]));
        let [metadata, scopes, pcs] = match read {
            Some(Ok(parts)) => parts,
            Some(Err(Unnamed::Gone)) => return Err(Unnamed::Gone),
            Some(Err(_)) | None => Default::default(),
        };
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let int = |bytes: &[u8], at: usize| {
            bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(-1, i32::from_le_bytes)
        };
        // The sentinels at both ends have offsets outside of the code, or no scope.
        let entry = |bytes: &[u8]| Some((u32::try_from(int(bytes, 0)).ok()?, int(bytes, 4) as u32));
        let pcs: Vec<_> =
            pcs.chunks_exact(PC_DESC).filter_map(entry).filter(|(_, scope)| *scope != 0).collect();
        let sorted = pcs.is_sorted_by_key(|(offset, _)| *offset);
        let metadata: Box<[u64]> = metadata.chunks_exact(8).map(word).collect();
        Ok(Self {
            head,
            pcs: if sorted { Runs::of(pcs) } else { Runs::default() },
            scopes: scopes.into(),
            named: (0..=metadata.len()).map(|_| OnceLock::new()).collect(),
            metadata,
            leaves: OnceLock::new(),
            interrupted: OnceLock::new(),
            excluded: layout.excluded,
        })
    }

    /// Bytes of memory that the nmethod takes, about.
    pub fn bytes(&self) -> usize {
        let leaves = self.leaves.get().map_or(0, Runs::bytes);
        // The names are the methods'.
        384 + self.head.bytes.len() + leaves + self.pcs.bytes() + self.scopes.len() + 24 * self.metadata.len()
    }

    /// The `Method*` that a scope names by its index.
    pub fn method(&self, index: u32) -> Option<u64> {
        match index {
            Self::OWN => Some(self.head.method),
            index => self.metadata.get(index as usize - 1).copied(),
        }
    }
    /// The method with this index, if it was named before.
    pub fn named(&self, index: u32) -> Option<&Arc<Method>> {
        self.named.get(index as usize)?.get()
    }
    /// Remembers a method: it was there as long as this nmethod was.
    pub fn set_named(&self, index: u32, method: Arc<Method>) {
        if let Some(slot) = self.named.get(index as usize) {
            let _ = slot.set(method);
        }
    }

    /// How the debug info of a frame at `pc` is to be looked up; `returned`: a call returns there.
    pub fn place<M: Memory>(&self, memory: &M, pc: u64, returned: bool, exact: bool) -> Place {
        let Ok(offset) = u32::try_from(pc.saturating_sub(self.head.code.0)) else { return Place::Inside(pc) };
        // A wrapper of a native method has no debug info at all: nothing is inlined there.
        if returned && (self.pcs.is_empty() || self.pcs.at(offset).is_some()) {
            return Place::Entry(pc);
        }
        if !returned {
            return Place::Inside(pc);
        }
        // With debug info for each instruction the entry is at the call's first byte; else its last is as good.
        let mut before = [0; flow::MAX_CALL];
        let from = pc.saturating_sub(flow::MAX_CALL as u64);
        let read = exact && from >= self.head.code.0 && memory.read(from, &mut before).is_ok();
        let call = if read { flow::call_before(&before) } else { 1 };
        Place::Inside(pc.saturating_sub(call))
    }

    /// The scope at a place; None where there is no debug info for it. What an instruction without an entry of its
    /// own borrows rests on the code's shape, where that was found out now or is kept.
    pub fn scope(&self, place: Place, shape: Option<&Structure>) -> Option<(u32, Source)> {
        let offset = |pc: u64| u32::try_from(pc.checked_sub(self.head.code.0)?).ok();
        let offset = match place {
            Place::Entry(pc) => return Some((self.pcs.at(offset(pc)?)?, Source::Exact)),
            Place::Inside(pc) => offset(pc)?,
        };
        let kept = || self.leaves.get().and_then(|leaves| leaves.up_to(offset));
        let told = match shape.map(|shape| shape.scope(offset)) {
            Some(Told::Scope(scope)) => Some(scope),
            Some(Told::Own) => Some(structure::OWN),
            Some(Told::Nothing) => None,
            None => kept(),
        };
        let scope = match told {
            Some(structure::OWN) => None,
            Some(scope) => Some(scope),
            None => self.pcs.from(offset),
        };
        scope.map(|scope| (scope, Source::Borrowed))
    }

    /// The chain of a scope, innermost first; None where it makes no sense.
    pub fn chain(&self, scope: u32) -> Option<Vec<Scope>> {
        let chain = numbers::chain(&self.scopes, scope, self.excluded)?;
        // The outermost is the nmethod's own; 0 stands for no method.
        let outermost = self.method(chain.last()?.method)?;
        (outermost == self.head.method && chain.iter().all(|scope| scope.method != Self::OWN))
            .then_some(chain)
    }

    /// Finds out what the code's shape tells, for addresses between entries. To be believed once the nmethod
    /// was seen to be the same afterwards.
    pub fn shape<M: Memory>(&self, memory: &M) -> Option<Structure> {
        let (from, to) = self.head.code;
        if self.pcs.is_empty() || to - from > structure::MAX_CODE {
            return None;
        }
        let mut bytes = vec![0; (to - from) as usize];
        memory.read(from, &mut bytes).ok()?;
        let pcs: Vec<_> = self.pcs.iter().collect();
        Some(Structure::of(&bytes, &pcs))
    }
    /// Whether what the code's shape tells is kept, be it nothing.
    pub fn has_leaves(&self) -> bool {
        self.leaves.get().is_some()
    }
    /// Keeps what the shape tells of all places, from the second time on: most code is interrupted once.
    pub fn keep_shape(&self, shape: Option<Structure>) {
        match shape {
            Some(_) if self.interrupted.set(()).is_ok() => {}
            shape => {
                let _ = self.leaves.set(shape.map(Structure::leaves).unwrap_or_default());
            }
        }
    }

    /// Offsets of the entries.
    #[cfg(test)]
    pub fn entries(&self) -> impl Iterator<Item = u32> {
        self.pcs.iter().map(|(offset, _)| offset)
    }
}

/// Reads parts, those that follow each other at once.
fn parts<M: Memory>(memory: &M, parts: [(u64, u64); 3]) -> Result<[Vec<u8>; 3], Unnamed> {
    if parts.iter().any(|(from, len)| *len > MAX_PART || from.checked_add(*len).is_none()) {
        return Err(Unnamed::Unreadable);
    }
    let read = |from: u64, len: u64| -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; len as usize];
        if len > 0 {
            memory.read(from, &mut bytes)?;
        }
        Ok(bytes)
    };
    let (low, high) =
        parts.iter().fold((u64::MAX, 0), |(low, high), (from, len)| (low.min(*from), high.max(from + len)));
    let sum: u64 = parts.iter().map(|(_, len)| len).sum();
    if high - low <= sum + NEAR {
        let all = read(low, high - low)?;
        let cut = |(from, len): (u64, u64)| {
            let at = (from - low) as usize;
            all.get(at..at + len as usize).map(<[u8]>::to_vec).ok_or(Unnamed::Unreadable)
        };
        let [a, b, c] = parts;
        return Ok([cut(a)?, cut(b)?, cut(c)?]);
    }
    let [metadata, (scopes, scopes_len), (pcs, pcs_len)] = parts;
    let metadata = read(metadata.0, metadata.1)?;
    // The pcs come right before their scopes there.
    if pcs + pcs_len == scopes {
        let mut both = read(pcs, pcs_len + scopes_len)?;
        let scopes = both.split_off(pcs_len as usize);
        return Ok([metadata, scopes, both]);
    }
    Ok([metadata, read(scopes, scopes_len)?, read(pcs, pcs_len)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_tells_of_the_instruction_at_it_and_of_those_before() {
        let head = Head { blob: 0, code: (100, 200), compile_id: 1, method: 8, name: 0, bytes: Vec::new() };
        let code = Code {
            head,
            pcs: Runs::of([(10, 1), (20, 2), (30, 3)]),
            scopes: Box::default(),
            metadata: Box::default(),
            named: Box::default(),
            leaves: OnceLock::new(),
            interrupted: OnceLock::new(),
            excluded: 0,
        };
        let scope = |place| code.scope(place, None);
        let leaf = [100, 110, 111, 120, 130, 131].map(|pc| scope(Place::Inside(pc)).map(|(scope, _)| scope));
        assert_eq!(leaf, [Some(1), Some(1), Some(2), Some(2), Some(3), None]);
        assert_eq!(scope(Place::Entry(110)), Some((1, Source::Exact)));
        assert_eq!(scope(Place::Inside(99)), None);
        // A call of five bytes that ends at 121: it borrows as it would if it were interrupted.
        let memory = Bytes(*b"\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\xe8\0\0\0\0");
        let place = |pc, returned, exact| code.place(&memory, pc, returned, exact);
        assert_eq!(place(110, true, false), Place::Entry(110));
        assert_eq!(place(110, false, false), Place::Inside(110));
        assert_eq!(place(121, true, false), Place::Inside(120));
        assert_eq!(
            place(121, true, true),
            Place::Inside(if cfg!(target_arch = "x86_64") { 116 } else { 120 })
        );
        assert_eq!(scope(place(121, true, true)), Some((2, Source::Borrowed)));
        // Nothing is read from before the code.
        assert_eq!(place(105, true, true), Place::Inside(104));
        let bare = Code { pcs: Runs::default(), ..code };
        assert_eq!(bare.place(&memory, 121, true, false), Place::Entry(121));
        assert_eq!(bare.scope(Place::Entry(121), None), None);
    }

    /// The same wherever it is read.
    struct Bytes([u8; flow::MAX_CALL]);

    impl Memory for Bytes {
        fn read(&self, _: u64, into: &mut [u8]) -> Result<(), ReadError> {
            into.copy_from_slice(&self.0);
            Ok(())
        }
    }
}
