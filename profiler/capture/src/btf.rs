//! Reads the kernel's own type information (BTF): the offsets of a few fields.
//!
//! In: the bytes of /sys/kernel/btf/vmlinux (format: Documentation/bpf/btf.rst). Out: offsets in bytes.
//! Anything malformed is an error. Reads at most [`MAX_BYTES`]; anonymous members are followed to a
//! depth of [`MAX_DEPTH`].

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest type information read; a distribution's kernel has 5 to 8 MB.
const MAX_BYTES: u64 = 64 << 20;
/// Depth of anonymous structs and unions within a struct.
const MAX_DEPTH: usize = 8;

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;

const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_CONST: u32 = 10;
const KIND_FUNC: u32 = 12;
const KIND_VOLATILE: u32 = 9;
const KIND_TYPEDEF: u32 = 8;

/// Why type information cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BtfError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The bytes are no BTF of this machine.
    #[error("not BTF: {0}")]
    Malformed(&'static str),
    /// A type of an unknown kind: its length is not known, so nothing after it can be read.
    #[error("type {id} has the unknown kind {kind}")]
    UnknownKind {
        /// Number of the type, from 1.
        id: u32,
        /// Number of the kind (`BTF_KIND_*`).
        kind: u32,
    },
}

/// Parsed type information.
pub struct Btf {
    bytes: Vec<u8>,
    /// Start of each type in `bytes`; type 1 is the first.
    types: Vec<u32>,
    strings: std::ops::Range<usize>,
}

