//! Keeps the process small: memory that was given back goes back to the system.
//!
//! glibc keeps up to eight arenas a CPU, each with what its thread once needed, raises by itself the size
//! from which a block is mapped alone, and returns only what lies at the top of the heap (mallopt(3)). A
//! query or a symbol table takes megabytes for a moment; they would stay. The program's own code stays mapped once it
//! ran, 13 of 18 MB after a start; what runs again is mapped again from the page cache. In: nothing. Other C libraries
//! are left as they are.

#![allow(unsafe_code)]

use emberscope_target::maps::{self, Backing};
use std::time::{Duration, Instant};

/// How often free memory is given back: each time takes a few milliseconds.
pub const EVERY: Duration = Duration::from_secs(60);

/// When that is next.
#[derive(Debug)]
pub struct Trim(Instant);

impl Trim {
    /// The first time comes soon: reading the node and the first symbols takes the most.
    pub fn soon() -> Self {
        Self(Instant::now() + Duration::from_secs(15))
    }

    /// Gives free memory back, when it is time.
    pub fn tick(&mut self) {
        let now = Instant::now();
        if now >= self.0 {
            self.0 = now + EVERY;
            give_back();
            unmap_code(unmap_code as *const () as u64);
        }
    }
}

/// To be called before there are threads: two arenas, and large blocks mapped alone.
pub fn settle() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt sets parameters of malloc under malloc's own lock; it has no other precondition.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 20);
    }
}

fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim releases free pages under malloc's own locks; nothing in use changes.
    unsafe {
        libc::malloc_trim(256 << 10);
    }
}

/// Takes the pages of the code around an address out of the program's memory: those that run are back after as many minor faults as there
/// are 64 KiB of them.
fn unmap_code(own: u64) {
    let Ok(text) = std::fs::read("/proc/self/maps") else { return };
    let (all, _) = maps::parse(&text);
    let is_code =
        |m: &&maps::Mapping| (m.start..m.end).contains(&own) && matches!(m.backing, Backing::File { .. });
    let Some(code) = all.iter().find(is_code) else { return };
    // SAFETY: the range is one mapping, private, of a file, executable and never written: code is position independent
    // and has no relocations, so each page comes back as it is in the file, which the kernel keeps from being written
    // while it runs (ETXTBSY). A debugger's breakpoints would be lost, which only it needs.
    let done = unsafe {
        libc::madvise(code.start as *mut libc::c_void, (code.end - code.start) as usize, libc::MADV_DONTNEED)
    };
    if done != 0 {
        tracing::debug!(error = %std::io::Error::last_os_error(), "the program's code stays mapped");
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_goes_back() {
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
        };
        // Small blocks, of which the last stays: nothing at the top of the heap is free.
        let mut blocks: Vec<Box<[u8]>> = (0..64_000).map(|_| vec![1u8; 1024].into()).collect();
        let last = blocks.pop();
        let before = resident();
        drop(blocks);
        let mut trim = Trim(Instant::now());
        trim.tick();
        let after = resident();
        assert!(after + (32 << 20) < before, "{before} to {after}");
        assert!(trim.0 > Instant::now() && last.is_some());
    }

    #[test]
    fn code_that_ran_goes_and_comes_back() {
        const LEN: usize = 4 << 20;
        let file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut &file, &vec![7u8; LEN]).unwrap();
        let (fd, none) = (std::os::fd::AsRawFd::as_raw_fd(&file), std::ptr::null_mut());
        // SAFETY: a new mapping, of a file of this length that nobody else has.
        let start =
            unsafe { libc::mmap(none, LEN, libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE, fd, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        // SAFETY: all of the mapping, which can be read and stays for as long as the test runs.
        let code = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), LEN) };
        let sum = || code.iter().step_by(4096).map(|byte| usize::from(*byte)).sum::<usize>();
        let resident = || {
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let first = format!("{:x}-", start as usize);
            let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&first));
            lines.find_map(|line| line.strip_prefix("Rss:")).unwrap().trim().to_owned()
        };
        assert_eq!((sum(), resident()), (7 * LEN / 4096, "4096 kB".to_owned()));
        unmap_code(start as u64 + 5);
        assert_eq!(resident(), "0 kB");
        assert_eq!(sum(), 7 * LEN / 4096);
    }
}
