//! What a daemon holds of a real Spark job, recorded once for all tests that ask about it: a data directory whose daemon
//! was killed, and its answers before that.
//!
//! The windows are short and there is little memory for them, so that the answers come from blocks and from the journal
//! at once.

use anyhow::{Context as _, Result, bail, ensure};
use emberscope_tests::{Daemon, Here, WARM_UP, wait_visible};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Short windows; half of the memory makes a block.
pub const SMALL: [&str; 4] = ["--window", "2s", "--store-bytes", "256KiB"];
const WINDOW_MS: u64 = 2_000;

/// Unix milliseconds.
pub fn now_ms() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

/// What is asked each time, about windows that have closed.
fn questions(app: &str, range: &str) -> Vec<String> {
    vec![
        format!("/api/v1/flamegraph?app={app}&format=json&{range}"),
        format!("/api/v1/flamegraph?format=json&{range}"),
        format!("/api/v1/flamegraph?app={app}&format=folded&group=executor,stage,task&annotate=1&{range}"),
        format!("/api/v1/flamegraph?app={app}&executor=0&thread_class=task&format=folded&unit=ns&{range}"),
        format!("/api/v1/series?app={app}&by=stage&step=4s&{range}"),
        format!("/api/v1/ledger?app={app}&by=stage,task&{range}"),
        format!("/api/v1/labels/task/values?{range}"),
    ]
}

/// As answered, but for the span of all windows that are kept: that grows while a daemon runs.
pub fn answers(daemon: &Daemon, questions: &[String]) -> Result<Vec<String>> {
    let answer = |path: &String| {
        let reply = daemon.get(path)?;
        ensure!(reply.status == 200, "GET {path} was answered {}: {}", reply.status, reply.body);
        let Ok(Value::Object(mut answer)) = serde_json::from_str(&reply.body) else { return Ok(reply.body) };
        ensure!(answer.remove("span").is_some() || !path.contains("flamegraph"), "{path} says no span");
        Ok(Value::Object(answer).to_string())
    };
    questions.iter().map(answer).collect()
}

pub fn ensure_same(place: &str, questions: &[String], before: &[String], after: &[String]) -> Result<()> {
    for ((question, before), after) in questions.iter().zip(before).zip(after) {
        let first = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        let short = |line: &str| line.chars().take(300).collect::<String>();
        let first = first.map(|(before, after)| (short(before), short(after)));
        ensure!(before == after, "{place}: {question} is answered otherwise: {first:?}");
    }
    Ok(())
}

/// The recording.
pub struct Held {
    /// The application.
    pub app: String,
    /// The end of its windows, Unix milliseconds.
    pub until: u64,
    /// What was asked of them.
    pub questions: Vec<String>,
    /// What was answered.
    pub known: Vec<String>,
    data: PathBuf,
}

impl Held {
    /// A copy of the data directory, `dir/data`.
    pub fn copy(&self, dir: &Path) -> Result<PathBuf> {
        std::fs::create_dir_all(dir)?;
        let data = dir.join("data");
        let copied = Command::new("cp").arg("-r").arg(&self.data).arg(&data).status()?;
        ensure!(copied.success(), "cannot copy {}", self.data.display());
        Ok(data)
    }
}

/// Records it, the first time. It stays in the build directory until the next run.
pub fn held(here: &Here) -> Result<&'static Held> {
    static HELD: OnceLock<Result<Held, String>> = OnceLock::new();
    match HELD.get_or_init(|| record(here).map_err(|error| format!("{error:#}"))) {
        Ok(held) => Ok(held),
        Err(why) => bail!("the recording: {why}"),
    }
}

fn record(here: &Here) -> Result<Held> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("held");
    if dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()))?;
    }
    std::fs::create_dir_all(&dir)?;
    let daemon = here.daemon(&dir, &SMALL)?;
    let from = now_ms()? / WINDOW_MS * WINDOW_MS;
    let mut job = here.spark("demo.py", &dir).arg("--seconds").arg("20").start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    job.wait_fact("done", WARM_UP)?;
    job.wait(WARM_UP)?;
    let until = now_ms()? / WINDOW_MS * WINDOW_MS;
    wait_visible(&daemon, until)?;
    let questions = questions(&app, &format!("from={from}&until={until}"));
    let known = answers(&daemon, &questions)?;
    let samples = serde_json::from_str::<Value>(&known[0])?["quality"]["samples"].as_u64();
    ensure!(samples.is_some_and(|samples| samples > 200), "the job has {samples:?} samples");
    let disk = disk(&daemon)?;
    ensure!(disk["blocks"].as_u64() > Some(0), "no block was written: {disk}");
    ensure!(disk["failing"] == Value::Array(Vec::new()) && disk["set_aside"] == 0, "{disk}");
    kill(daemon)?;
    Ok(Held { app, until, questions, known, data: dir.join("data") })
}

/// What the status says of the store on disk.
pub fn disk(daemon: &Daemon) -> Result<Value> {
    Ok(daemon.json("/api/v1/status")?["store"]["disk"].clone())
}

/// Ends a daemon by SIGKILL.
pub fn kill(daemon: Daemon) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(daemon.pid())?).context("pid 0")?;
    Ok(kill_process(pid, Signal::KILL)?)
}
