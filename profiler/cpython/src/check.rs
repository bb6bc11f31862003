//! Offsets held against the running interpreter, before the walker is told them.
//!
//! In: a process's memory and what is believed of its release. Out: where each thread keeps its `PyThreadState`. That is
//! found by trying: the C library keeps it under a key (`pthread_setspecific`), and the place is right whose word is the
//! state of a thread whose `pthread_self()` the state itself tells (`thread_id`); how far that is from the thread pointer, and
//! from the values of keys, the C library tells ([`Libraries`]). So key, interpreter, threads and C library are held against each other at once.

use super::offsets::{Offsets, THREAD_INTERPRETER, THREAD_NEXT};
use super::problem::PythonProblem;
use super::thread::{Libraries, Threads};
use emberscope_target::memory::{Memory, ReadError, at};
use profiler_ebpf::{Grouping, PythonLayout};

/// Threads that are looked at.
const MAX_THREADS: usize = 64;
/// Frames of one of them: shims before the first function's.
const MAX_FRAMES: usize = 4;
/// `_PyRuntime` is searched this far for another key than the table's.
const MAX_SEARCH: usize = 8192;
/// `PTHREAD_KEYS_MAX` of glibc; musl has 128.
const MAX_KEYS: u32 = 1024;
/// Keys whose values glibc keeps in `struct pthread` itself, 16 bytes each: `specific_1stblock` (nptl/descr.h).
const FIRST_KEYS: u32 = 32;

/// Where a thread keeps its state: [`PythonLayout::key_at`] and [`PythonLayout::key_then`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Bytes from the thread pointer to the word that has it, or that points to a table of values.
    pub at: i32,
    /// Bytes from where that word points to; negative: the word itself has it.
    pub then: i32,
}

/// Where threads keep their states, in an interpreter that is as `offsets` say, with one of these C libraries.
///
/// # Errors
/// [`PythonProblem::NotReady`]: there is no interpreter or no thread yet. [`PythonProblem::Offsets`]: the threads or
/// the innermost frame are not where the release has them. [`PythonProblem::ThreadKey`]: no C library's place has a
/// thread's state. Reading: `Gone`, `Denied`, `Fault`.
pub fn check<M: Memory>(
    memory: &M,
    (runtime, code_type, minor): (u64, u64, u8),
    offsets: &Offsets,
    libraries: Libraries,
) -> Result<Kept, PythonProblem> {
    let interpreter = memory.u64(at(runtime, offsets.interpreters + 8)?)?;
    if interpreter == 0 {
        return Err(PythonProblem::NotReady);
    }
    let not = |what| PythonProblem::Offsets(3, minor, what);
    let threads =
        threads(memory, interpreter, offsets).map_err(|_| not("no thread is where one should be"))?;
    if threads.is_empty() {
        return Err(PythonProblem::NotReady);
    }
    let kept = kept(memory, runtime, (offsets, libraries), &threads)?;
    // The innermost frame may be at work in that moment.
    let mut sound = None;
    for _ in 0..3 {
        sound = threads.iter().filter_map(|thread| is_code(memory, *thread, code_type, offsets)).max();
        if sound != Some(false) {
            break;
        }
    }
    // Where no thread runs Python now, each frame is held against `PyCode_Type` by the walker all the same.
    if sound == Some(false) { Err(not("the innermost frame has no code object")) } else { Ok(kept) }
}

/// The states of an interpreter's threads, at most [`MAX_THREADS`].
///
/// # Errors
/// [`PythonProblem::Fault`]: a thread is of another interpreter, or a pointer leads nowhere. [`PythonProblem::Gone`],
/// [`PythonProblem::Denied`]: the memory cannot be read.
pub fn threads<M: Memory>(
    memory: &M,
    interpreter: u64,
    offsets: &Offsets,
) -> Result<Vec<u64>, PythonProblem> {
    let mut thread = memory.u64(at(interpreter, offsets.threads)?)?;
    let mut all = Vec::new();
    while thread != 0 && all.len() < MAX_THREADS {
        if memory.u64(at(thread, THREAD_INTERPRETER)?)? != interpreter {
            return Err(PythonProblem::Fault);
        }
        all.push(thread);
        thread = memory.u64(at(thread, THREAD_NEXT)?)?;
    }
    Ok(all)
}

