//! The page on a real daemon: a Spark application and a program whose names would do harm if they were not text, what
//! the daemon says in the page's tables, links to Spark's own pages, and Live as windows close.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::page::{READY, Seen};
use emberscope_tests::{Daemon, Here, SparkJob, WARM_UP, copy_program, wait_visible};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A name of an application: HTML, text that turns around, and more of it than anybody reads.
fn harmful_name() -> String {
    format!("<img src=x onerror=window.evil=1>\u{202e}<script>window.evil=1</script>{}", "long".repeat(400))
}

/// The same of a file; a process is called by its first 15 bytes, its frames' module by all of it.
const PROGRAM: &str = "<b onclick a b><img src=x onerror=window.evil=1>\u{202e}";

/// Burns CPU under the harmful name until it is dropped.
struct Burns(Child);

impl Burns {
    fn start(dir: &Path) -> Result<Self> {
        let program = dir.join(PROGRAM);
        copy_program(Path::new("/bin/sh"), &program)?;
        Ok(Self(Command::new(program).args(["-c", "while :; do :; done"]).spawn()?))
    }
}

impl Drop for Burns {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn now() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64)
}

#[test]
fn a_spark_run_in_the_page() -> Result<()> {
    const TEST: &str = "a_spark_run_in_the_page";
    let Some(here) = Here::or_skip(TEST) else { return Ok(()) };
    let Some(mut seen) = Seen::or_skip(TEST)? else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &[])?;
    let burns = Burns::start(dir.path())?;
    let mut job = SparkJob::java(
        &["TaskJobs", "TaskWork", "BadNames"],
        &here.venv,
        &here.java,
        &dir.path().join("spark"),
    )
    // By spark-submit's words, and by the program's own, which Spark takes and the driver tells.
    .conf("spark.app.name", harmful_name())
    .conf("spark.task.jobs.name", harmful_name())
    // Spark's list of executors leads to this page.
    .conf("spark.ui.custom.executor.log.url", "http://{{NODE}}:4099/#view=executors")
    .conf("spark.executorEnv.SPARK_EXECUTOR_ATTRIBUTE_NODE", "n1")
    .arg("skew:24")
    .start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    let stage = job.wait_fact("skew.stages", WARM_UP)?;
    wait_visible(&daemon, now()?)?;
    seen.base = daemon.url().to_owned();
    harmless(&seen).context("names")?;
    let page = stages(&seen, &app, &stage).context("stages")?;
    leads_back(&page, &app).context("the way back from Spark")?;
    methods(&seen, &daemon, &app, &stage).context("methods")?;
    seen.see(&format!("#view=slow&app={app}&stage={stage}"))?;
    seen.drawn()?;
    seen.text("Slow tasks (right)")?;
    live(&seen, &daemon).context("live")?;
    drop(burns);
    seen.quiet()?;
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// The names are there as text, and nothing is wider for them.
fn harmless(seen: &Seen) -> Result<()> {
    for (hash, name) in [
        ("", "<img src=x onerror=window.evil=1>\\u{202e}<script>"),
        ("#view=processes", "<b onclick a b>"),
        ("#view=executors", "<img src=x onerror=window.evil=1>"),
    ] {
        seen.see(hash)?;
        seen.text(name)?;
        let fits = seen.browser.js("return document.documentElement.scrollWidth <= innerWidth")?;
        ensure!(fits == true, "{hash}: a name makes the page wider than its window");
        let made = seen
            .browser
            .js("return document.querySelectorAll('img, main script, main b[onclick]').length")?;
        ensure!(made == 0, "{hash}: a name became {made} elements");
    }
    seen.see("#view=methods&process=<b onclick a b>")?;
    seen.text("<img src=x onerror")
}

