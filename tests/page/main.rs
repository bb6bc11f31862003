//! The page, in headless Chromium: every control, on known rows with hostile names through the real API, and on a
//! real Spark run. The page's own parts are tested by node (profiler/ui/test).

#[path = "pyroscope/fake_store.rs"]
mod fake_store;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use emberscope::model::LabelKey::{App, AppName, Executor, Role, Stage, ThreadClass};
use emberscope::serve::{Access, Metrics, Queries, ServeState, router};
use emberscope_tests::{Here, WARM_UP, skip};
use fake_store::FakeStore;
use serde_json::Value;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xtask::launch::{Browser, SparkJob, browser};

/// A name that would run a script or turn the line around, were it not text.
const EVIL: &str =
    "<img src=x onerror=\"window.evil=1\">\u{202e}\n<script>window.evil=1</script>javascript:evil()";
const ENTER: &str = "\u{E007}";
const ESCAPE: &str = "\u{E00C}";
const RIGHT: &str = "\u{E014}";
const DOWN: &str = "\u{E015}";

fn browser_or_skip(test: &str) -> Result<Option<Browser>> {
    match browser::missing() {
        Some(reason) => {
            skip(test, &reason);
            Ok(None)
        }
        None => Browser::start().map(Some),
    }
}

#[test]
fn the_pages_parts_work_by_themselves() -> Result<()> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../profiler/ui");
    let Ok(run) = Command::new("node").args(["--test", "test/"]).current_dir(dir).output() else {
        skip("the_pages_parts_work_by_themselves", "there is no node: apt-get install nodejs");
        return Ok(());
    };
    ensure!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    Ok(())
}

/// The daemon's routes on a store of known rows; the page behind a prefix too. It ends with the process.
fn serve(access: Access) -> Result<String> {
    let mut store = FakeStore::default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let long: &'static str = Box::leak(format!("Job.run;Long.{}", "x".repeat(10_000)).into_boxed_str());
    let evil: &'static str =
        Box::leak(format!("Job.run;{};Job.leaf", EVIL.replace(';', "")).into_boxed_str());
    for (app, name) in [("app-1", "etl"), ("app-2", EVIL)] {
        for (stage, executor, ago) in [("0", "1", 120), ("1", "2", 60)] {
            let labels = [
                (App, app),
                (AppName, name),
                (Role, "executor"),
                (Executor, executor),
                (Stage, stage),
                (ThreadClass, "task"),
            ];
            store.add(now - ago, &labels, "Job.run;Job.work;java.util.Arrays.sort", 60);
            store.add(now - ago, &labels, "Job.run;Job.other", if stage == "0" { 10 } else { 40 });
            store.add(now - ago, &labels, evil, 20);
            store.add(now - ago, &labels, long, 10);
        }
    }
    let state = ServeState {
        store: Arc::new(store),
        status: Arc::new(|| serde_json::json!({})),
        metrics: Arc::new(Metrics::new("0")?),
        ready: Arc::new(|| Ok(())),
        node: EVIL.into(),
        version: "0".into(),
        queries: Queries::default(),
        spark: None,
    };
    let app = router(state.clone(), access.clone(), Router::new());
    let app = Router::new()
        .nest_service("/behind/a/proxy", router(state, access, Router::new()))
        .fallback_service(app);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || -> Result<()> {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            sender.send(listener.local_addr()?.port())?;
            Ok(axum::serve(listener, app).await?)
        })
    });
    Ok(format!("http://127.0.0.1:{}", receiver.recv().context("the server did not start")?))
}

/// A browser at an address of the page; `see` opens another and waits for its answer.
struct Seen {
    browser: Browser,
    base: String,
}

const READY: &str = "document.querySelector('.busy')?.hidden && !document.querySelector('main').hasAttribute('aria-busy') && document.querySelector('main').children.length";

