//! Samples against the CPU time that /proc tells.

use super::ring::all_is_counted;
use super::*;

#[test]
fn samples_times_period_is_the_cpu_time_that_proc_tells() {
    let Some((features, _guard)) = host("cpu_time") else { return };
    // Ticks hit a process that has a share p of its CPU with a standard deviation of sqrt((1 - p) / n): the
    // bar's 0.7 / sqrt(n) is three of them only where p is 0.95 or more, and that is what the kernel leaves
    // to a real-time process (sched_rt_runtime_us).
    let spin = Spin::start_first(&["20"]);
    let mut capture = start(&at_99_hz(), &features);
    let mut got = record(&mut capture, Duration::from_millis(300));
    let (from, cpu_before) = (monotonic_ns(), cpu_ns(spin.pid()));
    // Longer than an epoch: each stack is sent twice.
    got.events.extend(record(&mut capture, Duration::from_secs(11)).events);
    let (until, cpu_after) = (monotonic_ns(), cpu_ns(spin.pid()));
    got.events.extend(record(&mut capture, Duration::from_millis(300)).events);

    let samples = got.samples(spin.pid());
    let inside: Vec<_> = samples.iter().filter(|s| (from..until).contains(&s.time_ns)).collect();
    let sampled: u64 = inside.iter().map(|s| s.weight).sum();
    let cpu = cpu_after - cpu_before;
    let off = (sampled as f64 - cpu as f64).abs() / cpu as f64;
    let bar = 0.01 + 0.7 / (inside.len() as f64).sqrt();
    let share = cpu as f64 / (until - from) as f64;
    println!(
        "{} samples, {:.3} s sampled, {:.3} s in /proc: {:.2} % off, bar {:.2} %, share {share:.3}",
        inside.len(),
        sampled as f64 / 1e9,
        cpu as f64 / 1e9,
        off * 100.0,
        bar * 100.0
    );
    assert!(off <= bar, "{:.2} % off with a share of {share:.3}", off * 100.0);
    assert_eq!(capture.lost().samples(), 0);

    // No idle, and every sample's stack came before it.
    let mut known: HashMap<u64, Pid> = HashMap::new();
    let mut sent: HashMap<u64, usize> = HashMap::new();
    for event in &got.events {
        match event {
            RawEvent::Stack(s) => {
                known.insert(s.hash, s.pid);
                *sent.entry(s.hash).or_default() += 1;
            }
            RawEvent::Sample(s) => {
                assert_ne!(s.pid, 0, "an idle sample");
                assert_eq!(known.get(&s.stack), Some(&s.pid), "a sample before its stack");
            }
            _ => {}
        }
    }
    let (before, after) = (capture.stats(), capture.stats());
    all_is_counted(&before, 0, &after);
    assert_eq!(after.undecodable, 0);
    assert!(sent.values().any(|n| *n >= 2), "a new epoch sends stacks again");
    assert!(sent.values().all(|n| *n <= 3), "a stack is sent once an epoch");
}

pub(super) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    #[allow(unsafe_code)]
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time)
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time on a CPU of a process with one thread, in nanoseconds.
fn cpu_ns(pid: Pid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("schedstat");
    text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number")
}
