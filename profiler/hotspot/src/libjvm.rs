//! The libjvm.so of a process: which file, mapped where, and what its symbols tell.
//!
//! In: the process's directory in /proc. Out: [`Libjvm`], with the very file that is mapped, also inside a
//! container or deleted. What the symbols tell is kept by file ([`LibjvmFiles`]), for the copies of one
//! library in many processes; what the process's memory tells is never shared, as each process could lie.

use super::operations::{self, Operations};
use super::probe_place;
use super::problem::JvmProblem;
use super::stub_fields::{self, StubField};
use super::vm_structs::SYMBOLS;
use emberscope_model::{AllocProbe, FileId, NameProbe, PauseProbe};
use emberscope_target::ByFile;
use emberscope_target::elf::{
    ElfError, Headers, Segment, bias, file_offset, find_symbols, find_symbols_starting,
};
use emberscope_target::errand::Held;
use emberscope_target::open;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// `os::set_native_thread_name(const char*)`: local, so only in .symtab. JDK 8 to 25, os_linux.cpp.
const NATIVE: &str = "_ZN2os22set_native_thread_nameEPKc";
/// `AllocTracer::send_allocation_in_new_tlab`: local; as JDK 17 to 25 have it, 15 and 16, 11 to 14 (allocTracer.hpp).
const IN_NEW_TLAB: [&str; 3] = [
    "_ZN11AllocTracer27send_allocation_in_new_tlabEP5KlassPP12HeapWordImplmmP10JavaThread",
    "_ZN11AllocTracer27send_allocation_in_new_tlabEP5KlassPP12HeapWordImplmmP6Thread",
    "_ZN11AllocTracer27send_allocation_in_new_tlabEP5KlassP8HeapWordmmP6Thread",
];
/// `AllocTracer::send_allocation_outside_tlab`: likewise.
const OUTSIDE_TLAB: [&str; 3] = [
    "_ZN11AllocTracer28send_allocation_outside_tlabEP5KlassPP12HeapWordImplmP10JavaThread",
    "_ZN11AllocTracer28send_allocation_outside_tlabEP5KlassPP12HeapWordImplmP6Thread",
    "_ZN11AllocTracer28send_allocation_outside_tlabEP5KlassP8HeapWordmP6Thread",
];
/// Functions that are run once a pause: local; those of the service with an argument from JDK 14 on, and without before
/// (runtimeService.hpp).
const SAFEPOINT_BEGIN: [&str; 2] =
    ["_ZN14RuntimeService22record_safepoint_beginEl", "_ZN14RuntimeService22record_safepoint_beginEv"];
/// See [`SAFEPOINT_BEGIN`].
const SAFEPOINT_END: [&str; 2] =
    ["_ZN14RuntimeService20record_safepoint_endEl", "_ZN14RuntimeService20record_safepoint_endEv"];
/// `VM_Operation::evaluate()`: local; JDK 8 to 25 (vmOperations.cpp).
const EVALUATE: [&str; 1] = ["_ZN12VM_Operation8evaluateEv"];
/// Exported for Thread.setName (jvm.cpp); its third argument is a handle of the String.
const EXPORTED: &str = "JVM_SetNativeThreadName";

/// Local symbols that the tables leave out in some releases: where a virtual thread's lowest frame returns, and
/// where its carrier goes on (JDK 21 on).
pub const CONT_RETURN_BARRIER: &str = "_ZN12StubRoutines19_cont_returnBarrierE";
/// See [`CONT_RETURN_BARRIER`].
pub const CONT_ENTRY_RETURN: &str = "_ZN17ContinuationEntry10_return_pcE";
/// `Deoptimization::_deoptimization_hist`: deoptimisations by reason, action and bytecode, 4 bytes each, the first of which
/// counts all (`gather_statistics`, deoptimization.cpp); local. The symbol was seen in JDK 11, 17, 21 and 25.
pub(super) const DEOPTIMIZATIONS: &str = "_ZN14Deoptimization20_deoptimization_histE";

/// What a file's symbols tell; addresses as linked.
#[derive(Debug)]
struct Facts {
    probe: Option<NameProbe>,
    allocations: Option<AllocProbe>,
    pauses: Option<PauseProbe>,
    operations: Operations,
    tables: HashMap<&'static str, u64>,
    /// Addresses of local symbols, from .symtab.
    local: HashMap<&'static str, u64>,
    /// Fields with the stubs' addresses, from .symtab.
    stubs: Vec<StubField>,
    segments: Vec<Segment>,
}

/// What is known of libjvm files; one for the whole daemon.
#[derive(Debug, Default)]
pub struct LibjvmFiles(ByFile<Facts>);

