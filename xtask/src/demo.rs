//! `demo`: profiles a real Spark job with the daemon and leaves what a user would look at.
//!
//! Sets up and builds, starts the daemon, runs tests/jobs/demo.py on two executor JVMs, then asks with
//! the command line tool. Leaves `<target>/demo/flamegraph.svg`, an `executor-N.svg` for each executor,
//! and prints the URL and a curl line for the job's window.

use crate::launch::{Daemon, Job, SparkJob, daemon, port};
use crate::setup::SparkKit;
use crate::{build, places, root, setup, step};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A window closes at most this long after its last sample: 10 s of window and some for its close.
const WINDOW_CLOSES: Duration = Duration::from_secs(25);

/// How the demo runs.
#[derive(clap::Args)]
pub struct Options {
    /// Leave the daemon running
    #[arg(long)]
    keep: bool,
    /// How long the Spark job works
    #[arg(long, default_value_t = 30)]
    seconds: u32,
}

/// Runs it.
pub fn run(options: &Options) -> Result<()> {
    if !root::available() {
        bail!("the demo profiles the whole machine, which needs root, and there is no sudo: run it as root");
    }
    let begun = Instant::now();
    let (kit, built) = setup::beside(&setup::Options { no_lint: true }, build::run)?;
    let binary = built?;
    let dir = places::target().join("demo");
    clear(&dir)?;

    let port = Some(daemon::DEFAULT_PORT).filter(|port| port::is_free(*port));
    let daemon = match options.keep {
        true => Daemon::start_to_stay(&binary, &dir.join("data"), port)?,
        false => Daemon::start(&binary, &dir.join("data"), port, &[])?,
    };
    println!("emberscope listens on {} (log: {})", daemon.url(), daemon.log().display());
    println!(
        "   with --open-loopback, so that the links below work as they are: any user of this machine can ask it"
    );
    let job = work(&kit, &dir, options.seconds)?;
    let shown = show(&binary, &daemon, &job, &dir);
    match (&shown, options.keep) {
        (Ok(()), true) => println!("\nThe daemon goes on as process {}: kill it to end it.", daemon.leave()),
        (Ok(()), false) => {
            daemon.stop()?;
            println!("\nThe daemon has been stopped. `./x demo --keep` leaves it running to be asked.");
        }
        (Err(_), _) => drop(daemon),
    }
    shown?;
    println!("demo: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Removes what an earlier demo left; the daemon's files are root's.
fn clear(dir: &Path) -> Result<()> {
    if dir.exists() {
        let status = root::command("rm", "removing the last demo's files")?.arg("-rf").arg(dir).status();
        if !status.context("cannot start rm")?.success() {
            bail!("cannot remove {}", dir.display());
        }
    }
    std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))
}

/// Runs the Spark job to its end.
fn work(kit: &SparkKit, dir: &Path, seconds: u32) -> Result<Job> {
    println!("== a Spark job on two executors works for {seconds} s ...");
    let begun = Instant::now();
    let mut job = SparkJob::new("demo.py", &kit.venv, &kit.jdk.home, &dir.join("spark"))
        .arg("--seconds")
        .arg(seconds.to_string())
        .start()?;
    let app = job.wait_fact("app", Duration::from_secs(120))?;
    println!(
        "   {:.0} s: application {app} runs (log: {})",
        begun.elapsed().as_secs_f64(),
        job.log().display()
    );
    job.wait(Duration::from_secs(u64::from(seconds) * 3 + 120))?;
    let rounds = job.fact("done").context("the Spark job ended without saying what it did")?;
    println!("   the Spark job did {rounds} rounds: {:.1} s", begun.elapsed().as_secs_f64());
    Ok(job)
}

