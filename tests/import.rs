//! Other profilers' files of real JVMs: what `emberscope import` makes of them is what their own tools say of them, to
//! the last sample.
//!
//! A program of a known split runs under the JDK's Flight Recorder, and under async-profiler; `jfr print` and
//! async-profiler's own converter tell the samples once more. Needs no root: nothing is sampled by the daemon.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, ran, required, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::setup::async_profiler;

/// Stacks, `root;...;leaf`, and their samples.
type Stacks = BTreeMap<String, u64>;

struct Place {
    binary: PathBuf,
    java: PathBuf,
    dir: tempfile::TempDir,
}

impl Place {
    /// With the program compiled; None after saying that `test` is skipped.
    fn or_skip(test: &str) -> Result<Option<Self>> {
        let (Some(binary), Some(java)) =
            (required(test, "EMBERSCOPE_BIN"), required(test, "EMBERSCOPE_JAVA"))
        else {
            return Ok(None);
        };
        let dir = tempfile::tempdir()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/Split.java");
        let mut javac = Command::new(java.join("bin/javac"));
        run(javac.arg("-d").arg(dir.path()).arg(source))?;
        Ok(Some(Self { binary, java, dir }))
    }

    fn file(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Runs the program for some seconds with a flag of the JVM.
    fn split(&self, flag: &str) -> Result<()> {
        let mut java = Command::new(self.java.join("bin/java"));
        java.args([flag, "-cp"]).arg(self.dir.path()).args(["Split", "6"]);
        run(&mut java).map(|_| ())
    }

    fn import(&self, file: &str, app: &str) -> Result<String> {
        let data = self.file("data");
        let label = format!("app={app}");
        let words =
            [self.binary.to_str().context("a path")?, "import", "--data-dir", &data, "--label", &label, file];
        Ok(ran(words)?.good()?.out)
    }

    /// What the store has of an application, with async-profiler's suffixes.
    fn stacks(&self, app: &str) -> Result<Stacks> {
        let data = self.file("data");
        let words = [
            self.binary.to_str().context("a path")?,
            "export",
            "--data-dir",
            &data,
            "--app",
            app,
            "--from=-2h",
            "--until=now",
            "--format=folded",
            "--annotate",
        ];
        folded(&ran(words)?.good()?.out)
    }
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{command:?} ended with {}: {out}{err}", output.status);
    Ok(out.into_owned())
}

fn folded(text: &str) -> Result<Stacks> {
    let mut stacks = Stacks::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').with_context(|| format!("no folded line: {line}"))?;
        *stacks.entry(stack.to_owned()).or_default() += count.parse::<u64>()?;
    }
    Ok(stacks)
}

/// Samples by the leaf's name, without its suffix.
fn leaves(stacks: &Stacks) -> Stacks {
    let mut leaves = Stacks::new();
    for (stack, count) in stacks {
        let leaf = stack.rsplit(';').next().unwrap_or_default();
        let name = leaf.rfind("_[").map_or(leaf, |at| &leaf[..at]);
        *leaves.entry(name.to_owned()).or_default() += count;
    }
    leaves
}

/// Of all samples, those of a method.
fn share(stacks: &Stacks, method: &str) -> f64 {
    let of = leaves(stacks).get(method).copied().unwrap_or_default();
    of as f64 / stacks.values().sum::<u64>().max(1) as f64
}

