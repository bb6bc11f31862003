//! Two runs of one job on real Spark: the second has a stage more, first of all, so that all others have other numbers, and a method
//! that takes longer; it runs without adaptive execution, and on another JDK where the machine has one for this Spark.

use crate::held::now_ms;
use anyhow::{Context as _, Result, ensure};
use emberscope_model::size_in_bytes;
use emberscope_tests::page::Seen;
use emberscope_tests::{Daemon, Here, Job, SparkJob, VISIBLE, WARM_UP, ran, wait_for, wait_visible};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What Spark says is kept this long after it is said, at the latest: its driver is asked every 30 s.
const KEPT: Duration = Duration::from_secs(40);
/// How long the job may take on a crowded machine.
const WORK: Duration = Duration::from_secs(300);
/// By how many percent the method takes longer: the whole grows by more than the tenth that is allowed.
const SLOWER: &str = "60";
/// What both applications are runs of. Their name is `nightly scores`.
const JOB: &str = "nightly";
/// A setting that only the slower one has.
const SETTING: (&str, &str) = ("spark.shuffle.file.buffer", "64k");
/// Another, with which a query's stages have other names.
const ADAPTIVE: (&str, &str) = ("spark.sql.adaptive.enabled", "false");
/// Of a method's samples on each side, those below one and the same stack at the least.
const IN_ONE_PLACE: f64 = 0.9;
/// A second of a core, or of a GiB, costs one.
const PRICES: [&str; 4] = ["--price-core-hour", "3600", "--price-gib-hour", "3600"];

#[test]
fn runs_are_put_side_by_side_and_what_slowed_one_is_found() -> Result<()> {
    let test = "runs_are_put_side_by_side_and_what_slowed_one_is_found";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let Some(newest) = here.clone().with_newest_spark(test) else { return Ok(()) };
    let here = Here { venv: newest.venv.clone(), ..here };
    let dir = tempfile::tempdir()?;
    // One is a run of the job by its application's name, the other by what its command line says.
    let flags = [&["--window", "2s", "--run-names", "^(nightly) scores$"], &PRICES[..]].concat();
    let daemon = here.daemon(dir.path(), &flags)?;
    let (first, left) = run(&here, &dir.path().join("left"), ["0", "false"], |job| job)?;
    let said = |job: SparkJob| {
        job.conf("spark.emberscope.run", JOB).conf(SETTING.0, SETTING.1).conf(ADAPTIVE.0, ADAPTIVE.1)
    };
    let (second, right) = run(&newest, &dir.path().join("right"), [SLOWER, "true"], said)?;
    wait_visible(&daemon, now_ms()?)?;
    let path = format!("/api/v1/compare?left.app={left}&right.app={right}&fail_over=10");
    let compared = wait_for("names of both runs", KEPT + VISIBLE, || {
        let answer = daemon.json(&path)?;
        let unnamed = ["left", "right"].map(|side| answer[side]["unnamed_stages"] == 0);
        Ok((unnamed == [true, true]).then_some(answer))
    })?;
    println!("{}", table(&here, &daemon, &left, &right)?);
    holds(&compared)?;
    is_not_torn(&daemon, &left, &right)?;
    costs(&daemon.json(&format!("/api/v1/runs?job={JOB}"))?)?;
    by_command(&here, &daemon)?;
    in_the_page(&daemon, &left, &right)?;
    drop((first, second));
    ensure!(daemon.stop()?.success());
    Ok(())
}

fn run(
    here: &Here,
    dir: &Path,
    [slower, cached]: [&str; 2],
    more: impl FnOnce(SparkJob) -> SparkJob,
) -> Result<(Job, String)> {
    let job = SparkJob::java(&["Nightly"], &here.venv, &here.java, dir).master("local[2]");
    let mut job = more(job).arg(slower).arg(cached).arg("true").start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    job.wait_fact("done", WORK)?;
    Ok((job, app))
}

