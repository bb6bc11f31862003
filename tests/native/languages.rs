//! C++, Rust, Go and Java over C: programs whose stacks must reach the root.

use super::*;
use emberscope::hotspot::{Jvm, LibjvmFiles};
use emberscope::unwind::hotspot::layout;
use emberscope_tests::function;
use profiler_ebpf::FrameKindTag;

/// Where a thread of a JVM begins (os_linux.cpp).
const THREAD_ENTRY: &str = "_ZL19thread_native_entryP6Thread";

/// Programs whose functions are not asked for: so many of 100 stacks must reach the root.
fn rooted(test: &str, program: &Path, bar: f64) {
    let Some((features, _guard)) = host(test) else { return };
    let program = Running::start(&mut Command::new(program));
    for tables in [false, true] {
        let seen = sampled(&features, program.pid(), tables, |_| {});
        seen.print(&format!("{test}, {} tables", if tables { "with" } else { "without" }));
        let rooted = seen.share("reach the root", |s| s.end == StackEnd::Root);
        if tables {
            assert!(seen.all > 100 && rooted >= bar, "{rooted:.2} % of {}", seen.all);
        }
    }
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

/// Java over zlib, with and without tables.
fn zip(test: &str, major: u32) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(home) = std::env::var_os(format!("EMBERSCOPE_JAVA{major}")).map(PathBuf::from) else {
        return skip(test, &format!("no JDK {major} here (EMBERSCOPE_JAVA{major})"));
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/Zip.java");
    let dir = tempfile::tempdir().expect("a directory");
    let done = Command::new(home.join("bin/javac")).arg("-d").arg(dir.path()).arg(source).status();
    assert!(done.is_ok_and(|done| done.success()));
    let program = Running::start(Command::new(home.join("bin/java")).arg("-cp").arg(dir.path()).arg("Zip"));
    std::thread::sleep(Duration::from_secs(2));
    let pid = program.pid();
    let jvm = Jvm::open(Path::new(&format!("/proc/{pid}")), 0, &mut LibjvmFiles::default()).expect("a JVM");
    let linked = function(&home.join("lib/server/libjvm.so"), THREAD_ENTRY).expect("the symbol").linked;
    let bias = jvm.libjvm().bias;
    let entry = linked.start.wrapping_add(bias)..linked.end.wrapping_add(bias);
    for tables in [false, true] {
        let seen = sampled(&features, pid, tables, |capture| {
            let told = layout(&jvm, major * 10 + u32::from(tables)).expect("a layout");
            capture.expect_jvm(pid).expect("room");
            assert!(capture.set_jvm(pid, &told).expect("room"));
        });
        seen.print(&format!("JDK {major} over zlib, {} tables", if tables { "with" } else { "without" }));
        let native_leaf =
            |s: &RawStack| s.user.first().is_some_and(|f| f.kind == FrameKindTag::Address as u8);
        seen.share("have a native leaf", native_leaf);
        let entered = |s: &RawStack| s.user.iter().any(|f| f.kind == 0 && entry.contains(&f.value));
        let java = |s: &RawStack| s.user.iter().any(|f| f.kind == FrameKindTag::JavaCompiled as u8);
        seen.share("have Java frames", java);
        seen.share("reach the function that started the thread", entered);
        let rooted = seen.share("reach the root", |s| s.end == StackEnd::Root);
        if tables {
            assert!(seen.all > 100 && rooted >= 99.0, "{rooted:.2} % of {}", seen.all);
        }
    }
}

#[test]
fn java_over_zlib_17() {
    zip("java_over_zlib_17", 17);
}

#[test]
fn java_over_zlib_25() {
    zip("java_over_zlib_25", 25);
}