/// The table of stages, and where its links to Spark lead; the address of the application's pages there.
fn stages(seen: &Seen, app: &str, stage: &str) -> Result<String> {
    seen.see(&format!("#view=stages&app={app}"))?;
    seen.text(&format!("Stage {stage}"))?;
    // Spark's first answer may take longer than one of ours waits for it, and one from before the stage began holds for 30 s.
    let begun = Instant::now();
    let links = "return [...document.querySelectorAll('tbody a.outside')].map((a) => a.href)";
    let part = format!("/stages/stage/?id={stage}&attempt=0");
    let page = loop {
        let pages = seen.browser.js(links)?;
        let all = pages.as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(page) = all.into_iter().find(|href| href.ends_with(&part)) {
            break page.to_owned();
        }
        ensure!(begun.elapsed() < Duration::from_secs(120), "no link to stage {stage} in {pages}");
        seen.press("#refresh")?;
        std::thread::sleep(Duration::from_secs(1));
        seen.browser.wait(READY)?;
    };
    let told = ureq::get(&page).call()?.body_mut().read_to_string()?;
    ensure!(told.contains(&format!("Details for Stage {stage}")), "{page} is no page of the stage");
    // From the graph too.
    seen.press(&format!("tbody a[href*='stage={stage}']"))?;
    seen.drawn()?;
    seen.browser.wait(&format!("document.querySelector('.where a.outside')?.href.endsWith({part:?})"))?;
    seen.text("run delay")?;
    Ok(page.trim_end_matches(&part).to_owned())
}

/// Spark's executors have the link that was given to Spark.
fn leads_back(spark: &str, app: &str) -> Result<()> {
    let url = format!("{spark}/api/v1/applications/{app}/executors");
    let executors: Value = ureq::get(&url).call()?.body_mut().read_json()?;
    let logs: Vec<_> = executors
        .as_array()
        .context("no list")?
        .iter()
        .filter_map(|e| e["executorLogs"]["log"].as_str())
        .collect();
    ensure!(
        !logs.is_empty() && logs.iter().all(|log| *log == "http://n1:4099/#view=executors"),
        "{executors}"
    );
    Ok(())
}

/// The table says what the daemon says.
fn methods(seen: &Seen, daemon: &Daemon, app: &str, stage: &str) -> Result<()> {
    seen.see(&format!("#view=methods&app={app}&stage={stage}&unit=samples"))?;
    let rows = seen.browser.js("return [...document.querySelectorAll('tbody tr')].map((r) => [r.cells[0].textContent, Number(r.cells[1].textContent.replaceAll(',', ''))])")?;
    let top = daemon.json(&format!("/api/v1/top?app={app}&stage={stage}&limit=5"))?;
    for method in top["top"].as_array().context("no top")?.iter().take(5) {
        let (name, own) = (&method["name"], method["self"]["samples"].as_f64());
        let same = |row: &&Value| row[0] == *name && row[1].as_f64() == own;
        let found = rows.as_array().and_then(|rows| rows.iter().find(same));
        ensure!(found.is_some(), "{method} is not in {rows}");
    }
    Ok(())
}

/// A chosen window follows the newest one that closes, the graph is of it, and what is typed meanwhile stays.
fn live(seen: &Seen, daemon: &Daemon) -> Result<()> {
    let until = (now()? / 10_000 - 3) * 10_000;
    wait_visible(daemon, until)?;
    seen.see(&format!("#view=flame&from={}&until={until}&live=1", until - 20_000))?;
    seen.drawn()?;
    seen.enter("#filter-value", "typed meanwhile")?;
    let later = "Number(new URLSearchParams(location.hash.slice(1)).get('until'))";
    let begun = Instant::now();
    while seen.browser.js(&format!("return {later}"))?.as_u64() <= Some(until) {
        ensure!(begun.elapsed() < emberscope_tests::VISIBLE, "no newer window in the page");
        std::thread::sleep(Duration::from_millis(200));
    }
    seen.browser.wait(READY)?;
    // The line below the graph says the time that it is of: two windows, until the newest.
    seen.browser.wait(&format!(
        "(() => {{ const t = new Date({later}), two = (n) => String(n).padStart(2, '0'); const line = document.querySelector('.quality').textContent; \
         return line.includes('2 windows') && line.includes(`${{two(t.getHours())}}:${{two(t.getMinutes())}}:${{two(t.getSeconds())}}`); }})()"
    ))?;
    seen.browser.wait(
        "document.activeElement.id === 'filter-value' && document.activeElement.value === 'typed meanwhile'",
    )
}
