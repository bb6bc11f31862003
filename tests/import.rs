//! Other profilers' files of real JVMs: what `emberscope import` makes of them is what their own tools say of them, to
//! the last sample.
//!
//! A program of a known split runs under the JDK's Flight Recorder, and under async-profiler; `jfr print` and
//! async-profiler's own converter tell the samples once more. Needs no root: nothing is sampled by the daemon.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, ran, required, skip};
use serde_json::Value;
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
        let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs");
        let mut javac = Command::new(java.join("bin/javac"));
        let sources = ["Split.java", "Contends.java"].map(|source| jobs.join(source));
        run(javac.arg("-d").arg(dir.path()).args(sources))?;
        Ok(Some(Self { binary, java, dir }))
    }

    /// And async-profiler's library.
    fn with_agent_or_skip(test: &str) -> Result<Option<(Self, PathBuf)>> {
        let Some(place) = Self::or_skip(test)? else { return Ok(None) };
        match async_profiler::ensure() {
            Ok(agent) => Ok(Some((place, agent))),
            Err(why) => {
                skip(test, &format!("{why:#}"));
                Ok(None)
            }
        }
    }

    fn file(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Runs a program for some seconds with a flag of the JVM.
    fn runs(&self, program: &str, flag: &str) -> Result<()> {
        let mut java = Command::new(self.java.join("bin/java"));
        java.args([flag, "-cp"]).arg(self.dir.path()).args([program, "6"]);
        run(&mut java).map(|_| ())
    }

    fn import(&self, file: &str, app: &str) -> Result<String> {
        self.import_events("cpu", file, app)
    }

    fn import_events(&self, events: &str, file: &str, app: &str) -> Result<String> {
        let (binary, data) = (self.binary.to_str().context("a path")?, self.file("data"));
        let label = format!("app={app}");
        let words = [binary, "import", "--data-dir", &data, "--label", &label, "--events", events, file];
        Ok(ran(words)?.good()?.out)
    }

    /// Weights of a kind by the innermost frame.
    fn leaves(&self, app: &str, kind: &str, unit: &str) -> Result<Stacks> {
        let (binary, data) = (self.binary.to_str().context("a path")?, self.file("data"));
        let words = [binary, "export", "--data-dir", &data, "--app", app, "--from=-2h", "--until=now"];
        let words = [&words[..], &["--type", kind, "--unit", unit, "--format=folded"]].concat();
        Ok(leaves(&folded(&ran(words)?.good()?.out)?))
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
    place.runs("Split", &format!("-XX:StartFlightRecording=settings=profile,filename={file}"))?;
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
    let Some((place, agent)) = Place::with_agent_or_skip(TEST)? else { return Ok(()) };
    let file = place.file("agent.jfr");
    let agent_flag =
        format!("-agentpath:{}=start,event=itimer,interval=5ms,jfr,file={file}", agent.display());
    place.runs("Split", &agent_flag)?;
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

/// Whether a sum is what it should be, but for weights that are stored to three digits.
fn near(got: u64, want: u64) -> bool {
    want > 0 && got.abs_diff(want) <= want / 100
}

#[test]
fn locks_and_allocations_of_the_jdk_are_what_jfr_prints() -> Result<()> {
    const TEST: &str = "locks_and_allocations_of_the_jdk_are_what_jfr_prints";
    let Some(place) = Place::or_skip(TEST)? else { return Ok(()) };
    let file = place.file("jdk.jfr");
    place.runs("Contends", &format!("-XX:StartFlightRecording=settings=profile,filename={file}"))?;
    let printed = |event: &str| -> Result<Vec<Value>> {
        let mut jfr = Command::new(place.java.join("bin/jfr"));
        let text = run(jfr.args(["print", "--json", "--events", event]).arg(&file))?;
        let printed: Value = serde_json::from_str(&text)?;
        let events = printed["recording"]["events"].as_array().cloned().unwrap_or_default();
        Ok(events.into_iter().map(|event| event["values"].clone()).collect())
    };
    let said = place.import_events("alloc", &file, "contends")?;
    ensure!(said.contains("JFR, jdk.ObjectAllocation") && said.contains("of allocated memory"), "{said}");
    let samples = printed("jdk.ObjectAllocationSample")?;
    ensure!(!samples.is_empty(), "JDK 16 and newer have these events");
    let weight = |event: &Value| event["weight"].as_u64().unwrap_or_default();
    let got = place.leaves("contends", "alloc", "bytes")?;
    let of =
        |name: &str| samples.iter().filter(|event| event["objectClass"]["name"] == name).map(weight).sum();
    for (ours, theirs) in [("byte[]", "[B"), ("Contends[]", "[LContends;")] {
        let (got, want) = (got.get(ours).copied().unwrap_or_default(), of(theirs));
        ensure!(near(got, want), "{ours}: {got} bytes instead of {want}: {samples:?}");
    }
    let all = samples.iter().map(weight).sum();
    ensure!(near(got.values().sum(), all), "{got:?} instead of {all} bytes");
    // The same recording once more: its waits for monitors, and for locks, of which the JDK has parks alone.
    let said = place.import_events("lock", &file, "contends")?;
    ensure!(said.contains("jdk.JavaMonitorEnter") && said.contains("of waiting"), "{said}");
    ensure!(said.contains("shorter than 10 ms"), "{said}");
    let seconds = |event: &Value| {
        event["duration"].as_str()?.strip_prefix("PT")?.strip_suffix('S')?.parse::<f64>().ok()
    };
    let lasted = |events: &[Value]| events.iter().filter_map(seconds).sum::<f64>() * 1e9;
    let is_lock = |event: &Value| event["parkedClass"]["name"].to_string().contains("ReentrantLock$");
    let parks: Vec<_> = printed("jdk.ThreadPark")?.into_iter().filter(is_lock).collect();
    let want = lasted(&printed("jdk.JavaMonitorEnter")?) + lasted(&parks);
    let got = place.leaves("contends", "lock", "ns")?;
    ensure!(near(got.values().sum(), want as u64), "{got:?} instead of {want} ns");
    ensure!(!parks.is_empty() && want > 1e9, "{want} ns");
    Ok(())
}

#[test]
fn locks_and_allocations_of_async_profiler_are_what_its_converter_says() -> Result<()> {
    const TEST: &str = "locks_and_allocations_of_async_profiler_are_what_its_converter_says";
    let Some((place, agent)) = Place::with_agent_or_skip(TEST)? else { return Ok(()) };
    let file = place.file("agent.jfr");
    let flag =
        format!("-agentpath:{}=start,event=itimer,alloc=64k,lock=1us,jfr,file={file}", agent.display());
    place.runs("Contends", &flag)?;
    for (kind, unit) in [("alloc", "bytes"), ("lock", "ns")] {
        let said = place.import_events(kind, &file, "agent")?;
        ensure!(said.contains("async-profiler "), "{said}");
        ensure!(place.import_events(kind, &file, "agent")?.contains("was imported already"), "twice is once");
        let (collapsed, of) = (place.file(kind), format!("--{kind}"));
        let mut convert = Command::new(place.java.join("bin/java"));
        convert.arg("-cp").arg(async_profiler::loader(&agent)?);
        convert.args(["one.convert.Main", &of, "--total", "-o", "collapsed", &file, &collapsed]);
        run(&mut convert)?;
        let want: u64 = folded(&std::fs::read_to_string(&collapsed)?)?.values().sum();
        let got = place.leaves("agent", kind, unit)?;
        ensure!(near(got.values().sum(), want), "{kind}: {got:?} instead of {want} {unit}; {said}");
        ensure!(kind == "lock" || got.contains_key("byte[]") && got.contains_key("Contends[]"), "{got:?}");
    }
    Ok(())
}
