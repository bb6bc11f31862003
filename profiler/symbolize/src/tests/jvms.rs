//! Perf maps of real JVMs: asked for, inside their namespaces, of many that start, of one that dies or may not be asked.

use super::*;
use std::sync::Arc;

mod starting;

/// Begins to name code of a JVM, once its mappings were read: on a busy machine they come late.
fn begun(symbolizer: &mut Symbolizer, target: &Target, raw: &RawStack) -> PendingStack {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        let pending = symbolizer.begin(target, raw);
        if symbolizer.unnamed_jit(target.key) > 0 {
            return pending;
        }
        assert!(Instant::now() < deadline, "the JVM's mappings do not come");
        std::thread::sleep(Duration::from_millis(50));
        symbolizer.poll();
    }
}

#[test]
fn all_compiled_code_of_a_real_jvm_gets_its_name() {
    for jdk in jdks() {
        let jvm = working(java(&jdk, &[]));
        let (pid, me) = (jvm.pid(), target(jvm.pid()));
        let before = true_map(&jdk, pid);
        let mut symbolizer = Symbolizer::new(with_jvms());
        // The start of each piece of code, its middle and its end, as leaves.
        let pending: Vec<_> = before
            .iter()
            .flat_map(|(code, _)| [code.start, code.start.midpoint(code.end), code.end - 1])
            .map(|address| symbolizer.begin(&me, &stack(pid, &[address], &[])))
            .collect();
        assert!(symbolizer.unnamed_jit(me.key) > 1000);
        symbolizer.runtime_walked(me.key, Walked::Never);
        let begun = Instant::now();
        assert!(symbolizer.ask(&me));
        assert!(!symbolizer.ask(&me), "one at a time");
        settle(&mut symbolizer);
        let took = begun.elapsed();
        let after = true_map(&jdk, pid);
        let (mut right, mut moved) = (0usize, 0usize);
        for ((code, text), pending) in before.iter().flat_map(|row| [row, row, row]).zip(&pending) {
            let stack = symbolizer.finish(&me, pending);
            let frame = &stack.frames[0];
            let expected = perf_map_frame(text.as_bytes(), true);
            if **frame == expected {
                right += 1;
            } else {
                // The JIT threw it away or replaced it between the two maps.
                assert!(!after.iter().any(|(c, t)| c == code && t == text), "{code:x?} {text}: {frame:?}");
                moved += 1;
            }
        }
        let facts = symbolizer.jvm_facts(me.key).unwrap();
        assert_eq!(facts.names, NameSource::Asked, "{jdk:?}");
        assert!(facts.version.starts_with(|c: char| c.is_ascii_digit()));
        println!(
            "{}: {right} addresses right, {moved} gone, {took:?}, {:?}",
            facts.version,
            symbolizer.counters()
        );
        assert!(right > 1000 && moved * 20 < right);
        assert!(!Path::new(&format!("/tmp/perf-{pid}.map")).exists(), "nothing is left behind");
        assert!(!Path::new(&format!("/tmp/.attach_pid{pid}")).exists());
        // libjvm too, with its memory.
        let all = open::mappings(Path::new(&format!("/proc/{pid}"))).unwrap().mappings;
        let libjvm = all.iter().find(|m| m.module_name() == "libjvm.so").unwrap();
        let addresses: Vec<u64> = (libjvm.start..libjvm.end).step_by(4096).collect();
        let (rss, begun) = (rss_kb(), Instant::now());
        let named = in_time(&mut symbolizer, &me, &stack(pid, &addresses, &[]));
        let has_symbol =
            |f: &&Arc<emberscope_model::Frame>| f.unknown.is_none() && !f.name.starts_with("libjvm.so+0x");
        let with_symbol = named.frames.iter().filter(has_symbol).count();
        println!(
            "libjvm {}: {with_symbol} of {} addresses, {:?}, resident +{} KB",
            facts.version,
            addresses.len(),
            begun.elapsed(),
            rss_kb().saturating_sub(rss)
        );
        assert!(with_symbol * 10 > addresses.len() * 8);
        let demangled = |f: &Arc<emberscope_model::Frame>| f.name.contains("::") && !f.name.starts_with("_Z");
        assert!(named.frames.iter().filter(|f| demangled(f)).count() * 2 > with_symbol);
    }
}

