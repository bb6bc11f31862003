//! Names and accounts of the threads of real JVMs, with libjvm's symbols and without.

use super::*;

/// How a JVM is run and its names are read.
struct Jvm {
    flags: &'static [&'static str],
    /// For the probe on the exported function: the shift of narrow references, and whether wide ones are
    /// coloured.
    strings: Option<(u8, u8)>,
}

/// Runs Names.java and holds what comes up against what it said.
fn jvm(test: &str, features: &HostFeatures, home: &Path, how: &Jvm) {
    let dir = tempfile::tempdir().expect("a directory");
    let source = include_str!("../jobs/Names.java");
    let mut program = JavaProgram::new("Names", source, home);
    for flag in how.flags {
        program = program.flag(*flag);
    }
    let mut java = program.start(dir.path()).unwrap_or_else(|e| panic!("{e:#}"));
    let pid = java.pid();
    let layout = java.wait_fact("layout", PATIENCE).unwrap_or_else(|e| panic!("{e:#}"));
    let layout: Vec<u32> = layout.split(' ').map(|word| number(word) as u32).collect();
    let [value_offset, coder_offset, array_data_offset, narrow, eetop] = layout[..] else {
        panic!("{layout:?}")
    };

    let mut capture = start(&config(), features);
    let libjvm = home.join("lib/server/libjvm.so").canonicalize().expect("is there");
    match how.strings {
        None => _ = watch(&mut capture, &libjvm, NATIVE_NAME),
        Some((shift, coloured)) => {
            let strings = StringLayout {
                value_offset,
                coder_offset,
                array_length_offset: array_data_offset - 4,
                array_data_offset,
                narrow: narrow as u8,
                shift,
                coloured,
                eetop_offset: eetop as u16,
                ..Default::default()
            };
            let symbol = "JVM_SetNativeThreadName";
            watch_by(&mut capture, &libjvm, symbol, |offset| NameProbe::JavaName { offset });
            capture.watch_process(pid, Some(strings)).expect("watched");
        }
    }
    capture.watch_process(pid, None).expect("watched");
    std::fs::write(dir.path().join("go"), "").expect("written");
    let mut events = Vec::new();
    let end = Instant::now() + PATIENCE;
    while java.fact("done").is_none() {
        capture.read(Duration::from_millis(50), &mut events).expect("read");
        assert!(Instant::now() < end, "{test}: too slow");
    }
    // Compilers' threads come and go.
    let there = |pid| listed(pid).into_keys().collect::<BTreeSet<Tid>>();
    let before = there(pid);
    capture.ask_threads().expect("asks");
    let after = there(pid);
    record(&mut capture, Duration::from_millis(150), &mut events);

    let log = std::fs::read_to_string(java.log()).expect("its output");
    let said: Vec<Vec<&str>> = log
        .lines()
        .map(|l| l.splitn(5, '|').collect())
        .filter(|l: &Vec<_>| l.len() == 5 && l[0] != "warm")
        .collect();
    assert_eq!(said.len(), 13);
    let tid = number(said[0][1]) as Tid;
    let mut records = threads(&events, pid);
    records.retain(|t| t.tid == tid && t.cause != ThreadCause::Asked);
    if how.strings.is_none() {
        assert_eq!(&*records.remove(0).name, b"the worker", "{test}: its name at the start");
    }
    assert_eq!(records.len(), 13, "{test}: {records:?}");
    for (record, line) in records.iter().zip(&said) {
        let cut = line[4].len().min(profiler_ebpf::MAX_NAME);
        assert_eq!(String::from_utf8_lossy(&record.name), line[4][..cut], "{test}");
        let (bean, schedstat) = (number(line[2]), number(line[3].split(' ').next().expect("a word")));
        // The bean's clock is exact and was read last; the kernel's account lags behind by a tick at most.
        assert!(cpu(record) + 1 > schedstat && cpu(record) < bean + TICK_NS, "{test}: {record:?} {line:?}");
        assert!(cpu(record) + TICK_NS > bean, "{test}: {record:?} {line:?}");
    }
    for pair in records.windows(2) {
        let used = cpu(pair[1]) - cpu(pair[0]);
        assert!((15_000_000..100_000_000).contains(&used), "{test}: {used} ns under a name");
    }
    let (_, named) = records.split_last().expect("13");
    let seen = numbers_are_announced_first(&events, pid);
    for record in named {
        assert!(seen.get(&record.name_seq).is_some_and(|n| *n >= 3), "{test}: {record:?} in {seen:?}");
    }
    // The main thread named another a hundred times, and itself once.
    let main = number(&java.fact("main").expect("said")) as Tid;
    let of_main =
        threads(&events, pid).into_iter().filter(|t| t.tid == main && t.cause == ThreadCause::Named);
    assert_eq!(of_main.map(|t| &*t.name).collect::<Vec<_>>(), [b"the main thread"], "{test}");
    let asked: BTreeSet<Tid> =
        threads(&events, pid).iter().filter(|t| t.cause == ThreadCause::Asked).map(|t| t.tid).collect();
    let stayed: BTreeSet<Tid> = before.intersection(&after).copied().collect();
    let some_time: BTreeSet<Tid> = before.union(&after).copied().collect();
    assert!(
        asked.is_superset(&stayed) && asked.is_subset(&some_time),
        "{test}: {asked:?}, {stayed:?}, {some_time:?}"
    );
    let probe = capture.stats().names;
    println!(
        "{test}: {probe} names, {} records, {} samples",
        threads(&events, pid).len(),
        samples(&events, pid).len()
    );
}

fn on_jdk(major: u32, test: &str, how: &[Jvm]) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(home) = emberscope_tests::jdk(test, major) else { return };
    for how in how {
        jvm(&format!("{test} {:?}", how.flags), &features, &home, how);
    }
}

#[test]
fn a_jdk_17_tells_its_threads_names() {
    on_jdk(17, "jdk_17_names", &[Jvm { flags: &[], strings: None }]);
}

#[test]
fn a_jdk_25_tells_its_threads_names() {
    on_jdk(25, "jdk_25_names", &[Jvm { flags: &[], strings: None }]);
}

#[test]
fn a_jdk_17_without_symbols_tells_them_by_its_strings() {
    let how = [
        Jvm { flags: &["-Xmx512m", "-XX:+UseSerialGC"], strings: Some((0, 0)) },
        Jvm { flags: &["-Xmx8g", "-XX:+UseG1GC"], strings: Some((3, 0)) },
        Jvm { flags: &["-Xmx512m", "-XX:-UseCompressedOops"], strings: Some((0, 0)) },
        Jvm { flags: &["-Xmx512m", "-XX:+UseZGC"], strings: Some((0, 0)) },
    ];
    on_jdk(17, "jdk_17_strings", &how);
}

#[test]
fn a_jdk_25_without_symbols_tells_them_by_its_strings() {
    let how = [
        Jvm { flags: &["-Xmx512m", "-XX:+UseCompactObjectHeaders"], strings: Some((0, 0)) },
        Jvm { flags: &["-Xmx512m", "-XX:+UseZGC"], strings: Some((0, 1)) },
    ];
    on_jdk(25, "jdk_25_strings", &how);
}
