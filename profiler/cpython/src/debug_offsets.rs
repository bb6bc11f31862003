//! What an interpreter from 3.13 on says of itself: `_Py_DebugOffsets`, at the head of `_PyRuntime`.
//!
//! In: the process's memory. Out: whether it is a free-threaded build, and whether the table of its release
//! (`offsets`) says the same. Laid out as in `Include/internal/pycore_debug_offsets.h` (3.13 in `pycore_runtime.h`): words
//! of eight bytes, whose positions differ between releases; of a release without positions nothing is taken.

use super::offsets::Offsets;
use super::problem::PythonProblem;
use emberscope_target::memory::{Memory, at};

const COOKIE: [u8; 8] = *b"xdebugpy";
/// Bytes that hold all the fields below.
const LEN: usize = 400;

/// Positions of fields, in bytes.
struct Positions {
    threads: usize,
    thread_frame: usize,
    previous: usize,
    code: usize,
    instruction: usize,
    owner: usize,
    filename: usize,
    name: usize,
    qualname: usize,
    lines: usize,
    first_line: usize,
    bytecode: usize,
}

const V13: Positions = Positions {
    threads: 72,
    thread_frame: 184,
    previous: 232,
    code: 240,
    instruction: 248,
    owner: 264,
    filename: 280,
    name: 288,
    qualname: 296,
    lines: 304,
    first_line: 312,
    bytecode: 344,
};

const V14: Positions = Positions {
    threads: 72,
    thread_frame: 208,
    previous: 256,
    code: 264,
    instruction: 272,
    owner: 288,
    filename: 320,
    name: 328,
    qualname: 336,
    lines: 344,
    first_line: 352,
    bytecode: 384,
};

/// Where `interpreters_head` is, in both.
const INTERPRETERS: usize = 40;

/// The offsets that the interpreter tells, the rest being the table's.
///
/// # Errors
/// From 3.13 on; an older release tells nothing, and its table is taken. [`PythonProblem::NotReady`]: nothing was
/// written there yet. [`PythonProblem::Offsets`]: another release, or a field too far away.
/// [`PythonProblem::FreeThreaded`], [`PythonProblem::Version`]; reading: `Gone`, `Denied`, `Fault`.
pub fn told<M: Memory>(
    memory: &M,
    runtime: u64,
    minor: u8,
    table: Offsets,
) -> Result<Offsets, PythonProblem> {
    let positions = match minor {
        13 => V13,
        14 => V14,
        ..13 => return Ok(table),
        _ => return Err(PythonProblem::Version(3, minor)),
    };
    let bytes: [u8; LEN] = memory.bytes(at(runtime, 0)?)?;
    let word = |at: usize| {
        bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(u64::MAX, |word| u64::from_le_bytes(*word))
    };
    if !bytes.starts_with(&COOKIE) {
        // Written when the runtime is set up; in the file from the start.
        return Err(PythonProblem::NotReady);
    }
    if word(8) >> 16 != 0x300 | u64::from(minor) {
        return Err(PythonProblem::Offsets(3, minor, "it says that it is another release"));
    }
    if word(16) != 0 {
        return Err(PythonProblem::FreeThreaded);
    }
    let small = |at: usize| {
        let far = PythonProblem::Offsets(3, minor, "a field is too far from the start of its object");
        u16::try_from(word(at)).ok().filter(|offset| *offset < 0x7fff).ok_or(far)
    };
    let (grouping, _, shim) = table.grouping;
    Ok(Offsets {
        interpreters: u64::from(small(INTERPRETERS)?),
        threads: u64::from(small(positions.threads)?),
        thread_frame: small(positions.thread_frame)?,
        previous: small(positions.previous)?,
        code: small(positions.code)?,
        instruction: small(positions.instruction)?,
        grouping: (grouping, small(positions.owner)?, shim),
        filename: small(positions.filename)?,
        name: small(positions.name)?,
        qualname: Some(small(positions.qualname)?),
        lines: small(positions.lines)?,
        first_line: small(positions.first_line)?,
        bytecode: small(positions.bytecode)?,
        ..table
    })
}
