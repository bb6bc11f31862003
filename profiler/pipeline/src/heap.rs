//! Keeps the process small: memory that was given back goes back to the system.
//!
//! glibc keeps up to eight arenas a CPU, each with what its thread once needed, raises by itself the size
//! from which a block is mapped alone, and returns only what lies at the top of the heap (mallopt(3)). A
//! query or a symbol table takes megabytes for a moment; they would stay. The program's own code stays mapped once it
//! ran, 13 of 18 MB after a start; what runs again is mapped again from the page cache, in small pieces: around each page that
//! is used the kernel maps 64 KiB, of which half are wanted by nobody. In: nothing. Other C libraries are left as they are.

#![allow(unsafe_code)]

use emberscope_target::maps::{self, Backing, Mapping};
use std::time::{Duration, Instant};

/// How often free memory is given back: each time takes a few milliseconds.
pub const EVERY: Duration = Duration::from_secs(60);
/// How often one looks whether it is to be given back before: reading a file of 30 bytes.
const LOOK: Duration = Duration::from_secs(1);
/// Pages of its own by which the process grew since, so that it is: any answer leaves that much.
const GROWN: u64 = (1 << 20) / PAGE;
/// Pages of files, the program's above all, so that those are given back before.
const MAPPED: u64 = (8 << 20) / PAGE;
const PAGE: u64 = 4096;
/// Bytes of the program that the kernel maps at once. It maps what lies around the page that is used, 64 KiB
/// (`fault_around_bytes`), but never beyond a mapping (do_fault_around, mm/memory.c). So a page is all that is mapped.
const PIECE: u64 = PAGE;
/// For each piece so many mappings are left to all else that the process maps.
const SPARE_MAPPINGS: u64 = 4;

/// When that is next.
#[derive(Debug)]
pub struct Trim {
    next: Instant,
    look: Instant,
    /// Pages of its own after the last time.
    own: u64,
    code: Code,
}

impl Trim {
    /// The first time comes soon: reading the node and the first symbols takes the most.
    pub fn soon() -> Self {
        let (now, code) = (Instant::now(), Code::around(give_back as *const () as u64));
        code.cut();
        Self { next: now + Duration::from_secs(15), look: now, own: u64::MAX, code }
    }

    /// Gives free memory back, when it is time.
    pub fn tick(&mut self) {
        let now = Instant::now();
        if now < self.next.min(self.look) {
            return;
        }
        self.look = now + LOOK;
        let (due, pages) = (now >= self.next, Pages::now());
        if due {
            self.next = now + EVERY;
        }
        if due || pages.of_files > MAPPED {
            self.code.unmap();
        }
        if due || pages.own > self.own.saturating_add(GROWN) {
            give_back();
            self.own = Pages::now().own;
        }
    }
}

/// Resident pages of this process (proc_pid_statm(5)); 0 where the kernel does not tell.
#[derive(Clone, Copy, Debug, Default)]
struct Pages {
    /// Anonymous ones.
    own: u64,
    /// Of files, and of memory that is shared with the kernel.
    of_files: u64,
}

impl Pages {
    fn now() -> Self {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let mut fields = statm.split(' ').skip(1).map(|pages| pages.parse::<u64>().unwrap_or(0));
        let (resident, of_files) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
        Self { own: resident.saturating_sub(of_files), of_files }
    }
}

/// To be called before there are threads: two arenas, and large blocks mapped alone.
pub fn settle() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt sets parameters of malloc under malloc's own lock; it has no other precondition.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 64 << 10);
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

/// A program's code, and the constants, tables and relocations that lie before it in the file: addresses.
#[derive(Debug)]
struct Code(Vec<(u64, u64)>);

impl Code {
    /// The mapping of a file's code at an address, and the read-only one of the file's beginning that ends where that begins.
    fn around(address: u64) -> Self {
        Self::of(&std::fs::read("/proc/self/maps").unwrap_or_default(), address)
    }

    fn of(maps: &[u8], address: u64) -> Self {
        let is_code =
            |m: &Mapping| (m.start..m.end).contains(&address) && matches!(m.backing, Backing::File { .. });
        let Some(code) = maps::with(maps, |permissions| permissions == b"r-xp").find(is_code) else {
            return Self(Vec::new());
        };
        let is_before = |m: &Mapping| {
            (m.end, m.offset, m.device, m.inode) == (code.start, 0, code.device, code.inode)
                && m.backing == code.backing
        };
        let before = maps::with(maps, |permissions| permissions == b"r--p").find(is_before);
        Self(before.iter().chain([&code]).map(|m| (m.start, m.end)).collect())
    }

