//! A keeper whose walker is a piece of memory, beside real processes.

mod parts;

use super::super::{Found, Sizes, make};
use super::*;
use profiler_ebpf::{CfaRule, CodeRange, PAGE_SHIFT, ProcessTables, RULE_BITS, STAMP_WORDS};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

#[derive(Default)]
struct Fake {
    words: Vec<u32>,
    rules: HashMap<u32, u64>,
    lists: HashMap<Pid, ProcessTables>,
}

impl Fake {
    fn word(&self, at: u32) -> u32 {
        self.words.get(at as usize).copied().unwrap_or(0)
    }
    fn ranges(&self, list: &ProcessTables) -> Vec<[u32; 4]> {
        let at = |i: u32| list.list + i * CodeRange::WORDS;
        (0..list.ranges).map(|i| std::array::from_fn(|w| self.word(at(i) + w as u32))).collect()
    }
    /// The rule of an address, as the walker finds it; the first word of its range's table otherwise.
    fn rule(&self, pid: Pid, address: u64) -> Result<UnwindRule, u32> {
        let page = address >> PAGE_SHIFT;
        let ranges = self.ranges(&self.lists[&pid]);
        let key = |range: &[u32; 4]| u64::from(range[0]) | u64::from(range[1]) << 32;
        let holds = |range: &&[u32; 4]| {
            let first = key(range) >> CodeRange::PAGES_BITS;
            page >= first && page - first < key(range) & CodeRange::MAX_PAGES
        };
        let range = ranges.iter().find(holds).expect("a range");
        if range[2] < 16 {
            return Err(range[2]);
        }
        let index = range[2] + range[3] + (page - (key(range) >> CodeRange::PAGES_BITS)) as u32;
        let (from, to) = (range[2] + self.word(index), range[2] + self.word(index + 1));
        let offset = (address & 0xfff) as u32;
        let row = (from..to).map(|at| self.word(at)).take_while(|row| row >> RULE_BITS <= offset).last();
        let number = row.expect("a row") & ((1 << RULE_BITS) - 1);
        Ok(UnwindRule::from_word(self.rules[&number]).expect("a rule"))
    }
}

impl Walker for Fake {
    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), WalkerError> {
        let end = (address as usize + words.len()).next_multiple_of(16);
        self.words.resize(self.words.len().max(end), 0);
        self.words[address as usize..end].fill(0);
        self.words[address as usize..address as usize + words.len()].copy_from_slice(words);
        Ok(())
    }
    fn rule(&mut self, number: u32, rule: u64) -> Result<(), WalkerError> {
        self.rules.insert(number, rule);
        Ok(())
    }
    fn expect(&mut self, pid: Pid) -> Result<(), WalkerError> {
        self.lists.entry(pid).or_default();
        Ok(())
    }
    fn set(&mut self, pid: Pid, tables: ProcessTables) -> Result<bool, WalkerError> {
        Ok(self.lists.get_mut(&pid).map(|list| *list = tables).is_some())
    }
    fn forget(&mut self, pid: Pid) {
        self.lists.remove(&pid);
    }
    fn free_slabs(&mut self, _: &dyn Fn(u32) -> bool) {}
}

/// A program that waits; killed when dropped.
struct Waiting(Child, PathBuf);

impl Waiting {
    fn start(program: &Path) -> Self {
        Self::until(Command::new(program).arg("60").stdout(Stdio::null()), "nanosleep")
    }

    /// One that waits for its input.
    fn reading(program: &Path) -> Self {
        Self::until(Command::new(program).stdin(Stdio::piped()).stdout(Stdio::null()), "pipe")
    }