/// What is true of these two runs, whoever is asked.
fn holds(answer: &Value) -> Result<()> {
    let rows = |part: &str| answer[part]["rows"].as_array().cloned().context("no rows");
    let stages = rows("stages")?;
    let names = |only: &Value| -> Vec<String> {
        let of = stages.iter().filter(|row| row["only"] == *only);
        of.filter_map(|row| row["name"].as_str()).map(str::to_owned).collect()
    };
    let only = names(&Value::from("right"));
    ensure!(
        only.len() == 1 && only.iter().all(|name| name.starts_with("count at Nightly.java:")),
        "{stages:#?}"
    );
    ensure!(names(&Value::from("left")).is_empty(), "{stages:#?}");
    // What ran before a thread's name was seen has no number of its own.
    let of_both = || stages.iter().filter(|row| row["only"].is_null() && row["left_stage"] != "unknown");
    for row in of_both().filter(|row| row["description"].is_null()) {
        ensure!(row["left_stage"] != row["right_stage"], "a stage has its number still: {row}");
    }
    // With adaptive execution a query's first stage has a pool's call site, and its last is of one task.
    let of_query: Vec<&Value> = of_both().filter(|row| row["description"].is_string()).collect();
    let count = |row: &Value, side: &str| row[side].as_u64();
    let mut counts: Vec<_> =
        of_query.iter().map(|row| (count(row, "left_tasks"), count(row, "right_tasks"))).collect();
    counts.sort_unstable();
    ensure!(counts == [(Some(1), Some(200)), (Some(4), Some(4))], "{of_query:#?}");
    ensure!(
        names(&Value::Null).iter().any(|name| name.starts_with("reduce at Nightly.java:")),
        "{stages:#?}"
    );
    let queries = rows("queries")?;
    ensure!(queries.len() == 1 && queries.iter().all(|row| row["only"].is_null()), "{queries:#?}");
    let method = &answer["methods"]["rows"][0];
    ensure!(method["name"] == "Nightly.score" && method["significant"] == true, "{method}");
    let checked = answer["judged"]["checked"].as_array().context("nothing was judged")?;
    let settings = answer["settings"].as_array().context("no settings")?;
    let set = serde_json::json!({ "name": SETTING.0, "left": null, "right": SETTING.1 });
    ensure!(settings.contains(&set), "{settings:?}");
    let failed = |of: &str| checked.iter().any(|row| row["of"] == of && row["failed"] == true);
    ensure!(failed("whole") && failed("stage"), "{checked:#?}");
    Ok(())
}

/// The method stands in one place of the graph of both, though frames that each JDK has for itself are above it.
fn is_not_torn(daemon: &Daemon, left: &str, right: &str) -> Result<()> {
    let reply = daemon.get(&format!("/api/v1/diff?left.app={left}&right.app={right}&format=folded"))?;
    ensure!(reply.status == 200, "{}", reply.body);
    let mut places: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for line in reply.body.lines() {
        let (rest, right) = line.rsplit_once(' ').context("a figure")?;
        let (stack, left) = rest.rsplit_once(' ').context("two figures")?;
        if let Some((above, _)) = stack.split_once(";Nightly.score") {
            let place = places.entry(above).or_default();
            *place = [place[0] + left.parse::<f64>()?, place[1] + right.parse::<f64>()?];
        }
    }
    let whole = places.values().fold([0.0, 0.0], |sum, place| [sum[0] + place[0], sum[1] + place[1]]);
    let in_one = |place: &[f64; 2]| (0..2).all(|side| place[side] >= whole[side] * IN_ONE_PLACE);
    ensure!(places.values().any(in_one), "{places:#?}");
    Ok(())
}

/// In local mode the driver is the executor: two cores and its heap, from soon after its beginning on. It runs still.
fn costs(answer: &Value) -> Result<()> {
    let runs = answer["runs"].as_array().context("no runs")?;
    ensure!(runs.len() == 2, "{answer:#}");
    for run in runs {
        let figure = |of: &str| run["reserved"][of].as_f64().with_context(|| format!("no {of}: {run:#}"));
        let (core_seconds, gib_seconds) = (figure("core_hours")? * 3600.0, figure("gib_hours")? * 3600.0);
        let wall = run["wall_seconds"].as_f64().context("no wall time")?;
        let whole = 2.0 * wall;
        ensure!(run["reserved"]["executors"] == 1, "{run:#}");
        ensure!(core_seconds <= whole + 0.1 && core_seconds > whole * 0.5, "{core_seconds} of {whole}");
        // Its heap is Spark's default, a GiB, where nothing else is set.
        let gib = match run["settings"]["spark.driver.memory"].as_str() {
            None => 1.0,
            Some(text) => size_in_bytes(text, 1 << 20).context("its size")? as f64 / f64::from(1 << 30),
        };
        ensure!((gib_seconds - gib * core_seconds / 2.0).abs() < 0.01, "{run:#}");
        ensure!((figure("cost")? - core_seconds - gib_seconds).abs() < 0.01, "{run:#}");
    }
    Ok(())
}