    /// Makes mappings of [`PIECE`] of it, where a process may have several times as many. Neighbours that are alike would become one
    /// again, so every other one is advised to be read page by page, which is what is wanted of it.
    fn cut(&self) {
        let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
        let pieces: u64 = self.0.iter().map(|(start, end)| (end - start) / PIECE).sum();
        if most.trim().parse::<u64>().unwrap_or(0) < pieces * SPARE_MAPPINGS {
            return;
        }
        for (start, end) in &self.0 {
            for piece in (*start..*end).step_by(2 * PIECE as usize) {
                if !advise(piece, PIECE.min(end - piece), libc::MADV_RANDOM) {
                    return;
                }
            }
        }
    }

    /// Takes its pages out of the program's memory: those that are used are back after a minor fault a piece.
    fn unmap(&self) {
        for (start, end) in &self.0 {
            advise(*start, end - start, libc::MADV_DONTNEED);
        }
    }
}

/// Of code and what lies before it, as [`Code`] finds them. False: the kernel does not do it.
fn advise(start: u64, length: u64, advice: i32) -> bool {
    // SAFETY: of what was one mapping of a file before it was cut, private and never written: position independent code has no relocations, and
    // what is before it in the file is the segment that is read only from the beginning (what the loader writes lies behind
    // the code). So each page comes back as it is in the file, which the kernel keeps from being written while it runs
    // (ETXTBSY), and how it is read changes nothing in it. A debugger's breakpoints would be lost, which only it needs.
    let done = unsafe { libc::madvise(start as *mut libc::c_void, length as usize, advice) };
    if done != 0 {
        tracing::debug!(error = %std::io::Error::last_os_error(), "the program's code stays as it is mapped");
    }
    done == 0
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_goes_back() {
        let resident = || Pages::now().own as usize * PAGE as usize;
        // Small blocks, of which the last stays: nothing at the top of the heap is free.
        let mut blocks: Vec<Box<[u8]>> = (0..64_000).map(|_| vec![1u8; 1024].into()).collect();
        let last = blocks.pop();
        let before = resident();
        drop(blocks);
        // Grown since the last time, which is why it does not wait for the next.
        let mut trim = Trim { own: 0, ..Trim::soon() };
        trim.tick();
        let after = resident();
        assert!(after + (32 << 20) < before, "{before} to {after}");
        assert!(trim.look > Instant::now() && trim.own > 0 && last.is_some());
    }

    #[test]
    fn what_the_loader_writes_stays() {
        let maps = "1000-2000 r--p 00000000 fe:00 77 /usr/bin/emberscope\n2000-5000 r-xp 00001000 fe:00 77 /usr/bin/emberscope\n\
                    5000-6000 r--p 00004000 fe:00 77 /usr/bin/emberscope\n6000-7000 rw-p 00005000 fe:00 77 /usr/bin/emberscope\n\
                    7000-8000 r-xp 00000000 00:00 0 \n";
        let code = |maps: &str, address| Code::of(maps.as_bytes(), address).0;
        assert_eq!(code(maps, 0x2fff), [(0x1000, 0x2000), (0x2000, 0x5000)]);
        assert_eq!(code(maps, 0x7000), [], "code without a file is nowhere else");
        let another = maps.replacen(" 77 ", " 78 ", 1);
        assert_eq!(code(&another, 0x2000), [(0x2000, 0x5000)], "another file's beginning");
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
        let end = start as u64 + LEN as u64;
        let resident = || {
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let (mut kb, mut within) = (0, false);
            for line in smaps.lines() {
                let first = line.split_once('-').and_then(|(first, _)| u64::from_str_radix(first, 16).ok());
                within = first.map_or(within, |first| (start as u64..end).contains(&first));
                let rss = line.strip_prefix("Rss:").filter(|_| within);
                kb += rss.map_or(0, |rss| rss.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
            }
            kb
        };
        assert_eq!((sum(), resident()), (7 * LEN / 4096, 4096));
        let mapped = Code::around(start as u64 + 5);
        assert_eq!(mapped.0, [(start as u64, end)]);
        mapped.cut();
        mapped.unmap();
        assert_eq!(resident(), 0);
        let looks = [LEN / 2 + 4096, LEN / 2 + LEN / 8, LEN / 2 + LEN / 4 + 4096];
        assert!(looks.iter().all(|at| code.get(*at) == Some(&7)));
        // Where there is no page table yet it may be the page alone.
        let most = looks.len() as u64 * PIECE / 1024;
        assert!((12..=most).contains(&resident()), "what lies around them, and no more: {} KB", resident());
        assert_eq!(sum(), 7 * LEN / 4096);
    }
}