impl Seen {
    fn see(&self, hash: &str) -> Result<()> {
        self.browser.go("about:blank")?;
        self.browser.go(&format!("{}/{hash}", self.base))?;
        self.browser.wait(READY)
    }
    fn press(&self, what: &str) -> Result<()> {
        self.browser.js(&format!("document.querySelector({what:?}).click()")).map(drop)
    }
    fn choose(&self, what: &str, value: &str) -> Result<()> {
        let script = format!(
            "const e = document.querySelector({what:?}); e.value = {value:?}; e.dispatchEvent(new Event('change', {{ bubbles: true }}))"
        );
        self.browser.js(&script).map(drop)
    }
    fn enter(&self, what: &str, text: &str) -> Result<()> {
        let script = format!(
            "const e = document.querySelector({what:?}); e.focus(); e.value = {text:?}; e.dispatchEvent(new Event('input', {{ bubbles: true }}))"
        );
        self.browser.js(&script).map(drop)
    }
    fn hash_has(&self, part: &str) -> Result<()> {
        self.browser.wait(&format!("location.hash.includes({part:?})"))
    }
    fn text(&self, part: &str) -> Result<()> {
        self.browser.wait(&format!("document.body.innerText.includes({part:?})"))
    }
    /// Middle of an element, for the mouse.
    fn place(&self, what: &str, x: f64, y: f64) -> Result<(i64, i64)> {
        let script = format!(
            "const r = document.querySelector({what:?}).getBoundingClientRect(); return [Math.round(r.left + r.width * {x}), Math.round(r.top + {y})]"
        );
        let at = self.browser.js(&script)?;
        Ok((at[0].as_i64().context("x")?, at[1].as_i64().context("y")?))
    }
    /// The graph has pixels of more than a few colours.
    fn drawn(&self) -> Result<()> {
        self.browser.wait("(() => { const c = document.querySelector('.graph canvas'); if (!c?.width) return false; const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const s = new Set(); for (let i = 0; i < d.length; i += 164) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size > 2; })()")
    }
    fn quiet(&self) -> Result<()> {
        let said = self.browser.console()?;
        let bad: Vec<_> = said
            .iter()
            .filter(|line| !line.contains("401") && !line.contains("willReadFrequently"))
            .collect();
        ensure!(bad.is_empty(), "{bad:?}");
        ensure!(self.browser.js("return window.evil ?? null")?.is_null(), "a name ran as a script");
        Ok(())
    }
}

#[test]
fn every_control_on_known_rows_with_hostile_names() -> Result<()> {
    let Some(browser) = browser_or_skip("every_control_on_known_rows_with_hostile_names")? else {
        return Ok(());
    };
    let seen = Seen { browser, base: format!("{}/behind/a/proxy", serve(Access::LocalHostOnly)?) };
    let files = tempfile::tempdir()?;
    seen.browser.downloads(files.path())?;
    tables(&seen).context("tables")?;
    graph(&seen).context("graph")?;
    keys(&seen).context("keys")?;
    mouse(&seen).context("mouse")?;
    downloads(&seen, files.path()).context("downloads")?;
    comparisons(&seen).context("comparisons")?;
    frame(&seen).context("frame")?;
    seen.quiet()
}

fn tables(seen: &Seen) -> Result<()> {
    seen.see("")?;
    seen.text("etl")?;
    let wide = seen.browser.js("return document.documentElement.scrollWidth <= innerWidth")?;
    ensure!(wide == true, "a name makes the page wider than the window");
    seen.press("thead button[data-column=name]")?;
    seen.hash_has("ts=name")?;
    seen.browser.wait("document.querySelector('th[aria-sort=ascending]')")?;
    seen.enter(".filter", "app-2")?;
    seen.text("1 of 2 applications")?;
    ensure!(seen.browser.js("return document.activeElement.className")? == "filter", "the focus went away");
    seen.enter(".filter", "")?;
    seen.see("#view=processes")?;
    seen.text("Nothing was sampled")?;
    seen.see("#view=executors&app=app-1")?;
    seen.text("Executors")?;
    seen.see("#view=stages&app=app-2")?;
    seen.browser.wait("document.querySelectorAll('tbody tr').length === 2")?;
    seen.press("tbody a")?;
    seen.hash_has("view=flame")?;
    seen.see("#view=flame&app=nobody")?;
    seen.text("There is no app `nobody`")?;
    seen.browser.console()?;
    seen.see("#view=flame&app=app-1&range=-5m&stage=77")?;
    seen.text("No samples here")
}

