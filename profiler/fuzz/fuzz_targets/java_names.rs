//! Names of a JVM's frames from any memory: no panic, no hang, names of bounded length, reads of bounded
//! number. The first bytes choose the shape of the tables and the frame; the rest is the memory, of which an
//! address's lower 16 bits say where, so that most pointers lead somewhere.
#![cfg_attr(fuzzing, no_main)]

use emberscope_hotspot::vm_structs::{Field, Place, VmStructs};
use emberscope_hotspot::{Limits, Namer};
use emberscope_target::memory::{Memory, ReadError};
use libfuzzer_sys::fuzz_target;
use profiler_ebpf::{RuntimeId, UserFrame};
use std::cell::Cell;

struct Input<'a>(&'a [u8], Cell<u32>);

impl Memory for Input<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError> {
        self.1.set(self.1.get() + 1);
        let start = (address & 0xffff) as usize;
        if start + into.len() > 0x1_0000 {
            return Err(ReadError::Fault);
        }
        for (to, at) in into.iter_mut().zip(start..) {
            *to = self.0.get(at).copied().unwrap_or(0);
        }
        Ok(())
    }
}

const FIELDS: [(&str, &str, u64); 34] = [
    ("JVMFlag::_name", "", 8),
    ("JVMFlag::_addr", "", 0),
    ("GrowableArrayBase::_len", "int", 0),
    ("GrowableArray<int>::_data", "int*", 8),
    ("CodeHeap::_memory", "VirtualSpace", 8),
    ("CodeHeap::_segmap", "VirtualSpace", 40),
    ("CodeHeap::_log2_segment_size", "int", 72),
    ("VirtualSpace::_low_boundary", "char*", 0),
    ("VirtualSpace::_high_boundary", "char*", 8),
    ("VirtualSpace::_high", "char*", 24),
    ("HeapBlock::Header::_used", "bool", 8),
    ("CodeBlob::_name", "const char*", 0),
    ("CodeBlob::_code_begin", "address", 8),
    ("CodeBlob::_code_end", "address", 16),
    ("nmethod::_method", "Method*", 24),
    ("nmethod::_compile_id", "int", 32),
    ("Method::_constMethod", "ConstMethod*", 8),
    ("ConstMethod::_constants", "ConstantPool*", 8),
    ("ConstMethod::_constMethod_size", "int", 24),
    ("ConstMethod::_flags", "u2", 28),
    ("ConstMethod::_code_size", "u2", 32),
    ("ConstMethod::_name_index", "u2", 34),
    ("ConstMethod::_signature_index", "u2", 36),
    ("ConstantPool::_pool_holder", "InstanceKlass*", 24),
    ("ConstantPool::_source_file_name_index", "u2", 54),
    ("Klass::_name", "Symbol*", 24),
    ("InstanceKlass::_constants", "ConstantPool*", 32),
    ("Symbol::_length", "u2", 4),
    ("Symbol::_body", "", 6),
    // Those of one shape of debug info or the other.
    ("nmethod::_scopes_pcs_offset", "int", 36),
    ("CompiledMethod::_scopes_data_begin", "address", 40),
    ("nmethod::_metadata_offset", "int", 48),
    ("nmethod::_dependencies_offset", "int", 52),
    ("nmethod::_scopes_data_offset", "int", 56),
];
const OUTSIDE: [(&str, &str, u64); 6] = [
    ("nmethod::_immutable_data", "address", 64),
    ("nmethod::_immutable_data_size", "int", 72),
    ("CodeBlob::_mutable_data", "address", 80),
    ("CodeBlob::_mutable_data_size", "int", 88),
    ("CodeBlob::_relocation_size", "int", 92),
    ("InstanceKlass::_fieldinfo_stream", "", 0),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first_chunk::<16>() else { return };
    let memory = Input(bytes, Cell::new(0));
    let more = if choice[0] & 1 == 0 { &OUTSIDE[..0] } else { &OUTSIDE[..] };
    let statics = [
        ("CodeCache::_heaps", 0),
        ("StubRoutines::_a", 8),
        ("JVMFlag::flags", 16),
        ("JVMFlag::numFlags", 24),
    ];
    let field = |(name, kind, place): (&str, &str, Place)| {
        (name.to_owned(), Field { type_name: kind.into(), place })
    };
    let offsets = FIELDS.iter().chain(more).map(|(name, kind, at)| (*name, *kind, Place::Offset(*at)));
    let all = offsets.chain(statics.map(|(name, at)| (name, "", Place::Address(at)))).map(field);
    let sizes = [("HeapBlock", 16), ("ConstMethod", 48), ("ConstantPool", 72), ("JVMFlag", 24)];
    let vm = VmStructs::known(all, sizes.map(|(name, size)| (name.to_owned(), size)), []);
    let Ok(mut namer) = Namer::read(&memory, &vm, Limits::default()) else { return };
    memory.1.set(0);
    let value = u64::from_le_bytes(choice[8..].try_into().unwrap());
    let cookie = u32::from(u16::from_le_bytes([choice[4], choice[5]]));
    let mut batch = namer.batch(&memory);
    for kind in 0..5 {
        for flags in 0..2 {
            if let Ok(named) = batch.name(&UserFrame { value, cookie, kind, flags, runtime: RuntimeId::HOTSPOT.0, pad: 0 }) {
                assert!(named.len() <= 64 && named.iter().all(|frame| frame.name.len() < 1 << 14));
            }
        }
    }
    assert!(memory.1.get() < 10_000);
});