/// Where the C library keeps one of these under the interpreter's key; the table's, else any in `_PyRuntime`.
fn kept<M: Memory>(
    memory: &M,
    runtime: u64,
    (offsets, libraries): (&Offsets, Libraries),
    threads: &[u64],
) -> Result<Kept, PythonProblem> {
    let pairs: Vec<(u64, u64)> = threads
        .iter()
        .filter_map(|thread| Some((*thread, memory.u64(at(*thread, offsets.thread_id).ok()?).ok()?)))
        .collect();
    let of_key = |init: u32, key: u32| {
        if init == 1 && key < MAX_KEYS { by_key(memory, key, &pairs, libraries) } else { None }
    };
    let place = at(runtime, offsets.key)?;
    if let Some(kept) = of_key(memory.u32(place)?, memory.u32(at(place, 4)?)?) {
        return Ok(kept);
    }
    let mut bytes = vec![0; MAX_SEARCH];
    // The smallest `_PyRuntime` has 656 bytes.
    let len = [MAX_SEARCH, 2048, 640]
        .into_iter()
        .find(|len| bytes.get_mut(..*len).is_some_and(|bytes| memory.read(runtime, bytes).is_ok()));
    let words: Vec<u32> = bytes
        .get(..len.unwrap_or(0))
        .unwrap_or_default()
        .chunks_exact(4)
        .filter_map(|word| Some(u32::from_le_bytes(word.try_into().ok()?)))
        .collect();
    let found = words.array_windows().find_map(|[init, key]| of_key(*init, *key));
    found.ok_or(PythonProblem::ThreadKey)
}

/// The place where the value of a key is a thread's state, for one of the threads at least.
fn by_key<M: Memory>(memory: &M, key: u32, pairs: &[(u64, u64)], libraries: Libraries) -> Option<Kept> {
    let key = key as i32;
    let first = FIRST_KEYS as i32;
    let place = |threads: &Threads| threads.keys as i32 - threads.pointer as i32;
    let glibc = libraries.glibc.iter().map(|threads| {
        let place = place(threads);
        let kept = match key < first {
            true => Kept { at: place + 16 * key + 8, then: -1 },
            false => Kept { at: place + 16 * first + 8 * (key / first), then: 16 * (key % first) + 8 },
        };
        (kept, threads.pointer)
    });
    let musl =
        libraries.musl.iter().map(|threads| (Kept { at: place(threads), then: 8 * key }, threads.pointer));
    let holds = |(kept, above): &(Kept, u32)| {
        pairs.iter().any(|(thread, own)| kept.read(memory, own.wrapping_add((*above).into())) == Ok(*thread))
    };
    glibc.chain(musl).find(holds).map(|(kept, _)| kept)
}

impl Kept {
    /// What the thread with this thread pointer keeps.
    fn read<M: Memory>(self, memory: &M, pointer: u64) -> Result<u64, ReadError> {
        let kept = memory.u64(pointer.checked_add_signed(self.at.into()).ok_or(ReadError::Fault)?)?;
        match u64::try_from(self.then) {
            Ok(then) => memory.u64(at(kept, then)?),
            Err(_) => Ok(kept),
        }
    }
}

/// Whether the innermost function of a thread has a code object; None: it runs none.
fn is_code<M: Memory>(memory: &M, thread: u64, code_type: u64, offsets: &Offsets) -> Option<bool> {
    let look = || -> Result<Option<bool>, ReadError> {
        let mut frame = memory.u64(at(thread, offsets.thread_frame.into())?)?;
        if let Some((current, _)) = offsets.cframe {
            frame = memory.u64(at(frame, current.into())?)?;
        }
        for _ in 0..MAX_FRAMES {
            if frame == 0 {
                return Ok(None);
            }
            let (grouping, group, shim) = offsets.grouping;
            if grouping == Grouping::Shim && memory.u8(at(frame, group.into())?)? >= shim {
                frame = memory.u64(at(frame, offsets.previous.into())?)?;
                continue;
            }
            let code = memory.u64(at(frame, offsets.code.into())?)? & !3;
            return Ok(Some(memory.u64(at(code, PythonLayout::TYPE as u64)?)? == code_type));
        }
        Ok(None)
    };
    look().unwrap_or(Some(false))
}
