//! Reads of another process's memory: an address in, bytes or a reason out. Never writes, never stops it.
//!
//! [`ProcessMemory`] reads `/proc/PID/mem`. Its descriptor belongs to one address space for good: when the
//! process has ended or runs another program it reads nothing, whoever has the pid now, which
//! process_vm_readv cannot promise. A read can wait for the target's disk, and where the target maps a
//! file of a FUSE server of its own, as long as that server likes: callers give it a thread of its own.

use emberscope_model::FastMap;
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Smallest page of the machines that we run on.
const PAGE: u64 = 4096;
/// Pages that [`Pages`] holds: vmStructs, its strings and the flags take about 120.
const MAX_PAGES: usize = 1024;
/// Pieces that [`Lines`] holds.
const MAX_LINES: usize = 512;

/// Why a read gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Not all of it is mapped.
    Fault,
    /// The process ended, or runs another program.
    Gone,
    /// The kernel does not let us.
    Denied,
    /// The daemon has no descriptor left, or the machine no memory: that says nothing of the process.
    Exhausted,
}

/// Memory that is read by address: a process's, or a copy of some of it.
pub trait Memory {
    /// Fills `into` with what is at `address`, all of it or none.
    ///
    /// # Errors
    /// [`ReadError::Fault`]: not all of it is mapped. [`ReadError::Gone`]: the process ended, or runs another program.
    /// [`ReadError::Denied`]: the kernel does not let us. [`ReadError::Exhausted`]: the kernel has no memory for it.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError>;

    /// The `N` bytes at `address`.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn bytes<const N: usize>(&self, address: u64) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes).map(|()| bytes)
    }
    /// The byte at `address`.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn u8(&self, address: u64) -> Result<u8, ReadError> {
        self.bytes::<1>(address).map(|[byte]| byte)
    }
    /// The number of two bytes at `address`, little endian.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn u16(&self, address: u64) -> Result<u16, ReadError> {
        self.bytes(address).map(u16::from_le_bytes)
    }
    /// The number of four bytes at `address`, little endian.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn u32(&self, address: u64) -> Result<u32, ReadError> {
        self.bytes(address).map(u32::from_le_bytes)
    }
    /// The number of eight bytes at `address`, little endian.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn u64(&self, address: u64) -> Result<u64, ReadError> {
        self.bytes(address).map(u64::from_le_bytes)
    }
    /// The bytes at `address` up to a zero; None when there are more than `limit`.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn c_string(&self, address: u64, limit: usize) -> Result<Option<Vec<u8>>, ReadError> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() <= limit {
            // Not across a page's end: the next page need not be there.
            let here = (PAGE - at % PAGE).min(64) as usize;
            let mut piece = [0u8; 64];
            let piece = piece.get_mut(..here).unwrap_or_default();
            self.read(at, piece)?;
            if let Some(end) = piece.iter().position(|b| *b == 0) {
                text.extend_from_slice(piece.get(..end).unwrap_or_default());
                return Ok((text.len() <= limit).then_some(text));
            }
            text.extend_from_slice(piece);
            at = at.checked_add(here as u64).ok_or(ReadError::Fault)?;
        }
        Ok(None)
    }
}

/// `base` plus `offset`.
///
/// # Errors
/// [`ReadError::Fault`]: there is no such address.
pub fn at(base: u64, offset: u64) -> Result<u64, ReadError> {
    base.checked_add(offset).ok_or(ReadError::Fault)
}

/// A live process's memory.
#[derive(Debug)]
pub struct ProcessMemory(File);

impl ProcessMemory {
    /// Opens the memory of the process whose directory in /proc this is.
    ///
    /// # Errors
    /// [`ReadError::Gone`]: the process ended. [`ReadError::Denied`]: that takes CAP_SYS_PTRACE.
    /// [`ReadError::Exhausted`]: no descriptor or no memory is left. [`ReadError::Fault`]: any other error.
    pub fn open(process_dir: &Path) -> Result<Self, ReadError> {
        File::open(process_dir.join("mem")).map(Self).map_err(|e| reason(&e))
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError> {
        let mut done = 0usize;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = address.checked_add(done as u64).ok_or(ReadError::Fault)?;
            match self.0.read_at(rest, at) {
                // The address space has no user left (mem_rw, fs/proc/base.c, Linux 6.18).
                Ok(0) => return Err(ReadError::Gone),
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(reason(&e)),
            }
        }
        Ok(())
    }
}