impl Btf {
    /// Reads a file.
    ///
    /// # Errors
    /// As for [`Self::parse`]; [`BtfError::Io`]; or the file has more than [`MAX_BYTES`].
    pub fn read(path: &Path) -> Result<Self, BtfError> {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(BtfError::Malformed("larger than 64 MiB"));
        }
        Self::parse(bytes)
    }

    /// Takes bytes apart into types.
    ///
    /// # Errors
    /// [`BtfError::Malformed`]: no magic number of this byte order, or a part that ends before its length says.
    /// [`BtfError::UnknownKind`]: a kind of type that is newer than this reader.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, BtfError> {
        if u16_at(&bytes, 0) != Some(MAGIC) {
            return Err(BtfError::Malformed("no magic number"));
        }
        let header = |at| u32_at(&bytes, at).map(|v| v as usize).ok_or(BtfError::Malformed("header cut"));
        let start = header(4)?;
        if start < HEADER {
            return Err(BtfError::Malformed("header too short"));
        }
        let section = |offset: usize, len: usize| {
            let from = start.checked_add(offset)?;
            let to = from.checked_add(len)?;
            (to <= bytes.len()).then_some(from..to)
        };
        let types_at = section(header(8)?, header(12)?).ok_or(BtfError::Malformed("types cut"))?;
        let strings = section(header(16)?, header(20)?).ok_or(BtfError::Malformed("strings cut"))?;
        let mut types = Vec::with_capacity(types_at.len() / 24);
        let mut at = types_at.start;
        while at < types_at.end {
            let info = u32_at(&bytes, at + 4).ok_or(BtfError::Malformed("type cut"))?;
            let (kind, members) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            let more = match kind {
                1 | 14 | 17 => 4,
                2 | 7..=12 | 16 | 18 => 0,
                3 => 12,
                KIND_STRUCT | KIND_UNION | 15 | 19 => members * 12,
                6 | 13 => members * 8,
                kind => return Err(BtfError::UnknownKind { id: types.len() as u32 + 1, kind }),
            };
            types.push(at as u32);
            at += 12 + more;
        }
        if at != types_at.end {
            return Err(BtfError::Malformed("last type cut"));
        }
        Ok(Self { bytes, types, strings })
    }

    /// Offset in bytes of a field of a struct, also if it is in an anonymous member; None when there is
    /// no such struct or field, or it is a bit field.
    pub fn field(&self, of: &str, field: &str) -> Option<u32> {
        let ty = self.named(KIND_STRUCT, of)?;
        let bits = self.member(ty, field, 0)?;
        (bits % 8 == 0).then_some(bits / 8)
    }

    /// Whether the kernel has a function of this name.
    pub fn has_function(&self, name: &str) -> bool {
        self.named(KIND_FUNC, name).is_some()
    }

    /// Whether the kernel has a tracepoint of this name that raw programs can be attached to (include/trace/bpf_probe.h
    /// makes a type of each).
    pub fn has_tracepoint(&self, name: &str) -> bool {
        self.named(KIND_TYPEDEF, &format!("btf_trace_{name}")).is_some()
    }

    fn named(&self, kind: u32, name: &str) -> Option<usize> {
        self.types.iter().map(|at| *at as usize).find(|at| {
            self.kind(*at) == Some(kind) && u32_at(&self.bytes, *at).is_some_and(|n| self.is_name(n, name))
        })
    }

    fn kind(&self, at: usize) -> Option<u32> {
        u32_at(&self.bytes, at + 4).map(|info| info >> 24 & 0x1f)
    }

    fn is_name(&self, offset: u32, name: &str) -> bool {
        let strings = self.bytes.get(self.strings.clone()).unwrap_or_default();
        strings
            .get(offset as usize..)
            .and_then(|rest| rest.strip_prefix(name.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&0))
    }

    fn member(&self, ty: usize, field: &str, depth: usize) -> Option<u32> {
        let info = u32_at(&self.bytes, ty + 4)?;
        let bit_fields = info >> 31 == 1;
        for i in 0..(info & 0xffff) as usize {
            let at = ty + 12 + i * 12;
            let name = u32_at(&self.bytes, at)?;
            let raw = u32_at(&self.bytes, at + 8)?;
            let offset = if bit_fields { raw & 0xff_ffff } else { raw };
            if self.is_name(name, field) {
                return (!bit_fields || raw >> 24 == 0).then_some(offset);
            }
            if self.is_name(name, "")
                && depth < MAX_DEPTH
                && let Some(inner) = self.aggregate(u32_at(&self.bytes, at + 4)?)
                && let Some(found) = self.member(inner, field, depth + 1)
            {
                return offset.checked_add(found);
            }
        }
        None
    }

    /// The struct or union with this number, through const, volatile and typedef.
    fn aggregate(&self, mut id: u32) -> Option<usize> {
        for _ in 0..MAX_DEPTH {
            let at = *self.types.get((id as usize).checked_sub(1)?)? as usize;
            match self.kind(at)? {
                KIND_STRUCT | KIND_UNION => return Some(at),
                KIND_CONST | KIND_VOLATILE | KIND_TYPEDEF => id = u32_at(&self.bytes, at + 8)?,
                _ => return None,
            }
        }
        None
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `struct vma { int a; union { long flags; }; };` a function `go` and what a tracepoint `went`
    /// leaves, by hand.
    fn small() -> Vec<u8> {
        let strings = b"\0vma\0a\0flags\0go\0btf_trace_went\0";
        let (vma, a, flags, go, went) = (1u32, 5u32, 7u32, 13u32, 16u32);
        let mut types: Vec<u32> = Vec::new();
        types.extend([0, 1 << 24, 4, 0]); // 1: int
        types.extend([0, KIND_UNION << 24 | 1, 8, flags, 1, 0]); // 2: union
        types.extend([vma, KIND_STRUCT << 24 | 2, 16, a, 1, 0, 0, 2, 64]); // 3: struct
        types.extend([go, 12 << 24, 1]); // 4: function
        types.extend([went, KIND_TYPEDEF << 24, 1]); // 5: typedef
        let types: Vec<u8> = types.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let mut out = MAGIC.to_ne_bytes().to_vec();
        out.extend([1, 0]);
        let words = [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32];
        out.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
        out.extend(types);
        out.extend(strings);
        out
    }

    #[test]
    fn finds_fields_also_in_anonymous_unions() {
        let btf = Btf::parse(small()).expect("well formed");
        assert_eq!(btf.field("vma", "a"), Some(0));
        assert_eq!(btf.field("vma", "flags"), Some(8));
        assert_eq!(btf.field("vma", "fla"), None);
        assert_eq!(btf.field("vm", "a"), None);
        assert_eq!(btf.field("go", "a"), None);
        assert!(btf.has_function("go") && !btf.has_function("vma"));
        assert!(btf.has_tracepoint("went") && !btf.has_tracepoint("go"));
    }

    #[test]
    fn a_cut_or_strange_one_is_an_error() {
        let whole = small();
        for len in 0..whole.len() {
            assert!(Btf::parse(whole[..len].to_vec()).is_err(), "cut at {len}");
        }
        let mut strange = whole;
        strange[24 + 7] = 31; // kind of the first type
        assert!(matches!(Btf::parse(strange), Err(BtfError::UnknownKind { id: 1, kind: 31 })));
    }

    proptest! {
        #[test]
        fn damaged_bytes_never_panic(
            hits in proptest::collection::vec((0..170usize, any::<u8>()), 0..8),
            tail in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut bytes = small();
            for (at, value) in hits {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            bytes.extend(tail);
            if let Ok(btf) = Btf::parse(bytes) {
                let _ = btf.field("vma", "flags");
            }
        }
    }
}
