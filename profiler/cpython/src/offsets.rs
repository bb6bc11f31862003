//! Where CPython keeps what a walk needs, by release: 3.8 to 3.14, for 64-bit builds with the global lock.
//!
//! From the DWARF of 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0 and 3.14.10 (`Include/internal/pycore_runtime.h`,
//! `pycore_frame.h`, `Include/cpython/code.h` of each). From 3.13 on the interpreter describes itself, too
//! ([`super::debug_offsets`]). None is believed before `check` held it against the running interpreter.

use profiler_ebpf::{CodeFields, Grouping, InstructionKind};

/// The least and the greatest minor version that are known.
pub const KNOWN: std::ops::RangeInclusive<u8> = 8..=14;

/// How a code object keeps its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineTable {
    /// `co_lnotab`, up to 3.9.
    Pairs,
    /// `co_linetable` of 3.10.
    Ranges,
    /// `co_linetable` from 3.11 on.
    Locations,
}

/// Bytes from the start of the object that a field belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// `_PyRuntime.gilstate.autoTSSkey` (later `_PyRuntime.autoTSSkey`).
    pub key: u64,
    /// `_PyRuntime.interpreters.head`; `main` is behind it.
    pub interpreters: u64,
    /// Of an interpreter: its first thread's state.
    pub threads: u64,
    /// Of a thread's state: `thread_id`.
    pub thread_id: u64,
    /// Of a thread's state: its frame, or its `CFrame`.
    pub thread_frame: u16,
    /// Of a `CFrame`: the frame, and the `CFrame` before; None: there are none.
    pub cframe: Option<(u16, u16)>,
    /// Of a frame: its caller.
    pub previous: u16,
    /// Of a frame: its code object.
    pub code: u16,
    /// Of a frame: its instruction.
    pub instruction: u16,
    /// How the instruction is told.
    pub instruction_kind: InstructionKind,
    /// How frames are grouped, by which byte of a frame, and the least value that makes it no function's.
    pub grouping: (Grouping, u16, u8),
    /// Of a code object: `co_flags`.
    pub flags: u16,
    /// Of a code object: `co_argcount`.
    pub arguments: u16,
    /// Of a code object: `co_firstlineno`.
    pub first_line: u16,
    /// Of a code object: `co_filename`.
    pub filename: u16,
    /// Of a code object: `co_name`.
    pub name: u16,
    /// Of a code object: `co_qualname`, from 3.11 on.
    pub qualname: Option<u16>,
    /// Of a code object: the table of lines.
    pub lines: u16,
    /// How the table of lines is laid out.
    pub line_table: LineTable,
    /// Of a code object: `co_version`, from 3.12 on.
    pub version: Option<u16>,
    /// Of a code object: its instructions, where they are in there (from 3.11 on).
    pub bytecode: u16,
    /// Of a string: its characters, where all are ASCII and where not.
    pub characters: (u64, u64),
}

/// Of a thread's state: the next thread's state. The same in all releases.
pub const THREAD_NEXT: u64 = 8;
/// Of a thread's state: its interpreter. The same in all releases.
pub const THREAD_INTERPRETER: u64 = 16;
/// Of a string: its length.
pub const STRING_LENGTH: u64 = 16;
/// Of a string: how its characters are kept.
pub const STRING_STATE: u64 = 32;
/// Of a `bytes`: its length.
pub const BYTES_SIZE: u64 = 16;
/// Of a `bytes`: its first byte.
pub const BYTES_DATA: u64 = 32;

