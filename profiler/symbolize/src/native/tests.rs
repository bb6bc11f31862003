//! Tables are shared and bounded; stripped files have the names that were taken out of them.

use super::*;
use emberscope_target::elf::Headers;
use std::os::fd::AsRawFd as _;

mod large;
mod servers;

fn libc() -> (File, Stat) {
    let maps = emberscope_target::open::mappings(std::path::Path::new("/proc/self")).unwrap().mappings;
    let libc = maps.iter().find(|m| m.module_name().starts_with("libc")).unwrap();
    emberscope_target::open::mapped_file(std::path::Path::new("/proc/self"), libc).unwrap()
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
    let mut frames = FrameTable::new(Default::default());
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

#[test]
fn a_table_that_nobody_needs_goes_and_comes_back() {
    let (file, stat) = libc();
    let mut frames = FrameTable::new(Default::default());
    let mut natives = Natives::new(64 << 20, 100);
    let id = natives.module("libc.so.6", &file, &stat);
    let path = Path::new("/proc/self/fd").join(file.as_raw_fd().to_string());
    let opened = Some((&file, Path::new("/lib/libc.so.6")));
    // Names that a stripped one has too.
    let linked = symbols(&path, true);
    let at = |name: &str| {
        let (_, address) = linked.iter().find(|(n, _)| n == name).expect("the C library has it");
        offset(&path, *address)
    };
    let (start, end) = (at("malloc"), at("printf"));
    let first = natives.name(id, start, opened, &mut frames);
    natives.rest();
    assert_eq!(natives.counters().tables, 1, "it was needed just now");
    natives.rest_after(Duration::ZERO);
    let counters = natives.counters();
    assert_eq!((counters.tables, counters.table_bytes, counters.tables_rested), (0, 0, 1));
    assert!(Arc::ptr_eq(&natives.name(id, start, None, &mut frames), &first), "its names stay");
    assert!(natives.wants_file(id));
    let second = natives.name(id, end, opened, &mut frames);
    assert!(!natives.wants_file(id) && second.name.contains("printf"), "{}", second.name);
}

/// Names and addresses of the functions in a file's .symtab.
pub(super) fn functions(path: &Path) -> Vec<(String, u64)> {
    symbols(path, false)
}

/// Those in its .symtab, or in its .dynsym.
fn symbols(path: &Path, dynamic: bool) -> Vec<(String, u64)> {
    let bytes = std::fs::read(path).unwrap();
    let file = File::open(path).unwrap();
    let headers = Headers::read(&file, bytes.len() as u64).unwrap();
    let table = headers.symbol_tables().into_iter().find(|table| table.dynamic == dynamic).unwrap();
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
    Table::of(Parts::read(&File::open(path).unwrap(), path, |_| None, 64 << 20).unwrap())
}

fn named(path: &Path, offset: u64) -> Option<String> {
    table(path).name(offset).map(|found| found.symbol).filter(|symbol| !symbol.is_empty())
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
    assert_eq!(named(&path, at).as_deref().map(|name| &name[..11]), Some("hidden_work"));
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
    assert_eq!(named(&dir.join("bare"), at), None);
    // Beside it.
    let has_it = |path: &Path| named(path, at).is_some_and(|name| name.starts_with("hidden_work"));
    assert!(has_it(&dir.join("linked")));
    // Below it; not a file with another build id.
    std::fs::create_dir(dir.join(".debug")).unwrap();
    std::fs::rename(dir.join("p.debug"), dir.join(".debug/p.debug")).unwrap();
    assert!(has_it(&dir.join("linked")));
    run(dir, "cc", &["-O2", "-Wl,--build-id=0x1234567890abcdef", "-o", "other", "p.c"]);
    std::fs::rename(dir.join("other"), dir.join(".debug/p.debug")).unwrap();
    assert!(!has_it(&dir.join("linked")));
    // By the build id.
    let file = File::open(dir.join("bare")).unwrap();
    let metadata = file.metadata().unwrap();
    let headers = Headers::read(&file, metadata.len()).unwrap();
    let id: String = headers.build_id(&file).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let place = dir.join("usr/lib/debug/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::copy(&path, place.join(format!("{}.debug", &id[2..]))).unwrap();
    assert!(
        separate::find_below(dir, &headers, (&file, &metadata), (Path::new("/bare"), None), 1 << 20)
            .is_some()
    );
    assert!(
        separate::find_below(dir, &headers, (&file, &metadata), (Path::new("/bare"), None), 100).is_none()
    );
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
        named(&dir.join(name), at)
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
        emberscope_testkit::skip("there is no go to build a program with");
        return;
    }
    for flags in [&["-ldflags=-s -w"][..], &["-buildmode=pie", "-ldflags=-s -w"]] {
        run(dir, "go", &[&["build", "-o", "stripped"], flags, &["p.go"]].concat());
        run(dir, "go", &[&["build", "-o", "whole"], &flags[..flags.len() - 1], &["p.go"]].concat());
        let (whole, stripped) = (table(&dir.join("whole")), table(&dir.join("stripped")));
        let all = functions(&dir.join("whole"));
        // The same code: what was stripped lies elsewhere.
        let (mut asked, mut same) = (0, 0);
        for (_, address) in
            // `runtime.etext` is the code's end, which may be the segment's.
            all
                .iter()
                .filter(|(name, _)| name.starts_with("main.") || name.starts_with("runtime."))
                .filter(|(name, _)| name != "runtime.etext")
        {
            asked += 1;
            let at = offset(&dir.join("whole"), *address);
            if let Some(found) = stripped.name(at).map(|found| found.symbol) {
                let name = whole.name(at).map(|found| found.symbol).unwrap_or_default();
                assert_eq!(found, name.trim_end_matches(".abi0"));
                same += 1;
            }
        }
        // How many there are differs from Go to Go.
        assert!(asked > 500 && same * 100 >= asked * 98, "{flags:?}: {same} of {asked}");
    }
}

#[test]
fn what_a_name_is_said_to_hold_for_has_that_name() {
    let (file, _) = libc();
    let table = Table::of(Parts::read(&file, Path::new("/"), |_| None, 64 << 20).unwrap());
    let (mut long, mut asked) = (0, 0);
    for offset in (0x28000..0x180000u64).step_by(0x391) {
        let Some(found) = table.name(offset) else { continue };
        assert!(found.holds.contains(&offset), "{:x?} {offset:x}", found.holds);
        long += usize::from(found.holds.end - found.holds.start > 8);
        let last = found.holds.end - 1;
        for at in [found.holds.start, (offset + last) / 2, last] {
            assert_eq!(
                table.name(at).map(|other| other.symbol).as_ref(),
                Some(&found.symbol),
                "{at:x} of {:x?}",
                found.holds
            );
            asked += 1;
        }
    }
    assert!(long > 100 && asked > 300, "{long} {asked}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    #[test]
    fn a_spoilt_file_gives_names_or_none(
        spoils in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), 0u8..), 1..40),
        whole in proptest::prelude::any::<bool>(),
    ) {
        static SOUND: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
            std::fs::read("/usr/lib/x86_64-linux-gnu/libz.so.1").unwrap()
        });
        let mut bytes = SOUND.clone();
        let headers = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        for (at, value) in spoils {
            // Anywhere in the first pages and the symbols, or in the section headers.
            let place = if whole { at.index(0x3000) } else { headers + at.index(bytes.len() - headers) };
            bytes[place] = value;
        }
        let file = emberscope_target::elf::memory_file().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
        if let Ok(names) = names(&file, &[0, 0x3000, 0x5000, u64::MAX], 1 << 20) {
            // Cut ones end in a sign of three bytes.
            let most = emberscope_target::text::MAX_NAME + 3;
            proptest::prop_assert!(names.iter().flatten().all(|name| name.len() <= most));
        }
    }
}
