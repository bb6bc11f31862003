//! What happens to processes, their code and the host's CPUs while all is sampled.

use super::accounts::monotonic_ns;
use super::*;

#[test]
fn a_process_is_seen_from_its_start_to_its_end() {
    let Some((features, _guard)) = host("events") else { return };
    let mut capture = start(&at_99_hz(), &features);
    let child = Command::new("/bin/true").spawn().expect("starts");
    let pid = child.id();
    child.wait_with_output().expect("ends");
    let thread_of = std::thread::spawn(|| ()).join();
    assert!(thread_of.is_ok());
    let got = record(&mut capture, Duration::from_millis(300));

    let me = std::process::id();
    let of_child: Vec<_> = got
        .events
        .iter()
        .filter_map(|e| match e {
            RawEvent::Task(t) if t.pid == pid => Some(t.event),
            _ => None,
        })
        .collect();
    assert!(matches!(of_child[0], TaskEvent::Fork { parent_pid, .. } if parent_pid == me), "{of_child:?}");
    assert_eq!(of_child[1..], [TaskEvent::Exec, TaskEvent::Exit]);
    let my_threads = got.events.iter().filter(|e| {
        matches!(e, RawEvent::Task(t) if t.pid == me && t.tid != me
            && matches!(t.event, TaskEvent::Fork { parent_pid, .. } if parent_pid == me))
    });
    assert!(my_threads.count() >= 1, "a thread's start is a fork with the same pid");
}

#[test]
fn code_that_a_process_maps_is_seen_where_it_maps_it() {
    let Some((features, _guard)) = host("mmap_events") else { return };
    assert_eq!(features.mmap_events, Ok(()));
    let mut capture = start(&at_99_hz(), &features);
    let from = monotonic_ns();
    let child = Command::new(fixture()).arg("load").stdout(Stdio::piped()).spawn().expect("starts");
    let pid = child.id();
    let output = child.wait_with_output().expect("ends");
    let until = monotonic_ns();
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).expect("text");
    let range: Vec<u64> = output
        .lines()
        .nth(1)
        .expect("where the library's code is")
        .split(' ')
        .map(|w| u64::from_str_radix(w, 16).expect("hexadecimal"))
        .collect();

    let got = record(&mut capture, Duration::from_millis(300));
    let mapped = mapped(&got, pid);
    assert!(mapped.iter().any(|m| [m.0, m.1] == range[..]), "{range:x?} is missing in {mapped:x?}");
    // And before it the program, the loader, libc.
    assert!(mapped.len() >= 4 && mapped.iter().all(|m| m.0 < m.1), "{mapped:x?}");
    assert!(mapped.iter().all(|m| (from..until).contains(&m.2)), "{from} {until} {mapped:?}");
    assert_eq!((got.stats.undecodable, capture.lost().get(DropReason::RingFullEvent)), (0, 0));
}

/// Code that a process mapped: from, to, and when.
fn mapped(got: &Got, pid: Pid) -> Vec<(u64, u64, u64)> {
    let of_pid = |e: &RawEvent| match e {
        RawEvent::Mmap { pid: p, start, end, time_ns } if *p == pid => Some((*start, *end, *time_ns)),
        _ => None,
    };
    got.events.iter().filter_map(of_pid).collect()
}

#[test]
fn mappings_that_do_not_fit_are_counted() {
    let Some((features, _guard)) = host("mmap_losses") else { return };
    let mut capture = start(&at_99_hz(), &features);
    // The kernel tells of a loss with the next record of the same CPU.
    let map = |times: &str| {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(fixture()).args(["map", times]).stdout(Stdio::null());
        let mut child = command.spawn().expect("taskset is there");
        assert!(child.wait().expect("ends").success());
        child.id()
    };
    let many = map("2000");
    let mut got = record(&mut capture, Duration::from_millis(50));
    let few = map("5");
    got.events.extend(record(&mut capture, Duration::from_millis(50)).events);
    let (seen, lost) = (mapped(&got, many).len() as u64, capture.lost().get(DropReason::RingFullEvent));
    assert!(seen > 100 && lost > 100, "{seen} seen, {lost} lost");
    // taskset's, the fixture's and its libraries' own come on top, and what others map on this CPU meanwhile.
    assert!((2000..3000).contains(&(seen + lost)), "{seen} seen, {lost} lost");
    assert!(mapped(&got, few).len() >= 5);
}

#[test]
fn a_cpu_that_went_and_came_back_is_sampled_again() {
    let Some((features, _guard)) = host("cpu_hotplug") else { return };
    let online = Path::new("/sys/devices/system/cpu/cpu1/online");
    let mut capture = start(&at_99_hz(), &features);
    let set = |value: &str| std::fs::write(online, value);
    if let Err(error) = set("0") {
        emberscope_tests::skip("cpu_hotplug", &format!("cannot take cpu1 offline: {error}"));
        return;
    }
    let all = capture.cpus();
    let gone = capture.refresh_cpus();
    let back = set("1");
    back.expect("cpu1 comes back");
    assert_eq!(gone.expect("refresh").removed, [1]);
    assert_eq!(capture.cpus(), all - 1);
    assert_eq!(capture.refresh_cpus().expect("refresh").added, [1]);

    // Between two looks nobody saw it go: its ticks stand still.
    set("0").and_then(|()| set("1")).expect("off and on");
    let mut revived = Vec::new();
    let end = Instant::now() + Duration::from_secs(60);
    while revived.is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(200));
        revived = capture.refresh_cpus().expect("refresh").revived;
    }
    assert_eq!(revived, [1]);
    let mut events = Vec::new();
    capture.read(Duration::from_millis(10), &mut events).expect("read");
    let _spin = (Spin::start(&["5", "thread"]), Spin::start(&["5", "thread"]), Spin::start(&["5", "thread"]));
    let got = record(&mut capture, Duration::from_secs(2));
    assert!(got.events.iter().any(|e| matches!(e, RawEvent::Sample(s) if s.cpu == 1)));
}
