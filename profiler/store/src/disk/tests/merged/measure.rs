//! What merging costs, for who wants to know.

use super::*;

/// Not a test: what merging takes, with the blocks of a directory, each again and again until it is an hour.
#[test]
#[ignore = "no test of its own: it measures the directory with blocks/ that EMBERSCOPE_TEST_MERGED names"]
fn measure() {
    let Some(from) = std::env::var_os(DIR) else { return };
    let root = tempfile::tempdir().unwrap();
    let resident = |what: &str| {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    };
    for times in [1, 8] {
        let dir = root.path().join(format!("{times}"));
        fs::create_dir_all(dir.join("blocks")).unwrap();
        let keep = crate::part::Keep { grain: None, tasks: true, rows_at_once: u64::MAX };
        let (mut number, mut begin) = (0, at(0).floor(Duration::from_secs(3600)));
        for block in (0..times).flat_map(|_| blocks(Path::new(&from))) {
            let block = Block::open(&block).unwrap();
            let mut part = Part::default();
            part.gather(&block.view(0).unwrap(), &Selection::all(), keep).unwrap();
            let first = part.facts.span().unwrap().from;
            let moved = |time: WallTime| WallTime(time.0 - first.0 + begin.0);
            let move_range = |range: &mut TimeRange| {
                (range.from, range.until) = (moved(range.from), moved(range.until));
            };
            part.facts.windows.iter_mut().for_each(|window| move_range(&mut window.range));
            part.ledger.iter_mut().for_each(|line| move_range(&mut line.seen));
            begin = part.facts.span().unwrap().until;
            number += 1;
            let origin = crate::block::Origin::default();
            let to = dir.join("blocks");
            crate::block::write(&part, number, &to, false, origin).unwrap();
        }
        let config = DiskStoreConfig { memory_bytes: 20 << 20, ..config(&dir) };
        let store = DiskStore::open(config.clone()).unwrap();
        let all = Query { range: TimeRange { from: WallTime(0), until: WallTime::now() }, ..query(0, 0) };
        let of = |store: &DiskStore| {
            let summary = store.summary(&all).unwrap();
            (store.disk().unwrap().bytes, summary.quality.samples, summary.windows)
        };
        let before = of(&store);
        println!("{times} times: {number} blocks, bytes, samples, windows {before:?}");
        drop(store);
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let resting = resident("VmRSS:");
        let begun = std::time::Instant::now();
        let store = DiskStore::open(DiskStoreConfig { merge_after: Duration::ZERO, ..config }).unwrap();
        let mut known = usize::MAX;
        while store.disk().unwrap().blocks < known {
            known = store.disk().unwrap().blocks;
            store.settle();
        }
        let (seconds, most) = (begun.elapsed().as_secs_f64(), resident("VmHWM:"));
        let after = of(&store);
        assert_eq!((before.1, before.2), (after.1, after.2));
        let each = |bytes: u64| bytes as f64 / before.1 as f64;
        println!("  {known} blocks {after:?}: {:.2} to {:.2} bytes a sample", each(before.0), each(after.0));
        println!("  {seconds:.1} s, memory {resting} MB before, {most} MB at most");
    }
}
