//! What somebody wrote to do harm. `cargo run --release -p emberscope-archive --example bad_blocks -- 10000` does more of it.

use super::*;
use emberscope_store::{
    BlockFacts, Fetch, JournalReader, Shelf, StoreError, StoreUsage, Touch, Volume, journals_of,
};

#[path = "../../examples/bad_blocks/spoil.rs"]
mod spoil;

/// In a process of its own, which may not have more memory than an answer: see the next.
#[test]
#[ignore = "no test of its own: the test after it runs it, in a process of its own"]
fn in_a_process_of_its_own() {
    println!("\n{}", spoil::run(1500, 7));
}

#[test]
fn bad_objects_are_read_or_named_within_the_memory_of_an_answer() {
    let own = "tests::hostile::in_a_process_of_its_own";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", own])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{}: {said} {}", child.status, String::from_utf8_lossy(&child.stderr));
    assert!(said.contains("1500 spoiled"), "{said}");
}

/// Makes a file of a block, by the beginning of its name, other bytes, and everything that tells of the block agree.
fn replace(place: &Place, node: &str, block: &str, file: &str, change: impl Fn(&mut Vec<u8>)) {
    let objects = place.objects();
    let below = format!("v1/nodes/{node}/blocks/{block}");
    let name = objects.iter().find(|name| name.starts_with(&below) && name.ends_with(file)).unwrap();
    let path = place.archive().join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(&path, &bytes).unwrap();
    let index = format!("v1/index/{}/{node}/{block}", &block[..11]);
    let old = place.archive().join(objects.iter().find(|name| name.starts_with(&index)).unwrap());
    let manifest = spoil::resealed::with_file(&std::fs::read(&old).unwrap(), file, &bytes);
    let new = old.with_extension(format!("{:08x}", crc32fast::hash(&manifest)));
    std::fs::remove_file(&old).unwrap();
    std::fs::write(new, manifest).unwrap();
}

impl Place {
    /// To bring the first hour together.
    fn compacting(&self) -> CompactConfig {
        CompactConfig {
            url: self.url(),
            dir: tempfile::tempdir_in(self.0.path()).unwrap().keep(),
            dir_bytes: 1 << 30,
            memory_bytes: 1 << 30,
            app: None,
            range: range(0, HOUR),
        }
    }
}

