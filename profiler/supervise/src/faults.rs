//! Faults on demand, for tests of what the daemon does about its own: panics, aborts, threads that hang.
//!
//! In: `EMBERSCOPE_DANGEROUS_FAULTS=ACTION:POINT:FIRST[:TIMES[:EVERY]],...`. ACTION is `panic`, `abort` or `stall` (half a minute); POINT a
//! thread of [`super::THREADS`], each of whose jobs passes it; `naming`, before a new stack is named; or `note`, whenever a
//! file or a process was noted as being read; FIRST is the pass that fails first, from 1, TIMES how many do (1), and EVERY the how manieth fails from there on (1: each). In the release build too:
//! the tests and measurements run that one. Who sets the environment of a root daemon is root: LD_PRELOAD would do as
//! much. It is said in the log at the start.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The environment variable that asks for faults; read once.
pub const VARIABLE: &str = "EMBERSCOPE_DANGEROUS_FAULTS";
/// Twice what a thread that is vital may take.
const STALL: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Panic,
    Abort,
    Stall,
}

#[derive(Debug)]
struct Fault {
    action: Action,
    point: String,
    first: u64,
    times: u64,
    every: u64,
    passed: AtomicU64,
}

static FAULTS: LazyLock<Vec<Fault>> = LazyLock::new(|| {
    let Ok(text) = std::env::var(VARIABLE) else { return Vec::new() };
    tracing::warn!(faults = text, "{VARIABLE} is set: this daemon is made to fail");
    text.split(',').filter_map(parse).collect()
});

fn parse(text: &str) -> Option<Fault> {
    let mut parts = text.trim().split(':');
    let action = match parts.next()? {
        "panic" => Action::Panic,
        "abort" => Action::Abort,
        "stall" => Action::Stall,
        _ => return None,
    };
    let (point, first) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
    let times = parts.next().map_or(Ok(1), str::parse).ok()?;
    let every = parts.next().map_or(Ok(1), str::parse).ok().filter(|every| *every > 0)?;
    Some(Fault { action, point, first, times, every, passed: AtomicU64::new(0) })
}

impl Fault {
    /// Whether this pass is one that fails.
    fn strikes(&self) -> bool {
        let pass = self.passed.fetch_add(1, Relaxed) + 1;
        let since = pass.checked_sub(self.first);
        since.is_some_and(|since| since % self.every == 0 && since / self.every < self.times)
    }
}

/// A place where a fault can be asked for: one look at an empty list where none is.
pub fn point(name: &str) {
    for fault in FAULTS.iter().filter(|fault| fault.point == name) {
        if fault.strikes() {
            match fault.action {
                Action::Panic => panic!("an injected panic at {name}"),
                Action::Abort => std::process::abort(),
                Action::Stall => std::thread::sleep(STALL),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_as_often_as_it_is_told() {
        let fault = parse("panic:reader:3:2").unwrap();
        assert_eq!((fault.action, fault.point.as_str()), (Action::Panic, "reader"));
        assert_eq!([(); 6].map(|()| fault.strikes()), [false, false, true, true, false, false]);
        assert_eq!(parse("abort:note:1").map(|fault| fault.times), Some(1));
        let other = parse("panic:http:2:2:3").unwrap();
        assert_eq!([(); 9].map(|()| other.strikes()).map(u8::from), [0, 1, 0, 0, 1, 0, 0, 0, 0]);
        for wrong in
            ["", "panic:http:1:1:0", "panic", "panic:push", "burn:push:1", "panic:push:x", "panic:push:1:x"]
        {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
