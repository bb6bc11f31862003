//! A step: one command whose output goes to a log file, with a line when it starts, a line every 20
//! seconds while it goes on, and its duration at the end.
//!
//! A step that fails becomes an error with the command, the last lines of its output and the mend.

use crate::places;
use anyhow::{Context as _, Result, bail};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Lines of a failed command's output that are worth showing.
const TAIL_LINES: usize = 40;
/// How often a long step says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(20);
/// How much of a log's end is read to find its last lines.
const TAIL_BYTES: u64 = 64 * 1024;

/// Runs `command` to its end. `what` says what it does ("building the BPF object"), `mend` what to do
/// when it fails.
pub fn run(what: &str, command: &mut Command, mend: &str) -> Result<Duration> {
    let log = log_file(what)?;
    let output = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
    println!("== {what} ...");
    let begun = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output.try_clone().context("duplicating the log's handle")?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("{what}: cannot start {}; mend: {mend}", shown(command)))?;
    let mut said = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().with_context(|| format!("waiting for {}", shown(command)))? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(50));
        if said.elapsed() >= HEARTBEAT {
            said = Instant::now();
            let last = tail(&log, 1);
            println!(
                "   {:.0} s: {}",
                begun.elapsed().as_secs_f64(),
                last.trim().chars().take(100).collect::<String>()
            );
        }
    };
    let took = begun.elapsed();
    if !status.success() {
        bail!(
            "{what} failed ({status})\ncommand: {}\n--- the end of {}\n{}\n---\nmend: {mend}",
            shown(command),
            log.display(),
            tail(&log, TAIL_LINES)
        );
    }
    println!("   {what}: {:.1} s", took.as_secs_f64());
    Ok(took)
}

/// A command as one would type it, with the variables it sets.
pub fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(key, value)| {
        Some(format!("{}={}", key.to_string_lossy(), quoted(&value?.to_string_lossy())))
    });
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    variables.chain(words.map(|word| quoted(&word.to_string_lossy()))).collect::<Vec<_>>().join(" ")
}

/// What a command prints.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {}", shown(command)))?;
    if !output.status.success() {
        bail!("{} failed: {}", shown(command), String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} printed no UTF-8", shown(command)))
}

/// What git says of the source tree.
pub fn git(arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    output(git.arg("-C").arg(places::workspace()).args(arguments))
}

/// The last `lines` lines of a file; empty when it cannot be read.
pub fn tail(path: &Path, lines: usize) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}

/// `word` for a POSIX shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Where the output of a step of this name goes.
pub fn log_file(what: &str) -> Result<PathBuf> {
    let dir = places::target().join("xtask").join("log");
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let name: String =
        what.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
    Ok(dir.join(format!("{name}.log")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_command_output_and_mend() {
        let error =
            run("test step that fails", Command::new("sh").args(["-c", "echo a b; exit 3"]), "the mend")
                .unwrap_err()
                .to_string();
        for part in ["sh -c 'echo a b; exit 3'", "\na b\n", "exit status: 3", "mend: the mend"] {
            assert!(error.contains(part), "{part:?} is not in {error}");
        }
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("--a=b"), "--a=b");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn the_tail_is_the_last_lines() {
        let path = log_file("test tail").unwrap();
        std::fs::write(&path, "1\n2\n3\n").unwrap();
        assert_eq!(tail(&path, 2), "2\n3");
        assert_eq!(tail(&path, 9), "1\n2\n3");
        assert_eq!(tail(Path::new("/no/such/file"), 2), "");
    }
}