fn show(binary: &Path, daemon: &Daemon, job: &Job, dir: &Path) -> Result<()> {
    let fact = |name: &str| job.fact(name).with_context(|| format!("the Spark job did not say {name}"));
    let (app, from, until) = (fact("app")?, fact("started")?, fact("ended")?);
    let ask = Asker { binary, url: daemon.url() };
    wait_for_window(daemon, &app)?;

    let executors = executor_ids(&ask.json(&["executors", "--app", &app])?);
    if executors.is_empty() {
        bail!("the daemon knows no executor of {app}; what it knows: {}", ask.json(&["apps"])?);
    }
    let mut files: Vec<PathBuf> = vec![dir.join("flamegraph.svg")];
    ask.flamegraph(&app, None, &files[0])?;
    for executor in &executors {
        let file = dir.join(format!("executor-{executor}.svg"));
        ask.flamegraph(&app, Some(executor), &file)?;
        files.push(file);
    }
    println!("\nFlame graphs of {app} and of each of its executors:");
    for file in &files {
        let bytes = file.metadata().with_context(|| format!("{} is not there", file.display()))?.len();
        println!("  {} ({} KiB)", file.display(), bytes.div_ceil(1024));
    }
    let window = format!("{}/api/v1/flamegraph?app={app}&from={from}&until={until}&format=svg", daemon.url());
    println!("\nThe same for a window of your choice (from and until in Unix seconds):\n  {window}");
    println!("  curl -o window.svg {}", step::quoted(&window));
    Ok(())
}

/// Waits until the application's samples are in a closed window.
fn wait_for_window(daemon: &Daemon, app: &str) -> Result<()> {
    println!("== waiting for the last window to close ...");
    let begun = Instant::now();
    let path = format!("/api/v1/flamegraph?app={app}&format=folded");
    // The job's last samples are in the window that is open now: its length, and some for its close.
    std::thread::sleep(Duration::from_secs(13));
    loop {
        let reply = daemon.get(&path)?;
        if reply.status == 200 {
            return Ok(());
        }
        if begun.elapsed() > WINDOW_CLOSES {
            bail!("no window holds samples of {app}: {} {}", reply.status, reply.body);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The command line tool, asking one daemon.
struct Asker<'a> {
    binary: &'a Path,
    url: &'a str,
}

impl Asker<'_> {
    fn run(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new(self.binary);
        command.args(arguments).args(["--url", self.url]);
        let output = command.output().with_context(|| format!("cannot start {}", step::shown(&command)))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("{} ({})\n{errors}", step::shown(&command), output.status);
        }
        Ok(output.stdout)
    }

    fn json(&self, arguments: &[&str]) -> Result<serde_json::Value> {
        let output = self.run(&[arguments, &["--json"]].concat())?;
        serde_json::from_slice(&output).with_context(|| format!("emberscope {} --json", arguments.join(" ")))
    }

    fn flamegraph(&self, app: &str, executor: Option<&str>, file: &Path) -> Result<()> {
        let file = file.to_str().context("the target directory's name is not UTF-8")?;
        let mut arguments = vec!["flamegraph", "--app", app, "--format", "svg", "-o", file];
        if let Some(executor) = executor {
            arguments.extend(["--executor", executor]);
        }
        self.run(&arguments).map(drop)
    }
}

/// The executors in an answer `{"executors":[{"executor":"0","role":"executor",..},..]}`, sorted; an
/// executor's Python workers are rows of their own and no further executors.
fn executor_ids(answer: &serde_json::Value) -> Vec<String> {
    let rows = answer["executors"].as_array().into_iter().flatten();
    let ids = rows.filter(|row| row["role"] == "executor").filter_map(|row| row["executor"].as_str());
    let mut ids: Vec<String> = ids.map(str::to_owned).collect();
    ids.sort();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executors_of_an_answer() {
        let row = |id: &str, role: &str| serde_json::json!({"executor": id, "role": role});
        let answer = serde_json::json!({"executors": [row("1", "executor"), row("0", "executor"), row("1", "python")]});
        assert_eq!(executor_ids(&answer), ["0", "1"]);
        assert!(executor_ids(&serde_json::json!({})).is_empty());
    }
}
