//! A program in a process group of its own, its output in a file; dropped, the whole group ends.
//!
//! It also ends when we do, be it by Ctrl-C or by kill -9. A program tells what a test wants to know (its
//! application id, that it has warmed up) by lines `fact NAME=VALUE` on standard output.

// For `pre_exec`.
#![allow(unsafe_code)]

use crate::step;
use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a file or a child is looked at while waiting.
const POLL: Duration = Duration::from_millis(50);

/// A running program.
pub struct Running {
    what: String,
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts it; both its outputs go to `log`. `what` names it in errors. The thread that calls this must
    /// outlive the program: the kernel takes a thread's end for its parent's (prctl(2), PR_SET_PDEATHSIG).
    pub fn start(what: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let output = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        ends_with_us(command, Signal::KILL);
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("duplicating the log's handle")?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {what}: {}", step::shown(command)))?;
        Ok(Self { what: what.to_owned(), child, log: log.to_owned() })
    }

    /// Its process id, which is its group's too.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file with its output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last value that it printed for a fact.
    pub fn fact(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned();
        find_fact(&text, name)
    }

    /// Waits until it has printed a fact.
    pub fn wait_fact(&mut self, name: &str, timeout: Duration) -> Result<String> {
        let begun = Instant::now();
        loop {
            let ended = self.child.try_wait().with_context(|| format!("waiting for {}", self.what))?;
            if let Some(value) = self.fact(name) {
                return Ok(value);
            }
            if let Some(status) = ended {
                bail!("{} ended ({status}) before it said {name}\n{}", self.what, step::tail(&self.log, 30));
            }
            if begun.elapsed() > timeout {
                bail!("{} did not say {name} in {timeout:?}\n{}", self.what, step::tail(&self.log, 30));
            }
            std::thread::sleep(POLL);
        }
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("waiting for {}", self.what))
    }

    /// Waits for a good end; another end, or none in time, is an error with the end of its output.
    pub fn wait(&mut self, timeout: Duration) -> Result<()> {
        let begun = Instant::now();
        loop {
            match self.ended()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    bail!("{} ended with {status}\n{}", self.what, step::tail(&self.log, 40))
                }
                None if begun.elapsed() > timeout => {
                    bail!("{} has not ended in {timeout:?}\n{}", self.what, step::tail(&self.log, 40))
                }
                None => std::thread::sleep(POLL),
            }
        }
    }

    /// Sends a signal to the whole group.
    pub fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The program gets a signal when the thread that starts it ends, and so when we do (prctl(2), PR_SET_PDEATHSIG).
/// A setuid program like sudo forgets that.
pub(super) fn ends_with_us(command: &mut Command, signal: Signal) {
    // SAFETY: between fork and exec the closure makes one system call and touches no memory of ours.
    unsafe {
        command.pre_exec(move || Ok(set_parent_process_death_signal(Some(signal))?));
    }
}

fn find_fact(output: &str, name: &str) -> Option<String> {
    // A line still being written has no end yet and is not read.
    let whole = output.rsplit_once('\n')?.0;
    whole.lines().rev().find_map(|line| {
        let (key, value) = line.strip_prefix("fact ")?.split_once('=')?;
        (key == name).then(|| value.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_whole_lines_and_the_last_wins() {
        assert_eq!(find_fact("fact app=a\nnoise\nfact app=b\nfact app=c", "app"), Some("b".into()));
        assert_eq!(find_fact("fact app=a", "app"), None);
        assert_eq!(find_fact("fact apps=a\n", "app"), None);
    }

    #[test]
    fn a_program_is_ended_with_all_that_it_started() {
        let log = std::env::temp_dir().join(format!("xtask-child-{}", std::process::id()));
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo fact child=$!; wait"]);
        let mut running = Running::start("sh", &mut shell, &log).unwrap();
        let child = running.wait_fact("child", Duration::from_secs(60)).unwrap();
        let alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        assert!(alive());
        drop(running);
        let begun = Instant::now();
        while alive() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(POLL);
        }
        assert!(!alive());
        let _ = std::fs::remove_file(log);
    }
}
