//! Grafana's own flame graph component (npm `@grafana/flamegraph`) in Chromium, fed with our answer to
//! SelectMergeStacktraces: it draws, and its top table says what our JSON says.
//!
//! The packages are installed and bundled once, into a cache that the files in tests/panel decide; later runs need
//! no network. Without npm, Chromium or the packages the test is skipped. Names that would be HTML are among the
//! frames: none of it runs.

use anyhow::{Context, Result, ensure};
use emberscope_model::LabelKey::{App, Role, ServiceName};
use emberscope_tests::{FakeStore, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FILES: [(&str, &str); 4] = [
    ("package.json", include_str!("panel/package.json")),
    ("page.jsx", include_str!("panel/page.jsx")),
    ("assistant.js", include_str!("panel/assistant.js")),
    ("index.html", include_str!("panel/index.html")),
];
/// Real stacks of Spark, `root;..;leaf COUNT`.
const STACKS: &str = include_str!("golden/spark.folded");
const HOSTILE: &str = r#"<img src=x onerror="document.title='run'">"#;

/// Runs a step; None, and the skip recorded: it cannot be done here.
fn step(what: &str, command: &mut Command) -> Result<Option<Output>> {
    let skip = |why: &str| {
        emberscope_tests::skip("panel::the_component_draws_our_answer", &format!("{what}: {why}"))
    };
    match command.output() {
        Ok(out) if out.status.success() => Ok(Some(out)),
        Ok(out) => {
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            // npm's last line names its log, its first errors say what is wrong.
            let line =
                said.lines().find(|line| line.starts_with("npm ERR!") || line.starts_with("npm error"));
            skip(line.or(said.lines().rfind(|line| !line.trim().is_empty())).unwrap_or("failed"));
            Ok(None)
        }
        Err(error) => {
            skip(&error.to_string());
            Ok(None)
        }
    }
}

/// npm 9, Debian's, takes a commit that a package overrides a dependency with for a range of versions ("Invalid
/// comparator", @npmcli/arborist 6).
fn takes_overrides_of_commits() -> bool {
    let output = Command::new("npm").arg("--version").output();
    let version = output.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    version.split('.').next().and_then(|major| major.trim().parse::<u32>().ok()).is_none_or(|n| n >= 10)
}

/// A directory with the bundle; made where it is not there yet.
fn bundle() -> Result<Option<PathBuf>> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    FILES.hash(&mut hasher);
    let home = xtask::places::cache()?.join("grafana-panel").join(format!("{:016x}", hasher.finish()));
    if home.join("bundle.js").exists() {
        return Ok(Some(home));
    }
    // Nothing is downloaded for a test that cannot run.
    if step("chromium", Command::new("chromium").arg("--version"))?.is_none() {
        return Ok(None);
    }
    std::fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
    for (name, text) in FILES {
        std::fs::write(home.join(name), text)?;
    }
    let install =
        ["install", "--legacy-peer-deps", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"];
    let mut npm = Command::new("npm");
    if !takes_overrides_of_commits() {
        npm.args(["exec", "--yes", "--", "npm@10"]);
    }
    if step("npm install", npm.args(install).current_dir(&home))?.is_none() {
        return Ok(None);
    }
    let mut esbuild = Command::new("node_modules/.bin/esbuild");
    esbuild
        .current_dir(&home)
        .args(["page.jsx", "--bundle", "--outfile=making.js", "--platform=browser"])
        .args([
            "--format=iife",
            "--define:global=window",
            "--define:process.env.NODE_ENV=\"production\"",
            "--alias:@grafana/assistant=./assistant.js",
            "--loader:.svg=text",
            "--loader:.ttf=empty",
        ]);
    if step("bundling", &mut esbuild)?.is_none() {
        return Ok(None);
    }
    // Whole or not at all.
    std::fs::rename(home.join("making.js"), home.join("bundle.js"))?;
    Ok(Some(home))
}

fn store() -> Result<FakeStore> {
    let mut store = FakeStore::default();
    let labels = [(ServiceName, HOSTILE), (App, "app-1"), (Role, "executor")];
    for line in STACKS.lines() {
        let (stack, count) = line.rsplit_once(' ').context("count")?;
        store.add(1000, &labels, stack, count.parse()?);
    }
    store.add(
        1000,
        &labels,
        concat!("java.lang.Thread.run;", r#"<img src=x onerror="document.title='run'">"#),
        800,
    );
    Ok(store)
}

fn ask(request: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Value> {
    Ok(serde_json::from_str(&request?.body_mut().read_to_string()?)?)
}

/// Draws the answer; what the page told.
fn draw(home: &Path, answer: &Value) -> Result<Option<Value>> {
    let place = tempfile::tempdir()?;
    for name in ["index.html", "bundle.js"] {
        std::fs::copy(home.join(name), place.path().join(name))?;
    }
    // In a script's text `</script>` would end it.
    let text = serde_json::to_string(answer)?.replace('<', "\\u003c");
    std::fs::write(place.path().join("answer.js"), format!("window.ANSWER={text}"))?;
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1600,1800"]);
    chromium.args(["--virtual-time-budget=20000", "--dump-dom"]);
    chromium.arg(format!("--user-data-dir={}", place.path().join("profile").display()));
    let picture = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("panel.png");
    chromium.arg(format!("--screenshot={}", picture.display()));
    chromium.arg(format!("file://{}", place.path().join("index.html").display()));
    let Some(out) = step("chromium", &mut chromium)? else { return Ok(None) };
    let page = String::from_utf8_lossy(&out.stdout).into_owned();
    let told = page.split_once("<pre id=\"shown\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let told = told.context("the page told nothing")?.0;
    let told =
        told.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    Ok(Some(serde_json::from_str(&told)?))
}

#[test]
fn the_component_draws_our_answer() -> Result<()> {
    let Some(home) = bundle()? else { return Ok(()) };
    let url = format!("http://127.0.0.1:{}", Server::of(store()?)?.start()?);
    let request = json!({"profileTypeID": "process_cpu:samples:count:cpu:nanoseconds",
        "labelSelector": "{app=\"app-1\"}", "start": 1_000_000, "end": 1_010_000});
    let stacks = format!("{url}/querier.v1.QuerierService/SelectMergeStacktraces");
    let answer =
        ask(ureq::post(stacks).header("Content-Type", "application/json").send(request.to_string()))?;
    let top = ask(ureq::get(format!("{url}/api/v1/top?app=app-1&from=1000&until=1010&limit=100000")).call())?;
    let Some(told) = draw(&home, &answer)? else { return Ok(()) };
    ensure!(told["error"].is_null(), "the component failed: {}", told["error"]);

    let painted = told["painted"].as_u64().unwrap_or(0);
    ensure!(painted > 10_000, "nothing was drawn: {told}");
    // Whatever the names are, the page is as it was.
    assert_eq!(told["title"], "panel");
    let number = |value: &Value| value.as_u64().map(|n| n.to_string());
    let ours: BTreeSet<(String, String, String)> = top["top"]
        .as_array()
        .context("top")?
        .iter()
        .map(|row| {
            let name = row["name"].as_str().context("name")?.to_owned();
            let of = |what: &str| number(&row[what]["samples"]).context("samples");
            Ok((name, of("self")?, of("total")?))
        })
        .collect::<Result<_>>()?;
    let rows = told["rows"].as_array().context("rows")?;
    ensure!(rows.len() >= 5, "the table has {} rows: {told}", rows.len());
    for row in rows {
        let cell = |at: usize| row[at].as_str().unwrap_or_default().to_owned();
        let row = (cell(0), cell(1), cell(2));
        ensure!(ours.contains(&row), "{row:?} is not in our JSON");
    }
    assert_eq!(rows[0], json!([HOSTILE, "800", "800"]));
    println!("{} rows of the component's table equal ours, {painted} pixels painted", rows.len());
    Ok(())
}
