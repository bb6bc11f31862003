//! A JVM made of bytes: one code heap with an nmethod (a method and one inlined into it) and a stub, laid
//! out as in JDK 17 or 25, to be read and to be spoiled at will.

use super::*;
use crate::vm_structs::{Field, Place};
use std::cell::Cell;

pub const BASE: u64 = 0x10_0000;
pub const HEAP: u64 = BASE + 0x4000;
const SEGMAP: u64 = BASE + 0x3000;
pub const ID: u32 = 42;

/// Memory from [`BASE`] on, whole pages of it. Some word may be another one from some read on.
#[derive(Clone)]
pub struct Fake {
    pub bytes: Vec<u8>,
    pub used: u64,
    pub reads: Cell<u64>,
    pub turn: Option<(u64, u64, u64)>,
    pub outside: bool,
    pub inner: u64,
    pub outer: u64,
}

impl Memory for Fake {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError> {
        self.reads.set(self.reads.get() + 1);
        let start = address.checked_sub(BASE).ok_or(ReadError::Fault)? as usize;
        let end = start.checked_add(into.len()).ok_or(ReadError::Fault)?;
        into.copy_from_slice(self.bytes.get(start..end).ok_or(ReadError::Fault)?);
        if let Some((after, at, word)) = self.turn
            && self.reads.get() > after
        {
            for (at, byte) in (at..).zip(word.to_le_bytes()) {
                if let Some(to) = at.checked_sub(address).and_then(|at| into.get_mut(at as usize)) {
                    *to = byte;
                }
            }
        }
        Ok(())
    }
}

impl Fake {
    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
    pub fn word(&mut self, address: u64, value: u64) {
        self.put(address, &value.to_le_bytes());
    }
    pub fn int(&mut self, address: u64, value: u32) {
        self.put(address, &value.to_le_bytes());
    }
    pub fn half(&mut self, address: u64, value: u16) {
        self.put(address, &value.to_le_bytes());
    }
    fn alloc(&mut self, len: u64) -> u64 {
        let at = self.used.next_multiple_of(8);
        self.used = at + len;
        at
    }
    pub fn symbol(&mut self, text: &str) -> u64 {
        let at = self.alloc(6 + text.len() as u64);
        self.half(at + 4, text.len() as u16);
        self.put(at + 6, text.as_bytes());
        at
    }
    /// A class with one method: 10 bytes of code, line 50 from its start, 53 from its fifth byte.
    fn method(&mut self, class: &str, name: &str, descriptor: &str) -> u64 {
        let (holder, pool, constant, method) =
            (self.alloc(320), self.alloc(72 + 64), self.alloc(88), self.alloc(88));
        for (slot, text) in [(1, name), (2, descriptor), (3, "File.java")] {
            let text = self.symbol(text);
            self.word(pool + 72 + 8 * slot, text);
        }
        let class = self.symbol(class);
        self.word(holder + 24, class);
        self.word(holder + 232, pool);
        self.word(pool + 24, holder);
        self.half(pool + 54, 3);
        self.word(constant + 8, pool);
        self.int(constant + 24, 11);
        for (at, value) in [(28, 1), (32, 10), (34, 1), (36, 2)] {
            self.half(constant + at, value);
        }
        let x = u8::from(self.outside);
        self.put(constant + 48 + 10, &[0xff, x, 100 + x, 5 << 3 | 3, 0]);
        self.word(method + 8, constant);
        method
    }

    pub fn jvm(outside: bool) -> Self {
        let bytes = vec![0; 0x8000];
        let used = BASE + 0x200;
        let mut fake = Self { bytes, used, reads: Cell::new(0), turn: None, outside, inner: 0, outer: 0 };
        fake.outer = fake.method("a/Outer", "run", "([BI)V");
        fake.inner = fake.method("a/H$$Lambda$7+0x00007f00aa001200", "apply", "()J");
        // The array of heaps, and the heap: 128 segments of 128 bytes.
        let (array, heaps, heap) = (fake.alloc(16), fake.alloc(8), fake.alloc(264));
        fake.word(BASE + 0x10, array);
        fake.int(array, 1);
        fake.word(array + 8, heaps);
        fake.word(heaps, heap);
        for (at, value) in [(8, HEAP), (16, HEAP + 0x4000), (32, HEAP + 0x4000), (120, SEGMAP)] {
            fake.word(heap + at, value);
        }
        fake.int(heap + 256, 7);
        fake.put(SEGMAP, &[255; 128]);
        for (segment, back) in (0..16).zip(0..) {
            fake.put(SEGMAP + segment, &[back]);
            fake.put(SEGMAP + 32 + segment, &[back]);
        }
        // Metadata: outer, something, inner. Scopes: outer at 5, inner at bci 1 within it at its bci 5.
        let x = u8::from(outside);
        let metadata = [fake.outer, 8, fake.inner].map(u64::to_le_bytes).concat();
        let scopes = [vec![0xff], vec![x, 1 + x, 6 + x], vec![1 + x, 3 + x, 2 + x]].concat();
        let entry = |at: i32, scope: i32| [at, scope, 0, 0].map(i32::to_le_bytes).concat();
        let pcs = [entry(-1, 0), entry(0x20, 1), entry(0x60, 4), entry(0x400, 0)].concat();
        let blob = HEAP + 16;
        let name = fake.alloc(16);
        fake.put(name, b"nmethod");
        fake.put(HEAP + 8, &[1]);
        fake.word(blob + 96, name);
        fake.word(blob + 32, blob + 0x180);
        fake.word(blob + 40, blob + 0x280);
        fake.word(blob + 112, fake.outer);
        fake.int(blob + 304, ID);
        let data = blob + if outside { 0x3800 } else { 0x300 };
        fake.put(data, &metadata);
        fake.put(data + 24, &scopes);
        fake.put(data + 48, &pcs);
        if outside {
            fake.word(blob + 120, data);
            fake.int(blob + 128, 0);
            fake.int(blob + 132, 24);
            let apart = data + 0x200;
            fake.word(blob + 136, apart);
            fake.put(apart, &pcs);
            fake.put(apart + 64, &scopes);
            for (at, value) in [(144, 0), (148, 64), (152, 64 + scopes.len() as u32)] {
                fake.int(blob + at, value);
            }
        } else {
            fake.word(blob + 120, data + 24);
            for (at, value) in [(260, 0x300), (268, 0x300 + 48), (272, 0x300 + 48 + 64)] {
                fake.int(blob + at, value);
            }
        }
        let (stub, name) = (HEAP + 32 * 128 + 16, fake.alloc(24));
        fake.put(name, b"StubRoutines (1)");
        fake.put(stub - 8, &[1]);
        fake.word(stub + 96, name);
        fake.word(stub + 32, stub + 0x180);
        fake.word(stub + 40, stub + 0x400);
        fake.word(BASE + 0x18, stub + 0x200);
        assert!(fake.used < SEGMAP);
        fake
    }

