//! The whole path on real Spark: two applications at once under one daemon, and what every door says.
//!
//! Starting Spark costs more than asking, so [`two_applications_under_one_daemon`] starts it once and asks
//! all: application A (two executors, frame pointers) and B (one executor, none kept by its JVMs). The
//! truth that answers are held against is /proc: command lines, process groups, CPU times.

use anyhow::{Context as _, Result, ensure};
use emberscope::model::WallTime;
use emberscope::process::Keep;
use emberscope_tests::{Daemon, FRAME_POINTERS, Here, Job, Ran, WARM_UP, ran};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The daemon's own default.
const WINDOW_MS: u64 = 10_000;
const SAMPLE_NS: f64 = 1e9 / 99.0;
/// CPU seconds of an executor's first rounds: class loading, interpreter, first compilations. The JIT's
/// own threads are in it, so that a crowded machine is given the time it needs.
const JIT_WARM_UP: f64 = 40.0;
/// A window is visible once late samples and perf maps have been waited for.
const VISIBLE: Duration = Duration::from_secs(30);

fn now_ms() -> u64 {
    WallTime::now().as_millis()
}

fn sleep_until(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms.saturating_sub(now_ms())));
}

fn number(value: &Value) -> Result<u64> {
    value.as_u64().with_context(|| format!("{value} is no number"))
}

// ---- the truth, from /proc

fn command_line(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Field of /proc/PID/stat by its number in proc(5); 3 and more.
fn stat_field(pid: u32, field: usize) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(field - 3)?.parse().ok()
}

/// utime + stime, in seconds.
fn cpu_seconds(pid: u32) -> Result<f64> {
    let ticks = stat_field(pid, 14).zip(stat_field(pid, 15)).context("the process is gone")?;
    Ok((ticks.0 + ticks.1) as f64 / 100.0)
}

fn pids() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A running application as /proc shows it.
struct App {
    id: String,
    job: Job,
    executors: BTreeMap<String, u32>,
    driver: u32,
}

impl App {
    /// Waits until the application has that many executors.
    fn started(mut job: Job, executors: usize) -> Result<Self> {
        let id = job.wait_fact("app", WARM_UP)?;
        let begun = Instant::now();
        loop {
            let found = executors_of(&id);
            if found.len() == executors {
                let is_driver = |pid: &u32| {
                    stat_field(*pid, 4) == Some(u64::from(job.pid()))
                        && command_line(*pid).iter().any(|word| word == "org.apache.spark.deploy.SparkSubmit")
                };
                let driver = pids().into_iter().find(is_driver).context("no driver in /proc")?;
                return Ok(Self { id, job, executors: found, driver });
            }
            ensure!(begun.elapsed() < WARM_UP, "{} of {executors} executors", found.len());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether it is a process of this job: it lives in its process group.
    fn has(&self, pid: u32) -> bool {
        stat_field(pid, 5) == Some(u64::from(self.job.pid()))
    }

    fn executor_pids(&self) -> BTreeSet<u32> {
        self.executors.values().copied().collect()
    }
}

fn executors_of(app: &str) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    for pid in pids() {
        let words = command_line(pid);
        let after = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1));
        let java = words.first().is_some_and(|program| program.ends_with("/java"));
        if let (true, Some(id), Some(of)) = (java, after("--executor-id"), after("--app-id"))
            && of == app
        {
            found.insert(id.clone(), pid);
        }
    }
    found
}

// ---- asking

/// Stack -> count.
type Folded = BTreeMap<String, u64>;

fn folded(text: &str) -> Result<Folded> {
    let mut out = Folded::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').with_context(|| format!("no count in {line:?}"))?;
        *out.entry(stack.to_owned()).or_default() += count.parse::<u64>()?;
    }
    Ok(out)
}

fn ask_folded(daemon: &Daemon, query: &str) -> Result<Folded> {
    let reply = daemon.get(&format!("/api/v1/flamegraph?format=folded&{query}"))?;
    ensure!(reply.status == 200, "{query}: {} {}", reply.status, reply.body);
    folded(&reply.body)
}

fn ask_json(daemon: &Daemon, query: &str) -> Result<Value> {
    daemon.json(&format!("/api/v1/flamegraph?format=json&{query}"))
}

