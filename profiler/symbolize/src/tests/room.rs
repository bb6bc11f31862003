//! What the code of all processes takes together, whatever one of them maps.

use super::*;
use crate::process::ProcessState;

/// The first address of each process's code.
const START: u64 = 0x10000;
const LIMIT: usize = 64 << 10;

/// A /proc of such processes: pid, and executable pieces of a file (`path` in its maps).
fn proc_of(processes: impl IntoIterator<Item = (u32, u64)>, path: &str) -> tempfile::TempDir {
    let proc = tempfile::tempdir().unwrap();
    for (pid, pieces) in processes {
        let dir = proc.path().join(pid.to_string());
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("stat"), format!("{pid} (a) S {}\n", "1 ".repeat(30))).unwrap();
        let piece = |n: u64| {
            let start = START + n * 0x2000;
            format!("{start:x}-{:x} r-xp {:08x} 08:01 7 {path}\n", start + 0x1000, n * 0x2000)
        };
        std::fs::write(dir.join("maps"), (0..pieces).map(piece).collect::<String>()).unwrap();
    }
    proc
}

fn in_room(proc: &tempfile::TempDir) -> Symbolizer {
    let proc_root = proc.path().to_owned();
    Symbolizer::new(SymbolizerConfig { proc_root, max_code_bytes: LIMIT, ..SymbolizerConfig::default() })
}

fn of_user(pid: u32, uid: u32) -> Target {
    let tenant = Tenant { spark: false, uid, group: 0 };
    Target { key: ProcessKey { pid, start_ticks: 1 }, uid, gid: uid, nspid: pid, tenant }
}

/// A sample of a process, whose mappings come: it has them, or gave way.
fn sampled(symbolizer: &mut Symbolizer, target: &Target) {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        symbolizer.begin(target, &stack(target.key.pid, &[START], &[]));
        symbolizer.poll();
        let process = &symbolizer.processes[&target.key];
        if !process.mappings.is_empty() || process.is_crowded() {
            return;
        }
        assert!(Instant::now() < deadline, "the mappings do not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn held(symbolizer: &Symbolizer) -> usize {
    symbolizer.processes.values().map(ProcessState::bytes).sum()
}

#[test]
fn who_maps_the_most_gives_way_and_his_frames_say_so() {
    const LIGHT: u32 = 1;
    let greedy = 2..22;
    let pieces = greedy.clone().map(|pid| (pid, 200)).chain([(LIGHT, 20)]);
    let proc = proc_of(pieces, "/opt/lib.so");
    let mut symbolizer = in_room(&proc);
    let light = of_user(LIGHT, 1000);
    sampled(&mut symbolizer, &light);
    for pid in greedy.clone() {
        sampled(&mut symbolizer, &of_user(pid, 2000));
        assert!(held(&symbolizer) <= LIMIT, "{} after {pid}", held(&symbolizer));
    }
    assert_eq!(symbolizer.processes[&light.key].mappings.len(), 20, "the light one keeps his");
    let crowded = greedy.clone().find(|pid| symbolizer.processes[&of_user(*pid, 2000).key].is_crowded());
    let crowded = of_user(crowded.expect("one gave way"), 2000);
    let pending = symbolizer.begin(&crowded, &stack(crowded.key.pid, &[START], &[]));
    assert_eq!(names(&symbolizer.finish(&crowded, &pending)), ["[unknown: table full]"]);
    let [(table, refused), _] = symbolizer.refusals();
    assert_eq!(table, "named_processes");
    assert!(refused.total() > 0 && refused.by_tenant().all(|(tenant, _)| tenant.uid == 2000));
    assert_eq!(symbolizer.counters().processes_evicted, refused.total());
}

#[test]
fn long_paths_are_counted_once_a_process() {
    let path = format!("/{}", "long/".repeat(400));
    let proc = proc_of((1..101).map(|pid| (pid, 8)), &path);
    let mut symbolizer = in_room(&proc);
    for pid in 1..101 {
        sampled(&mut symbolizer, &of_user(pid, 2000));
        assert!(held(&symbolizer) <= LIMIT);
    }
    let kept = symbolizer.processes.values().filter(|process| !process.mappings.is_empty()).count();
    assert!((LIMIT / 8000..LIMIT / 2000).contains(&kept), "{kept} processes with a path of 2,000 bytes each");
}

/// Code made at run time, of which each stack has other addresses.
#[test]
fn addresses_without_a_name_are_bounded_over_all_processes() {
    let proc = proc_of((1..11).map(|pid| (pid, 1)), "/memfd:code (deleted)");
    let mut symbolizer = in_room(&proc);
    for pid in 1..11 {
        let target = of_user(pid, 2000);
        sampled(&mut symbolizer, &target);
        for n in 0..20 {
            let addresses: Vec<u64> = (0..100).map(|at| START + 1 + n * 100 + at).collect();
            symbolizer.begin(&target, &stack(pid, &addresses, &[]));
            assert!(held(&symbolizer) <= LIMIT, "{}", held(&symbolizer));
        }
    }
    assert!(symbolizer.processes.values().any(ProcessState::is_crowded));
    assert!(symbolizer.counters().jit_dropped > 0);
}