fn graph(seen: &Seen) -> Result<()> {
    seen.see("#view=flame&app=app-2")?;
    seen.drawn()?;
    for (control, part) in [
        ("#invert", "invert=1"),
        ("#hide-kernel", "hide=kernel"),
        ("#hide-jvm", "hide=jvm"),
        ("#detail", "detail=1"),
        ("#lines", "lines=1"),
    ] {
        seen.press(control)?;
        seen.hash_has(part)?;
        seen.browser
            .wait(&format!("document.querySelector('{control}').getAttribute('aria-pressed') === 'true'"))?;
        seen.browser.wait(READY)?;
        seen.drawn()?;
        seen.press(control)?;
        seen.browser.wait(READY)?;
    }
    for (control, value) in [
        ("#order", "flame"),
        ("#colour", "package"),
        ("#colour", "self"),
        ("#sort", "name"),
        ("#group", "stage"),
        ("#unit", "samples"),
    ] {
        seen.choose(control, value)?;
        seen.hash_has(&format!("={value}"))?;
        seen.browser.wait(READY)?;
        seen.drawn()?;
    }
    seen.enter("#search", "^Job\\.work$")?;
    seen.browser.wait("/^52\\.2 % in 1 box(es)?$/.test(document.querySelector('#found').textContent)")?;
    seen.enter("#search", "(")?;
    seen.text("Not a regular expression")?;
    seen.enter("#search", "")?;
    seen.see("#view=flame&app=app-1&focus=Job.work")?;
    seen.text("Sandwich of Job.work")?;
    seen.drawn()?;
    seen.press("#leave-sandwich")?;
    seen.browser.wait("!location.hash.includes('focus')")?;
    seen.see("#view=methods&app=app-1&unit=samples")?;
    let sorted = "[...document.querySelectorAll('tbody tr')].map((r) => [r.cells[0].textContent, r.cells[1].textContent]).find((r) => r[0] === 'java.util.Arrays.sort')?.[1] === '120'";
    seen.browser.wait(sorted)?;
    seen.enter(".filter", "Arrays")?;
    seen.browser.wait("document.querySelectorAll('tbody tr').length === 1")?;
    seen.press("tbody a")?;
    seen.hash_has("focus=java.util.Arrays.sort")
}

fn keys(seen: &Seen) -> Result<()> {
    seen.see("#view=flame&app=app-1&sort=name")?;
    seen.drawn()?;
    seen.browser.keys(&["g", DOWN, DOWN, RIGHT])?;
    seen.browser.wait("document.querySelector('[role=treeitem][aria-selected=true]')")?;
    seen.browser.wait("document.getElementById(document.querySelector('.graph').getAttribute('aria-activedescendant'))?.getAttribute('aria-level') === '3'")?;
    seen.browser.wait("document.getElementById('say').textContent.includes('java')")?;
    seen.browser.keys(&[ENTER])?;
    seen.hash_has("zoom=")?;
    let zoomed = seen.browser.js("return location.hash")?;
    seen.see(zoomed.as_str().context("a hash")?)?;
    seen.browser.wait("!document.querySelector('#whole').hidden")?;
    seen.browser.keys(&["g", ESCAPE])?;
    seen.browser.wait("!location.hash.includes('zoom=')")?;
    seen.browser.keys(&["m"])?;
    seen.browser.wait("document.activeElement.getAttribute('role') === 'menuitem'")?;
    seen.browser.keys(&[DOWN, ESCAPE])?;
    seen.browser.wait("!document.querySelector('.menu') && document.activeElement.className === 'graph'")?;
    seen.browser.keys(&["/"])?;
    seen.browser.wait("document.activeElement.id === 'search'")?;
    seen.browser.js("document.activeElement.blur()")?;
    seen.browser.keys(&["?"])?;
    seen.browser.wait("document.querySelector('dialog[open]')")?;
    seen.browser.keys(&[ESCAPE])?;
    seen.browser.wait("!document.querySelector('dialog')")?;
    seen.browser.keys(&["2"])?;
    seen.hash_has("view=stages")
}

