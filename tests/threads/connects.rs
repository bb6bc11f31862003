//! How long a task's thread slept until a Python process connected to it, over real sockets: what a worker that no Python
//! daemon forks does, whose task's thread waits in accept.

use super::*;
use profiler_ebpf::PartyKind;
use std::io::Write as _;
use std::process::ChildStdin;

/// A name that says that the thread runs a task begins so.
const TASK: &[u8] = b"Executor task launch worker for task ";
/// Waits of each kind. What a loaded machine leaves of a packet to its ksoftirqd is no Python's wake-up.
const ROUNDS: usize = 5;
const MOST: usize = 3;

/// The fixture, told what to do by lines.
struct Told(Program, ChildStdin);

impl Told {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(fixture());
        let mut child =
            command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (stdin, out) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self(Program(child, BufReader::new(out)), stdin)
    }
    fn tell(&mut self, line: &str) {
        writeln!(self.1, "{line}").expect("it listens");
    }
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.1.read_line(&mut line).expect("text");
        line.trim().to_owned()
    }
    fn pid(&self) -> Pid {
        self.0.pid()
    }
}

/// The last record of a process's thread that took a name which begins so, once there is one.
fn named(capture: &mut Capture, pid: Pid, name: &[u8]) -> RawThread {
    let (mut events, end) = (Vec::new(), Instant::now() + PATIENCE);
    loop {
        record(capture, Duration::from_millis(20), &mut events);
        let named = threads(&events, pid).into_iter().rfind(|thread| thread.name.starts_with(name));
        if let Some(named) = named {
            return named.clone();
        }
        assert!(Instant::now() < end, "no thread of {pid} is called {}", name.escape_ascii());
    }
}

/// Until the thread sleeps.
fn asleep(pid: Pid, tid: Tid) {
    let end = Instant::now() + PATIENCE;
    while !std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")))
    {
        assert!(Instant::now() < end, "{tid} never sleeps");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One wait: how long the task's thread slept at least, what is said that it slept for Python, and how long it was at most.
fn waited(capture: &mut Capture, server: &mut Told, how: &str, to: &str, known: bool) -> [u64; 3] {
    let mut client = Told::start(&["connects", to]);
    if known {
        capture.set_party(client.pid(), PartyKind::Worker, server.pid()).expect("room");
    }
    let begun = Instant::now();
    server.tell(how);
    let task = named(capture, server.pid(), TASK);
    asleep(server.pid(), task.tid);
    let slept = Instant::now();
    std::thread::sleep(Duration::from_millis(50));
    let least = slept.elapsed();
    client.tell("now");
    assert_eq!(client.line(), "connected");
    let told = named(capture, server.pid(), b"idle").accounts.expect("accounts").python_wait_ns;
    let ns = |time: Duration| u64::try_from(time.as_nanos()).expect("short");
    [ns(least), told, ns(begun.elapsed())]
}

#[test]
fn a_connection_ends_a_wait_for_python() {
    let Some((features, _guard)) = host("connects") else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("socket").display().to_string();
    let mut capture = start(&config(), &features);
    watch(&mut capture, &fixture(), "set_name");
    let mut server = Told::start(&["serves", &path]);
    let port = server.line();
    capture.set_party(server.pid(), PartyKind::Executor, server.pid()).expect("room");
    if let Err(error) = capture.watch_workers(true) {
        return skip("connects", &error.to_string());
    }
    for (how, to) in [("port", &port), ("path", &path)] {
        let waits: Vec<_> = (0..ROUNDS).map(|_| waited(&mut capture, &mut server, how, to, true)).collect();
        // All of the sleep or, where somebody else woke the thread, nothing.
        let whole = |[least, told, most]: &&[u64; 3]| (least..=most).contains(&told);
        let right = waits.iter().filter(whole).count();
        assert!(waits.iter().all(|wait| whole(&wait) || wait[1] == 0) && right >= MOST, "{how}: {waits:?}");
        // Who is no Python of the executor's ends no wait for Python.
        let [_, told, _] = waited(&mut capture, &mut server, how, to, false);
        assert_eq!(told, 0, "{how}");
    }
}
