//! What is on in one run of each pair: this daemon, async-profiler in the executors, or nothing at all.
//!
//! async-profiler is attached as its users do it by hand: its agent is loaded into JVMs that run (`jcmd PID JVMTI.agent_load`, JDK 9
//! and newer), samples CPU time as often as the daemon, and is told to stop. It stays loaded, asleep, until the JVM ends.

use crate::setup::{SparkKit, async_profiler};
use crate::step;
use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// Who.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Peer {
    /// This daemon.
    Ours,
    /// async-profiler, attached to the executors.
    AsyncProfiler,
    /// Nothing in either run: what pairs differ by that are alike.
    Nothing,
}

impl Peer {
    /// As a table has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "the daemon",
            Self::AsyncProfiler => "async-profiler",
            Self::Nothing => "nothing",
        }
    }
}

/// async-profiler for the executors of a job.
pub struct Agent {
    jcmd: PathBuf,
    library: PathBuf,
    pids: Vec<String>,
    hz: u32,
}

impl Agent {
    /// Of executors with these pids, with commas between.
    ///
    /// # Errors
    /// The agent cannot be had, or the JDK has no jcmd.
    pub fn new(kit: &SparkKit, pids: &str, hz: u32) -> Result<Self> {
        let jcmd = kit.jdk.home.join("bin/jcmd");
        if !jcmd.is_file() {
            bail!("the JDK in {} has no jcmd, by which agents are loaded", kit.jdk.home.display());
        }
        let pids = pids.split(',').map(str::to_owned).collect();
        Ok(Self { jcmd, library: async_profiler::ensure()?, pids, hz })
    }

    /// Begins to sample in all of them.
    ///
    /// # Errors
    /// A JVM does not take it.
    pub fn start(&self) -> Result<()> {
        let interval = 1_000_000 / u64::from(self.hz.max(1));
        self.load(&format!("start,event=ctimer,interval={interval}us"))
    }

    /// Ends it.
    ///
    /// # Errors
    /// A JVM does not take it.
    pub fn stop(&self) -> Result<()> {
        self.load("stop")
    }

    fn load(&self, options: &str) -> Result<()> {
        for pid in &self.pids {
            let mut jcmd = Command::new(&self.jcmd);
            jcmd.arg(pid).arg("JVMTI.agent_load").arg(&self.library).arg(options);
            let output = jcmd.output().with_context(|| format!("starting {}", step::shown(&jcmd)))?;
            let said = String::from_utf8_lossy(&output.stdout);
            if !output.status.success() || !said.contains("return code: 0") {
                bail!("{}: {}{said}", step::shown(&jcmd), String::from_utf8_lossy(&output.stderr));
            }
        }
        Ok(())
    }
}
