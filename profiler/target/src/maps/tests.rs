use super::*;
use proptest::prelude::*;

const SAMPLE: &[u8] = b"\
5579932a5000-5579932a6000 r--p 00000000 fe:00 314792 /usr/bin/java
5579932a6000-5579932a7000 r-xp 00001000 fe:00 314792                     /usr/bin/java
7fc05d400000-7fc05d670000 rwxp 00000000 00:00 0 
7fc05e400000-7fc05e670000 r-xp 00000000 00:00 0                          [anon:CodeHeap]
7fc06e400000-7fc06e670000 r-xs 00000000 00:01 99                         /memfd:doublemapper (deleted)
7fc079c51000-7fc07a9a4000 r-xp 00251000 103:01 315152                    /opt/my jdk/lib\\012jvm.so (deleted)
7fc07b0be000-7fc07b0c0000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
rubbish
";

fn of(text: &[u8]) -> Maps {
    parse(text).unwrap()
}

#[test]
fn keeps_executable_mappings_only() {
    let Maps { mappings: all, cut, is_empty, .. } = of(SAMPLE);
    assert!(!cut && !is_empty);
    assert_eq!(all.len(), 7);
    assert_eq!(all[0].module_name(), "java");
    assert_eq!((all[0].start, all[0].offset, all[0].inode), (0x5579932a6000, 0x1000, 314792));
    assert_eq!(all[1].backing, Backing::Anonymous);
    assert_eq!(all[2].backing, Backing::Anonymous);
    assert_eq!(all[3].backing, Backing::Anonymous);
    assert_eq!(all[4].device, (0x103, 1));
    let path = Path::new("/opt/my jdk/lib\njvm.so").into();
    assert_eq!(all[4].backing, Backing::File { path, deleted: true });
    assert_eq!(all[5].backing, Backing::Vdso);
    assert_eq!(all[6].backing, Backing::Special("[vsyscall]".into()));
}

#[test]
fn pieces_of_one_mapping_are_one() {
    let text = "1000-3000 r-xp 00005000 08:01 7 /x\n3000-4000 rwxp 00007000 08:01 7 /x\n4000-6000 r-xp 00008000 08:01 7 /x\n";
    let bounds = |text: &str| -> Vec<(u64, u64, u64)> {
        of(text.as_bytes()).mappings.iter().map(|m| (m.start, m.first_end, m.end)).collect()
    };
    assert_eq!(bounds(text), [(0x1000, 0x3000, 0x6000)]);
    let two = [(0x1000, 0x3000, 0x3000), (0x3000, 0x4000, 0x6000)];
    for other in ["rwxp 00006000 08:01 7 /x", "rwxp 00007000 08:02 7 /x", "rwxp 00007000 08:01 8 /x"] {
        let text = text.replace("rwxp 00007000 08:01 7 /x", other);
        assert_eq!(bounds(&text).first(), Some(&two[0]), "{text}");
    }
    assert_eq!(bounds(&text.replace("r-xp 00005000", "r-xp 00001000")), two, "another place of the file");
    let memory = "1000-3000 r-xp 00000000 00:00 0\n3000-4000 rwxp 00002000 00:00 0\n";
    assert_eq!(bounds(memory).len(), 2, "memory that was made at run time");
}

#[test]
fn finds_the_mapping_of_an_address() {
    let all = of(SAMPLE).mappings;
    assert_eq!(find(&all, 0x5579932a6000), Some(0));
    assert_eq!(find(&all, 0x5579932a6fff), Some(0));
    assert_eq!(find(&all, 0x5579932a7000), None);
    assert_eq!(find(&all, 0), None);
    assert_eq!(find(&all, u64::MAX), None);
}

#[test]
fn is_bounded() {
    let line = b"1000-2000 r-xp 00000000 00:00 0\n";
    let maps = of(&line.repeat(MAX_MAPPINGS + 1));
    assert_eq!((maps.mappings.len(), maps.cut), (MAX_MAPPINGS, true));
    // What is behind the limit of bytes is not read.
    let text = std::io::repeat(b'x').take(MAX_BYTES - 1).chain(&b"\n"[..]).chain(&line[..]);
    assert_eq!(parse(text).unwrap(), Maps::default());
}

/// A path of 2,000 bytes for each of 8,192 mappings would take 16 MB.
#[test]
fn mappings_of_one_file_share_its_path() {
    let (one, other) = (format!("/{}", "a".repeat(2000)), format!("/{}", "b".repeat(2000)));
    let text: String = (0..200u64)
        .map(|n| {
            let (start, path) = (n * 0x2000 + 0x1000, if n % 2 == 0 { &one } else { &other });
            format!("{start:x}-{:x} r-xp 00000000 08:01 7 {path}\n", start + 0x1000)
        })
        .collect();
    let maps = of(text.as_bytes());
    let path = |mapping: &Mapping| match &mapping.backing {
        Backing::File { path, .. } => Arc::clone(path),
        other => panic!("{other:?}"),
    };
    assert_eq!((maps.mappings.len(), maps.path_bytes, maps.cut), (200, 2 * 2001, false));
    assert!(maps.mappings.chunks(2).all(|two| {
        Arc::ptr_eq(&path(&two[0]), &path(&maps.mappings[0]))
            && Arc::ptr_eq(&path(&two[1]), &path(&maps.mappings[1]))
    }));
}

#[test]
fn paths_of_a_process_are_bounded_together() {
    let many = MAX_PATHS / 4000 + 10;
    let text: String = (0..many)
        .map(|n| {
            let start = n * 0x2000 + 0x1000;
            format!("{start:x}-{:x} r-xp 00000000 08:01 7 /{n:03999}\n", start + 0x1000)
        })
        .collect();
    let maps = of(text.as_bytes());
    assert_eq!((maps.mappings.len(), maps.cut), (MAX_PATHS / 4000, true));
    assert!(maps.path_bytes <= MAX_PATHS);
}

#[test]
fn an_empty_file_is_told_from_one_without_code() {
    assert!(of(b"").is_empty && of(b"").mappings.is_empty());
    let data = of(b"1000-2000 rw-p 00000000 00:00 0\n");
    assert!(!data.is_empty && data.mappings.is_empty() && !data.cut);
}

proptest! {
    #[test]
    fn takes_any_bytes(text in proptest::collection::vec(any::<u8>(), 0..600)) {
        of(&text);
    }
    #[test]
    fn finds_what_it_read(start in 0u64..1 << 40, len in 1u64..1 << 20, at in 0u64..1 << 20) {
        let text = format!("{start:x}-{:x} r-xp 00000000 08:01 7 /x\n", start + len);
        let all = of(text.as_bytes()).mappings;
        prop_assert_eq!(find(&all, start + at).is_some(), at < len);
    }
}