    pub fn tables(&self) -> VmStructs {
        let at = |offset| Place::Offset(offset);
        let mut fields = vec![
            ("CodeCache::_heaps", "", Place::Address(BASE + 0x10)),
            ("StubRoutines::_jbyte_arraycopy", "address", Place::Address(BASE + 0x18)),
            ("JVMFlag::flags", "", Place::Address(BASE + 0x20)),
            ("JVMFlag::numFlags", "", Place::Address(BASE + 0x20)),
        ];
        for (name, kind, offset) in [
            ("JVMFlag::_name", "", 8),
            ("JVMFlag::_addr", "", 0),
            ("GrowableArrayBase::_len", "int", 0),
            ("GrowableArray<int>::_data", "int*", 8),
            ("CodeHeap::_memory", "VirtualSpace", 8),
            ("CodeHeap::_segmap", "VirtualSpace", 120),
            ("CodeHeap::_log2_segment_size", "int", 256),
            ("VirtualSpace::_low_boundary", "char*", 0),
            ("VirtualSpace::_high_boundary", "char*", 8),
            ("VirtualSpace::_high", "char*", 24),
            ("HeapBlock::Header::_used", "bool", 8),
            ("CodeBlob::_name", "const char*", 96),
            ("CodeBlob::_code_begin", "address", 32),
            ("CodeBlob::_code_end", "address", 40),
            ("nmethod::_method", "Method*", 112),
            ("nmethod::_compile_id", "int", 304),
            ("Method::_constMethod", "ConstMethod*", 8),
            ("ConstMethod::_constants", "ConstantPool*", 8),
            ("ConstMethod::_constMethod_size", "int", 24),
            ("ConstMethod::_flags", "u2", 28),
            ("ConstMethod::_code_size", "u2", 32),
            ("ConstMethod::_name_index", "u2", 34),
            ("ConstMethod::_signature_index", "u2", 36),
            ("ConstantPool::_pool_holder", "InstanceKlass*", 24),
            ("Klass::_name", "Symbol*", 24),
            ("InstanceKlass::_constants", "ConstantPool*", 232),
            ("Symbol::_length", "u2", 4),
            ("Symbol::_body", "", 6),
        ] {
            fields.push((name, kind, at(offset)));
        }
        let inside: [(&str, &str, u64); 4] = [
            ("CompiledMethod::_scopes_data_begin", "address", 120),
            ("nmethod::_metadata_offset", "int", 260),
            ("nmethod::_scopes_pcs_offset", "int", 268),
            ("nmethod::_dependencies_offset", "int", 272),
        ];
        let outside: [(&str, &str, u64); 8] = [
            ("CodeBlob::_mutable_data", "address", 120),
            ("CodeBlob::_relocation_size", "int", 128),
            ("CodeBlob::_mutable_data_size", "int", 132),
            ("nmethod::_immutable_data", "address", 136),
            ("nmethod::_scopes_pcs_offset", "int", 144),
            ("nmethod::_scopes_data_offset", "int", 148),
            ("nmethod::_immutable_data_size", "int", 152),
            ("InstanceKlass::_fieldinfo_stream", "", 0),
        ];
        let debug: &[(&str, &str, u64)] = if self.outside { &outside } else { &inside };
        fields.extend(debug.iter().map(|(name, kind, offset)| (*name, *kind, at(*offset))));
        let field = |(name, kind, place): (&str, &str, Place)| {
            (name.to_owned(), Field { type_name: kind.into(), place })
        };
        let sizes = [("HeapBlock", 16), ("ConstMethod", 48), ("ConstantPool", 72), ("JVMFlag", 24)];
        let sizes = sizes.map(|(name, size)| (name.to_owned(), size));
        VmStructs::known(fields.into_iter().map(field), sizes, [])
    }

    pub fn namer(&self) -> Namer {
        Namer::read(self, &self.tables(), Limits::default()).unwrap()
    }
}