fn mouse(seen: &Seen) -> Result<()> {
    seen.see("#view=flame&app=app-2&range=-5m")?;
    seen.drawn()?;
    // Over the hostile name: root, Job.run, and below it in the order of their size.
    let evil = seen.place(".graph canvas", 0.75, 2.5 * 19.0)?;
    seen.browser.drag(0, &[evil])?;
    seen.hash_has("zoom=")?;
    seen.browser.wait("!document.querySelector('.tip').hidden")?;
    seen.press("#whole")?;
    seen.browser.wait("!location.hash.includes('zoom=')")?;
    seen.browser.drag(2, &[evil])?;
    seen.browser.wait("document.querySelector('.menu')")?;
    seen.browser.js("[...document.querySelectorAll('.menu button')].find((b) => b.textContent.startsWith('Sandwich')).click()")?;
    seen.hash_has("focus=")?;
    seen.see("#view=flame&app=app-1&range=-5m")?;
    seen.browser.wait("document.querySelectorAll('.timeline-host .legend li').length > 0")?;
    let [from, until] = [0.2, 0.6].map(|x| seen.place(".timeline canvas", x, 40.0));
    seen.browser.drag(0, &[from?, until?])?;
    seen.hash_has("from=")?;
    seen.browser.wait(READY)?;
    let before = seen.browser.js("return location.hash")?;
    seen.browser.keys(&["t", RIGHT])?;
    seen.browser.wait(&format!("location.hash !== {before}"))?;
    seen.press("#clear-window")?;
    seen.browser.wait("!location.hash.includes('from=')")
}

fn downloads(seen: &Seen, dir: &std::path::Path) -> Result<()> {
    seen.see("#view=flame&app=app-2")?;
    seen.drawn()?;
    for (format, end) in
        [("svg", ".svg"), ("folded", ".folded"), ("pprof", ".pb.gz"), ("speedscope", ".speedscope.json")]
    {
        seen.choose("#download", format)?;
        let begun = std::time::Instant::now();
        let file = loop {
            let mut files = std::fs::read_dir(dir)?.flatten().map(|entry| entry.path());
            if let Some(file) = files.find(|path| path.to_string_lossy().ends_with(end)) {
                break file;
            }
            ensure!(begun.elapsed() < Duration::from_secs(20), "no {end} came");
            std::thread::sleep(Duration::from_millis(50));
        };
        let bytes = std::fs::read(&file)?;
        let text = String::from_utf8_lossy(&bytes);
        match format {
            "svg" => ensure!(
                text.contains("Job.work") && !text.contains("<script") && !text.contains("<img"),
                "{text}"
            ),
            "folded" => ensure!(
                text.lines().any(|l| l.ends_with("Job.work;java.util.Arrays.sort 1200000000")),
                "{text}"
            ),
            "speedscope" => {
                let json: Value = serde_json::from_slice(&bytes)?;
                ensure!(
                    json["profiles"][0]["endValue"].as_f64() == Some(2.3e9),
                    "{}",
                    json["profiles"][0]["endValue"]
                );
            }
            _ => ensure!(bytes.starts_with(&[0x1f, 0x8b]), "pprof is not compressed"),
        }
    }
    Ok(())
}

fn comparisons(seen: &Seen) -> Result<()> {
    seen.see("#view=compare&app=app-1&stage=0")?;
    seen.text("What is to be compared?")?;
    seen.choose("#right-label", "stage")?;
    seen.browser
        .js("const f = document.querySelector('#right-value'); f.value = '1'; f.form.requestSubmit()")?;
    seen.hash_has("right.stage=1")?;
    seen.browser.wait(READY)?;
    seen.drawn()?;
    for (control, value) in [("#contrast", "orangeblue"), ("#width", "right"), ("#scale", "absolute")] {
        seen.choose(control, value)?;
        seen.hash_has(&format!("={value}"))?;
        seen.browser.wait(READY)?;
        seen.drawn()?;
    }
    seen.press("#as-table")?;
    let more = "[...document.querySelectorAll('tbody tr')].some((r) => r.cells[0].textContent === 'Job.other' && r.cells[3].textContent === '+300 ms')";
    seen.browser.wait(more)?;
    seen.press("#swap")?;
    seen.hash_has("right.stage=0")?;
    seen.see("#view=slow&app=app-1")?;
    seen.text("Slow tasks of which stage?")
}

