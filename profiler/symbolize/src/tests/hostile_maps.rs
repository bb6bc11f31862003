//! What a hostile process may put in the place of its map.

use super::*;
use crate::asker::{Job, run};
use crate::perf_map::Wanted;
use std::os::unix::fs::symlink;

/// A fake /proc with one process whose root is a temporary directory.
struct Fake(tempfile::TempDir);

impl Fake {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("7/root/tmp")).unwrap();
        let stat = format!("7 (a b) c) S {}\n", "1 ".repeat(30));
        std::fs::write(dir.path().join("7/stat"), stat).unwrap();
        Self(dir)
    }
    fn map(&self) -> PathBuf {
        self.0.path().join("7/root/tmp/perf-3.map")
    }
    fn read(&self, max_bytes: u64) -> Result<perf_map::Scan, Refusal> {
        let key = ProcessKey { pid: 7, start_ticks: 1 };
        let jvm = attach::Jvm {
            process_dir: self.0.path().join("7"),
            pid: 7,
            nspid: 3,
            start_ticks: 1,
            uid: 4321,
            gid: 4321,
        };
        let wanted = Wanted { addresses: vec![0x1000, 0x2000], known: Vec::new() };
        let begun = Instant::now();
        let outcome = run(Job {
            key,
            epoch: 0,
            jvm,
            libjvm: None,
            may_ask: true,
            first: true,
            ours: false,
            version: None,
            wanted,
            max_bytes,
            timeout: Duration::from_millis(100),
        });
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert!(outcome.asked.is_none());
        outcome.read
    }
}

#[test]
fn a_good_one() {
    let fake = Fake::new();
    std::fs::write(fake.map(), "0x1000 0x10 int a.B.c()\n2000 10 half").unwrap();
    let scan = fake.read(1 << 30).unwrap();
    assert_eq!((scan.entries.len(), scan.lines), (1, 1));
}

#[test]
fn missing_and_gone() {
    let fake = Fake::new();
    assert_eq!(fake.read(1 << 30), Err(Refusal::Missing));
    std::fs::write(fake.0.path().join("7/stat"), format!("7 (x) S {}\n", "2 ".repeat(30))).unwrap();
    assert_eq!(fake.read(1 << 30), Err(Refusal::ProcessGone));
}

#[test]
fn a_fifo_is_not_opened() {
    let fake = Fake::new();
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, fake.map(), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(fake.read(1 << 30), Err(Refusal::NotRegular));
}

#[test]
fn a_symlink_to_shadow_is_refused() {
    let fake = Fake::new();
    symlink("/etc/shadow", fake.map()).unwrap();
    assert_eq!(fake.read(1 << 30), Err(Refusal::Symlink));
}

#[test]
fn a_directory_above_that_is_a_symlink_stays_inside_the_root() {
    let fake = Fake::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("perf-3.map"), "1000 10 secret\n").unwrap();
    std::fs::remove_dir(fake.0.path().join("7/root/tmp")).unwrap();
    // Inside the root the link's absolute path leads to itself.
    symlink(outside.path(), fake.0.path().join("7/root/tmp")).unwrap();
    assert_eq!(fake.read(1 << 30), Err(Refusal::Symlink));
}

#[test]
fn a_directory() {
    let fake = Fake::new();
    std::fs::create_dir(fake.map()).unwrap();
    assert_eq!(fake.read(1 << 30), Err(Refusal::NotRegular));
}

#[test]
fn ten_gigabytes_of_zeros() {
    let fake = Fake::new();
    let file = std::fs::File::create(fake.map()).unwrap();
    file.set_len(10 << 30).unwrap();
    let before = rss_kb();
    assert_eq!(fake.read(1 << 30), Err(Refusal::Rubbish));
    assert!(rss_kb() < before + (64 << 10));
    // Behind a good line, where the limit of bytes has to stop it.
    std::fs::write(fake.map(), "1000 10 good\n").unwrap();
    std::fs::OpenOptions::new().write(true).open(fake.map()).unwrap().set_len(10 << 30).unwrap();
    let scan = fake.read(64 << 20).unwrap();
    assert!(scan.cut && scan.entries.len() == 1 && scan.bytes <= (64 << 20) + (1 << 20));
}

#[test]
fn binary_rubbish() {
    let fake = Fake::new();
    std::fs::copy("/proc/self/exe", fake.map()).unwrap();
    assert_eq!(fake.read(1 << 30), Err(Refusal::Rubbish));
}

#[test]
fn another_users() {
    let fake = Fake::new();
    std::fs::write(fake.map(), "1000 10 good\n").unwrap();
    if std::os::unix::fs::chown(fake.map(), Some(999), None).is_err() {
        emberscope_testkit::skip("only root can give files away");
        return;
    }
    assert_eq!(fake.read(1 << 30), Err(Refusal::WrongOwner));
    std::os::unix::fs::chown(fake.map(), Some(4321), None).unwrap();
    assert!(fake.read(1 << 30).is_ok());
    assert_eq!(std::fs::metadata(fake.map()).unwrap().uid(), 4321);
}

/// Over 200 MB of entries, of which two were sampled.
#[test]
fn a_large_one_takes_no_memory() {
    use std::io::Write;
    let fake = Fake::new();
    let mut out = std::io::BufWriter::new(std::fs::File::create(fake.map()).unwrap());
    let name = "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIterator.next".repeat(3);
    for i in 0..800_000u64 {
        writeln!(out, "0x{:016x} 0x{:016x} void {name}{i}()", i * 0x100, 0x100).unwrap();
    }
    out.flush().unwrap();
    drop(out);
    let size = std::fs::metadata(fake.map()).unwrap().len();
    let (before, begun) = (rss_kb(), Instant::now());
    let scan = fake.read(1 << 30).unwrap();
    println!("{} MB in {:?}, resident +{} KB", size >> 20, begun.elapsed(), rss_kb().saturating_sub(before));
    assert!(size > 200 << 20);
    assert_eq!((scan.lines, scan.entries.len(), scan.cut), (800_000, 2, false));
    assert!(rss_kb() < before + (32 << 10));
}
