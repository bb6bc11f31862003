//! Kills at any moment (`cargo xtask bench store` has a thousand): a writer process is killed again and again, and what it said was appended is there.

use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const DIR: &str = "EMBERSCOPE_TEST_STORE";

/// The window that a writer appends as its n-th, and its samples.
fn nth(n: u64) -> (Window, u64) {
    let rows: Vec<_> =
        (0..20).map(|i| (i % 4, i % 6, (n * 3 + i * 7) % 50, 1 + (n + i) % 9, i % 3)).collect();
    let window = window(n * 10, &rows);
    let samples = window.rows.iter().map(|row| row.count).sum();
    (window, samples)
}

/// Runs one of the programs that are no tests on a directory, and kills it in the middle, wherever that is on this machine: at a
/// moment drawn from as long as it takes to end by itself, and a quarter more.
pub(super) struct Killer<'a> {
    program: &'static str,
    /// The variable that tells it its directory, and that.
    dir: (&'static str, &'a Path),
    random: u64,
    whole: Duration,
}

impl<'a> Killer<'a> {
    /// Lets it run to its end, to know how long that takes.
    pub fn of(program: &'static str, dir: (&'static str, &'a Path)) -> Self {
        let mut killer = Self { program, dir, random: 0x9e37_79b9, whole: Duration::ZERO };
        let begun = Instant::now();
        assert!(killer.start().wait().unwrap().success(), "{program} fails by itself");
        killer.whole = begun.elapsed();
        killer
    }

    /// Starts it and kills it.
    pub fn strike(&mut self) {
        let mut child = self.start();
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (self.random >> 33) as f64 / f64::from(u32::MAX >> 1);
        std::thread::sleep(self.whole.mul_f64(part * 1.25));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn start(&mut self) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args([self.program, "--exact", "--ignored"])
            .env(self.dir.0, self.dir.1)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

/// Not a test of its own: the process that is killed. Appends and says so, until it is.
#[test]
#[ignore = "no test of its own: it is what the test below starts and kills"]
fn writer() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    // Small parts: blocks are written all the time.
    let busy = DiskStoreConfig { block_length: Duration::from_secs(300), ..config(Path::new(&dir)) };
    let store = DiskStore::open(busy).unwrap();
    let mut n = store.usage().windows as u64;
    loop {
        store.append(nth(n).0);
        println!("appended {n}");
        n += 1;
    }
}

#[test]
fn a_hundred_kills_lose_no_window() {
    let times = 100_u32;
    let dir = tempfile::tempdir().unwrap();
    let mut random = 0x9e37_79b9_u64;
    let (mut said, mut round) = (0, 0);
    // On a full machine many are killed before they have written anything.
    while round < times || said <= u64::from(times) {
        assert!(round < 20 * times, "{said} windows in {round} rounds");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["disk::tests::kills::writer", "--exact", "--ignored", "--nocapture"])
            .env(DIR, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            let numbers = output.lines().map_while(Result::ok);
            // The test's own name stands before the first.
            numbers.filter_map(|line| line.split_once("appended ")?.1.parse::<u64>().ok()).last()
        });
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros(5_000 + (random >> 33) % 30_000));
        child.kill().unwrap();
        child.wait().unwrap();
        if let Some(last) = reader.join().unwrap() {
            said = last + 1;
        }
        let store = open(dir.path());
        let windows = store.usage().windows as u64;
        assert!(windows == said || windows == said + 1, "round {round}: {windows} windows, {said} were said");
        let sum: u64 = (0..windows).map(|n| nth(n).1).sum();
        let all = Query { range: range(0, windows * 10), ..query(0, 0) };
        assert_eq!(store.summary(&all).unwrap().quality.samples, sum, "round {round}");
        assert_eq!(store.disk().unwrap().set_aside, 0, "round {round}");
        // One may have been appended and not been said any more.
        said = windows;
        if round % 10 == 9 {
            assert_eq!(store.merge(&all).unwrap().tree.nodes[0].total_count, sum, "round {round}");
        }
        round += 1;
    }
}
