//! The file of an interpreter: which one is mapped, where, and what its symbols tell.
//!
//! In: a process's directory in /proc. Out: [`Interpreter`]. What the file tells is kept by file ([`Files`]), for the
//! many processes that run one; what the process's memory tells is never shared, as each process could lie. A shared
//! libpython is preferred to the program, which is a shim then; embedders look the same.

use super::eval::{self, Range};
use super::offsets::KNOWN;
use super::problem::PythonProblem;
use super::thread::{LibraryFiles, glibcs};
use emberscope_target::ByFile;
use emberscope_target::elf::{Headers, Segment, Symbol, bias, find_sized_symbols};
use emberscope_target::maps::{Backing, Mapping};
use emberscope_target::open;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The interpreter's state. In .dynsym of every build, also of stripped ones, as the symbols below.
pub const RUNTIME: &str = "_PyRuntime";
/// The type of code objects.
pub const CODE_TYPE: &str = "PyCode_Type";
/// From 3.11 on: major, minor, micro and level in a byte each.
pub const VERSION: &str = "Py_Version";
/// The eval loop.
pub const EVAL: &str = "_PyEval_EvalFrameDefault";
/// In .symtab only: the part of the eval loop that is rarely run.
pub const EVAL_COLD: &str = "_PyEval_EvalFrameDefault.cold";
/// In .symtab only, of a build with the JIT compiler (3.13 on).
const JIT: &str = "_PyJIT_Compile";

/// What a file tells; addresses as linked.
#[derive(Debug)]
struct Facts {
    symbols: HashMap<&'static str, Symbol>,
    segments: Vec<Segment>,
    eval: Result<Vec<Range>, PythonProblem>,
}

/// What is known of interpreters' files; one for the whole daemon.
#[derive(Debug, Default)]
pub struct Files(ByFile<Facts>, LibraryFiles);

impl Files {
    /// What is known of C libraries' files.
    pub fn libraries(&self) -> &LibraryFiles {
        &self.1
    }
}

/// A process's interpreter.
#[derive(Debug)]
pub struct Interpreter {
    /// The minor version that the file's name tells.
    pub named: Option<u8>,
    /// Where the process has glibc.
    pub glibcs: Vec<Mapping>,
    bias: u64,
    facts: Arc<Facts>,
}

impl Interpreter {
    /// Finds the interpreter of a process. `dir` is a way to the process's directory in /proc that stays the
    /// process's.
    ///
    /// # Errors
    /// [`PythonProblem::NotFound`]: no file of CPython is mapped. [`PythonProblem::PyPy`],
    /// [`PythonProblem::Version`]: one that is not read. [`PythonProblem::File`]: the file cannot be opened, or was
    /// replaced. [`PythonProblem::Elf`], [`PythonProblem::NoSymbol`]: the file is no such program.
    /// [`PythonProblem::Gone`]: the process ended.
    pub fn find(dir: &Path, files: &Files) -> Result<Self, PythonProblem> {
        let mappings = open::mappings(dir)?.mappings;
        if mappings.iter().any(|mapping| mapping.module_name().contains("pypy")) {
            return Err(PythonProblem::PyPy);
        }
        let library = mappings.iter().find_map(|mapping| Some((mapping, minor_of(mapping, "libpython3.")?)));
        let program = || mappings.iter().find_map(|mapping| Some((mapping, minor_of(mapping, "python3.")?)));
        let (mapping, named) = library.or_else(program).ok_or(PythonProblem::NotFound)?;
        if named < *KNOWN.start() {
            return Err(PythonProblem::Version(3, named));
        }
        let (file, stat) = open::mapped_file(dir, mapping)?;
        // Devices are printed in maps otherwise than stat tells them on btrfs and overlayfs; inodes are not.
        if stat.st_ino != mapping.inode {
            return Err(PythonProblem::File("another file is there now"));
        }
        let facts = files.0.get(&stat, || read_facts(&file, stat.st_size as u64))?;
        let bias = bias(&facts.segments, mapping)
            .ok_or_else(|| PythonProblem::Elf("its code is mapped from nowhere".to_owned()))?;
        Ok(Self { named: Some(named), glibcs: glibcs(&mappings), bias, facts })
    }

    /// Where a symbol is in this process.
    pub fn address(&self, symbol: &'static str) -> Option<u64> {
        self.facts.symbols.get(symbol).map(|symbol| symbol.address.wrapping_add(self.bias))
    }

    /// Where the code of the eval loop is in this process.
    ///
    /// # Errors
    /// [`PythonProblem::Jit`], or [`PythonProblem::EvalRange`], as found when the file was read.
    pub fn eval(&self) -> Result<Vec<Range>, PythonProblem> {
        let ranges = self.facts.eval.clone()?;
        Ok(ranges
            .into_iter()
            .map(|range| Range { low: range.low.wrapping_add(self.bias), ..range })
            .collect())
    }
}

/// The minor version in a mapped file's name, which begins with `prefix`.
fn minor_of(mapping: &Mapping, prefix: &str) -> Option<u8> {
    let Backing::File { path, .. } = &mapping.backing else { return None };
    let rest = path.file_name()?.to_str()?.strip_prefix(prefix)?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    rest.get(..digits)?.parse().ok()
}

fn read_facts(file: &File, size: u64) -> Result<Facts, PythonProblem> {
    let elf = |error: emberscope_target::elf::ElfError| PythonProblem::Elf(error.to_string());
    let headers = Headers::read(file, size).map_err(elf)?;
    let segments = headers.segments(file).map_err(elf)?;
    let mut symbols = HashMap::new();
    for table in headers.symbol_tables() {
        let names = [RUNTIME, CODE_TYPE, VERSION, EVAL, EVAL_COLD, JIT];
        for (name, symbol) in find_sized_symbols(file, &table, &names).map_err(elf)? {
            symbols.entry(name).or_insert(symbol);
        }
    }
    for needed in [RUNTIME, CODE_TYPE, EVAL] {
        if !symbols.contains_key(needed) {
            return Err(PythonProblem::NoSymbol(needed));
        }
    }
    let eval = if symbols.contains_key(JIT) {
        Err(PythonProblem::Jit)
    } else {
        let parts = (symbols.get(EVAL).copied(), symbols.get(EVAL_COLD).copied());
        eval::ranges(file, &headers, &segments, parts)
    };
    Ok(Facts { symbols, segments, eval })
}
