//! Tables are shared and bounded; stripped files have the names that were taken out of them.

use super::*;

fn libc() -> (File, Stat) {
    let maps = std::fs::read("/proc/self/maps").unwrap();
    let (maps, _) = crate::target::maps::parse(&maps);
    let libc = maps.iter().find(|m| m.module_name().starts_with("libc")).unwrap();
    crate::target::open::mapped_file(std::path::Path::new("/proc/self"), libc).unwrap()
}

#[test]
fn one_table_for_all_copies_of_a_file() {
    let (file, stat) = libc();
    let mut natives = Natives::new(64 << 20, 100);
    let id = natives.module("libc.so.6", &file, &stat);
    let copy = tempfile::NamedTempFile::new().unwrap();
    std::io::copy(&mut &file, &mut copy.as_file()).unwrap();
    let copied = rustix::fs::fstat(copy.as_file()).unwrap();
    if copied.st_uid == stat.st_uid {
        assert_eq!(natives.module("libc.so.6", copy.as_file(), &copied), id);
    }
    let mut theirs = copied;
    theirs.st_uid = stat.st_uid + 1;
    assert_ne!(natives.module("libc.so.6", copy.as_file(), &theirs), id, "nobody stands in for root");
}

#[test]
fn tables_and_names_are_bounded() {
    let (file, stat) = libc();
    let mut frames = FrameTable::new(1000);
    // Half of it is what one file may take.
    let mut natives = Natives::new(1000, 10);
    let id = natives.module("libc.so.6", &file, &stat);
    let frame = natives.name(id, 0x1234, Some((&file, Path::new("/lib/libc.so.6"))), &mut frames);
    assert_eq!(&*frame.name, "libc.so.6+0x1234");
    assert_eq!(natives.counters().files_without_symbols, 1);
    assert!(!natives.wants_file(id), "tried once");
    for offset in 0..100 {
        natives.name(id, offset, None, &mut frames);
    }
    let counters = natives.counters();
    assert!(counters.cached_addresses <= 10 && counters.cache_flushes >= 9, "{counters:?}");
    assert_eq!((counters.tables, counters.table_bytes), (0, 0));
}

/// Names and addresses of the functions in a file's .symtab.
fn functions(path: &Path) -> Vec<(String, u64)> {
    let bytes = std::fs::read(path).unwrap();
    let file = File::open(path).unwrap();
    let headers = Headers::read(&file, bytes.len() as u64).unwrap();
    let table = headers.symbol_tables().into_iter().find(|table| !table.dynamic).unwrap();
    let (symbols, strings) = (table.symbols, table.strings);
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let all = (0..symbols.1 / 24).map(|nth| (symbols.0 + 24 * nth) as usize);
    let named = all.filter(|at| bytes[at + 4] & 15 == 2 && word(at + 8) != 0).map(|at| {
        let name = strings.0 as usize + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let len = bytes[name..].iter().position(|byte| *byte == 0).unwrap();
        (String::from_utf8_lossy(&bytes[name..name + len]).into_owned(), word(at + 8))
    });
    named.collect()
}

fn table(path: &Path) -> Table {
    Table::open(&File::open(path).unwrap(), path, 64 << 20).unwrap()
}

/// The offset of an address.
fn offset(path: &Path, address: u64) -> u64 {
    let file = File::open(path).unwrap();
    let headers = Headers::read(&file, file.metadata().unwrap().len()).unwrap();
    let segments = headers.segments(&file).unwrap();
    let inside = segments.iter().find(|s| (s.address..s.address + s.file_size).contains(&address)).unwrap();
    address - inside.address + inside.offset
}