/// A user of its own, a PID namespace and a mount namespace of its own with another /tmp.
#[test]
fn asks_inside_the_jvms_namespaces_as_its_user() {
    if !rustix::process::geteuid().is_root() {
        emberscope_testkit::skip("only root can make namespaces");
        return;
    }
    let unshared = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !unshared.is_ok_and(|status| status.success()) {
        let says = "asks_inside_the_jvms_namespaces_as_its_user\tthe root directory is no mount point (a plain chroot)\n";
        eprint!("SKIPPED {says}");
        if let Some(path) = std::env::var_os("EMBERSCOPE_SKIP_LOG") {
            let log = std::fs::OpenOptions::new().create(true).append(true).open(path);
            log.unwrap().write_all(says.as_bytes()).unwrap();
        }
        return;
    }
    for jdk in jdks() {
        let work = tempfile::tempdir().unwrap();
        std::fs::set_permissions(work.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testdata/Work.java");
        std::fs::copy(source, work.path().join("Work.java")).unwrap();
        let script = format!(
            "cp {0}/Work.java /run/Work.$$.java; mount -t tmpfs -o mode=1777 tmpfs /tmp; \
             exec setpriv --reuid 12345 --regid 12345 --clear-groups {1}/bin/java -XX:+PreserveFramePointer -Xmx128m \
             /run/Work.$$.java",
            work.path().display(),
            jdk.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount", "--mount-proc", "--kill-child", "sh", "-c", &script]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let jvm = working(command);
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", jvm.pid())).unwrap();
        let pid: u32 = children.trim().parse().unwrap();
        let me = target(pid);
        assert_eq!((me.uid, me.gid, me.nspid), (12345, 12345, 1));
        let mut symbolizer = Symbolizer::new(with_jvms());
        let raw = stack(pid, &jit_addresses(pid), &[]);
        let pending = begun(&mut symbolizer, &me, &raw);
        symbolizer.runtime_walked(me.key, Walked::Never);
        assert!(symbolizer.ask(&me));
        settle(&mut symbolizer);
        let named = symbolizer.finish(&me, &pending);
        let java = named.frames.iter().filter(|f| f.kind == FrameKind::JavaCompiled).count();
        println!("{jdk:?} {:?} {java} {:?}", symbolizer.jvm_facts(me.key), symbolizer.counters());
        assert_eq!(symbolizer.jvm_facts(me.key).unwrap().names, NameSource::Asked);
        assert!(java > 10);
        let left: Vec<_> = std::fs::read_dir(format!("/proc/{pid}/root/tmp"))
            .unwrap()
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .filter(|n| n.starts_with("perf-") || n.starts_with(".attach"))
            .collect();
        assert_eq!(left, Vec::<String>::new());
        drop(jvm);
        let _ = std::fs::remove_file("/run/Work.1.java");
    }
}

/// An address every 256 bytes of the code heaps.
fn jit_addresses(pid: u32) -> Vec<u64> {
    let all = open::mappings(Path::new(&format!("/proc/{pid}"))).unwrap().mappings;
    all.iter()
        .filter(|m| m.backing == maps::Backing::Anonymous)
        .flat_map(|m| (m.start + 16..m.end).step_by(256))
        .collect()
}

#[test]
fn a_jvm_that_is_killed_meanwhile_is_an_error_value() {
    for jdk in jdks().into_iter().take(1) {
        let mut jvm = working(java(&jdk, &[]));
        let me = target(jvm.pid());
        let config = SymbolizerConfig { ask_interval: Duration::ZERO, ..with_jvms() };
        let mut symbolizer = Symbolizer::new(config);
        let all = jit_addresses(jvm.pid());
        let (known, new) = all.split_at(all.len() / 2);
        begun(&mut symbolizer, &me, &stack(jvm.pid(), known, &[]));
        symbolizer.runtime_walked(me.key, Walked::Never);
        assert!(symbolizer.ask(&me));
        settle(&mut symbolizer);
        assert_eq!(symbolizer.jvm_facts(me.key).unwrap().names, NameSource::Asked);
        // Stopped: the kernel takes the connection and nobody answers. Killed: the connection breaks.
        let pid = rustix::process::Pid::from_raw(jvm.pid() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        let pending = begun(&mut symbolizer, &me, &stack(jvm.pid(), new, &[]));
        assert!(symbolizer.ask(&me));
        std::thread::sleep(Duration::from_millis(300));
        assert!(symbolizer.poll().is_empty() && symbolizer.asking());
        jvm.0.kill().unwrap();
        jvm.0.wait().unwrap();
        settle(&mut symbolizer);
        symbolizer.on_exit(me.key);
        let named = symbolizer.finish(&me, &pending);
        assert_eq!(named.frames.len(), pending.frames.len());
        let failed = symbolizer.counters().asks_failed;
        assert_eq!(failed.get("gone"), Some(&1), "{failed:?}");
        assert!(!symbolizer.ask(&me), "nobody asks the dead");
    }
}

#[test]
fn a_jvm_whose_memory_was_not_looked_at_yet_is_not_asked() {
    for jdk in jdks().into_iter().take(1) {
        let jvm = working(java(&jdk, &[]));
        let me = target(jvm.pid());
        let config = SymbolizerConfig { ask_interval: Duration::ZERO, ..with_jvms() };
        let mut symbolizer = Symbolizer::new(config);
        let pending = begun(&mut symbolizer, &me, &stack(jvm.pid(), &jit_addresses(jvm.pid()), &[]));
        // A map that is there would be read.
        assert!(symbolizer.ask(&me));
        settle(&mut symbolizer);
        let counters = symbolizer.counters();
        assert_eq!((counters.asks_answered, counters.asks_failed.len()), (0, 0));
        assert!(matches!(symbolizer.jvm_facts(me.key).unwrap().names, NameSource::Waiting(_)));
        let named = symbolizer.finish(&me, &pending);
        assert!(named.frames.iter().all(|f| f.unknown == Some(UnknownReason::JvmNotReady)));
        // It cannot be read: now it is.
        symbolizer.runtime_walked(me.key, Walked::Never);
        assert!(symbolizer.ask(&me));
        settle(&mut symbolizer);
        assert_eq!(symbolizer.jvm_facts(me.key).unwrap().names, NameSource::Asked);
    }
}

#[test]
fn a_jvm_that_may_not_be_asked_is_not() {
    for jdk in jdks().into_iter().take(1) {
        let jvm = working(java(&jdk, &["-XX:+DisableAttachMechanism"]));
        let me = target(jvm.pid());
        let config = SymbolizerConfig { ask_interval: Duration::ZERO, ..with_jvms() };
        let mut symbolizer = Symbolizer::new(config);
        let pending = begun(&mut symbolizer, &me, &stack(jvm.pid(), &jit_addresses(jvm.pid()), &[]));
        symbolizer.runtime_walked(me.key, Walked::Never);
        assert!(symbolizer.ask(&me));
        settle(&mut symbolizer);
        let facts = symbolizer.jvm_facts(me.key).unwrap();
        assert!(
            matches!(&facts.names, NameSource::None(why) if why.contains("DisableAttachMechanism")),
            "{facts:?}"
        );
        let named = symbolizer.finish(&me, &pending);
        assert!(named.frames.iter().all(|f| f.unknown == Some(UnknownReason::JvmNotAsked)));
        // Switched off: the same without touching it.
        let mut symbolizer = Symbolizer::new(SymbolizerConfig { ask_jvms: false, ..with_jvms() });
        let pending = begun(&mut symbolizer, &me, &stack(jvm.pid(), &jit_addresses(jvm.pid()), &[]));
        symbolizer.ask(&me);
        settle(&mut symbolizer);
        assert!(matches!(symbolizer.jvm_facts(me.key).unwrap().names, NameSource::None(_)));
        assert_eq!(symbolizer.counters().asks_failed.len(), 0);
        assert!(symbolizer.finish(&me, &pending).frames.iter().all(|f| f.unknown.is_some()));
    }
}

#[test]
fn a_jvms_memory_is_let_go_of_when_it_has_ended() {
    let Some(jdk) = jdks().into_iter().next() else { return };
    let jvm = working(java(&jdk, &[]));
    let me = target(jvm.pid());
    let mut symbolizer = Symbolizer::new(SymbolizerConfig { keep_exited: Duration::ZERO, ..with_jvms() });
    let mut raw = stack(jvm.pid(), &[8], &[]);
    raw.user[0].kind = profiler_ebpf::JavaFrameTag::Interpreted as u8;
    raw.user[0].runtime = profiler_ebpf::RuntimeId::HOTSPOT.0;
    symbolizer.begin(&me, &raw);
    let held_at_last = |symbolizer: &mut Symbolizer, held: usize| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while symbolizer.counters().java_held != held && Instant::now() < deadline {
            symbolizer.read_names();
            symbolizer.poll();
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(symbolizer.counters().java_held, held);
    };
    held_at_last(&mut symbolizer, 1);
    drop(jvm);
    symbolizer.on_exit(me.key);
    held_at_last(&mut symbolizer, 0);
}
