//! C++, Rust, Go and Java over C: programs whose stacks must reach the root.

use super::stacks::chains;
use super::*;
use emberscope_hotspot::{Jvm, LibjvmFiles, layout};
use emberscope_tests::function;
use profiler_ebpf::{JavaFrameTag, RuntimeId};

/// Where a thread of a JVM begins (os_linux.cpp).
const THREAD_ENTRY: &str = "_ZL19thread_native_entryP6Thread";

/// Programs whose functions are not asked for: so many of 100 stacks must reach the root.
fn rooted(test: &str, program: &Path, bar: f64) {
    let Some((features, _guard)) = host(test) else { return };
    let program = Running::start(&mut Command::new(program));
    let seen = sampled(&features, program.pid(), |_| {});
    seen.print(test);
    let rooted = seen.share("reach the root", |s| s.end == StackEnd::Root);
    assert!(seen.all > 100 && rooted >= bar, "{rooted:.2} % of {}", seen.all);
}

#[test]
fn exceptions_through_twenty_frames() {
    // While it lands, the unwinder's own frame is not as its rows say (__builtin_eh_return of gcc).
    rooted("throws", &compiled("c++", "throws.cc", &["-O2", "-fomit-frame-pointer"], "throws"), 98.5);
}

#[test]
fn a_rust_program() {
    if Command::new("rustc").arg("--version").output().is_err() {
        return skip("a_rust_program", "no rustc");
    }
    rooted("rust", &compiled("rustc", "spin.rs", &["-O", "-C", "force-frame-pointers=no"], "rust"), 99.5);
}

#[test]
fn a_go_program() {
    if Command::new("go").arg("version").output().is_err() {
        return skip("a_go_program", "no Go here (Debian's golang-go)");
    }
    let Some((features, _guard)) = host("go") else { return };
    let file = compiled("go", "spin.go", &["build"], "go");
    let functions =
        [("main.leaf", 'l'), ("main.down", 'd'), ("main.work", 'w'), ("runtime.goexit.abi0", 'g')];
    let functions = functions.map(|(name, letter)| (function(&file, name).expect(name).linked, letter));
    let letter = |frame: &profiler_ebpf::UserFrame| {
        let at = frame.value - u64::from(frame.flags & profiler_ebpf::UserFrame::FLAG_RETURN_ADDRESS);
        functions.iter().find(|(range, _)| range.contains(&at)).map_or('?', |(_, letter)| *letter)
    };
    let letters = |stack: &RawStack| stack.user.iter().map(letter).collect::<String>();
    let right = chains(10, "wg");
    let program = Running::start(&mut Command::new(&file));
    let mut seen = sampled(&features, program.pid(), |_| {});
    seen.print("go");
    // Its collector and its scheduler have threads of their own, whose stacks are not known.
    let own = |stack: &RawStack| stack.user.first().is_some_and(|leaf| "ldw".contains(letter(leaf)));
    seen.stacks.retain(|(stack, _)| own(stack));
    seen.all = seen.stacks.iter().map(|(_, count)| count).sum();
    let exact = seen.share("are right, frame by frame", |s| right.contains(&letters(s)));
    let mut others: Vec<_> = seen.stacks.iter().map(|(s, n)| (*n, letters(s), s.end.slug())).collect();
    others.sort_unstable_by(|a, b| b.cmp(a));
    others.iter().take(6).for_each(|how| println!("    {how:?}"));
    // Go does not mark the end: that it is reached is known by the name of the first frame (symbolize/thread_start),
    // with which all right ones end.
    assert!(seen.all > 100 && exact >= 99.5, "{exact:.2} % of {} right", seen.all);
}

/// Java over zlib.
fn zip(test: &str, major: u32) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(home) = std::env::var_os(format!("EMBERSCOPE_JAVA{major}")).map(PathBuf::from) else {
        return skip(test, &format!("no JDK {major} here (EMBERSCOPE_JAVA{major})"));
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/Zip.java");
    let dir = tempfile::tempdir().expect("a directory");
    let done =
        Command::new(xtask::setup::jdk::tool(&home, "javac")).arg("-d").arg(dir.path()).arg(source).status();
    assert!(done.is_ok_and(|done| done.success()));
    let program = Running::start(Command::new(home.join("bin/java")).arg("-cp").arg(dir.path()).arg("Zip"));
    std::thread::sleep(Duration::from_secs(2));
    let pid = program.pid();
    let jvm = Jvm::open(Path::new(&format!("/proc/{pid}")), 0, &LibjvmFiles::default()).expect("a JVM");
    let linked = function(&home.join("lib/server/libjvm.so"), THREAD_ENTRY).expect("the symbol").linked;
    let bias = jvm.libjvm().bias;
    let entry = linked.start.wrapping_add(bias)..linked.end.wrapping_add(bias);
    let seen = sampled(&features, pid, |capture| {
        let told = layout(&jvm, major).expect("a layout");
        capture.expect_runtime(RuntimeId::HOTSPOT, pid).expect("room");
        assert!(capture.set_runtime(RuntimeId::HOTSPOT, pid, &told.to_bytes()).expect("room"));
    });
    seen.print(&format!("JDK {major} over zlib"));
    seen.strays(program.pid(), |stack| stack.end == StackEnd::Root);
    let native_leaf = |s: &RawStack| s.user.first().is_some_and(|f| f.is_native());
    let entered = |s: &RawStack| s.user.iter().any(|f| f.kind == 0 && entry.contains(&f.value));
    let java = |s: &RawStack| s.user.iter().any(|f| f.kind == JavaFrameTag::Compiled as u8 && !f.is_native());
    // Native code that Java called, down to the function that starts a JVM's threads.
    let over = seen.share("have a native leaf above Java", |s| native_leaf(s) && java(s));
    let whole = seen.share("of all reach the function that started the thread", |s| java(s) && entered(s));
    let rooted = seen.share("reach the root", |s| s.end == StackEnd::Root);
    let java = seen.share("have Java frames", java);
    assert!(seen.all > 100 && rooted >= 99.0, "{rooted:.2} % of {}", seen.all);
    assert!(over >= 50.0 && whole >= java * 0.99, "{over:.2} % over Java, {whole:.2} of {java:.2} % whole");
}

#[test]
fn java_over_zlib_17() {
    zip("java_over_zlib_17", 17);
}

#[test]
fn java_over_zlib_25() {
    zip("java_over_zlib_25", 25);
}
