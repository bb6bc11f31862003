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

/// Code objects that are kept of all interpreters together: at most 128 bytes each, its name counted in. As many as fill a
/// table: of one more it would be twice as large. A PySpark worker's stacks hold some hundred.
const MAX_CODES: usize = 57_344;
/// Of each they are at least so many.
const LEAST_CODES: usize = 512;

/// What was read of a code object.
struct Known {
    /// Without its file: together they are in the frames, which are kept once.
    name: Box<str>,
    /// The place of its file in the table of files.
    file: u32,
    first_line: u32,
}

/// Files of code objects, each once: a module's functions share it.
#[derive(Default)]
struct Files {
    places: FastMap<Arc<str>, u32>,
    files: Vec<Arc<str>>,
}

impl Files {
    /// No more of them than code objects.
    fn place(&mut self, file: &str) -> u32 {
        if let Some(place) = self.places.get(file) {
            return *place;
        }
        let (place, file) = (self.files.len() as u32, Arc::<str>::from(file));
        self.places.insert(Arc::clone(&file), place);
        self.files.push(file);
        place
    }
}

/// Names of one interpreter's frames.
pub struct Names {
    /// By address and checksum what was read; None: a code object that is of no function.
    known: FastMap<(u64, u32), Option<Known>>,
    files: Files,
    limit: usize,
}

impl Default for Names {
    fn default() -> Self {
        Self { known: FastMap::default(), files: Files::default(), limit: MAX_CODES }
    }
}

impl Names {
    /// So many interpreters share the room for code objects.
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
            self.keep(key, code.as_ref());
        }
        let known = self.known.get(&key).ok_or(UnknownReason::PythonUnreadable)?;
        let Some(known) = known else { return Ok([].into()) };
        let file = self.files.files.get(known.file as usize).ok_or(UnknownReason::PythonUnreadable)?;
        let line = place.unit().and_then(|unit| codes.line(place.code(), checksum, unit));
        let frame = Frame {
            signature: Some(format!(":{}", known.first_line).into()),
            line: line.unwrap_or(0),
            ..Frame::new(FrameKind::Python, called(&known.name, file), Arc::clone(file))
        };
        Ok([frame].into())
    }

    fn keep(&mut self, key: (u64, u32), code: Option<&Code>) {
        if self.known.len() >= self.limit {
            self.known.clear();
            self.files = Files::default();
        }
        let known = code.map(|code| Known {
            name: code.name.as_str().into(),
            file: self.files.place(&code.file),
            first_line: code.first_line,
        });
        self.known.insert(key, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that the allocator takes for so many (malloc of glibc: 8 of its own, in steps of 16).
    fn allocated(bytes: usize) -> usize {
        (bytes + 8).next_multiple_of(16)
    }

    /// The counts of an `Arc`, and its text.
    fn text(text: &Arc<str>) -> usize {
        allocated(16 + text.len())
    }

    /// A table of hashbrown: a power of two of places, seven of eight in use, a byte of control each.
    fn table(capacity: usize, entry: usize) -> usize {
        allocated((capacity * 8 / 7).next_power_of_two() * (entry + 1))
    }

    fn bytes(names: &Names) -> usize {
        let texts = names.known.values().flatten().map(|known| allocated(known.name.len()));
        let files = &names.files;
        table(names.known.capacity(), size_of::<((u64, u32), Option<Known>)>())
            + texts.sum::<usize>()
            + table(files.places.capacity(), size_of::<(Arc<str>, u32)>())
            + files.files.capacity() * size_of::<Arc<str>>()
            + files.files.iter().map(text).sum::<usize>()
    }

    #[test]
    fn what_is_kept_of_a_code_object_is_small() {
        let mut names = Names::default();
        let code = |at: usize| Code {
            name: format!("Class{}.method_of_{at}", at % 90),
            file: format!("/usr/lib/python3/dist-packages/package/module_{}.py", at / 30),
            first_line: at as u32,
        };
        for at in 0..MAX_CODES {
            names.keep((at as u64 * 64, 1), Some(&code(at)));
        }
        let each = bytes(&names) as f64 / MAX_CODES as f64;
        println!("{each:.1} bytes a code object");
        assert!(each <= 128.0, "{each:.1} bytes a code object");
        // One more takes no more room than before.
        names.keep((1, 1), Some(&code(1)));
        assert_eq!((names.known.len(), names.files.files.len()), (1, 1));
        assert!(bytes(&names) < 57_344 * 128);
    }
}
