//! One interpreter: opened, held against its release, and what the walker must know of it.

use super::check::check;
use super::debug_offsets;
use super::eval::Range;
use super::file::{CODE_TYPE, Files, Interpreter, RUNTIME, VERSION};
use super::offsets::{KNOWN, Offsets};
use super::problem::PythonProblem;
use super::thread::Libraries;
use emberscope_target::memory::{Memory, ProcessMemory};
use emberscope_target::open;
use emberscope_target::same_process;
use profiler_ebpf::{EvalRange, Grouping, MAX_EVAL_RANGES, PythonLayout, RuntimeHead};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// An interpreter whose process is held open.
#[derive(Debug)]
pub struct Python {
    /// Memory of the address space that the process had when it was opened.
    pub(super) memory: ProcessMemory,
    /// Address of `_PyRuntime`.
    runtime: u64,
    /// Address of `PyCode_Type`.
    pub(super) code_type: u64,
    /// Minor version: 3.`minor`.
    pub minor: u8,
    pub(super) offsets: Offsets,
    libraries: Libraries,
    eval: Result<Vec<Range>, PythonProblem>,
}

impl Python {
    /// Opens the process in `process_dir` (`/proc/PID`) that began at `start_ticks` (0: whichever it is).
    ///
    /// # Errors
    /// [`PythonProblem::Gone`]: the process ended, or its pid is another's. Else why its file, release or memory is
    /// not read. Where only the eval loop's code is not known it is opened: [`Self::layout`] fails then.
    pub fn open(process_dir: &Path, start_ticks: u64, files: &Files) -> Result<Self, PythonProblem> {
        // Stays with the process, whoever gets its pid later.
        let dir = open::root(process_dir)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
        if !same_process(&path, start_ticks) {
            return Err(PythonProblem::Gone);
        }
        let interpreter = Interpreter::find(&path, files)?;
        let memory = ProcessMemory::open(&path)?;
        let address = |symbol| interpreter.address(symbol).ok_or(PythonProblem::NoSymbol(symbol));
        let (runtime, code_type) = (address(RUNTIME)?, address(CODE_TYPE)?);
        let version = interpreter.address(VERSION).map(|at| memory.u32(at)).transpose()?;
        let minor = match (version, interpreter.named) {
            (Some(version), _) if version >> 24 != 3 => {
                return Err(PythonProblem::Version((version >> 24) as u8, (version >> 16) as u8));
            }
            (Some(version), _) => (version >> 16) as u8,
            // Up to 3.10 only the file's name tells.
            (None, Some(named)) if named <= 10 => named,
            (None, _) => return Err(PythonProblem::NoSymbol(VERSION)),
        };
        let table = Offsets::of(minor).filter(|_| KNOWN.contains(&minor));
        let table = table.ok_or(PythonProblem::Version(3, minor))?;
        let offsets = debug_offsets::told(&memory, runtime, minor, table)?;
        let libraries = Libraries::of(&path, &interpreter.glibcs, &memory, files.libraries());
        Ok(Self { memory, runtime, code_type, minor, offsets, libraries, eval: interpreter.eval() })
    }

    /// The states of its first interpreter's threads.
    ///
    /// # Errors
    /// As for [`super::check::threads`].
    #[cfg(test)]
    pub fn threads(&self) -> Result<Vec<u64>, PythonProblem> {
        let interpreter = self.memory.u64(self.runtime + self.offsets.interpreters + 8)?;
        super::check::threads(&self.memory, interpreter, &self.offsets)
    }

    /// The same, believed to keep its key elsewhere.
    #[cfg(test)]
    pub fn with_key_at(mut self, key: u64) -> Self {
        self.offsets.key = key;
        self
    }

    /// What the walker must know of the interpreter, but for the incarnation.
    ///
    /// # Errors
    /// Where the eval loop's code is not known, why; else as for [`check`].
    pub fn layout(&self) -> Result<PythonLayout, PythonProblem> {
        let ranges = self.eval.clone()?;
        let interpreter = (self.runtime, self.code_type, self.minor);
        let kept = check(&self.memory, interpreter, &self.offsets, self.libraries)?;
        let mut eval = [EvalRange::default(); MAX_EVAL_RANGES];
        for (place, range) in eval.iter_mut().zip(ranges) {
            *place = EvalRange { low: range.low, len: range.len, pad: 0 };
        }
        let of = &self.offsets;
        let (cframe_frame, cframe_previous) = of.cframe.unwrap_or((PythonLayout::NONE, PythonLayout::NONE));
        let (grouping, group, shim) = of.grouping;
        let frame = [of.previous + 8, of.code + 8, of.instruction + 8, group + 1];
        let version_end = of.version.map_or(0, |version| version + 4);
        let code = [of.filename + 8, of.name + 8, of.lines + 8, of.first_line + 4, of.flags + 4, version_end];
        let whole = |ends: &[u16]| ends.iter().copied().max().unwrap_or(0).next_multiple_of(8);
        Ok(PythonLayout {
            head: RuntimeHead::default(),
            eval,
            code_type: self.code_type,
            key_at: kept.at,
            key_then: kept.then,
            thread_frame: of.thread_frame,
            cframe_frame,
            cframe_previous,
            previous: of.previous,
            code: of.code,
            instruction: of.instruction,
            group: if grouping == Grouping::Each { 0 } else { group },
            frame_bytes: whole(&frame),
            bytecode: of.bytecode,
            filename: of.filename,
            name: of.name,
            lines: of.lines,
            first_line: of.first_line,
            flags: of.flags,
            arguments: of.arguments,
            version: of.version.unwrap_or(PythonLayout::NONE),
            code_bytes: whole(&code),
            instruction_kind: of.instruction_kind as u8,
            grouping: grouping as u8,
            shim,
            pad: [0; 3],
        })
    }
}
