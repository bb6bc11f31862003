//! Names of the frames that the walker deferred, of one interpreter.
//!
//! In: places in code objects, with checksums. Out: a frame each: what the function is called, its file, its first line and
//! the line of the instruction. What was read of a code object is kept, so that it has its name when the object or the
//! process is gone; lines are read with each new instruction.

use super::code::{Code, Codes};
use super::file_name::called;
use super::python::Python;
use emberscope_model::{FastMap, Frame, FrameKind, UnknownReason};
use emberscope_runtime::{Answer, DeferredFrame};
use profiler_ebpf::{PythonFrameTag, PythonPlace};
use std::sync::Arc;

/// Code objects that are kept of all interpreters together: some 100 bytes each beside their texts, which frames share. A
/// PySpark worker's stacks hold some hundred.
const MAX_CODES: usize = 65_536;
/// Of each they are at least so many.
const LEAST_CODES: usize = 512;

/// Of a code object.
struct Known {
    name: Arc<str>,
    file: Arc<str>,
    first_line: Arc<str>,
}

/// Names of one interpreter's frames.
pub struct Names {
    /// None: of no function.
    known: FastMap<(u64, u32), Option<Known>>,
    limit: usize,
}

impl Default for Names {
    fn default() -> Self {
        Self { known: FastMap::default(), limit: MAX_CODES }
    }
}

impl Names {
    /// So many interpreters share the room.
    pub fn share(&mut self, held: usize) {
        self.limit = (MAX_CODES / held.max(1)).max(LEAST_CODES);
    }

    /// Names a frame.
    pub fn name(&mut self, python: &Python, frame: &DeferredFrame) -> Answer {
        let (place, checksum) = (PythonPlace(frame.frame.value), frame.frame.cookie);
        match PythonFrameTag::from_number(frame.frame.kind) {
            Some(PythonFrameTag::Function | PythonFrameTag::Entry) => {}
            _ => return Err(UnknownReason::PythonUnreadable),
        }
        let codes = Codes { memory: &python.memory, code_type: python.code_type, offsets: &python.offsets };
        let key = (place.code(), checksum);
        if !self.known.contains_key(&key) {
            let code = codes.read(place.code(), checksum)?;
            if self.known.len() >= self.limit {
                self.known.clear();
            }
            self.known.insert(key, code.as_ref().map(Known::of));
        }
        let known = self.known.get(&key).ok_or(UnknownReason::PythonUnreadable)?;
        let Some(known) = known else { return Ok([].into()) };
        let line = place.unit().and_then(|unit| codes.line(place.code(), checksum, unit));
        let frame = Frame {
            signature: Some(Arc::clone(&known.first_line)),
            line: line.unwrap_or(0),
            ..Frame::new(FrameKind::Python, Arc::clone(&known.name), Arc::clone(&known.file))
        };
        Ok([frame].into())
    }
}

impl Known {
    fn of(code: &Code) -> Self {
        Self {
            name: called(&code.name, &code.file).into(),
            file: code.file.as_str().into(),
            first_line: format!(":{}", code.first_line).into(),
        }
    }
}