/// A process's libjvm.so.
#[derive(Debug)]
pub struct Libjvm {
    /// The file by device and inode.
    pub id: FileId,
    /// The file, open: attach to `/proc/self/fd/N` of it.
    pub file: Held,
    /// Added to an address as linked, it gives the one in this process.
    pub bias: u64,
    /// Where to see names; None: the file has neither symbol.
    pub probe: Option<NameProbe>,
    /// Where to see allocations; None: the file has not both symbols.
    pub allocations: Option<AllocProbe>,
    /// Where to see pauses; None: the file has not all symbols.
    pub pauses: Option<PauseProbe>,
    facts: Arc<Facts>,
}

impl Libjvm {
    /// Finds the libjvm.so of a process. `process_dir` is `/proc/PID`, and `opened` a way to the same that stays the
    /// process's.
    ///
    /// # Errors
    /// [`JvmProblem::NoLibjvm`]: no libjvm.so is mapped, or not yet. [`JvmProblem::OpenJ9`]: another virtual machine.
    /// [`JvmProblem::Gone`]: the process ended. [`JvmProblem::File`]: its maps or the file cannot be read, or the path
    /// is another file's by now. [`JvmProblem::Elf`]: the file is no ELF of 64 bits, its headers lie, or its symbols
    /// are too many.
    pub fn find(process_dir: &Path, opened: &Path, files: &LibjvmFiles) -> Result<Self, JvmProblem> {
        let mappings = open::mappings(opened)?.mappings;
        if mappings.iter().any(|m| m.module_name().starts_with("libj9vm")) {
            return Err(JvmProblem::OpenJ9);
        }
        let mapping = mappings.iter().find(|m| m.module_name() == "libjvm.so");
        let mapping = mapping.ok_or(JvmProblem::NoLibjvm)?;
        let (file, stat) = open::mapped_file(opened, mapping)?;
        // Devices are printed in maps otherwise than stat tells them on btrfs and overlayfs; inodes are not.
        if stat.st_ino != mapping.inode {
            return Err(JvmProblem::File("another file is there now"));
        }
        let id = FileId { dev: stat.st_dev, ino: stat.st_ino };
        let facts = files.0.get(&stat, || read_facts(&file, stat.st_size as u64));
        let facts = facts.map_err(|e| JvmProblem::Elf(e.to_string()))?;
        let bias =
            bias(&facts.segments, mapping).ok_or_else(|| JvmProblem::Elf(ElfError::Malformed.to_string()))?;
        let (probe, allocations, pauses) = (facts.probe, facts.allocations, facts.pauses);
        Ok(Self { id, file: Held::new(file, process_dir), bias, probe, allocations, pauses, facts })
    }

    /// Where a symbol of [`SYMBOLS`] is in this process.
    pub fn address(&self, symbol: &str) -> Option<u64> {
        self.facts.tables.get(symbol).map(|linked| linked.wrapping_add(self.bias))
    }

    /// Where `CONT_RETURN_BARRIER`, `CONT_ENTRY_RETURN` or `DEOPTIMIZATIONS` is; None where the file's .symtab was stripped, or the
    /// release has none.
    pub fn local_address(&self, symbol: &str) -> Option<u64> {
        self.facts.local.get(symbol).map(|linked| linked.wrapping_add(self.bias))
    }

    /// Operations for which the JVM stops its threads, by the addresses of their virtual tables in this process.
    pub(crate) fn operations(&self) -> Operations {
        self.facts.operations.moved(self.bias)
    }

    /// Where this process has the addresses of its stubs; none where the file's .symtab was stripped.
    pub(crate) fn stubs(&self) -> impl Iterator<Item = StubField> {
        let here =
            |field: &StubField| StubField { address: field.address.wrapping_add(self.bias), ..field.clone() };
        self.facts.stubs.iter().map(here)
    }
}