impl Offsets {
    /// The offsets of a release 3.`minor`; None: it is not known.
    pub fn of(minor: u8) -> Option<Self> {
        Some(match minor {
            8 => Self { key: 1392, thread_id: 176, ..Self::upto_3_10() },
            9 => Self::upto_3_10(),
            10 => Self {
                instruction: 96,
                instruction_kind: InstructionKind::Units,
                line_table: LineTable::Ranges,
                ..Self::upto_3_10()
            },
            11 => Self {
                key: 592,
                interpreters: 40,
                threads: 16,
                thread_id: 152,
                thread_frame: 56,
                cframe: Some((8, 16)),
                previous: 48,
                code: 32,
                grouping: (Grouping::Mark, 68, 0),
                arguments: 56,
                first_line: 72,
                version: None,
                bytecode: 184,
                characters: (48, 72),
                ..Self::since_3_12()
            },
            12 => Self {
                key: 1544,
                interpreters: 40,
                threads: 72,
                thread_id: 136,
                thread_frame: 56,
                cframe: Some((0, 8)),
                bytecode: 192,
                ..Self::since_3_12()
            },
            13 => Self::since_3_12(),
            14 => Self {
                key: 2336,
                interpreters: 808,
                grouping: (Grouping::Shim, 74, 3),
                bytecode: 208,
                ..Self::since_3_12()
            },
            _ => return None,
        })
    }

    /// What tells a code object from others, as the walker takes it. `word` gives the eight bytes at an offset of the
    /// object.
    ///
    /// # Errors
    /// The first of `word`.
    pub fn fields<E>(&self, word: impl Fn(u16) -> Result<u64, E>) -> Result<CodeFields, E> {
        let half = |offset: u16| Ok::<u64, E>(word(offset)? & 0xffff_ffff);
        let version = self.version.map_or(Ok(0), half)?;
        Ok(CodeFields {
            filename: word(self.filename)?,
            name: word(self.name)?,
            lines: word(self.lines)?,
            first_line_flags: half(self.first_line)? << 32 | half(self.flags)?,
            arguments_version: version << 32 | half(self.arguments)?,
        })
    }

    /// 3.9; 3.8 and 3.10 differ little.
    const fn upto_3_10() -> Self {
        Self {
            key: 584,
            interpreters: 32,
            threads: 8,
            thread_id: 176,
            thread_frame: 24,
            cframe: None,
            previous: 24,
            code: 32,
            instruction: 104,
            instruction_kind: InstructionKind::Bytes,
            grouping: (Grouping::Each, 0, 0),
            flags: 36,
            arguments: 16,
            first_line: 40,
            filename: 104,
            name: 112,
            qualname: None,
            lines: 120,
            line_table: LineTable::Pairs,
            version: None,
            bytecode: 0,
            characters: (48, 72),
        }
    }

    /// 3.13; 3.12 and 3.14 differ little.
    const fn since_3_12() -> Self {
        Self {
            key: 2160,
            interpreters: 632,
            threads: 7344,
            thread_id: 152,
            thread_frame: 72,
            cframe: None,
            previous: 8,
            code: 0,
            instruction: 56,
            instruction_kind: InstructionKind::Pointer,
            grouping: (Grouping::Shim, 70, 3),
            flags: 48,
            arguments: 52,
            first_line: 68,
            filename: 112,
            name: 120,
            qualname: Some(128),
            lines: 136,
            line_table: LineTable::Locations,
            version: Some(92),
            bytecode: 200,
            characters: (40, 56),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_ebpf::{MAX_PYTHON_CODE, MAX_PYTHON_FRAME};

    #[test]
    fn the_walker_reads_all_fields_at_once() {
        for minor in KNOWN {
            let offsets = Offsets::of(minor).unwrap();
            let frame = [offsets.previous, offsets.code, offsets.instruction, offsets.grouping.1];
            assert!(frame.iter().all(|at| usize::from(*at) <= MAX_PYTHON_FRAME - 8), "{minor}");
            let code = [offsets.filename, offsets.name, offsets.lines, offsets.first_line, offsets.flags];
            let rest = [offsets.arguments, offsets.version.unwrap_or(0)];
            assert!(code.iter().chain(&rest).all(|at| usize::from(*at) <= MAX_PYTHON_CODE - 8), "{minor}");
        }
        assert!(Offsets::of(7).is_none() && Offsets::of(15).is_none());
    }
}