/// Makes a block bad in a way that no checksum tells: the footer of a file says that it has more than there is.
fn spoil_footer(place: &Place, node: &str, block: &str) {
    replace(place, node, block, "groups.parquet", |bytes| {
        let end = bytes.len() - 8;
        bytes[end..end + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    });
}

/// Two nodes' hours, of which one block is bad.
fn one_bad() -> Place {
    let place = two_hours();
    spoil_footer(&place, "b", "20231114T22");
    place
}

#[test]
fn a_node_with_more_bad_blocks_than_a_question_has_tries_ends_no_question() {
    let place = Place::new();
    let a = place.open("a");
    fill(&a, "a", 0, HOUR);
    a.settle();
    place.copy("a");
    let (memory_bytes, retention_age, merge_after) = (usize::MAX, Duration::MAX, Duration::MAX);
    let config = DiskStoreConfig { fsync: Fsync::Never, ..DiskStoreConfig::new(place.store("b")) };
    let b = DiskStore::open(DiskStoreConfig { memory_bytes, retention_age, merge_after, ..config }).unwrap();
    for minute in 0..20 {
        fill(&b, "b", minute * 60, minute * 60 + 60);
        b.settle();
    }
    fill(&b, "b", HOUR, HOUR + 60);
    b.settle();
    place.copy("b");
    let blocks: Vec<String> = (place.objects().iter())
        .filter_map(|name| name.strip_prefix("v1/index/20231114T22/b/")?.split_once('.'))
        .map(|(block, _)| block.to_owned())
        .collect();
    assert_eq!(blocks.len(), 20);
    blocks.iter().for_each(|block| spoil_footer(&place, "b", block));

    let (reader, all) = (place.reader(), query(0, 2 * HOUR, &[], &[]));
    let samples =
        |store: &dyn Store, from, until| store.merge(&query(from, until, &[], &[])).unwrap().quality.samples;
    let sound = samples(&a, 0, HOUR) + samples(&b, HOUR, 2 * HOUR);
    for _ in 0..2 {
        let quality = reader.merge(&all).unwrap().quality;
        assert_eq!(quality.samples, sound);
        let missing = quality.missing;
        assert!(missing.count == 1 && missing.parts[0].name == "nodes/b/20231114T22", "{missing:?}");
        assert!(missing.parts[0].says.contains("footer"), "{missing:?}");
    }
    // The same when an hour is brought together: nothing of the node, and all of the others.
    let mut all = Vec::new();
    compact(&place.compacting(), |one| all.push(one)).unwrap();
    assert!(all.len() == 2 && all.iter().all(|one| one.blocks == 1 && !one.unchanged), "{all:?}");
}

#[test]
fn a_block_with_right_checksums_and_wrong_content_is_named_and_the_rest_answers() {
    let place = one_bad();
    let (reader, all) = (place.reader(), query(0, HOUR, &[], &[]));
    let own = query(0, HOUR, &[(LabelKey::Node, "a")], &[]);
    let whole = place.open("a").merge(&own).unwrap().quality.samples;
    for _ in 0..2 {
        let quality = reader.merge(&all).unwrap().quality;
        assert_eq!(quality.samples, whole);
        // The answer tells what it lacks, and those of other hours do not.
        let missing = quality.missing;
        assert!(missing.count == 1 && missing.parts[0].name.contains("nodes/b/"), "{missing:?}");
        assert!(missing.parts[0].says.contains("footer"), "{missing:?}");
        assert_eq!(reader.summary(&all).unwrap().quality.missing, missing);
        assert_eq!(reader.methods(&all).unwrap().quality.missing, missing);
        let other = query(HOUR, 2 * HOUR, &[], &[]);
        assert_eq!(reader.merge(&other).unwrap().quality.missing.count, 0);
        let usage = reader.shelf().reading();
        assert_eq!(usage.set_aside, 1, "{usage:?}");
        let (name, says) = &usage.set_aside_names[0];
        assert!(name.contains("nodes/b/") && says.contains("footer"), "{usage:?}");
    }
}

#[test]
fn of_an_hour_that_was_brought_together_badly_the_nodes_blocks_answer() {
    let place = two_hours();
    compact(&place.compacting(), |_| {}).unwrap();
    let app = query(0, HOUR, &[(LabelKey::App, "app-1")], &[]);
    let whole = place.reader().merge(&app).unwrap().quality.samples;
    let gathered = place.objects().into_iter().find(|name| name.starts_with("v1/gathered/app-1/")).unwrap();
    let path = place.archive().join(gathered);
    let text = std::fs::read_to_string(&path).unwrap();
    // What tells of it is sound JSON, and the manifest in it none of this version.
    std::fs::write(&path, text.replace(r#"\"format\": 1"#, r#"\"format\": 9"#)).unwrap();
    let reader = place.reader();
    let quality = reader.merge(&app).unwrap().quality;
    assert_eq!((quality.samples, quality.missing.count), (whole, 0));
    assert_eq!(reader.shelf().reading().set_aside, 1);
    // Where the nodes' blocks have gone by age, it is missing.
    for below in ["v1/nodes", "v1/index"] {
        std::fs::remove_dir_all(place.archive().join(below)).unwrap();
    }
    let quality = place.reader().merge(&app).unwrap().quality;
    assert_eq!((quality.samples, quality.missing.count), (0, 1), "{quality:?}");
}

#[test]
fn an_hour_is_brought_together_without_what_is_bad() {
    let place = one_bad();
    let config = place.compacting();
    let mut all = Vec::new();
    compact(&config, |one| all.push(one)).unwrap();
    assert!(all.len() == 2 && all.iter().all(|one| one.blocks == 1 && !one.unchanged), "{all:?}");
    let reader = place.reader();
    let app = query(0, HOUR, &[(LabelKey::App, "app-1")], &[]);
    let whole = place.open("a").merge(&app).unwrap().quality.samples;
    let quality = reader.merge(&app).unwrap().quality;
    assert_eq!((quality.samples, quality.missing.count), (whole, 1), "{quality:?}");
    // It is not covered, so whoever asks learns of it.
    assert_eq!(reader.shelf().reading().set_aside, 1);
}