fn table(here: &Here, daemon: &Daemon, left: &str, right: &str) -> Result<String> {
    let binary = here.binary.to_str().context("the binary's path")?;
    Ok(ran([binary, "compare", left, right, "--url", daemon.url()])?.good()?.out)
}

/// The same as a user asks it: the last run of a job, and what continuous integration does with it.
fn by_command(here: &Here, daemon: &Daemon) -> Result<()> {
    let binary = here.binary.to_str().context("the binary's path")?;
    let runs = ran([binary, "runs", "--job", JOB, "--url", daemon.url()])?.good()?.out;
    println!("{runs}");
    ensure!(["CORE-HOURS", "GIB-HOURS", "COST"].into_iter().all(|column| runs.contains(column)), "{runs}");
    ensure!(runs.lines().filter(|line| line.trim_start().starts_with('-')).count() == 2, "{runs}");
    let last = ["compare", "--job", JOB, "--last", "--fail-over", "10%", "--url", daemon.url()];
    let said = ran([&[binary], &last[..]].concat())?;
    ensure!(said.code == 1, "it ended with {}: {}", said.code, said.err);
    ensure!(said.out.contains("Settings that differ") && said.out.contains(SETTING.0), "{}", said.out);
    ensure!(
        said.out.contains("FAILED: whole all tasks: +") && said.out.contains("Nightly.score"),
        "{}",
        said.out
    );
    let junit = ran([&[binary], &last[..], &["--format", "junit"]].concat())?;
    ensure!(junit.out.contains("<failure message=\"whole all tasks"), "{}", junit.out);
    let back =
        ran([binary, "compare", "nightly@-1", "nightly@-2", "--fail-over", "10", "--url", daemon.url()])?;
    ensure!(back.good()?.out.contains("PASSED"), "what took less is no failure");
    Ok(())
}

/// The same in the page: from the list of runs to the graph of both, by three clicks.
fn in_the_page(daemon: &Daemon, left: &str, right: &str) -> Result<()> {
    let Some(mut seen) = Seen::or_skip("two_runs_in_the_page")? else { return Ok(()) };
    daemon.url().clone_into(&mut seen.base);
    seen.see("#view=runs")?;
    seen.browser.wait("document.querySelectorAll('.runs-line .bar').length === 2")?;
    // The newest stands first.
    seen.press("tbody a[href*='view=versus']")?;
    seen.hash_has(&format!("left={left}"))?;
    seen.hash_has(&format!("other={right}"))?;
    let of = |caption: &str| {
        format!(
            "[...document.querySelectorAll('section.table')].find((t) => t.querySelector('h2').textContent === '{caption}')"
        )
    };
    seen.browser.wait(&format!("Boolean({})", of("Methods, by self time")))?;
    let text = seen.browser.js("return document.body.innerText")?;
    ensure!(
        text.as_str().is_some_and(|text| text.contains("Settings that differ") && text.contains(SETTING.0)),
        "{text}"
    );
    let first = format!("return {}.querySelector('tbody th').textContent", of("Methods, by self time"));
    let method = seen.browser.js(&first)?;
    ensure!(method == "Nightly.score", "the first method is {method}");
    seen.browser.js(&format!("{}.querySelector('tbody a').click()", of("Stages")))?;
    seen.hash_has("view=compare")?;
    seen.drawn()?;
    let verdict = seen.browser.js("return document.querySelector('.verdict').textContent")?;
    ensure!(verdict.as_str().is_some_and(|text| text.contains("Nightly.score")), "{verdict}");
    seen.quiet()
}
