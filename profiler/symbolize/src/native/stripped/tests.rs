//! On this machine's own C library and on programs that are made here: what strip took is named by what is left.

#![allow(unsafe_code)]

use super::super::table::{By, Parts, Table};
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(dir: &Path, program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).current_dir(dir).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Functions of a file and how each is known, by its addresses as this test's process has them.
struct Seen {
    table: Table,
    bias: u64,
}

impl Seen {
    /// A mapped file without what leads to its debug symbols.
    fn library(dir: &Path, name: &str) -> (PathBuf, Self) {
        let maps = emberscope_target::open::mappings(Path::new("/proc/self")).unwrap().mappings;
        let mapping = maps.iter().find(|m| m.module_name().starts_with(name)).expect("it is mapped");
        let (file, _) =
            emberscope_target::open::mapped_file(Path::new("/proc/self"), mapping).expect("it is there");
        let whole = dir.join("whole");
        std::io::copy(&mut &file, &mut std::fs::File::create(&whole).unwrap()).unwrap();
        let gone = ["--strip-all", "-R", ".note.gnu.build-id", "-R", ".gnu_debuglink", "whole", "bare"];
        run(dir, "objcopy", &gone);
        let first = maps.iter().find(|m| m.module_name() == mapping.module_name()).unwrap();
        (dir.join("bare"), Self { table: table(&dir.join("bare")), bias: first.start - first.offset })
    }

    /// The name of the code at an address of this process, how it is known, and how long the function is.
    fn at(&self, address: u64) -> Option<(By, String, u64)> {
        let named = self.table.name(address - self.bias)?;
        Some((named.by, named.symbol, named.holds.end - named.holds.start))
    }
}

fn table(path: &Path) -> Table {
    let file = std::fs::File::open(path).unwrap();
    Table::of(Parts::read(&file, path, |_| None, 64 << 20).unwrap())
}