fn run(dir: &Path, program: &str, arguments: &[&str]) {
    let output = std::process::Command::new(program).args(arguments).current_dir(dir).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A program with a function that nobody links to, and where that is.
fn program(dir: &Path) -> (std::path::PathBuf, u64) {
    let source = "__attribute__((noinline)) static int hidden_work(int n) { return n * 7 + 1; }
        int main(int n, char **a) { return hidden_work(n); }";
    std::fs::write(dir.join("p.c"), source).unwrap();
    run(dir, "cc", &["-O1", "-fno-ipa-cp", "-Wl,--build-id=sha1", "-o", "p", "p.c"]);
    let path = dir.join("p");
    let (_, address) =
        functions(&path).into_iter().find(|(name, _)| name.starts_with("hidden_work")).expect("it is there");
    let at = offset(&path, address);
    assert_eq!(table(&path).name(at).as_deref().map(|name| &name[..11]), Some("hidden_work"));
    (path, at)
}

#[test]
fn a_stripped_file_has_the_names_of_its_debug_file() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (path, at) = program(dir);
    run(dir, "objcopy", &["--only-keep-debug", "p", "p.debug"]);
    run(dir, "objcopy", &["--strip-all", "p", "bare"]);
    run(dir, "objcopy", &["--add-gnu-debuglink=p.debug", "bare", "linked"]);
    assert_eq!(table(&dir.join("bare")).name(at), None);
    // Beside it.
    let named = |path: &Path| table(path).name(at).is_some_and(|name| name.starts_with("hidden_work"));
    assert!(named(&dir.join("linked")));
    // Below it; not a file with another build id.
    std::fs::create_dir(dir.join(".debug")).unwrap();
    std::fs::rename(dir.join("p.debug"), dir.join(".debug/p.debug")).unwrap();
    assert!(named(&dir.join("linked")));
    run(dir, "cc", &["-O2", "-Wl,--build-id=0x1234567890abcdef", "-o", "other", "p.c"]);
    std::fs::rename(dir.join("other"), dir.join(".debug/p.debug")).unwrap();
    assert!(!named(&dir.join("linked")));
    // By the build id.
    let file = File::open(dir.join("bare")).unwrap();
    let metadata = file.metadata().unwrap();
    let headers = Headers::read(&file, metadata.len()).unwrap();
    let id: String = headers.build_id(&file).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let place = dir.join("usr/lib/debug/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::copy(&path, place.join(format!("{}.debug", &id[2..]))).unwrap();
    assert!(separate::find_below(dir, &headers, (&file, &metadata), Path::new("/bare"), 1 << 20).is_some());
    assert!(separate::find_below(dir, &headers, (&file, &metadata), Path::new("/bare"), 100).is_none());
}

#[test]
fn a_stripped_file_has_the_names_of_its_packed_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (_, at) = program(dir);
    run(dir, "objcopy", &["--only-keep-debug", "p", "mini"]);
    let mut packed = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    std::io::Write::write_all(&mut packed, &std::fs::read(dir.join("mini")).unwrap()).unwrap();
    let packed = packed.finish().unwrap();
    let with = |name: &str, data: &[u8]| {
        std::fs::write(dir.join("data"), data).unwrap();
        run(dir, "objcopy", &["--strip-all", "--add-section", ".gnu_debugdata=data", "p", name]);
        table(&dir.join(name)).name(at)
    };
    assert!(with("packed", &packed).is_some_and(|name| name.starts_with("hidden_work")));
    assert_eq!(with("broken", &packed[..packed.len() / 2]), None);
    assert_eq!(with("rubbish", b"no xz at all"), None);
}

#[test]
fn a_stripped_program_of_go_names_its_functions() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let source = "package main\n//go:noinline\nfunc work(n int) int { return n*7 + 1 }\n\
        func main() { println(work(3)) }\n";
    std::fs::write(dir.join("p.go"), source).unwrap();
    if std::process::Command::new("go").arg("version").output().is_err() {
        eprintln!("skipped: there is no go to build a program with");
        return;
    }
    for flags in [&["-ldflags=-s -w"][..], &["-buildmode=pie", "-ldflags=-s -w"]] {
        run(dir, "go", &[&["build", "-o", "stripped"], flags, &["p.go"]].concat());
        run(dir, "go", &[&["build", "-o", "whole"], &flags[..flags.len() - 1], &["p.go"]].concat());
        let (whole, stripped) = (table(&dir.join("whole")), table(&dir.join("stripped")));
        let all = functions(&dir.join("whole"));
        // The same code: what was stripped lies elsewhere.
        let mut same = 0;
        for (_, address) in
            all.iter().filter(|(name, _)| name.starts_with("main.") || name.starts_with("runtime."))
        {
            let at = offset(&dir.join("whole"), *address);
            if let Some(found) = stripped.name(at) {
                let name = whole.name(at).unwrap_or_default();
                assert_eq!(found, name.trim_end_matches(".abi0"));
                same += 1;
            }
        }
        assert!(same > 1000, "{flags:?}: {same} of {}", all.len());
    }
}
