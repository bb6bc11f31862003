//! Names of stubs from real JVMs, against what the JVM prints of each when it makes it (`PrintStubCode`).

use super::tests::{frame, namer};
use super::{Unnamed, java_text};
use emberscope_testkit::jdks::{Java, jdks};
use profiler_ebpf::JavaFrameTag;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Starts threads that sleep: its stubs are made meanwhile, some of them by the compiler's threads.
const SLEEP: &str = "public class Sleep { public static void main(String[] a) throws Exception \
    { double s = 0; for (int i = 0; i < 300_000; i++) s += Math.cbrt(i) + Math.sin(i); \
    System.out.println(\"ready \" + s); Thread.sleep(600_000); } }";
/// What a processor with AVX-512 has, and one without: each makes stubs and tables that the other has not.
const PROCESSORS: [&str; 2] = ["-XX:UseAVX=3", "-XX:UseAVX=2"];
/// Stubs that a JVM has made and printed by then, at least.
const STUBS: usize = 40;

/// `StubRoutines::NAME [0x1, 0x2) (1 bytes)`, which JDK 8 to 25 print.
fn printed(line: &str) -> Option<(&str, u64, u64)> {
    let (name, range) = line.strip_prefix("StubRoutines::")?.split_once(" [0x")?;
    let (begin, rest) = range.split_once(", 0x")?;
    let end = rest.split([')', ']', '[']).next()?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((name, number(begin)?, number(end)?))
}

/// Tables and constants, which the JVM makes as it makes stubs.
fn is_data(name: &str) -> bool {
    let ends = ["base64", "base64url", "_lut", "_indices", "_addr"].iter().any(|end| name.ends_with(end));
    let parts = ["_mask", "_flip", "_perm_table"];
    ends || name.starts_with("vector_") || parts.iter().any(|part| name.contains(part))
}

fn check(jdk: &Path, classes: &Path, processor: &str) {
    let log = classes.join("log");
    let file = std::fs::File::create(&log).unwrap();
    let mut command = Command::new(jdk.join("bin/java"));
    command.args(["-XX:+UnlockDiagnosticVMOptions", "-XX:+PrintStubCode", "-Xmx128m"]);
    command.args(["-XX:+IgnoreUnrecognizedVMOptions", processor, "-cp"]);
    command.arg(classes).arg("Sleep").stdout(Stdio::from(file)).stderr(Stdio::null());
    let java = Java(command.spawn().unwrap());
    let begun = Instant::now();
    let text = loop {
        let text = String::from_utf8_lossy(&std::fs::read(&log).unwrap()).into_owned();
        if text.contains("ready ") {
            break text;
        }
        assert!(begun.elapsed() < Duration::from_secs(300), "{jdk:?}: no end");
        std::thread::sleep(Duration::from_millis(50));
    };
    let (mut namer, memory) = namer(&java);
    let release = namer.facts().release.clone();
    let mut batch = namer.batch(&memory);
    let (mut all, mut own, mut same, mut others) = (0, 0, 0, Vec::new());
    for (name, begin, end) in text.lines().filter_map(printed).filter(|(name, ..)| !is_data(name)) {
        let named = batch.name(&frame(JavaFrameTag::Stub, begin.midpoint(end), 0, 0));
        // What was printed may be of a buffer that was made anew.
        if named == Err(Unnamed::Unloaded) || named == Err(Unnamed::NotJava) {
            continue;
        }
        let named = named.unwrap();
        all += 1;
        own += usize::from(!named[0].name.starts_with("StubRoutines"));
        if java_text::fold(name) == *named[0].name {
            same += 1;
        } else {
            others.push(format!("{name} is {}", named[0].name));
        }
    }
    println!(
        "{release} {processor}: {own} of {all} stubs have a name of their own, {same} as the JVM prints it; {others:?}"
    );
    assert!(all >= STUBS, "{all}");
    assert!(own * 100 >= all * 99, "{own} of {all}: {others:?}");
    // Before, it prints what its own code calls them: libmSin, implEncode.
    let printed_alike = namer.facts().major.is_some_and(|major| major >= 25);
    assert!(!printed_alike || same * 100 >= all * 99, "{same} of {all}: {others:?}");
}

#[test]
fn stubs_have_the_names_that_the_jvm_prints() {
    let dir = tempfile::tempdir().unwrap();
    for jdk in jdks() {
        std::fs::write(dir.path().join("Sleep.java"), SLEEP).unwrap();
        let mut javac = Command::new(jdks().first().unwrap().join("bin/javac"));
        let done = javac.args(["--release", "11", "-d"]).arg(dir.path()).arg(dir.path().join("Sleep.java"));
        assert!(done.status().unwrap().success());
        PROCESSORS.iter().for_each(|processor| check(&jdk, dir.path(), processor));
    }
}