#[test]
fn a_recording_of_the_jdk_is_what_jfr_prints() -> Result<()> {
    let Some(place) = Place::or_skip("a_recording_of_the_jdk_is_what_jfr_prints")? else { return Ok(()) };
    let file = place.file("jdk.jfr");
    place.split(&format!("-XX:StartFlightRecording=settings=profile,filename={file}"))?;
    let said = place.import(&file, "recorded")?;
    ensure!(said.contains("JFR, jdk.ExecutionSample every "), "{said}");
    let mut jfr = Command::new(place.java.join("bin/jfr"));
    jfr.args(["print", "--stack-depth", "64", "--events", "jdk.ExecutionSample"]).arg(&file);
    let printed = run(&mut jfr)?;
    let mut want = Stacks::new();
    let mut lines = printed.lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("stackTrace = [") {
            let leaf = lines.next().unwrap_or_default().trim().split('(').next().unwrap_or_default();
            *want.entry(leaf.to_owned()).or_default() += 1;
        }
    }
    let stacks = place.stacks("recorded")?;
    ensure!(stacks.values().sum::<u64>() == want.values().sum::<u64>(), "{stacks:?} instead of {want:?}");
    // What a JVM makes up with a counter or an address is folded here.
    let named = |mut leaves: Stacks| {
        leaves.retain(|name, _| {
            !["$$", ".lambda$", "LambdaForm$"].iter().any(|made_up| name.contains(made_up))
        });
        leaves
    };
    let (got, want) = (named(leaves(&stacks)), named(want));
    ensure!(got == want, "{got:?} instead of {want:?}");
    ensure!(share(&stacks, "Split.seven") > share(&stacks, "Split.three"), "{stacks:?}");
    ensure!(place.import(&file, "recorded")?.contains("was imported already"), "twice is once");
    ensure!(place.stacks("recorded")? == stacks);
    // The daemon's page and API over it, without a daemon.
    let server = Daemon::serve_data_dir(&place.binary, &place.dir.path().join("data"))?;
    let apps = server.json("/api/v1/apps?from=-2h")?.to_string();
    ensure!(apps.contains("\"recorded\""), "{apps}");
    let folded_over_http = server.get("/api/v1/flamegraph?source=jfr&format=folded&annotate=1&from=-2h")?;
    ensure!(folded(&folded_over_http.body)? == stacks, "{}", folded_over_http.body);
    Ok(())
}

#[test]
fn a_recording_of_async_profiler_is_what_its_converter_says() -> Result<()> {
    const TEST: &str = "a_recording_of_async_profiler_is_what_its_converter_says";
    let Some(place) = Place::or_skip(TEST)? else { return Ok(()) };
    let agent = match async_profiler::ensure() {
        Ok(agent) => agent,
        Err(why) => {
            skip(TEST, &format!("{why:#}"));
            return Ok(());
        }
    };
    let file = place.file("agent.jfr");
    let agent_flag =
        format!("-agentpath:{}=start,event=itimer,interval=5ms,jfr,file={file}", agent.display());
    place.split(&agent_flag)?;
    let said = place.import(&file, "agent")?;
    ensure!(said.contains("async-profiler ") && said.contains("jdk.ExecutionSample every 5 ms"), "{said}");
    let collapsed = place.file("agent.collapsed");
    let mut convert = Command::new(place.java.join("bin/java"));
    convert.arg("-cp").arg(async_profiler::loader(&agent)?);
    convert.args(["one.convert.Main", "--cpu", "-o", "collapsed", &file, &collapsed]);
    run(&mut convert)?;
    let text = std::fs::read_to_string(&collapsed)?;
    let want = folded(&text)?;
    let stacks = place.stacks("agent")?;
    ensure!(stacks.values().sum::<u64>() == want.values().sum::<u64>(), "{stacks:?} instead of {want:?}");
    // The program's own stacks, with what the kernel did below; what a JVM makes up with a counter or an address is
    // folded here. Without kinds: the converter gives all frames of a place in the tree the kind that most have.
    let own = |stacks: &Stacks| -> Stacks {
        let mut own = Stacks::new();
        for (stack, count) in stacks {
            if stack.split(';').all(|frame| frame.starts_with("Split.") || frame.ends_with("_[k]")) {
                let bare = |frame: &str| frame.rfind("_[").map_or(frame, |at| &frame[..at]).to_owned();
                let bare: Vec<String> = stack.split(';').map(bare).collect();
                *own.entry(bare.join(";")).or_default() += count;
            }
        }
        own
    };
    let most = own(&want).values().sum::<u64>() * 2 > want.values().sum();
    ensure!(most && own(&stacks) == own(&want), "{:?} instead of {:?}", own(&stacks), own(&want));
    ensure!(share(&stacks, "Split.seven") == share(&want, "Split.seven"), "{stacks:?} instead of {want:?}");
    // The same samples as folded stacks: the same stacks.
    let words = [
        place.binary.to_str().context("a path")?,
        "import",
        "--data-dir",
        &place.file("data"),
        "--label=app=collapsed",
        "--hz=200",
        &collapsed,
    ];
    ran(words)?.good()?;
    ensure!(own(&place.stacks("collapsed")?) == own(&want));
    Ok(())
}
