//! A JVM made of bytes: one code heap with an nmethod (a method and one inlined into it) and a stub, laid
//! out as in JDK 17 or 25, to be read and to be spoiled at will.

use super::*;
use crate::hotspot::vm_structs::{Field, Place};
use profiler_ebpf::{FrameKindTag, UserFrame};
use proptest::prelude::*;
use std::cell::Cell;

const BASE: u64 = 0x10_0000;
const HEAP: u64 = BASE + 0x4000;
const SEGMAP: u64 = BASE + 0x3000;
const ID: u32 = 42;

/// Memory from [`BASE`] on, whole pages of it. Some word may be another one from some read on.
#[derive(Clone)]
struct Fake {
    bytes: Vec<u8>,
    used: u64,
    reads: Cell<u64>,
    turn: Option<(u64, u64, u64)>,
    outside: bool,
    inner: u64,
    outer: u64,
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
    fn put(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn word(&mut self, address: u64, value: u64) {
        self.put(address, &value.to_le_bytes());
    }
    fn int(&mut self, address: u64, value: u32) {
        self.put(address, &value.to_le_bytes());
    }
    fn half(&mut self, address: u64, value: u16) {
        self.put(address, &value.to_le_bytes());
    }
    fn alloc(&mut self, len: u64) -> u64 {
        let at = self.used.next_multiple_of(8);
        self.used = at + len;
        at
    }
    fn symbol(&mut self, text: &str) -> u64 {
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

    fn jvm(outside: bool) -> Self {
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

    fn tables(&self) -> VmStructs {
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

    fn namer(&self) -> Namer {
        Namer::read(self, &self.tables(), Limits::default()).unwrap()
    }
}

const BLOB: u64 = HEAP + 16;
const CODE: u64 = BLOB + 0x180;

fn compiled(at: u64, flags: u8) -> UserFrame {
    UserFrame { value: CODE + at, cookie: ID, kind: FrameKindTag::JavaCompiled as u8, flags, pad: 0 }
}
fn interpreted(method: u64, bcp: u32) -> UserFrame {
    UserFrame { value: method, cookie: bcp, kind: FrameKindTag::JavaInterpreted as u8, flags: 0, pad: 0 }
}

fn told(named: Result<Arc<[JavaFrame]>, Unnamed>) -> Vec<(FrameKind, String, u32, bool)> {
    let one = |f: &JavaFrame| (f.kind, f.name.to_string(), f.line, f.approximate);
    named.unwrap().iter().map(one).collect()
}

#[test]
fn a_sound_one_is_named() {
    use FrameKind::{JavaCompiled, JavaInlined, JavaInterpreted, Stub};
    for outside in [false, true] {
        let fake = Fake::jvm(outside);
        let mut namer = fake.namer();
        let mut batch = namer.batch(&fake);
        let caller = UserFrame::FLAG_RETURN_ADDRESS;
        let outer = |approximate| (JavaCompiled, "a.Outer.run".to_owned(), 53, approximate);
        let inner = |approximate| (JavaInlined, "a.H$$Lambda.apply".to_owned(), 50, approximate);
        let whole = |approximate| vec![inner(approximate), outer(approximate)];
        assert_eq!(told(batch.name(&compiled(0x20, caller))), [outer(false)]);
        assert_eq!(told(batch.name(&compiled(0x60, caller))), whole(false));
        assert_eq!(told(batch.name(&compiled(0x1f, 0))), [outer(true)]);
        assert_eq!(told(batch.name(&compiled(0x20, 0))), [outer(true)], "an entry is for what ends there");
        assert_eq!(told(batch.name(&compiled(0x21, 0))), whole(true), "the next one's region");
        // No entry: the method alone.
        let alone = (JavaCompiled, "a.Outer.run".to_owned(), 0, false);
        assert_eq!(told(batch.name(&compiled(0x21, caller))), vec![alone.clone()]);
        assert_eq!(told(batch.name(&compiled(0x60, 0))), whole(true));
        assert_eq!(told(batch.name(&compiled(0x61, 0))), [alone]);
        let bcp = (fake.u64(fake.inner + 8).unwrap() + 48 + 7) as u32;
        let lines = |line| vec![(JavaInterpreted, "a.H$$Lambda.apply".to_owned(), line, false)];
        assert_eq!(told(batch.name(&interpreted(fake.inner, bcp))), lines(53));
        assert_eq!(told(batch.name(&interpreted(fake.inner, 0))), lines(0));
        assert_eq!(batch.name(&interpreted(fake.inner, bcp + 3)), Err(Unnamed::Unloaded));
        let stub = |at| UserFrame { value: at, kind: FrameKindTag::JavaStub as u8, ..UserFrame::default() };
        let stubs = HEAP + 32 * 128 + 16;
        let named = batch.name(&stub(stubs + 0x210)).unwrap();
        assert_eq!((named[0].kind, &*named[0].name), (Stub, "jbyte_arraycopy"));
        assert_eq!(&*batch.name(&stub(stubs + 0x190)).unwrap()[0].name, "StubRoutines (1)");
        assert_eq!(batch.name(&stub(HEAP + 100 * 128)), Err(Unnamed::Unloaded));
        assert_eq!(batch.name(&stub(8)), Err(Unnamed::NotJava));
        let named = batch.name(&compiled(0x60, caller)).unwrap();
        assert_eq!(named[0].signature.as_deref(), Some("()long"));
        assert_eq!(named[1].signature.as_deref(), Some("(byte[], int)void"));
    }
}

#[test]
fn what_went_away_is_unloaded_and_what_was_named_stays() {
    for outside in [false, true] {
        let mut fake = Fake::jvm(outside);
        let (mut namer, mut late) = (fake.namer(), fake.namer());
        let leaf = compiled(0x30, 0);
        let before = namer.batch(&fake).name(&leaf).unwrap();
        // Another nmethod lies there now, and another method where the inlined one was.
        fake.int(BLOB + 304, ID + 1);
        let constant = fake.u64(fake.inner + 8).unwrap();
        fake.half(constant + 34, 3);
        assert_eq!(namer.batch(&fake).name(&leaf), Ok(Arc::clone(&before)));
        assert_eq!(namer.batch(&fake).name(&compiled(0x31, 0)).unwrap()[..], before[..], "by what was kept");
        assert_eq!(late.batch(&fake).name(&leaf), Err(Unnamed::Unloaded));
        let named = namer.batch(&fake).name(&interpreted(fake.inner, 0)).unwrap();
        assert_eq!(&*named[0].name, "a.H$$Lambda.File.java", "read again");
        fake.put(HEAP + 8, &[0]);
        let freed = UserFrame { cookie: ID + 1, ..leaf };
        assert_eq!(late.batch(&fake).name(&freed), Err(Unnamed::Unloaded), "a free block");
    }
}

/// Between the count and the memory's release a method of an unloaded class can still be read.
#[test]
fn what_is_read_of_an_unloaded_class_names_no_later_stack() {
    const COUNT: u64 = BASE + 0x28;
    let mut fake = Fake::jvm(false);
    let mut namer = fake.namer();
    namer.unloads = Unloads::at(COUNT);
    let frame = interpreted(fake.inner, 0);
    let mut name = |fake: &Fake, recorded: u64| {
        let named = namer.name_all(fake, std::iter::once((frame, recorded))).remove(0);
        named.map(|frames| frames[0].name.to_string())
    };
    // Recorded before a class was unloaded, and named when its memory is still there.
    fake.word(COUNT, 7);
    assert_eq!(name(&fake, 7), Err(Unnamed::Unloaded));
    // Now another's method lies there, and the count is the same.
    let constant = fake.u64(fake.inner + 8).unwrap();
    fake.half(constant + 34, 3);
    assert_eq!(name(&fake, 8).unwrap(), "a.H$$Lambda.File.java");
    assert_eq!(name(&fake, 7), Err(Unnamed::Unloaded), "what came later names no earlier stack");
    assert_eq!(name(&fake, 8).unwrap(), "a.H$$Lambda.File.java");
}

/// At whichever read the nmethod is replaced, its name is the old one's or none.
#[test]
fn a_race_never_gives_anothers_name() {
    for outside in [false, true] {
        let sound = Fake::jvm(outside);
        let (mut right, mut unloaded) = (0, 0);
        let mut namer = sound.namer();
        let whole = namer.batch(&sound).name(&compiled(0x60, 1)).unwrap();
        for after in 0..60 {
            let mut fake = Fake::jvm(outside);
            let mut namer = fake.namer();
            // From then on the metadata names the other method, and the blob has another id.
            fake.reads.set(0);
            fake.turn = Some((after, BLOB + 304, u64::from(ID) + 1));
            match namer.batch(&fake).name(&compiled(0x60, 1)) {
                Ok(named) => {
                    assert_eq!(named[..], whole[..]);
                    right += 1;
                }
                Err(problem) => {
                    assert_eq!(problem, Unnamed::Unloaded);
                    unloaded += 1;
                }
            }
        }
        assert!(right > 5 && unloaded > 5, "{right} {unloaded}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    /// Any words anywhere: garbage, or pointers to where something else is.
    #[test]
    fn any_spoilt_one_ends_with_names_or_a_reason(
        outside: bool,
        spoils in proptest::collection::vec((any::<prop::sample::Index>(), any::<u64>(), 0..3u8), 1..40),
        at in 0..0x100u64,
        caller: bool,
    ) {
        let mut fake = Fake::jvm(outside);
        let mut namer = fake.namer();
        let len = fake.bytes.len();
        for (place, value, kind) in spoils {
            // Most bytes are free: rather those that are used.
            let used = (fake.used - BASE) as usize;
            let place = match place.index(4) {
                0 => place.index(len - 8),
                1 => (BLOB - BASE) as usize + place.index(0x400),
                _ => place.index(used),
            } as u64 & !3;
            let value = match kind {
                0 => value,
                1 => (BASE + value % len as u64) & !7,
                _ => value % 4096,
            };
            fake.word(BASE + place, value);
        }
        fake.reads.set(0);
        let mut batch = namer.batch(&fake);
        let frames = [
            compiled(at, u8::from(caller)),
            interpreted(fake.inner, 0),
            interpreted(fake.outer, 7),
            UserFrame { kind: FrameKindTag::JavaStub as u8, ..compiled(at, 0) },
            UserFrame { value: HEAP + 32 * 128 + 16 + 0x200, kind: 3, ..UserFrame::default() },
        ];
        for frame in frames {
            if let Ok(named) = batch.name(&frame) {
                prop_assert!(!named.is_empty() && named.len() <= numbers::MAX_DEPTH);
                prop_assert!(named.iter().all(|f| f.name.len() < 8 * 1024));
            }
        }
        prop_assert!(fake.reads.get() < 3000, "{} reads", fake.reads.get());
    }
}