fn read_facts(file: &File, size: u64) -> Result<Facts, ElfError> {
    let headers = Headers::read(file, size)?;
    let segments = headers.segments(file)?;
    let (mut native, mut exported, mut tables, mut local) = (None, None, HashMap::new(), HashMap::new());
    let (mut stubs, mut operations) = (Vec::new(), Operations::default());
    for table in headers.symbol_tables() {
        if table.dynamic {
            let names: Vec<_> = SYMBOLS.into_iter().chain([EXPORTED]).collect();
            tables = find_symbols(file, &table, &names)?;
            exported = tables.remove(EXPORTED);
        } else {
            let names = [NATIVE, CONT_RETURN_BARRIER, CONT_ENTRY_RETURN, DEOPTIMIZATIONS];
            let names = names.into_iter().chain(IN_NEW_TLAB).chain(OUTSIDE_TLAB);
            let names: Vec<_> = names.chain(SAFEPOINT_BEGIN).chain(SAFEPOINT_END).chain(EVALUATE).collect();
            local = find_symbols(file, &table, &names)?;
            native = local.remove(NATIVE);
            let fields = find_symbols_starting(file, &table, stub_fields::CLASS, stub_fields::MAX_NAMES)?;
            stubs = fields.iter().filter_map(|(name, symbol)| StubField::of_symbol(name, *symbol)).collect();
            let tables = find_symbols_starting(file, &table, operations::TABLES, operations::MAX_NAMES)?;
            operations = Operations::of_symbols(&tables);
        }
    }
    // Where a probe is best, from the function's begin.
    let in_code = |address: Option<u64>| {
        let offset = file_offset(&segments, address?)?;
        let mut code = [0; probe_place::LOOKED_AT];
        let read = file.read_at(&mut code, offset).unwrap_or(0);
        offset.checked_add(probe_place::cheapest(code.get(..read)?))
    };
    let probe = match (in_code(native), in_code(exported)) {
        (Some(offset), by_java) => Some(NameProbe::NativeName { offset, by_java }),
        (None, Some(offset)) => Some(NameProbe::JavaName { offset }),
        (None, None) => None,
    };
    let since = local.contains_key(SAFEPOINT_BEGIN[0]);
    let mut first =
        |names: &[&'static str]| in_code(names.iter().filter_map(|name| local.remove(name)).next());
    let (begin, operation, end) = (first(&SAFEPOINT_BEGIN), first(&EVALUATE), first(&SAFEPOINT_END));
    let pauses = begin.zip(operation).zip(end).map(|((begin, operation), end)| PauseProbe {
        begin,
        since,
        operation,
        end,
    });
    let allocations = first(&IN_NEW_TLAB)
        .zip(first(&OUTSIDE_TLAB))
        .map(|(in_new_tlab, outside_tlab)| AllocProbe { in_new_tlab, outside_tlab });
    Ok(Facts { probe, allocations, pauses, operations, tables, local, stubs, segments })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_no_jvm() {
        let files = LibjvmFiles::default();
        let (me, nobody) = (Path::new("/proc/self"), Path::new("/proc/4194305"));
        assert_eq!(Libjvm::find(me, me, &files).unwrap_err(), JvmProblem::NoLibjvm);
        let gone = Libjvm::find(nobody, nobody, &files);
        assert_eq!(gone.unwrap_err(), JvmProblem::Gone);
    }

    #[test]
    fn a_stripped_one_has_the_exported_function_and_the_tables() {
        let strip = || std::process::Command::new("strip");
        if strip().arg("--version").output().is_err() {
            emberscope_testkit::skip("no strip");
            return;
        }
        for jdk in emberscope_testkit::jdks::jdks() {
            let whole = File::open(jdk.join("lib/server/libjvm.so")).unwrap();
            let whole = read_facts(&whole, whole.metadata().unwrap().len()).unwrap();
            let stripped = tempfile::NamedTempFile::new().unwrap();
            let done = strip().arg(jdk.join("lib/server/libjvm.so")).arg("-o").arg(stripped.path()).status();
            assert!(done.unwrap().success());
            let file = File::open(stripped.path()).unwrap();
            let facts = read_facts(&file, file.metadata().unwrap().len()).unwrap();
            let Some(NameProbe::NativeName { offset: native, by_java }) = whole.probe else {
                panic!("{:?}", whole.probe)
            };
            assert!(whole.allocations.is_some_and(|found| found.in_new_tlab != found.outside_tlab));
            let (pauses, operations) = (whole.pauses.unwrap(), &whole.operations);
            assert!(pauses.begin != pauses.end && pauses.operation != pauses.begin);
            assert!(operations.names().any(|name| name == "G1CollectForAllocation"));
            assert_eq!((facts.pauses, facts.operations), (None, Operations::default()));
            assert_eq!((facts.allocations, facts.stubs), (None, Vec::new()));
            let has = |stub: &str| whole.stubs.iter().any(|field| &*field.name == stub);
            assert!(["call_stub", "dsin", "jbyte_arraycopy"].into_iter().all(has), "{:?}", whole.stubs);
            let Some(NameProbe::JavaName { offset }) = facts.probe else { panic!("{:?}", facts.probe) };
            assert!(offset != native && by_java == Some(offset));
            assert_eq!(facts.tables, whole.tables);
            assert_eq!(facts.tables.len(), SYMBOLS.len());
        }
    }
}
