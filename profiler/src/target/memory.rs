//! Reads of another process's memory: an address in, bytes or a reason out. Never writes, never stops it.
//!
//! [`ProcessMemory`] reads `/proc/PID/mem`. Its descriptor belongs to one address space for good: when the
//! process has ended or runs another program it reads nothing, whoever has the pid now, which
//! process_vm_readv cannot promise. A read can wait for the target's disk, and where the target maps a
//! file of a FUSE server of its own, as long as that server likes: callers give it a thread of its own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Smallest page of the machines that we run on.
const PAGE: u64 = 4096;
/// Pages that [`Pages`] holds: vmStructs, its strings and the flags take about 120.
const MAX_PAGES: usize = 1024;

/// Why a read gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Not all of it is mapped.
    Fault,
    /// The process ended, or runs another program.
    Gone,
    /// The kernel does not let us.
    Denied,
}

/// Some process's memory.
pub trait Memory {
    /// Fills `into` with what is at `address`, all of it or none.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError>;

    /// The bytes at `address`.
    fn bytes<const N: usize>(&self, address: u64) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes).map(|()| bytes)
    }
    /// A byte.
    fn u8(&self, address: u64) -> Result<u8, ReadError> {
        self.bytes::<1>(address).map(|[byte]| byte)
    }
    /// Two bytes.
    fn u16(&self, address: u64) -> Result<u16, ReadError> {
        self.bytes(address).map(u16::from_le_bytes)
    }
    /// Four bytes.
    fn u32(&self, address: u64) -> Result<u32, ReadError> {
        self.bytes(address).map(u32::from_le_bytes)
    }
    /// Eight bytes.
    fn u64(&self, address: u64) -> Result<u64, ReadError> {
        self.bytes(address).map(u64::from_le_bytes)
    }
    /// The bytes up to a zero; None when there are more than `limit`.
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

/// `base` plus `offset`, which is nowhere when there is no such address.
pub fn at(base: u64, offset: u64) -> Result<u64, ReadError> {
    base.checked_add(offset).ok_or(ReadError::Fault)
}

/// A live process's memory.
#[derive(Debug)]
pub struct ProcessMemory(File);

impl ProcessMemory {
    /// Of the process whose directory in /proc this is.
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
        _ => ReadError::Fault,
    }
}

/// Memory that does not change, read by pages and each page once: for tables and their strings.
pub struct Pages<'a, M> {
    memory: &'a M,
    pages: RefCell<HashMap<u64, Box<[u8; PAGE as usize]>>>,
}

impl<'a, M: Memory> Pages<'a, M> {
    /// None read yet.
    pub fn of(memory: &'a M) -> Self {
        Self { memory, pages: RefCell::default() }
    }
}

impl<M: Memory> Memory for Pages<'_, M> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError> {
        let mut pages = self.pages.borrow_mut();
        let mut done = 0usize;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = address.checked_add(done as u64).ok_or(ReadError::Fault)?;
            let (start, skip) = (at - at % PAGE, (at % PAGE) as usize);
            if !pages.contains_key(&start) {
                let page = self.memory.bytes(start)?;
                if pages.len() >= MAX_PAGES {
                    pages.clear();
                }
                pages.insert(start, Box::new(page));
            }
            let page = pages.get(&start).ok_or(ReadError::Fault)?;
            let len = rest.len().min(PAGE as usize - skip);
            let (to, from) = (rest.get_mut(..len), page.get(skip..skip + len));
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
