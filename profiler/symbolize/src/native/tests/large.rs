//! A file whose symbols are too many: this test's own program, where little may be held.

use super::*;
use crate::files::{At, Files};
use emberscope_target::maps::Mapping;
use std::time::Instant;

/// This program, where it is mapped as code, and a function of it by its offset in the file.
fn own() -> (File, Stat, Mapping, u64) {
    let dir = Path::new("/proc/self");
    let address = own as fn() -> _ as usize as u64;
    let maps = emberscope_target::open::mappings(dir).unwrap().mappings;
    let mapping = maps.into_iter().find(|mapping| (mapping.start..mapping.end).contains(&address)).unwrap();
    let (file, stat) = emberscope_target::open::mapped_file(dir, &mapping).unwrap();
    let offset = address - mapping.start + mapping.offset;
    (file, stat, mapping, offset)
}

#[test]
fn each_name_is_read_when_its_function_runs() {
    let (file, stat, mapping, offset) = own();
    let mut frames = FrameTable::new(Default::default());
    let (mut natives, mut files) = (Natives::new(512 << 10, 1000), Files::default());
    let at = At { dir: Path::new("/proc/self"), mapping: &mapping };
    let id = natives.module("tests", &file, &stat);
    assert!(natives.naming(id, offset).is_none(), "nothing is known of it yet");
    natives.load(id, &file, Path::new(""));
    let counters = natives.counters();
    assert_eq!((counters.tables, counters.files_without_symbols), (1, 0));
    assert!(counters.table_bytes < 512 << 10, "{}", counters.table_bytes);

    let mut name = |natives: &mut Natives, offset, at: At<'_>| {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            let naming = natives.naming(id, offset).unwrap();
            match files.name((id, offset), naming, at, (natives, &mut frames)) {
                Ok(Some(frame)) => return Some(frame),
                Err(_) => return None,
                // On a busy machine it takes longer than is waited for.
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            }
            files.poll(natives, &mut frames);
            if let Some(frame) = natives.cached(id, offset) {
                return Some(frame);
            }
        }
        panic!("it does not come")
    };
    let frame = name(&mut natives, offset + 1, at).unwrap();
    assert!(frame.name.ends_with("native::tests::large::own"), "{}", frame.name);
    // Of the whole function.
    assert!(natives.naming(id, offset).is_none());
    assert!(Arc::ptr_eq(&natives.cached(id, offset).unwrap(), &frame));
    // What has no symbol is known as that: the file's head.
    let nothing = natives.cached(id, 1).is_none() && natives.naming(id, 1).is_none();
    assert!(nothing, "it is no code");
    // A file that is gone gives nothing, and loses nothing.
    let gone = Mapping { inode: mapping.inode + 1, ..mapping.clone() };
    let gone = At { dir: Path::new("/proc/0"), mapping: &gone };
    let other = offset + frame_bytes(&natives, id, offset);
    assert!(natives.naming(id, other).is_some());
    assert!(name(&mut natives, other, gone).is_none());
    assert!(natives.naming(id, other).is_some());
}

/// How far a function that is known goes on from an offset.
fn frame_bytes(natives: &Natives, id: ModuleId, offset: u64) -> u64 {
    let functions = &natives.modules[id.0 as usize].functions;
    let (_, (end, _)) = functions.range(..=offset).next_back().unwrap();
    end - offset
}

#[test]
fn a_name_that_comes_too_late_is_dropped() {
    let (file, stat, _, offset) = own();
    let mut frames = FrameTable::new(Default::default());
    let mut natives = Natives::new(512 << 10, 1000);
    let id = natives.module("tests", &file, &stat);
    natives.load(id, &file, Path::new(""));
    let read = natives.naming(id, offset).unwrap().read(&file).unwrap();
    assert!(read.is_some());
    natives.rest_after(Duration::ZERO);
    assert!(natives.take_name((id, offset), read, &mut frames).is_none(), "its table went");
    assert!(natives.wants_file(id));
}
