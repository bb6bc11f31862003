//! Keeps the process small: memory that was given back goes back to the system.
//!
//! glibc keeps up to eight arenas a CPU, each with what its thread once needed, raises by itself the size
//! from which a block is mapped alone, and returns only what lies at the top of the heap (mallopt(3)). A
//! query or a symbol table takes megabytes for a moment; they would stay. In: nothing. Other C libraries
//! are left as they are.

#![allow(unsafe_code)]

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
}