fn frame(seen: &Seen) -> Result<()> {
    seen.see("#view=flame&app=app-1")?;
    let before = seen.browser.js("return document.documentElement.dataset.theme")?;
    seen.press("#theme")?;
    seen.browser.wait(&format!("document.documentElement.dataset.theme !== {before}"))?;
    seen.drawn()?;
    seen.press("#live")?;
    seen.hash_has("live=1")?;
    seen.press("#copy-link")?;
    seen.browser.wait("document.getElementById('say').textContent.includes('link') || /from=\\d+&until=\\d+/.test(location.hash)")?;
    seen.choose("#range", "-15m")?;
    seen.hash_has("range=-15m")?;
    seen.press("#refresh")?;
    seen.browser.wait(READY)?;
    seen.press(".filters .drop")?;
    seen.browser.wait("!location.hash.includes('app=')")?;
    seen.browser.js("history.back()")?;
    seen.hash_has("app=app-1")
}

#[test]
fn a_token_is_asked_for_and_kept_out_of_the_address() -> Result<()> {
    let Some(browser) = browser_or_skip("a_token_is_asked_for_and_kept_out_of_the_address")? else {
        return Ok(());
    };
    let seen = Seen { browser, base: serve(Access::Token("s3cret".into()))? };
    seen.see("")?;
    seen.text("This daemon wants a token")?;
    for (token, says) in [("wrong", "not the right one"), ("s3cret", "etl")] {
        seen.browser.wait("document.querySelector('input[type=password]')")?;
        seen.browser.js(&format!("const f = document.querySelector('input[type=password]'); f.value = {token:?}; f.form.requestSubmit()"))?;
        seen.text(says)?;
    }
    ensure!(!seen.browser.js("return location.href")?.to_string().contains("s3cret"));
    seen.quiet()
}

#[test]
fn a_spark_run_in_the_page() -> Result<()> {
    const TEST: &str = "a_spark_run_in_the_page";
    let Some(here) = Here::or_skip(TEST) else { return Ok(()) };
    let Some(browser) = browser_or_skip(TEST)? else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &[])?;
    let mut job = SparkJob::java(
        &["TaskJobs", "TaskWork", "BadNames"],
        &here.venv,
        &here.java,
        &dir.path().join("spark"),
    )
    .arg("skew:24")
    .start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    let stage = job.wait_fact("skew.stages", WARM_UP)?;
    emberscope_tests::wait_visible(
        &daemon,
        SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64,
    )?;
    let seen = Seen { browser, base: daemon.url().to_owned() };
    seen.see("")?;
    seen.text("TaskJobs")?;
    seen.see(&format!("#view=stages&app={app}"))?;
    seen.text(&format!("Stage {stage}"))?;
    seen.see(&format!("#view=flame&app={app}&stage={stage}"))?;
    seen.drawn()?;
    seen.text("waiting for a CPU")?;
    // The table says what the daemon's own says.
    seen.see(&format!("#view=methods&app={app}&stage={stage}&unit=samples"))?;
    let rows = seen.browser.js("return [...document.querySelectorAll('tbody tr')].map((r) => [r.cells[0].textContent, Number(r.cells[1].textContent.replaceAll(',', ''))])")?;
    let top = daemon.json(&format!("/api/v1/top?app={app}&stage={stage}&limit=5"))?;
    for method in top["top"].as_array().context("no top")?.iter().take(5) {
        let (name, own) = (&method["name"], method["self"]["samples"].as_f64());
        let same = |row: &&Value| row[0] == *name && row[1].as_f64() == own;
        ensure!(
            rows.as_array().and_then(|rows| rows.iter().find(same)).is_some(),
            "{method} is not in {rows}"
        );
    }
    seen.see(&format!("#view=slow&app={app}&stage={stage}"))?;
    seen.drawn()?;
    seen.text("Slow tasks (right)")?;
    seen.quiet()?;
    ensure!(daemon.stop()?.success());
    Ok(())
}
