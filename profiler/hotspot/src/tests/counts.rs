//! What JVMs have counted, against their own word.

use super::*;
use emberscope_runtime::{Problem, Runtime};

/// `sun.ci.totalCompiles` as the JVM prints it.
fn told(jdk: &Path, java: &Java) -> u64 {
    let pid = java.pid().to_string();
    let out = Command::new(jdk.join("bin/jcmd")).args([&pid, "PerfCounter.print"]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix("sun.ci.totalCompiles="));
    count.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[test]
fn compilations_are_as_the_jvm_says_and_deoptimisations_only_go_up() {
    for jdk in jdks() {
        let (java, _) = threads(&jdk, &["-Xmx128m"], true).unwrap();
        let dir = format!("/proc/{}", java.pid());
        let mut opened = HotSpot::default().open(Path::new(&dir), 0).unwrap();
        let mut counts = || {
            let counts = HashMap::<_, _>::from_iter(opened.counts());
            let one = |name| *counts.get(name).unwrap_or_else(|| panic!("{}: {counts:?}", jdk.display()));
            (one("compilations"), one("deoptimizations"))
        };
        // The JVM compiles on: between two looks lies what it says.
        let before = counts();
        let says = told(&jdk, &java);
        let after = counts();
        assert!(0 < before.0 && before.0 <= says && says <= after.0, "{before:?} {says} {after:?}");
        assert!(before.1 <= after.1 && after.1 < 1 << 20, "{before:?} {after:?}");
    }
}

#[test]
fn without_performance_counters_compilations_are_not_told() {
    let Some(jdk) = jdks().into_iter().next() else { return };
    let (java, _) = threads(&jdk, &["-Xmx128m", "-XX:-UsePerfData"], false).unwrap();
    let dir = format!("/proc/{}", java.pid());
    let mut opened = HotSpot::default().open(Path::new(&dir), 0).unwrap();
    let names: Vec<_> = opened.counts().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["deoptimizations"]);
    drop(java);
    assert!(matches!(opened.layout(), Err(Problem::Gone)));
    assert_eq!(opened.counts(), [], "nothing of a process that ended");
}