    fn until(command: &mut Command, waits: &str) -> Self {
        let child = command.spawn().unwrap();
        let dir = PathBuf::from(format!("/proc/{}", child.id()));
        // Until its libraries are mapped.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10)
            && !std::fs::read_to_string(dir.join("wchan")).is_ok_and(|at| at.contains(waits))
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        Self(child, dir)
    }
    fn pid(&self) -> Pid {
        self.0.id()
    }
    /// The first address of this file's code.
    fn code(&self, name: &str) -> u64 {
        let all = emberscope_target::open::mappings(&self.1).unwrap().mappings;
        all.iter().find(|mapping| mapping.module_name().starts_with(name)).expect(name).start
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn keeper(limits: Limits) -> Keeper<Fake> {
    Keeper::new(Fake::default(), limits).unwrap()
}

/// Looks, makes what is wanted, and looks again; the names of what was wanted.
fn learn(keeper: &mut Keeper<Fake>, process: &Waiting) -> Vec<String> {
    let wanted = keeper.look(&process.1, process.pid()).unwrap();
    for file in &wanted {
        let tenant = keeper.tenant(process.pid());
        keeper.learn(make(file, Sizes::usual(u64::MAX), keeper.keys(), None), tenant).unwrap();
    }
    keeper.look(&process.1, process.pid()).unwrap();
    wanted.iter().map(|file| file.mapping.module_name()).collect()
}

fn sleep() -> PathBuf {
    std::fs::canonicalize("/bin/sleep").unwrap()
}

#[test]
fn files_are_wanted_once_and_shared() {
    let mut keeper = keeper(Limits::default());
    let first = Waiting::start(&sleep());
    let wanted = keeper.look(&first.1, first.pid()).unwrap();
    assert!(wanted.len() >= 3, "the program, the loader, the C library");
    let libc = first.code("libc.so");
    assert_eq!(keeper.walker().rule(first.pid(), libc), Err(NoTable::Building as u32));
    assert_eq!(learn(&mut keeper, &first).len(), wanted.len());
    assert!(keeper.walker().rule(first.pid(), libc).is_ok());
    assert!(keeper.walker().rule(first.pid(), first.code("[vdso]")).is_ok());

    let second = Waiting::start(&sleep());
    assert_eq!(learn(&mut keeper, &second), [""; 0]);
    assert_eq!(
        keeper.walker().rule(second.pid(), second.code("libc.so") + 0x5000),
        keeper.walker().rule(first.pid(), libc + 0x5000)
    );
    let counts = keeper.counts();
    assert_eq!((counts.built as usize, counts.processes, counts.refused), (wanted.len(), 2, 0));
}

#[test]
fn a_list_that_goes_takes_its_stamp_along() {
    let mut keeper = keeper(Limits::default());
    let process = Waiting::start(&sleep());
    keeper.look(&process.1, process.pid()).unwrap();
    let before = keeper.walker().lists[&process.pid()];
    assert_eq!(keeper.walker().word(before.list - STAMP_WORDS), before.stamp);
    learn(&mut keeper, &process);
    let after = keeper.walker().lists[&process.pid()];
    assert_ne!(before.list, after.list);
    assert_eq!(keeper.walker().word(before.list - STAMP_WORDS), 0);
    assert_eq!(keeper.walker().word(after.list - STAMP_WORDS), after.stamp);
    keeper.forget(process.pid());
    assert_eq!(keeper.walker().word(after.list - STAMP_WORDS), 0);
    assert!(keeper.walker().lists.is_empty() && !keeper.knows(process.pid()));
}

#[test]
fn a_file_that_was_written_is_read_again_and_a_copy_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    std::fs::copy(sleep(), &one).unwrap();
    std::fs::copy(sleep(), &other).unwrap();
    let mut keeper = keeper(Limits::default());
    let first = Waiting::start(&one);
    assert!(learn(&mut keeper, &first).contains(&"one".to_owned()));
    let copy = Waiting::start(&other);
    let wanted = keeper.look(&copy.1, copy.pid()).unwrap();
    let made = make(&wanted[0], Sizes::usual(u64::MAX), keeper.keys(), None);
    assert!(wanted.len() == 1 && matches!(made.found, Found::Known(_)), "{:?}", made.found);
    keeper.learn(made, Tenant::default()).unwrap();
    drop((first, copy));
    // Nobody maps it any more, and nothing changed: it is still known.
    keeper.sweep(Path::new("/proc"));
    let again = Waiting::start(&one);
    assert_eq!(learn(&mut keeper, &again), [""; 0]);
    drop(again);
    keeper.sweep(Path::new("/proc"));
    // Another program in the same inode.
    let tail = std::fs::canonicalize("/usr/bin/tail").unwrap();
    std::fs::write(&one, std::fs::read(tail).unwrap()).unwrap();
    let child = Command::new(&one).args(["-f", "/dev/null"]).spawn().unwrap();
    let replaced = Waiting(child, PathBuf::new());
    let proc = PathBuf::from(format!("/proc/{}", replaced.pid()));
    std::thread::sleep(Duration::from_millis(200));
    let wanted = keeper.look(&proc, replaced.pid()).unwrap();
    assert_eq!(wanted.iter().map(|w| w.mapping.module_name()).collect::<Vec<_>>(), ["one"]);
}

#[test]
fn the_longest_unused_table_goes_and_comes_back() {
    let limits = Limits { in_use: Duration::ZERO, bytes: 100 << 10, ..Limits::default() };
    let mut keeper = keeper(limits);
    let process = Waiting::start(&sleep());
    // The C library's table alone is larger than what is left beside the others'.
    learn(&mut keeper, &process);
    let counts = keeper.counts();
    assert!(counts.bytes <= limits.bytes, "{counts:?}");
    assert!(counts.evicted > 0 || counts.refused > 0, "{counts:?}");
    let lacking = ["sleep", "ld-linux", "libc.so"]
        .into_iter()
        .find(|name| keeper.walker().rule(process.pid(), process.code(name)) == Err(NoTable::Refused as u32));
    assert!(lacking.is_some() && keeper.used(process.pid()), "it is looked at again");
    assert!(keeper.look(&process.1, process.pid()).unwrap().is_empty(), "but not made again at once");
}

#[test]
fn a_process_without_code_or_over_the_limit_has_no_list() {
    let mut keeper = keeper(Limits { processes: 1, ..Limits::default() });
    let (one, other) = (Waiting::start(&sleep()), Waiting::start(&sleep()));
    learn(&mut keeper, &one);
    assert_eq!(keeper.look(&other.1, other.pid()).unwrap().len(), 0);
    assert_eq!((keeper.counts().refused, keeper.counts().processes), (1, 1));
    keeper.look(Path::new("/proc/self/nothing"), one.pid()).unwrap();
    assert_eq!(keeper.counts().processes, 0);
    let rules: Vec<_> = keeper.walker().rules.values().filter_map(|w| UnwindRule::from_word(*w)).collect();
    assert!(rules.len() > 30 && rules.iter().any(|rule| rule.cfa == CfaRule::Plt));
}

/// Bytes that a keeper without neighbours holds for the program, its libraries and its list.
fn bytes_of(program: &Path) -> usize {
    let (mut keeper, process) = (keeper(Limits::default()), Waiting::reading(program));
    learn(&mut keeper, &process);
    keeper.counts().bytes
}

#[test]
fn a_flooder_loses_his_own_tables() {
    let program = |name: &str| std::fs::canonicalize(format!("/usr/bin/{name}")).expect(name);
    let (job, flooder) = (Tenant::new(true, 1000, ""), Tenant::new(false, 65534, ""));
    let (calm, late) = (program("cat"), program("xargs"));
    // The job has three quarters, which is enough for it and the C library; the rest is full of what is in use.
    let bytes = bytes_of(&late) * 4 / 3 + (4 << 10);
    let mut keeper = keeper(Limits { bytes, ..Limits::default() });
    let calm = Waiting::reading(&calm);
    learn(&mut keeper, &calm);
    let mut flood = Vec::new();
    for name in [
        "perl", "bash", "dash", "tee", "wc", "head", "uniq", "od", "base64", "nl", "tac", "fold", "fmt", "pr",
    ] {
        let process = Waiting::reading(&program(name));
        keeper.belongs(process.pid(), flooder);
        learn(&mut keeper, &process);
        flood.push((name, process));
    }
    let refused = keeper.refusals().total();
    assert!(refused > 0, "the flood does not fill it: {:?}", keeper.counts());
    let late = Waiting::reading(&late);
    keeper.belongs(late.pid(), job);
    learn(&mut keeper, &late);
    let walked = |keeper: &Keeper<Fake>, process: &Waiting, name: &str| {
        keeper.knows(process.pid()) && keeper.walker().rule(process.pid(), process.code(name)).is_ok()
    };
    assert!(walked(&keeper, &late, "xargs") && walked(&keeper, &late, "libc.so"), "{:?}", keeper.counts());
    assert!(walked(&keeper, &calm, "cat") && walked(&keeper, &calm, "libc.so"));
    let lacking = flood.iter().filter(|(name, process)| !walked(&keeper, process, name)).count();
    assert!(lacking > 0 && keeper.counts().bytes <= bytes);
    assert!(keeper.refusals().total() > refused);
    assert!(keeper.refusals().by_tenant().all(|(who, _)| who == flooder));
}

#[test]
fn a_flooder_of_processes_keeps_nobody_from_a_list() {
    let mut keeper = keeper(Limits { processes: 4, ..Limits::default() });
    let (job, flooder) = (Tenant::new(true, 1000, ""), Tenant::new(false, 65534, ""));
    let flood: Vec<_> = (0..5).map(|_| Waiting::start(&sleep())).collect();
    for process in &flood {
        keeper.belongs(process.pid(), flooder);
        learn(&mut keeper, process);
    }
    let known = |keeper: &Keeper<Fake>| flood.iter().filter(|process| keeper.knows(process.pid())).count();
    assert_eq!(known(&keeper), 4);
    let late = Waiting::start(&sleep());
    keeper.belongs(late.pid(), job);
    learn(&mut keeper, &late);
    assert!(keeper.knows(late.pid()) && known(&keeper) == 3, "{:?}", keeper.counts());
}