/// Pids whose samples an answer holds.
fn pids_in(daemon: &Daemon, query: &str) -> Result<BTreeSet<u32>> {
    let stacks = ask_folded(daemon, &format!("{query}&group=pid"))?;
    let pid = |stack: &String| {
        let first = stack.split(';').next().unwrap_or_default();
        first.strip_prefix("pid=").and_then(|pid| pid.parse().ok()).with_context(|| stack.clone())
    };
    stacks.keys().map(pid).collect()
}

/// Waits until the windows before `until` can be asked for.
fn wait_visible(daemon: &Daemon, until: u64) -> Result<()> {
    let (begun, until) = (Instant::now(), WallTime::from_millis(until).to_string());
    loop {
        let span = daemon.json("/api/v1/apps")?["span"]["until"].as_str().unwrap_or_default().to_owned();
        // RFC 3339 in UTC, all of one length: order of text is order of time.
        if span >= until {
            return Ok(());
        }
        ensure!(begun.elapsed() < VISIBLE, "windows until {until} are not visible, only until {span}");
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// Sum of a metric over its labels.
fn metric(daemon: &Daemon, name: &str) -> Result<f64> {
    let text = daemon.get("/metrics")?.body;
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let values = text.lines().filter(of_name).filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    Ok(values.sum())
}

/// Frames in JIT code, each counted once a sample that has it: (named, unnamed).
fn jit_frames(answer: &Value) -> Result<(u64, u64)> {
    let nodes = answer["nodes"].as_array().context("no nodes")?;
    let unnamed = ["[unknown: no perf map]", "[unknown: not in perf map]", "[unknown: jvm not asked]"];
    let (mut with, mut without) = (0, 0);
    for node in nodes {
        let total = number(&node["total"])?;
        match node["kind"].as_str().unwrap_or_default() {
            "java" | "java-inlined" | "java-interpreted" | "stub" => with += total,
            "unknown" if unnamed.iter().any(|name| node["name"] == *name) => without += total,
            _ => {}
        }
    }
    Ok((with, without))
}

#[test]
fn two_applications_under_one_daemon() -> Result<()> {
    let Some(here) = Here::or_skip("two_applications_under_one_daemon") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &[])?;
    let job = |name: &str, master: &str, java: &str| {
        let job = here.spark("demo.py", &dir.path().join(name)).arg("--seconds").arg("900");
        job.master(master).java_options(java).start()
    };
    // One after the other: Spark's id of an application is the second in which it started.
    let a = App::started(job("a", "local-cluster[2,1,1024]", FRAME_POINTERS)?, 2)?;
    let b = App::started(job("b", "local-cluster[1,1,1024]", "")?, 1)?;
    ensure!(a.id != b.id);
    let small_ring = a_small_ring_loses_and_says_so(&here, &dir.path().join("ring"));
    let chosen = only_what_was_chosen_is_kept(&here, &dir.path().join("keep"), &a, &b);
    warm_up(&a)?;

    let from = now_ms() / WINDOW_MS * WINDOW_MS + WINDOW_MS;
    let until = from + 2 * WINDOW_MS;
    sleep_until(until);
    wait_visible(&daemon, until)?;
    let range = format!("from={from}&until={until}");
    // All are looked at, whatever the first of them says.
    let parts = [
        ("a small ring", small_ring),
        ("the choice of what is kept", chosen),
        ("nothing mixed", nothing_is_mixed(&daemon, &a, &b, &range)),
        ("windows", windows_are_exact(&daemon, &a, from)),
        ("formats", formats_agree(&here, &daemon, &a, &range, dir.path())),
        ("names", jit_frames_are_named(&daemon, &a, &range)),
        ("no frame pointers", without_frame_pointers_stacks_say_why_they_end(&here, &daemon, &a, &b, &range)),
        ("bad names", bad_names_of_applications(&daemon, &a, &b)),
        ("commands", commands_ask_the_daemon(&here, &daemon, &a, &b, dir.path())),
        ("recordings", a_recording_needs_no_daemon(&here, &a, dir.path())),
    ];
    let wrong = parts.into_iter().filter_map(|(part, result)| Some(format!("{part}: {:#}", result.err()?)));
    let wrong: Vec<String> = wrong.collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    let lost = number(&ask_json(&daemon, "")?["quality"]["lost"])?;
    // Other reasons cost detail that comes again (an event, a stack sent twice); samples may not be lost.
    let metrics = daemon.get("/metrics")?.body;
    for reason in ["ring_full_sample", "no_scratch"] {
        let none = format!("emberscope_lost_total{{reason=\"{reason}\"}} 0\n");
        ensure!(lost == 0 && metrics.contains(&none), "lost {lost} samples, or {reason} is not 0");
    }
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// Waits until the executors have worked enough for the JIT to have come to rest.
fn warm_up(app: &App) -> Result<()> {
    let begun = Instant::now();
    for pid in app.executor_pids() {
        while cpu_seconds(pid)? < JIT_WARM_UP {
            ensure!(begun.elapsed() < WARM_UP, "executor {pid} has used only {} s of CPU", cpu_seconds(pid)?);
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    Ok(())
}

fn a_small_ring_loses_and_says_so(here: &Here, dir: &Path) -> Result<()> {
    let daemon = here.daemon(dir, &["--ring-bytes", "4KiB", "--hz", "999", "--window", "2s"])?;
    let begun = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let quality = ask_json(&daemon, "")?["quality"].clone();
        let (lost, samples) = (number(&quality["lost"])?, number(&quality["samples"])?);
        if lost > 0 && samples > 0 {
            let counted = metric(&daemon, "emberscope_lost_total")?;
            ensure!(counted >= lost as f64, "the metrics count {counted} lost, the answer {lost}");
            let by_reason = &quality["lost_by_reason"];
            ensure!(number(&by_reason["ring_full_sample"])? > 0, "{quality}");
            let header = daemon.get("/api/v1/flamegraph?format=folded")?;
            let header: u64 = header.header("x-emberscope-lost").context("no header")?.parse()?;
            ensure!(header >= lost, "the header says {header}, the answer {lost}");
            println!("a ring of 4 KiB at 999 Hz: {samples} samples, {lost} lost");
            break;
        }
        ensure!(begun.elapsed() < VISIBLE, "nothing was lost: {quality}");
    }
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// (app, executor) of each executor's JVM that an answer lists, with its pids.
fn listed(daemon: &Daemon, query: &str) -> Result<BTreeMap<(String, String), BTreeSet<u32>>> {
    let answer = daemon.json(&format!("/api/v1/executors?{query}"))?;
    let mut out = BTreeMap::new();
    for row in answer["executors"].as_array().context("no executors")? {
        if row["role"] == "executor" {
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let pids = row["pids"].as_array().context("no pids")?.iter().map(|pid| Ok(number(pid)? as u32));
            out.insert((text("app"), text("executor")), pids.collect::<Result<_>>()?);
        }
    }
    Ok(out)
}

fn only_what_was_chosen_is_kept(here: &Here, dir: &Path, a: &App, b: &App) -> Result<()> {
    let both =
        || [a, b].into_iter().flat_map(|app| app.executors.keys().map(|e| (app.id.clone(), e.clone())));
    // A share that keeps some of our executors and not others.
    let kept = |share: f64| -> Result<BTreeSet<_>> {
        let keep = Keep { fraction: share.to_string().parse()?, ..Keep::default() };
        Ok(both().filter(|(app, executor)| keep.matches(Some(app), None, Some(executor))).collect())
    };
    let mut share = 0.0;
    for step in 1..100 {
        let size = kept(f64::from(step) / 100.0)?.len();
        if (1..3).contains(&size) {
            share = f64::from(step) / 100.0;
            break;
        }
    }
    ensure!(share > 0.0, "no share splits three executors");
    let quick = ["--window", "2s"];
    let chosen_words = ["--apps", &a.id, "--executors", "1"];
    let chosen = here.daemon(&dir.join("chosen"), &[&quick[..], &chosen_words[..]].concat())?;
    let some = here.daemon(&dir.join("some"), &[&quick[..], &["--fraction", &share.to_string()]].concat())?;
    // A driver says no id: until it is known whose it is, it is not left out.
    std::thread::sleep(Duration::from_secs(12));
    let recent = "from=-5s";

    let one = (a.id.clone(), "1".to_owned());
    ensure!(listed(&chosen, "")?.into_keys().collect::<Vec<_>>() == [one], "{:?}", listed(&chosen, "")?);
    let apps = chosen.json(&format!("/api/v1/apps?{recent}"))?;
    let ids: Vec<_> = apps["apps"].as_array().context("no apps")?.iter().map(|app| &app["id"]).collect();
    ensure!(ids.contains(&&Value::from(&*a.id)) && !ids.contains(&&Value::from(&*b.id)), "{apps}");
    ensure!(ids.iter().all(|id| **id == *a.id || **id == "unknown"), "{apps}");
    let pids = pids_in(&chosen, recent)?;
    ensure!(pids.contains(&a.executors["1"]) && !pids.contains(&a.executors["0"]), "{pids:?}");
    ensure!(!pids.contains(&b.executors["0"]) && !pids.contains(&b.driver), "B is kept: {pids:?}");
    // Neighbours stay: they are nobody's application.
    ensure!(pids.iter().any(|pid| !a.has(*pid) && !b.has(*pid)), "only Spark is kept: {pids:?}");
    ensure!(metric(&chosen, "emberscope_samples_not_kept_total")? > 0.0);

    let ours = |(app, _): &(String, String)| *app == a.id || *app == b.id;
    let seen: BTreeSet<_> = listed(&some, "")?.into_keys().filter(ours).collect();
    ensure!(seen == kept(share)?, "--fraction {share} keeps {seen:?}, not {:?}", kept(share)?);
    println!("--fraction {share} keeps {} of 3 executors", seen.len());
    ensure!(chosen.stop()?.success() && some.stop()?.success());
    Ok(())
}

fn nothing_is_mixed(daemon: &Daemon, a: &App, b: &App, range: &str) -> Result<()> {
    let apps = daemon.json(&format!("/api/v1/apps?{range}"))?;
    for app in [a, b] {
        let rows = apps["apps"].as_array().context("no apps")?;
        let row =
            rows.iter().find(|row| row["id"] == *app.id).with_context(|| format!("{} in {apps}", app.id))?;
        ensure!(row["name"] == "emberscope-demo" && row["executors"] == app.executors.len(), "{row}");
        ensure!(row["drivers"] == serde_json::json!([app.driver]), "not the driver {}: {row}", app.driver);
        // Exactly the executors that there are, with their pids.
        let truth: BTreeMap<_, _> = app
            .executors
            .iter()
            .map(|(e, pid)| ((app.id.clone(), e.clone()), BTreeSet::from([*pid])))
            .collect();
        let seen = listed(daemon, &format!("{range}&app={}", app.id))?;
        ensure!(seen == truth, "{seen:?} instead of {truth:?}");
        // An executor's answer holds its pid and no other.
        for (executor, pid) in &app.executors {
            let query = format!("{range}&app={}&executor={executor}&role=executor", app.id);
            let seen = pids_in(daemon, &query)?;
            ensure!(seen == BTreeSet::from([*pid]), "executor {executor} of {} is {pid}: {seen:?}", app.id);
        }
        let drivers = pids_in(daemon, &format!("{range}&app={}&role=driver", app.id))?;
        ensure!(drivers == BTreeSet::from([app.driver]), "{drivers:?} instead of {}", app.driver);
        // The application's holds processes of its own job only, all JVMs among them.
        let seen = pids_in(daemon, &format!("{range}&app={}", app.id))?;
        let strangers: Vec<_> =
            seen.iter().filter(|pid| !app.has(**pid)).map(|pid| (*pid, command_line(*pid))).collect();
        ensure!(strangers.is_empty(), "{} has samples of {strangers:?}", app.id);
        ensure!(seen.is_superset(&app.executor_pids()) && seen.contains(&app.driver), "{seen:?}");
    }
    let neighbours = pids_in(daemon, &format!("{range}&app="))?;
    ensure!(!neighbours.iter().any(|pid| a.executor_pids().contains(pid) || b.executor_pids().contains(pid)));
    // Either of two values; both together are the sum.
    let count = |query: &str| -> Result<u64> { Ok(ask_folded(daemon, query)?.values().sum()) };
    let (one, two) = (count(&format!("{range}&app={}", a.id))?, count(&format!("{range}&app={}", b.id))?);
    ensure!(count(&format!("{range}&app={}&app={}", a.id, b.id))? == one + two);
    Ok(())
}

fn windows_are_exact(daemon: &Daemon, a: &App, from: u64) -> Result<()> {
    let says = |answer: &Value, from: u64, until: u64, windows: u64| {
        let text = |ms: u64| WallTime::from_millis(ms).to_string();
        ensure!(
            answer["range"]["from"] == text(from)
                && answer["range"]["until"] == text(until)
                && answer["windows"] == windows,
            "not {windows} from {} until {}: {} of {}",
            text(from),
            text(until),
            answer["windows"],
            answer["range"]
        );
        Ok(())
    };
    let (middle, end) = (from + WINDOW_MS, from + 2 * WINDOW_MS);
    let app = format!("app={}", a.id);
    let between = |from: u64, until: u64| format!("{app}&from={from}&until={until}");
    // Whole windows; a second of one; a second on each side of a border; not the next one.
    says(&ask_json(daemon, &between(from, end))?, from, end, 2)?;
    says(&ask_json(daemon, &between(from + 3000, from + 4000))?, from, middle, 1)?;
    says(&ask_json(daemon, &between(middle - 1000, middle + 1000))?, from, end, 2)?;
    says(&ask_json(daemon, &between(from, middle))?, from, middle, 1)?;
    says(&ask_json(daemon, &between(middle, middle + 1))?, middle, end, 1)?;
    // The same instants in the other spellings.
    let rfc = |ms| WallTime::from_millis(ms).to_string();
    says(&ask_json(daemon, &format!("{app}&from={}&until={}", rfc(from), rfc(end)))?, from, end, 2)?;
    says(&ask_json(daemon, &format!("{app}&from={}&until={}", from / 1000, end / 1000))?, from, end, 2)?;

    let whole = ask_folded(daemon, &between(from, end))?;
    let mut sum = ask_folded(daemon, &between(from, middle))?;
    ensure!(!sum.is_empty() && sum != whole);
    for (stack, count) in ask_folded(daemon, &between(middle, end))? {
        *sum.entry(stack).or_default() += count;
    }
    ensure!(sum == whole, "two windows differ from the whole");
    Ok(())
}

fn formats_agree(here: &Here, daemon: &Daemon, a: &App, range: &str, dir: &Path) -> Result<()> {
    let query = format!("{range}&app={}", a.id);
    let answer = ask_json(daemon, &query)?;
    let total = number(&answer["total"])?;
    let reply = daemon.get(&format!("/api/v1/flamegraph?format=folded&{query}"))?;
    let header = |name: &str| reply.header(name).with_context(|| name.to_owned());
    ensure!(header("x-emberscope-samples")?.parse::<u64>()? == total);
    ensure!(answer["quality"]["samples"] == total && answer["nodes"][0]["total"] == total);
    ensure!(header("x-emberscope-from")? == answer["range"]["from"].as_str().unwrap_or_default());
    ensure!(header("x-emberscope-windows")? == "2");
    let stacks = folded(&reply.body)?;
    ensure!(stacks.values().sum::<u64>() == total, "folded and JSON differ");

    // Time: each sample weighs a period.
    let time = number(&ask_json(daemon, &format!("{query}&unit=ns"))?["total"])?;
    let per_sample = time as f64 / total as f64;
    ensure!((per_sample / SAMPLE_NS - 1.0).abs() < 0.001, "{per_sample} ns a sample");

    // Prefixes, in the order asked; without them the stacks are the same.
    let mut plain = Folded::new();
    for (stack, count) in ask_folded(daemon, &format!("{query}&group=role,executor"))? {
        let mut parts = stack.splitn(3, ';');
        let role = parts.next().and_then(|part| part.strip_prefix("role=")).with_context(|| stack.clone())?;
        let executor =
            parts.next().and_then(|part| part.strip_prefix("executor=")).with_context(|| stack.clone())?;
        ensure!(role != "executor" || a.executors.contains_key(executor), "{stack}");
        *plain.entry(parts.next().unwrap_or_default().to_owned()).or_default() += count;
    }
    ensure!(plain == stacks, "grouping changed the stacks");

    let svg = daemon.get(&format!("/api/v1/flamegraph?format=svg&{query}"))?.body;
    well_formed(here, &dir.join("api.svg"), &svg)?;
    ensure!(svg.contains("org.apache.spark."), "no method of Spark in the picture");
    Ok(())
}

/// Python's expat reads it, and its root is a picture.
fn well_formed(here: &Here, path: &Path, svg: &str) -> Result<()> {
    std::fs::write(path, svg)?;
    let program = "import sys, xml.etree.ElementTree as e; print(e.parse(sys.argv[1]).getroot().tag)";
    let python = here.venv.join("bin/python");
    let words = [python.as_os_str(), "-c".as_ref(), program.as_ref(), path.as_os_str()];
    let read = ran(words)?.good()?;
    ensure!(read.out.trim() == "{http://www.w3.org/2000/svg}svg", "{read:?}");
    Ok(())
}

fn jit_frames_are_named(daemon: &Daemon, a: &App, range: &str) -> Result<()> {
    let answer = ask_json(daemon, &format!("{range}&app={}&role=executor", a.id))?;
    let (named, unnamed) = jit_frames(&answer)?;
    let share = named as f64 / (named + unnamed).max(1) as f64;
    println!("JIT frames of A's executors: {:.3} % of {} named", 100.0 * share, named + unnamed);
    println!("quality of A's executors: {}", answer["quality"]);
    for (stack, count) in ask_folded(daemon, &format!("{range}&app={}&role=executor", a.id))? {
        if let Some(at) =
            stack.find("[unknown: not in perf map]").or_else(|| stack.find("[unknown: no perf map]"))
        {
            let around: Vec<_> = stack[at.saturating_sub(80)..].split(';').skip(1).take(3).collect();
            println!("unnamed in {count} samples: {}", around.join(";"));
        }
    }
    ensure!(named > 3000, "only {named} JIT frames");
    ensure!(share >= 0.99, "{:.2} % of JIT frames are named", 100.0 * share);
    Ok(())
}

fn without_frame_pointers_stacks_say_why_they_end(
    here: &Here,
    daemon: &Daemon,
    a: &App,
    b: &App,
    range: &str,
) -> Result<()> {
    let of = |app: &App| ask_json(daemon, &format!("{range}&app={}&role=executor", app.id));
    let (with, without) = (of(a)?, of(b)?);
    let quality = &without["quality"];
    println!("quality of B's executor, without frame pointers: {quality}");
    let depth = |quality: &Value| {
        Ok::<_, anyhow::Error>(number(&quality["frames"])? as f64 / number(&quality["samples"])? as f64)
    };
    let (deep, shallow) = (depth(&with["quality"])?, depth(quality)?);
    println!("mean depth: {deep:.1} with frame pointers, {shallow:.1} without");
    ensure!(shallow < deep);
    let truncated = number(&quality["truncated"])?;
    ensure!(truncated > 0, "no stack says that it was cut: {quality}");
    // Each sample has a reason.
    let ends = quality["ends"].as_object().context("no ends")?;
    let ended: u64 = ends.values().filter_map(Value::as_u64).sum();
    ensure!(ended == number(&quality["samples"])?, "{quality}");
    ensure!(ends.contains_key("no_frame_pointer") || ends.contains_key("bad_return_address"), "{quality}");
    // Nothing made up: no address outside of all code, and every class named is one that this JVM has.
    let nowhere = quality["unnamed"]["no mapping"].as_u64().unwrap_or(0);
    ensure!(nowhere * 1000 <= number(&quality["frames"])?, "frames that are nowhere: {quality}");
    let classes = loaded_classes(&here.java, b.executors["0"])?;
    let mut frames = (0, Vec::new());
    for node in without["nodes"].as_array().context("no nodes")? {
        let name = node["name"].as_str().unwrap_or_default();
        if node["kind"] == "java" {
            let class = family(name.rsplit_once('.').map_or(name, |(class, _)| class));
            frames.0 += 1;
            if !classes.contains(&class) {
                frames.1.push(name.to_owned());
            }
        }
    }
    println!("{} Java nodes of B, of classes that are not loaded: {:?}", frames.0, frames.1);
    // A class may have been unloaded since: Spark compiles new ones for each query.
    frames
        .1
        .retain(|name| !name.contains("GeneratedClass") && !name.contains("catalyst.expressions.Specific"));
    ensure!(frames.0 > 0 && frames.1.is_empty(), "{:?}", frames.1);
    Ok(())
}

/// A class without the number that tells it from others made like it at run time.
fn family(class: &str) -> String {
    let class = class.split_once("$$Lambda").map_or(class, |(outer, _)| outer);
    class.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
}

/// All classes that a JVM has loaded, asked by jcmd.
fn loaded_classes(java_home: &Path, pid: u32) -> Result<BTreeSet<String>> {
    let output =
        Command::new(java_home.join("bin/jcmd")).args([&pid.to_string(), "VM.class_hierarchy"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let class = |line: &str| {
        let name = line.trim_start_matches(['|', '-', ' ']);
        Some(family(name.split(['/', ' ']).next()?))
    };
    let classes: BTreeSet<String> = text.lines().filter_map(class).collect();
    ensure!(
        classes.contains("java.lang.Object"),
        "jcmd lists no classes: {}",
        text.chars().take(300).collect::<String>()
    );
    Ok(classes)
}

fn bad_names_of_applications(daemon: &Daemon, a: &App, b: &App) -> Result<()> {
    let unknown = daemon.get("/api/v1/flamegraph?app=app-0")?;
    ensure!(
        unknown.status == 404 && unknown.body.contains(&a.id) && unknown.body.contains(&b.id),
        "{unknown:?}"
    );
    // Both have this name: which one is not guessed.
    let name = daemon.get("/api/v1/flamegraph?app=emberscope-demo")?;
    ensure!(name.status == 409 && name.body.contains(&a.id) && name.body.contains(&b.id), "{name:?}");
    let early = ask_json(daemon, &format!("app={}&from=1700000000&until=1700000060", a.id))?;
    ensure!(early["windows"] == 0 && early["total"] == 0 && early["note"].is_string(), "{early}");
    Ok(())
}

fn commands_ask_the_daemon(here: &Here, daemon: &Daemon, a: &App, b: &App, dir: &Path) -> Result<()> {
    let binary = here.binary.display().to_string();
    let ask = |words: &[&str]| -> Result<Ran> {
        ran([binary.as_str()].iter().chain(words).chain(&["--url", daemon.url()]).copied())
    };
    let apps = ask(&["apps"])?.good()?;
    ensure!(apps.out.contains(&a.id) && apps.out.contains(&b.id) && apps.err.contains("0 lost"), "{apps:#?}");
    let executors = ask(&["executors", "--app", &a.id, "--json"])?.good()?;
    let rows: Value = serde_json::from_str(&executors.out)?;
    let rows = rows["executors"].as_array().context("no rows")?.clone();
    let jvms: Vec<_> = rows.iter().filter(|row| row["role"] == "executor").collect();
    ensure!(jvms.len() == 2 && jvms.iter().all(|row| row["app"] == *a.id), "{rows:?}");
    ensure!(jvms.iter().all(|row| row["jvm"]["names"] == "asked"), "{rows:?}");
    let top = ask(&["top", "--app", &a.id, "--role", "executor", "--limit", "40"])?.good()?;
    ensure!(top.out.trim_start().starts_with("SELF") && top.out.lines().count() >= 41, "{top:#?}");
    ensure!(top.out.contains("org.apache.spark.unsafe.types.UTF8String.levenshteinDistance"), "{top:#?}");
    let status = ask(&["status"])?.good()?;
    ensure!(status.out.contains(&a.id), "{}", status.out);

    let svg = dir.join("cli.svg");
    ask(&["flamegraph", "--app", &a.id, "--executor", "0", "-o", &svg.display().to_string()])?.good()?;
    well_formed(here, &svg, &std::fs::read_to_string(&svg)?)?;
    let grouped = ask(&[
        "flamegraph",
        "--app",
        &b.id,
        "--role",
        "executor",
        "--group",
        "executor",
        "--format",
        "folded",
    ])?
    .good()?;
    ensure!(
        !grouped.out.is_empty() && grouped.out.lines().all(|line| line.starts_with("executor=0;")),
        "{grouped:?}"
    );

    ask(&["top", "--app", "app-0"])?.refused(3, &["app-0", &a.id, &b.id])?;
    ask(&["top", "--app", "emberscope-demo"])?.refused(2, &[&a.id, &b.id])?;
    ask(&["top", "--app", &a.id, "--executor", "77"])?.refused(3, &["executor=77"])?;
    Ok(())
}

fn a_recording_needs_no_daemon(here: &Here, a: &App, dir: &Path) -> Result<()> {
    let binary = here.binary.display().to_string();
    let record =
        |words: &[&str]| ran([binary.as_str(), "record", "--log", "error"].iter().chain(words).copied());
    let pid = a.executors["0"].to_string();
    let (picture, lines) = (dir.join("record.svg"), dir.join("record.folded"));
    record(&["--duration", "5s", "--pid", &pid, "-o", &picture.display().to_string()])?.good()?;
    let svg = std::fs::read_to_string(&picture)?;
    well_formed(here, &picture, &svg)?;
    ensure!(svg.contains("org.apache.spark."), "no method of Spark in the recording");
    let path = lines.display().to_string();
    record(&["--duration", "2s", "--app", &a.id, "--group", "pid", "-o", &path])?.good()?;
    let stacks = folded(&std::fs::read_to_string(&lines)?)?;
    for stack in stacks.keys() {
        let pid = stack.split(';').next().and_then(|part| part.strip_prefix("pid="));
        ensure!(pid.is_some_and(|pid| pid.parse().is_ok_and(|pid| a.has(pid))), "{stack}");
    }
    ensure!(!stacks.is_empty());
    record(&["--duration", "1s", "--app", "app-0", "-o", &path])?.refused(3, &["app-0", &a.id])?;
    record(&["--duration", "1s", "-o", "out.png"])?.refused(2, &["out.png", "--format"])?;
    Ok(())
}

#[test]
fn samples_are_the_cpu_time_that_the_kernel_accounts() -> Result<()> {
    let Some(here) = Here::or_skip("samples_are_the_cpu_time_that_the_kernel_accounts") else {
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &["--window", "5s"])?;
    let source = include_str!("jobs/Split.java");
    let mut split = here
        .java("Split", source)
        .flag(FRAME_POINTERS)
        .flag("-XX:CompileCommand=quiet")
        .flag("-XX:CompileCommand=dontinline,Split::*")
        .arg("120")
        .start(dir.path())?;
    let pid: u32 = split.wait_fact("started", WARM_UP)?.parse()?;
    std::thread::sleep(Duration::from_secs(2));
    let from = now_ms() / 5000 * 5000 + 5000;
    let until = from + 25_000;
    sleep_until(from);
    let before = cpu_seconds(pid)?;
    sleep_until(until);
    let truth = cpu_seconds(pid)? - before;
    wait_visible(&daemon, until)?;

    let query = format!("pid={pid}&from={from}&until={until}");
    let answer = ask_json(&daemon, &query)?;
    let samples = number(&answer["quality"]["samples"])? as f64;
    let seen = number(&ask_json(&daemon, &format!("{query}&unit=ns"))?["total"])? as f64 / 1e9;
    let (deviation, error) = (seen / truth - 1.0, 0.7 / samples.sqrt());
    println!(
        "{samples} samples are {seen:.3} s; /proc says {truth:.2} s: {:+.2} %, allowed 1 + {:.2} %",
        100.0 * deviation,
        100.0 * error
    );
    ensure!(samples > 200.0, "{samples} samples: the program did not run");
    ensure!(deviation.abs() <= 0.01 + error, "{seen} s seen, {truth} s used");
    ensure!(answer["quality"]["lost"] == 0, "{}", answer["quality"]);

    // The known split: seven of ten rounds in one method, three in the other.
    let stacks = ask_folded(&daemon, &query)?;
    let of =
        |method: &str| -> u64 { stacks.iter().filter(|(s, _)| s.contains(method)).map(|(_, n)| n).sum() };
    let (seven, three) = (of(";Split.seven"), of(";Split.three"));
    let share = seven as f64 / (seven + three).max(1) as f64;
    println!("Split.seven has {:.2} % of {} samples", 100.0 * share, seven + three);
    ensure!((seven + three) as f64 > 0.95 * samples, "{seven} and {three} of {samples} samples are named");
    ensure!((share - 0.7).abs() <= 0.01 + 0.7 / ((seven + three) as f64).sqrt());
    ensure!(daemon.stop()?.success());
    Ok(())
}