fn reason(error: &std::io::Error) -> ReadError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ESRCH) => ReadError::Gone,
        Some(libc::EACCES | libc::EPERM) => ReadError::Denied,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => ReadError::Exhausted,
        _ => ReadError::Fault,
    }
}

/// Memory that does not change, read by pages and each page once: for tables and their strings.
pub type Pages<'a, M> = Pieces<'a, M, { PAGE as usize }, MAX_PAGES>;
/// Memory that does not change, read by quarters of a page and each once: for what lies scattered.
pub type Lines<'a, M> = Pieces<'a, M, { PAGE as usize / 4 }, MAX_LINES>;

/// Memory that does not change, read by pieces of `SIZE` bytes, of which a page holds a whole number, and each piece
/// once, as long as there are not more than `MOST`.
pub struct Pieces<'a, M, const SIZE: usize, const MOST: usize> {
    memory: &'a M,
    pieces: RefCell<FastMap<u64, Box<[u8; SIZE]>>>,
}

impl<'a, M: Memory, const SIZE: usize, const MOST: usize> Pieces<'a, M, SIZE, MOST> {
    /// Pieces of `memory`, none of them read yet.
    pub fn of(memory: &'a M) -> Self {
        Self { memory, pieces: RefCell::default() }
    }
}

impl<M: Memory, const SIZE: usize, const MOST: usize> Memory for Pieces<'_, M, SIZE, MOST> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError> {
        let mut pieces = self.pieces.borrow_mut();
        let mut done = 0usize;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = address.checked_add(done as u64).ok_or(ReadError::Fault)?;
            let (start, skip) = (at - at % SIZE as u64, (at % SIZE as u64) as usize);
            if !pieces.contains_key(&start) {
                let piece = self.memory.bytes(start)?;
                if pieces.len() >= MOST {
                    pieces.clear();
                }
                pieces.insert(start, Box::new(piece));
            }
            let piece = pieces.get(&start).ok_or(ReadError::Fault)?;
            let len = rest.len().min(SIZE - skip);
            let (to, from) = (rest.get_mut(..len), piece.get(skip..skip + len));
            to.ok_or(ReadError::Fault)?.copy_from_slice(from.ok_or(ReadError::Fault)?);
            done += len;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_itself_and_no_further() {
        let memory = ProcessMemory::open(Path::new("/proc/self")).unwrap();
        let text = *b"hello\0world";
        let at = text.as_ptr() as u64;
        assert_eq!(memory.bytes::<11>(at).unwrap(), text);
        assert_eq!(memory.c_string(at, 5).unwrap().unwrap(), b"hello");
        assert_eq!(memory.c_string(at, 4).unwrap(), None);
        for nowhere in [0, 8, u64::MAX, u64::MAX - 3, 1 << 63] {
            assert_eq!(memory.u64(nowhere), Err(ReadError::Fault), "{nowhere:x}");
        }
        let pages = Pages::of(&memory);
        assert_eq!(pages.bytes::<11>(at).unwrap(), text);
        assert_eq!(pages.u8(0), Err(ReadError::Fault));
        assert_eq!(pages.u32(u64::MAX), Err(ReadError::Fault));
        let page: Vec<u8> = (0..8192).map(|byte| (byte % 251) as u8).collect();
        let lines = Lines::of(&memory);
        for (from, len) in [(0, 3), (1000, 3000), (4095, 2), (5000, 3192)] {
            let mut read = vec![0; len];
            lines.read(page.as_ptr() as u64 + from as u64, &mut read).unwrap();
            assert_eq!(read, page[from..from + len]);
        }
    }

    #[test]
    fn want_of_descriptors_or_memory_is_no_fault_of_the_process() {
        let of = |errno| reason(&std::io::Error::from_raw_os_error(errno));
        assert_eq!([libc::EMFILE, libc::ENFILE, libc::ENOMEM].map(of), [ReadError::Exhausted; 3]);
        assert_eq!([libc::EIO, libc::EFAULT].map(of), [ReadError::Fault; 2]);
        assert_eq!(
            [libc::ENOENT, libc::ESRCH, libc::EACCES, libc::EPERM].map(of),
            [ReadError::Gone, ReadError::Gone, ReadError::Denied, ReadError::Denied]
        );
    }

    #[test]
    fn a_reused_pid_is_not_read() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let dir = format!("/proc/{}", child.id());
        let memory = ProcessMemory::open(Path::new(&dir)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(memory.u64(0x1000), Err(ReadError::Gone));
        assert!(matches!(ProcessMemory::open(Path::new(&dir)), Err(ReadError::Gone)));
    }
}
