//! A JVM made of bytes: enough of HotSpot 17's tables, classes, threads and strings to be read, and to be
//! spoiled at will. The reader must give the right names of a sound one, and of any other some names of
//! bounded length or a reason, after a bounded number of reads.

use super::problem::JvmProblem;
use super::threads::View;
use super::vm_structs::VmStructs;
use emberscope_target::memory::{Memory, ReadError};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::HashMap;

mod jvm;

const BASE: u64 = 0x10_0000;

/// Names and offsets of a table's columns.
type Columns<'a> = &'a [(&'a str, u64)];

/// Memory from [`BASE`] on.
#[derive(Clone, Default)]
struct Fake {
    bytes: Vec<u8>,
    symbols: HashMap<String, u64>,
    reads: Cell<u64>,
}

impl Memory for Fake {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError> {
        self.reads.set(self.reads.get() + 1);
        let start = address.checked_sub(BASE).ok_or(ReadError::Fault)? as usize;
        // Whole pages are mapped.
        let end = start.checked_add(into.len()).ok_or(ReadError::Fault)?;
        if end > self.bytes.len().next_multiple_of(4096) {
            return Err(ReadError::Fault);
        }
        for (to, at) in into.iter_mut().zip(start..) {
            *to = self.bytes.get(at).copied().unwrap_or(0);
        }
        Ok(())
    }
}

impl Fake {
    fn alloc(&mut self, len: usize) -> u64 {
        let at = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(at + len, 0);
        BASE + at as u64
    }
    fn put(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn word(&mut self, address: u64, value: u64) {
        self.put(address, &value.to_le_bytes());
    }
    fn half(&mut self, address: u64, value: u32) {
        self.put(address, &value.to_le_bytes());
    }
    fn text(&mut self, text: &str) -> u64 {
        let at = self.alloc(text.len() + 1);
        self.put(at, text.as_bytes());
        at
    }
    fn words(&mut self, words: &[u64]) -> u64 {
        let at = self.alloc(8 * words.len());
        for (index, word) in words.iter().enumerate() {
            self.word(at + 8 * index as u64, *word);
        }
        at
    }
    fn symbol(&mut self, name: String, value: u64) {
        let at = self.words(&[value]);
        self.symbols.insert(name, at);
    }
    /// A Symbol as in a constant pool: length at 4, text at 6.
    fn java_symbol(&mut self, text: &str) -> u64 {
        let at = self.alloc(6 + text.len());
        self.put(at + 4, &(text.len() as u16).to_le_bytes());
        self.put(at + 6, text.as_bytes());
        at
    }
    /// A class with these fields: name, type, offset.
    fn class(&mut self, fields: &[(&str, &str, u32)]) -> u64 {
        let class = self.alloc(512);
        let pool = self.alloc(72 + 8 * (1 + 2 * fields.len()));
        let array = self.alloc(4 + 12 * fields.len());
        for (index, (name, kind, offset)) in fields.iter().enumerate() {
            let slots = [1 + 2 * index as u64, 2 + 2 * index as u64];
            for (slot, text) in slots.into_iter().zip([name, kind]) {
                let text = self.java_symbol(text);
                self.word(pool + 72 + 8 * slot, text);
            }
            let packed = offset << 2 | 1;
            let entry = [0, slots[0] as u16, slots[1] as u16, 0, packed as u16, (packed >> 16) as u16];
            let entry: Vec<u8> = entry.iter().flat_map(|half| half.to_le_bytes()).collect();
            self.put(array + 4 + 12 * index as u64, &entry);
        }
        self.word(class + 232, pool);
        self.word(class + 456, array);
        self.put(class + 310, &(fields.len() as u16).to_le_bytes());
        class
    }
    /// A Java object of a class, which is narrow as it is.
    fn object(&mut self, class: u64, len: usize) -> u64 {
        let at = self.alloc(len);
        self.word(at, 1);
        self.half(at + 8, class as u32);
        at
    }
    fn string(&mut self, classes: [u64; 2], text: &str) -> u64 {
        let latin = text.chars().all(|c| (c as u32) < 256);
        let data: Vec<u8> = if latin {
            text.chars().map(|c| c as u32 as u8).collect()
        } else {
            text.encode_utf16().flat_map(u16::to_le_bytes).collect()
        };
        let array = self.object(classes[1], 16 + data.len());
        self.half(array + 12, data.len() as u32);
        self.put(array + 16, &data);
        let string = self.object(classes[0], 24);
        self.put(string + 16, &[u8::from(!latin)]);
        self.half(string + 20, array as u32);
        string
    }

    fn names(&self) -> Result<Vec<(u32, String)>, JvmProblem> {
        let view = View::read(self, &|symbol| self.symbols.get(symbol).copied())?;
        let _ = view.string_layout(self);
        let all = view.threads(self)?;
        Ok(all.threads.into_iter().map(|t| (t.tid, t.name)).collect())
    }
    /// The address of what `text` is in the tables, for instance a static field's entry.
    fn find(&self, text: &str) -> u64 {
        let mut wanted = text.as_bytes().to_vec();
        wanted.push(0);
        BASE + self.bytes.windows(wanted.len()).position(|w| w == wanted).unwrap() as u64
    }
}

const NAMES: [(u32, &str); 4] = [(11, "main"), (12, "Executor task launch worker"), (13, "名前"), (14, "")];

fn told() -> Vec<(u32, String)> {
    NAMES.iter().map(|(tid, name)| (*tid, (*name).to_owned())).collect()
}

#[test]
fn a_sound_one_is_read() {
    for linked in [false, true] {
        let fake = Fake::jvm(&NAMES, linked);
        assert_eq!(fake.names(), Ok(told()), "linked: {linked}");
    }
    let fake = Fake::jvm(&[], false);
    assert_eq!(fake.names(), Ok(vec![]));
}

#[test]
fn tables_tell_offsets_sizes_and_constants() {
    let fake = Fake::jvm(&NAMES, false);
    let vm = VmStructs::read(&fake, &|symbol| fake.symbols.get(symbol).copied()).unwrap();
    assert_eq!(vm.offset("JavaThread::_osthread"), Some(560));
    assert_eq!(vm.address("JavaThread::_osthread"), None);
    assert!(vm.address("Universe::_collectedHeap").is_some());
    assert_eq!(vm.size("ConstantPool"), Some(72));
    assert_eq!(vm.constant("FIELDINFO_TAG_SIZE"), Some(2));
    assert_eq!(vm.len(), [28, 2, 1]);
    assert_eq!(&*vm.field("JavaThread::_threadObj").unwrap().type_name, "OopHandle");
}

#[test]
fn without_a_table_there_is_a_reason() {
    let mut fake = Fake::jvm(&NAMES, false);
    let stride = fake.symbols["gHotSpotVMStructEntryArrayStride"];
    fake.word(stride, 0);
    assert_eq!(fake.names(), Err(JvmProblem::NotReady), "too early");
    fake.word(stride, 1 << 40);
    assert!(matches!(fake.names(), Err(JvmProblem::Nonsense(_))));
    fake.symbols.remove("gHotSpotVMTypes");
    fake.word(stride, 48);
    assert!(matches!(fake.names(), Err(JvmProblem::NoTables(_))));
}

#[test]
fn unknown_layouts_say_what_is_missing() {
    for (name, spoilt) in
        [("_osthread", "what a thread has"), ("UseCompressedOops", "whether references are compressed")]
    {
        let mut fake = Fake::jvm(&NAMES, false);
        let at = fake.find(name);
        fake.put(at, b"X");
        assert_eq!(fake.names(), Err(JvmProblem::Missing(spoilt)));
    }
}

#[test]
fn cycles_and_endless_tables_end() {
    let mut fake = Fake::jvm(&NAMES, true);
    let vm = VmStructs::read(&fake, &|symbol| fake.symbols.get(symbol).copied()).unwrap();
    let first = fake.u64(vm.address("Threads::_thread_list").unwrap()).unwrap();
    let second = fake.u64(first + 784).unwrap();
    fake.word(second + 784, first);
    assert_eq!(fake.names().unwrap().len(), 2);
    // A table whose last entry is missing goes on until the end of memory or of patience.
    let structs = fake.u64(fake.symbols["gHotSpotVMStructs"]).unwrap();
    let end = fake.bytes.len() as u64 + BASE;
    let entry: [u8; 48] = fake.bytes(structs).unwrap();
    for at in (structs..end - 48).step_by(48) {
        fake.put(at, &entry);
    }
    assert!(fake.names().is_err());
}

#[test]
fn a_collector_at_work_is_waited_for_but_not_for_long() {
    let mut fake = Fake::jvm(&NAMES, false);
    let vm = VmStructs::read(&fake, &|symbol| fake.symbols.get(symbol).copied()).unwrap();
    let heap = fake.u64(vm.address("Universe::_collectedHeap").unwrap()).unwrap();
    fake.put(heap + 48, &[1]);
    let begun = std::time::Instant::now();
    assert_eq!(fake.names(), Err(JvmProblem::Busy));
    assert!(begun.elapsed() < std::time::Duration::from_secs(5));
}

#[test]
fn another_threads_object_is_not_believed() {
    let mut fake = Fake::jvm(&NAMES, false);
    let object = |fake: &Fake, tid: u32| {
        let view = fake.clone();
        let vm = VmStructs::read(&view, &|symbol| fake.symbols.get(symbol).copied()).unwrap();
        let list = fake.u64(vm.address("ThreadsSMRSupport::_java_thread_list").unwrap()).unwrap();
        let java = fake.u64(fake.u64(list + 16).unwrap() + 8 * u64::from(tid - 11)).unwrap();
        (java + 648, fake.u64(java + 648).unwrap())
    };
    let ((slot, _), (_, other)) = (object(&fake, 12), object(&fake, 13));
    fake.word(slot, other);
    let mut expected = told();
    expected.remove(1);
    assert_eq!(fake.names(), Ok(expected));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    /// Any words anywhere: garbage, or pointers to where something else is.
    #[test]
    fn any_spoilt_one_ends_with_names_or_a_reason(
        linked: bool,
        spoils in proptest::collection::vec((any::<prop::sample::Index>(), any::<u64>(), 0..3u8), 1..24),
    ) {
        let mut fake = Fake::jvm(&NAMES, linked);
        let len = fake.bytes.len() as u64;
        for (at, value, kind) in spoils {
            let at = BASE + (at.index(len as usize - 8) as u64 & !3);
            let value = match kind {
                0 => value,
                1 => (BASE + value % len) & !7,
                _ => value % 4096,
            };
            fake.word(at, value);
        }
        if let Ok(names) = fake.names() {
            prop_assert!(names.iter().all(|(_, name)| name.len() <= profiler_ebpf::MAX_NAME));
        }
        prop_assert!(fake.reads.get() < 3_000_000, "{} reads", fake.reads.get());
    }
}
