//! A JVM's layout, soon after its start and until its end, and tables that lack something.

use super::*;
use crate::LibjvmFiles;
use emberscope_testkit::jdks::{Java, jdks};
use profiler_ebpf::LockLayout;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SLEEP: &str = "public class Sleep { public static void main(String[] a) throws Exception \
    { Thread.sleep(60_000); } }";

#[test]
fn a_jvm_is_known_soon_after_its_start_and_until_its_end() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("Sleep.java"), SLEEP).unwrap();
    for (jdk, flags) in jdks()
        .iter()
        .flat_map(|jdk| ["-XX:+SegmentedCodeCache", "-XX:-SegmentedCodeCache"].map(|flag| (jdk, flag)))
    {
        let mut command = Command::new(jdk.join("bin/java"));
        command.args(["-XX:ReservedCodeCacheSize=240m", flags]).arg(dir.path().join("Sleep.java"));
        let java = Java(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let begun = Instant::now();
        let proc = format!("/proc/{}", java.pid());
        let read = || {
            let jvm = Jvm::open(Path::new(&proc), 0, &LibjvmFiles::default())?;
            layout(&jvm, 7)
        };
        let found = loop {
            match read() {
                Ok(found) => break found,
                Err(problem) => {
                    assert!(problem.may_pass(), "{jdk:?}: {problem}");
                    assert!(begun.elapsed() < Duration::from_secs(20), "{jdk:?}: {problem}");
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        };
        println!("{jdk:?} {flags}: known {:?} after its start", begun.elapsed());
        let heaps = found.heaps.iter().filter(|heap| heap.low != 0).count();
        assert_eq!(heaps, if flags.contains('+') { 3 } else { 1 }, "{found:x?}");
        assert!((found.head.low..found.head.high).contains(&found.call_stub_return), "{found:x?}");
        assert!(
            found.heaps.iter().all(|h| h.low == 0 || found.head.low <= h.low && h.high <= found.head.high)
        );
        assert_eq!(found.head.incarnation, 7);
        let BufferLayout { allocated, start, top, end } = found.buffers;
        assert!(allocated != 0 && 0 < start && start < top && top < end, "{jdk:?}: {found:x?}");
        assert!(found.head_bytes > 0 && usize::from(found.head_bytes) <= MAX_BLOB_HEAD);
        // Nothing of it changes, but that the return barrier, the compiler's counter and where locks are come a moment later.
        let again = loop {
            let again = read().unwrap();
            let JvmLayout { compiles, cont_return_barrier, locks, .. } = found;
            assert!(compiles == 0 || again.compiles == compiles);
            assert!(cont_return_barrier == 0 || again.cont_return_barrier == cont_return_barrier);
            assert!(locks == LockLayout::default() || again.locks == locks);
            assert_eq!(JvmLayout { compiles, cont_return_barrier, locks, ..again }, found);
            if again.compiles != 0 && again.locks != LockLayout::default() {
                break again;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{jdk:?}: no counter of compilations, or no locks"
            );
            std::thread::sleep(Duration::from_millis(20));
        };
        // It has virtual threads where it knows their entry.
        assert_eq!(again.cont_return_barrier != 0, again.cont_entry_return != 0, "{again:x?}");
        drop(java);
        assert!(matches!(read(), Err(JvmProblem::Gone | JvmProblem::NoLibjvm)));
    }
}

#[test]
fn tables_without_code_heaps_are_missing_something() {
    struct Nothing;
    impl Memory for Nothing {
        fn read(&self, _: u64, _: &mut [u8]) -> Result<(), emberscope_target::memory::ReadError> {
            Err(emberscope_target::memory::ReadError::Fault)
        }
    }
    let problem = from_tables(&Nothing, &VmStructs::default(), &|_| None, 1).unwrap_err();
    assert!(matches!(problem, JvmProblem::Missing(_)), "{problem}");
}
