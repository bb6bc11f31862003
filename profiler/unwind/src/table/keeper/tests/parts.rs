//! A file in parts: of its code only what ran has tables.

use super::*;
use crate::table::Wanted;

/// The C library, in parts; everything else whole.
const IN_PARTS: Sizes = Sizes { whole: 1, most: u64::MAX };

fn make_all(keeper: &mut Keeper<Fake>, wanted: &[Wanted]) {
    for file in wanted {
        let sizes = if is_libc(file) { IN_PARTS } else { Sizes::usual(u64::MAX) };
        keeper.learn(make(file, sizes, keeper.keys(), None), Tenant::default()).unwrap();
    }
}

fn is_libc(file: &Wanted) -> bool {
    file.mapping.module_name().starts_with("libc.so")
}

/// A keeper that knows a process, and where that has the C library.
fn begun(limits: Limits) -> (Keeper<Fake>, Waiting, u64) {
    let mut keeper = keeper(limits);
    let process = Waiting::start(&sleep());
    let wanted = keeper.look(&process.1, process.pid()).unwrap();
    make_all(&mut keeper, &wanted);
    assert!(keeper.look(&process.1, process.pid()).unwrap().is_empty(), "all is known");
    let code = process.code("libc.so");
    (keeper, process, code)
}

fn part(missing: Missing) -> Wanted {
    match missing {
        Missing::Part(wanted) => *wanted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn code_that_ran_gets_its_part_and_other_code_none() {
    let (mut keeper, process, code) = begun(Limits::default());
    let (pid, dir) = (process.pid(), process.1.clone());
    let large: Vec<_> = keeper.large(pid).collect();
    assert!(large.len() == 1 && large[0].start == code);
    let before = keeper.counts();
    // The whole, to compare with.
    let mut whole = super::keeper(Limits::default());
    learn(&mut whole, &process);

    let at = code + 0x2_0000;
    let wanted = part(keeper.missing(&dir, pid, at));
    assert!(is_libc(&wanted) && wanted.inode.parted().is_some());
    make_all(&mut keeper, &[wanted]);
    assert!(matches!(keeper.missing(&dir, pid, at), Missing::Look), "its list has not got it yet");
    keeper.look(&dir, pid).unwrap();
    assert!(matches!(keeper.missing(&dir, pid, at), Missing::Nothing));
    for offset in (0..0x1000).step_by(7) {
        let address = at + offset;
        let rule = keeper.walker().rule(pid, address);
        assert_eq!(rule, whole.walker().rule(pid, address), "{address:x}");
        assert!(rule.is_ok());
    }
    let counts = keeper.counts();
    assert_eq!((counts.files, counts.built), (before.files + 1, before.built + 1));
    assert!(counts.bytes - before.bytes < 128 << 10, "{}", counts.bytes - before.bytes);
    // Far away is nothing: not even a range.
    let far = large[0].end - 1;
    assert!(keeper.walker().ranges(&keeper.walker().lists[&pid]).iter().all(|range| {
        let first = u64::from(range[0]) | u64::from(range[1]) << 32;
        let (page, pages) = (first >> CodeRange::PAGES_BITS, first & CodeRange::MAX_PAGES);
        !(page..page + pages).contains(&(far >> PAGE_SHIFT))
    }));
    // The parts of a file are told as one, and are of their process.
    let held = keeper.largest(100);
    assert_eq!(held.iter().filter(|held| held.file.to_string_lossy().contains("libc.so")).count(), 1);
    assert!(matches!(keeper.missing(&dir, pid, 0x1000), Missing::Nothing), "no code of it");
    assert!(matches!(keeper.missing(&dir, 1, at), Missing::Nothing), "no process of ours");
}

#[test]
fn another_process_has_the_parts_that_there_are() {
    let (mut keeper, first, code) = begun(Limits::default());
    let wanted = part(keeper.missing(&first.1, first.pid(), code + 0x2_0000));
    make_all(&mut keeper, &[wanted]);
    let second = Waiting::start(&sleep());
    assert!(keeper.look(&second.1, second.pid()).unwrap().is_empty());
    let at = second.code("libc.so") + 0x2_0000;
    assert!(matches!(keeper.missing(&second.1, second.pid(), at), Missing::Nothing), "it has it");
    assert!(keeper.walker().rule(second.pid(), at).is_ok());
    // The first was not looked at since.
    assert!(matches!(keeper.missing(&first.1, first.pid(), code + 0x2_0000), Missing::Look));
    // Both go, and in time all that is held for them.
    keeper.forget(first.pid());
    keeper.forget(second.pid());
    for known in keeper.files.values_mut() {
        known.used -= UNUSED;
        assert!(known.users == 0, "{}", known.path.display());
    }
    keeper.sweep(Path::new("/proc"));
    let left: Vec<_> = keeper.files.values().map(|known| known.path.clone()).collect();
    assert_eq!(left, [Path::new("[vdso]").into()]);
}

#[test]
fn a_part_that_has_to_go_is_wanted_again() {
    let (mut keeper, process, code) = begun(Limits { in_use: Duration::ZERO, ..Limits::default() });
    let (pid, dir) = (process.pid(), process.1.clone());
    let at = code + 0x2_0000;
    let wanted = part(keeper.missing(&dir, pid, at));
    make_all(&mut keeper, std::slice::from_ref(&wanted));
    keeper.look(&dir, pid).unwrap();
    let key = keeper.files.iter().find(|(_, known)| known.of.is_some()).map(|(key, _)| *key).unwrap();
    keeper.without(key).unwrap();
    keeper.drop_table(key, Instant::now());
    assert_eq!(keeper.walker().rule(pid, at), Err(NoTable::Refused as u32));
    assert!(matches!(keeper.missing(&dir, pid, at), Missing::Nothing), "not at once");
    keeper.files.get_mut(&key).unwrap().state = State::Evicted(Instant::now());
    assert_eq!(part(keeper.missing(&dir, pid, at)).inode, wanted.inode);
    make_all(&mut keeper, &[wanted]);
    keeper.look(&dir, pid).unwrap();
    assert!(keeper.walker().rule(pid, at).is_ok());
}
