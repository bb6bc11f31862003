//! Runs the programs of tests/jobs/oracle in one JVM, one after the other, and reads what they tell.
//!
//! They are compiled once for Java 8 by a JDK that can, and run on whatever Java is given: a JRE has no javac.

use super::compare::Truth;
use super::fold::fold;
use crate::launch::Running;
use crate::{places, step};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The sources, in tests/jobs/oracle.
const SOURCES: [&str; 3] = ["Oracle.java", "Known.java", "Storms.java"];
/// Start of the JVM, warm-up and slack, for each program.
const SLACK: Duration = Duration::from_secs(60);
/// So that the programs tell hidden frames too; no code is compiled another way for it.
pub const TELL_ALL: [&str; 2] = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames"];

/// What to run.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// The command that starts this Java: its path, or a chroot and then its path.
    pub java: Vec<String>,
    /// Flags of the JVM.
    pub flags: Vec<String>,
    /// Names of programs, in order.
    pub programs: Vec<String>,
    /// Seconds that each is measured.
    pub seconds: u64,
    /// Length of the daemon's windows, milliseconds.
    pub window_ms: u64,
}

/// Programs that have run and whose JVM still lives, so that it can be named.
pub struct Ran {
    /// What each told, in order.
    pub told: Vec<Told>,
    /// All that was printed.
    pub text: String,
    /// The JVM.
    pub jvm: Running,
}

/// What one program told.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its name.
    pub name: String,
    /// First and last instant of its measured time, Unix milliseconds; why it did not run else.
    pub range: Result<(u64, u64), String>,
    /// Its stacks.
    pub truth: Truth,
}

/// Compiles the programs into `dir` with the JDK in `java_home`.
pub fn compile(java_home: &Path, dir: &Path) -> Result<PathBuf> {
    let classes = dir.join("oracle-classes");
    std::fs::create_dir_all(&classes).with_context(|| format!("creating {}", classes.display()))?;
    let sources = SOURCES.map(|name| places::workspace().join("tests/jobs/oracle").join(name));
    let mut javac = Command::new(java_home.join("bin/javac"));
    javac.args(["--release", "8", "-g", "-nowarn", "-Xlint:-options", "-d"]).arg(&classes).args(sources);
    let output = javac.output().with_context(|| format!("cannot start {}", step::shown(&javac)))?;
    if !output.status.success() {
        bail!("{} failed\n{}", step::shown(&javac), String::from_utf8_lossy(&output.stderr));
    }
    Ok(classes)
}

impl Oracle {
    /// Starts the JVM on the classes in `classes`; its output goes to `log`.
    pub fn start(&self, classes: &Path, log: &Path) -> Result<Running> {
        let mut words = self.java.iter();
        let mut java = Command::new(words.next().context("no command to start Java")?);
        java.args(words).args(&self.flags).arg("-cp").arg(classes).arg("Oracle");
        java.arg(self.seconds.to_string()).arg(self.window_ms.to_string()).args(&self.programs);
        Running::start("the stack oracle", &mut java, log)
    }

    /// Starts it and waits until all programs have ended.
    pub fn run(&self, classes: &Path, log: &Path) -> Result<Ran> {
        let mut jvm = self.start(classes, log)?;
        let limit = (SLACK + Duration::from_secs(self.seconds)) * self.programs.len().max(1) as u32;
        let begun = Instant::now();
        jvm.wait_fact("done", limit)?;
        let text = std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
        let told = self.programs.iter().map(|name| told(&text, name)).collect();
        println!("   {} programs: {:.0} s", self.programs.len(), begun.elapsed().as_secs_f64());
        Ok(Ran { told, text, jvm })
    }
}

/// Reads what a program told.
fn told(text: &str, name: &str) -> Told {
    let fact = |what: &str| {
        let key = format!("fact {name}.{what}=");
        text.lines().find_map(|line| line.strip_prefix(&key))
    };
    let time = |what: &str| fact(what).and_then(|ms| ms.parse::<u64>().ok());
    let range = match (fact("skipped"), fact("failed"), time("started").zip(time("ended"))) {
        (Some(why), ..) | (_, Some(why), _) => Err(why.to_owned()),
        (None, None, Some(range)) => Ok(range),
        (None, None, None) => Err("it told no beginning or no end".to_owned()),
    };
    let lines =
        text.lines().filter_map(|line| line.strip_prefix("stack ")?.strip_prefix(name)?.strip_prefix(' '));
    let stacks = lines.map(|line| line.split(';').map(fold).collect()).collect();
    let ways: Vec<&str> = fact("match").unwrap_or_default().split(' ').collect();
    let is = |way: &str| ways.contains(&way);
    Told {
        name: name.to_owned(),
        range,
        truth: Truth { stacks, jdk: is("jdk"), prefix: is("prefix"), tail: is("tail"), gap: is("gap") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_one_program() {
        let text = "fact deep3.started=10\nstack deep30 X.y\nstack deep3 java.lang.Thread.run;A$$Lambda$1/0x1.run\n\
                    fact deep3.match=prefix jdk\nfact deep3.ended=20\nfact thaw.skipped=none\n";
        let deep = told(text, "deep3");
        assert_eq!(deep.range, Ok((10, 20)));
        assert_eq!(
            deep.truth.stacks,
            [["java.lang.Thread.run", "A$$Lambda.run"].map(str::to_owned).to_vec()]
        );
        assert!(deep.truth.prefix && deep.truth.jdk && !deep.truth.tail);
        assert_eq!(told(text, "thaw").range, Err("none".to_owned()));
        assert!(told(text, "other").range.is_err());
    }
}
