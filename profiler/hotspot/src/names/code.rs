//! An nmethod's debug info, read once: a JVM's memory in, the chain of inlined methods at an address out.
//!
//! PcDescs (pcDesc.hpp) are sorted by their offset in the code and lead to scopes. A return address has an
//! entry of its own; between them, where a leaf may be, the JVM takes the first entry that is not below
//! (`match_desc`, nmethod.cpp, JDK 8 to 25): C2's entry lies at the start of the last instruction that it
//! describes (`NonSafepointEmitter`, output.cpp), a poll's at the poll. All three parts are read in one or two
//! pieces.

use super::Unnamed;
use super::blobs::Head;
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

/// An nmethod.
#[derive(Debug)]
pub struct Code {
    /// As it was when all this was read.
    pub head: Head,
    /// Offset in the code and scope.
    pcs: Runs,
    scopes: Box<[u8]>,
    metadata: Box<[u64]>,
    /// Those that had to be named so far: the nmethod's own, then by index in the metadata.
    named: Box<[OnceLock<Arc<Method>>]>,
    /// What the code's shape tells of a leaf: each entry for the code from its offset on. None: nothing.
    leaves: OnceLock<Runs>,
    /// It was interrupted before.
    interrupted: OnceLock<()>,
    excluded: u8,
}

impl Code {
    /// The index that stands for the method that was compiled.
    pub const OWN: u32 = 0;

    /// Reads what the head leads to; where that makes no sense, the nmethod has no debug info here.
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

    /// About so many bytes of memory.
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
    /// Remembers it: it was there as long as this nmethod was.
    pub fn set_named(&self, index: u32, method: Arc<Method>) {
        if let Some(slot) = self.named.get(index as usize) {
            let _ = slot.set(method);
        }
    }

    /// The scope at `pc`; None where there is no debug info for it. A caller's address is the one that it is
    /// returned to; what a leaf's rests on is the code's shape, where that was found out now or is kept.
    pub fn scope(&self, pc: u64, caller: bool, shape: Option<&Structure>) -> Option<(u32, Source)> {
        let offset = u32::try_from(pc.checked_sub(self.head.code.0)?).ok()?;
        if caller {
            return Some((self.pcs.at(offset)?, Source::Exact));
        }
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
    /// Whether what its shape tells is kept, or that it tells nothing.
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
        let leaf =
            [100, 110, 111, 120, 130, 131].map(|pc| code.scope(pc, false, None).map(|(scope, _)| scope));
        assert_eq!(leaf, [Some(1), Some(1), Some(2), Some(2), Some(3), None]);
        let caller = [110, 111].map(|pc| code.scope(pc, true, None));
        assert_eq!(caller, [Some((1, Source::Exact)), None]);
        assert_eq!(code.scope(99, false, None), None);
    }
}
