//! A code object: what it is called, where it is from.
//!
//! In: a process's memory, where the walker met the object, and the checksum that it took there. Out: its name, file, first
//! line, and the line of an instruction. The memory of an object that was freed keeps most of its fields, and the next
//! one is soon made at the same place: so the type must be right, the object counted, and the checksum the same, before
//! and after its texts are read. Texts and tables are bounded.

use super::lines;
use super::offsets::{BYTES_DATA, BYTES_SIZE, Offsets, STRING_LENGTH, STRING_STATE};
use emberscope_model::UnknownReason;
use emberscope_target::memory::{Memory, ReadError, at};
use emberscope_target::text::{MAX_NAME, bounded};
use profiler_ebpf::{CodeFields, MAX_PYTHON_CODE, PythonLayout};

/// Characters that are read of a text; a longer one is cut.
const MAX_TEXT: u64 = 4096;
/// Largest table of lines that is read: that of a function of some 10,000 lines.
const MAX_LINES: u64 = 256 << 10;
/// `sizeof(PyCodeObject)` begins with more than this in all releases.
const HEAD: usize = MAX_PYTHON_CODE;

/// What a code object tells. Its texts are bounded and without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The function's qualified name where the release has one (3.11 on), else its name.
    pub name: String,
    /// Name of the file that it is from, as the program gave it.
    pub file: String,
    /// Line of its `def`, from 1; 0: not known.
    pub first_line: u32,
}

/// Reads code objects of one interpreter.
pub struct Codes<'a, M> {
    /// The memory of the interpreter's process.
    pub memory: &'a M,
    /// Address of `PyCode_Type` there: what each code object has as its type.
    pub code_type: u64,
    /// Offsets of the interpreter's release.
    pub offsets: &'a Offsets,
}

impl<M: Memory> Codes<'_, M> {
    /// The object at an address, if it is the one with this checksum. None: it is no function's, but what the interpreter
    /// runs when `__init__` returns (`_Py_InitCleanup`, 3.12 on), of no line and with one text as name and file.
    ///
    /// # Errors
    /// [`UnknownReason::PythonCodeGone`]: what is there now is another object. [`UnknownReason::ProcessGone`]: the
    /// process ended. [`UnknownReason::PythonUnreadable`]: its memory cannot be read, or a text is none of Python 3.3
    /// and newer.
    pub fn read(&self, code: u64, checksum: u32) -> Result<Option<Code>, UnknownReason> {
        let (fields, head) = self.checked(code, checksum)?;
        let first_line = (fields.first_line_flags >> 32) as u32;
        if first_line == 0 && fields.filename == fields.name {
            return Ok(None);
        }
        let name = self.offsets.qualname.map_or(Ok(fields.name), |qualname| word(&head, qualname));
        let name = self.text(name.map_err(reason)?, MAX_NAME).map_err(reason)?;
        let file = self.text(fields.filename, MAX_TEXT as usize).map_err(reason)?;
        // It may have gone meanwhile.
        self.checked(code, checksum)?;
        let first_line = if first_line > i32::MAX as u32 { 0 } else { first_line };
        Ok(Some(Code { name, file, first_line }))
    }

    /// The line of an instruction of it, if the object is the one with this checksum and tells.
    pub fn line(&self, code: u64, checksum: u32, unit: u64) -> Option<u32> {
        let (fields, _) = self.checked(code, checksum).ok()?;
        let size =
            self.memory.u64(at(fields.lines, BYTES_SIZE).ok()?).ok().filter(|size| *size <= MAX_LINES)?;
        let mut table = vec![0; size as usize];
        self.memory.read(at(fields.lines, BYTES_DATA).ok()?, &mut table).ok()?;
        self.checked(code, checksum).ok()?;
        lines::line(self.offsets.line_table, &table, (fields.first_line_flags >> 32) as u32, unit)
    }

    /// The object's head, if it is a code object with this checksum.
    fn checked(&self, code: u64, checksum: u32) -> Result<(CodeFields, [u8; HEAD]), UnknownReason> {
        let head: [u8; HEAD] = self.memory.bytes(code).map_err(reason)?;
        let count = word(&head, 0).map_err(reason)? as u32;
        let kind = word(&head, PythonLayout::TYPE as u16).map_err(reason)?;
        let fields = self.offsets.fields(|at| word(&head, at)).map_err(reason)?;
        // The low half of the count: what is never freed has other bits in the high one (3.14).
        if kind != self.code_type || count == 0 || fields.checksum() != checksum {
            return Err(UnknownReason::PythonCodeGone);
        }
        Ok((fields, head))
    }

    /// A string's characters, of which at most `limit` bytes are kept.
    fn text(&self, string: u64, limit: usize) -> Result<String, ReadError> {
        let length = self.memory.u64(at(string, STRING_LENGTH)?)?.min(MAX_TEXT);
        let state = self.memory.u32(at(string, STRING_STATE)?)?;
        let (width, compact, ascii) = (state >> 2 & 7, state & 0x20 != 0, state & 0x40 != 0);
        // Others are made by C code in the way of Python 3.2.
        if !compact || !matches!(width, 1 | 2 | 4) {
            return Err(ReadError::Fault);
        }
        let (of_ascii, of_others) = self.offsets.characters;
        let mut bytes = vec![0; (length * u64::from(width)) as usize];
        self.memory.read(at(string, if ascii { of_ascii } else { of_others })?, &mut bytes)?;
        let wide = |unit: &[u8]| {
            let number = unit.iter().rev().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
            char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        let text: String = bytes.chunks_exact(width as usize).map(wide).collect();
        Ok(bounded(text.as_bytes(), limit))
    }
}

fn word(head: &[u8], offset: u16) -> Result<u64, ReadError> {
    let word = head.get(usize::from(offset)..).and_then(|rest| rest.first_chunk());
    word.map(|word| u64::from_le_bytes(*word)).ok_or(ReadError::Fault)
}

fn reason(error: ReadError) -> UnknownReason {
    match error {
        ReadError::Gone => UnknownReason::ProcessGone,
        ReadError::Exhausted => UnknownReason::DaemonExhausted,
        ReadError::Fault | ReadError::Denied => UnknownReason::PythonUnreadable,
    }
}