/// Where a call of a function that chooses ends up: what the loader made of it.
fn resolved(name: &std::ffi::CStr) -> u64 {
    // SAFETY: a name that ends with 0, looked for in what is loaded.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as u64 }
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn the_implementation_that_the_loader_chose_has_the_functions_name() {
    let dir = tempfile::tempdir().unwrap();
    let (_, libc) = Seen::library(dir.path(), "libc.so");
    for name in [c"memmove", c"memset", c"strlen", c"strchr", c"memchr", c"strcmp"] {
        let (by, found, len) = libc.at(resolved(name)).expect("it is code of the library");
        assert_eq!((by, found.as_str()), (By::Choice, name.to_str().unwrap()));
        assert!(len > 16, "{name:?}: the whole function is named, not {len} bytes");
    }
    let (by, found, _) = libc.at(resolved(c"qsort")).unwrap();
    assert_eq!((by, found.as_str()), (By::Export, "qsort"));
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn where_threads_and_programs_start_is_named_by_what_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let (_, libc) = Seen::library(dir.path(), "libc.so");
    // The test harness's own stacks end there: a return address below each.
    let callers = std::thread::spawn(|| {
        let mut frames = Vec::new();
        let mut all = [std::ptr::null_mut(); 64];
        // SAFETY: room for as many addresses as are said.
        let count = unsafe { libc::backtrace(all.as_mut_ptr(), 64) };
        frames.extend(all.into_iter().take(count as usize).map(|at| at as u64 - 1));
        frames
    });
    let callers = callers.join().unwrap();
    let parts: Vec<_> = callers
        .iter()
        .filter(|at| **at > libc.bias)
        .filter_map(|at| libc.at(*at))
        .filter(|(by, ..)| *by == By::Part)
        .map(|(_, name, _)| name)
        .collect();
    assert_eq!(parts, ["[thread start]", "[thread start]"], "start_thread and clone3 of {callers:x?}");
    // `__libc_start_main` calls what calls `main`: directly, or it is that itself (up to glibc 2.33).
    let starts: Vec<u64> = {
        let from = resolved(c"__libc_start_main");
        (from.saturating_sub(4096)..from + 4096)
            .filter(|at| libc.at(*at).is_some_and(|(_, name, _)| name == "[process start]"))
            .collect()
    };
    assert!(!starts.is_empty(), "what calls main is near __libc_start_main");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_stripped_programs_main_is_named_and_its_functions_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let source = "__attribute__((noinline)) static int hidden_work(int n) { return n * 7 + 1; }
        int main(int n, char **a) { return hidden_work(n) + hidden_work(n + 1); }";
    std::fs::write(dir.join("p.c"), source).unwrap();
    for (kind, flags) in [("pie", ["-fPIE", "-pie"]), ("fixed", ["-fno-pie", "-no-pie"])] {
        let mut arguments = vec!["-O1", "-fno-ipa-cp", "-o", kind, "p.c"];
        arguments.extend(flags);
        run(dir, "cc", &arguments);
        let address = |name: &str| {
            let out = Command::new("nm").arg(dir.join(kind)).output().unwrap();
            let text = String::from_utf8(out.stdout).unwrap();
            let line = text.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap().to_owned();
            u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
        };
        let base = if kind == "pie" { 0 } else { 0x40_0000 };
        let (main, work, start) = (address("main"), address("hidden_work"), address("_start"));
        run(dir, "strip", &["-s", kind]);
        let bare = table(&dir.join(kind));
        let named =
            |at: u64| bare.name(at - base).map(|named| (named.by, named.symbol, named.holds.start + base));
        assert_eq!(named(main + 3), Some((By::Part, "main".to_owned(), main)), "{kind}");
        assert_eq!(named(start + 3), Some((By::Part, "_start".to_owned(), start)), "{kind}");
        assert_eq!(named(work + 1), Some((By::Bounds, String::new(), work)), "{kind}");
    }
}

#[test]
fn unwind_information_that_lies_names_nothing_beyond_it() {
    use super::bounds::functions;
    assert!(functions(&[], 0, 10).is_empty());
    assert!(functions(&[0xff; 4096], 0x1000, 10).is_empty());
    // A length that goes beyond the end, after nothing.
    assert!(functions(&u32::MAX.to_le_bytes(), 0, 10).is_empty());
}

/// A megabyte in which each eight bytes are a function's entry that refers to other eight as what it has in common with
/// others: none of these makes sense, and each would be looked at for its end anew.
#[test]
fn entries_that_all_refer_to_something_else_end_soon() {
    let words = 1_u32 << 17;
    let mut frames = Vec::new();
    for nth in 0..words {
        // Length of what follows, and how far before this word the common entry is.
        frames.extend(4_u32.to_le_bytes());
        frames.extend((nth * 8 + 1).to_le_bytes());
    }
    assert!(super::bounds::functions(&frames, 0, 1 << 20).is_empty());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn instructions_tell_what_a_function_does() {
    use super::code::{Does, does, first_argument, loads};
    // call [rax]; mov eax, 60; syscall; call +0; call +1
    let thread = [0xff, 0x10, 0xb8, 60, 0, 0, 0, 0x0f, 0x05, 0xe8, 0, 0, 0, 0, 0xe8, 1, 0, 0, 0];
    let told = Does { calls_pointer: true, ends_thread: true, calls_then: vec![0x100e] };
    assert_eq!(does(&thread, 0x1000), told);
    // mov eax, 231 (exit_group); syscall
    assert_eq!(does(&[0xb8, 231, 0, 0, 0, 0x0f, 0x05], 0), Does::default());
    // lea rdi, [rip + 0x10]; call +0; lea rdi, [rip]
    let start = [0x48, 0x8d, 0x3d, 0x10, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x48, 0x8d, 0x3d, 0, 0, 0, 0];
    assert_eq!(loads(&start, 0x1000), [0x1017, 0x1013]);
    assert_eq!(first_argument(&start, 0x1000), Some(0x1017));
}
