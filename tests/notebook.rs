//! A notebook in a real Jupyter kernel, on real Spark, beside the real daemon: what `%%emberscope` shows is what the daemon
//! answers, of the queries that its cell began alone, what is in the way is said, and the HTML of its cells works in a browser and
//! is text throughout.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::page::Seen;
use emberscope_tests::{Daemon, Here, WARM_UP, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use xtask::setup::packages;

/// The name of the Python function that the notebook's UDF is, as it stands in the JSON of a page.
const EVIL: &str = "\\u003c/script\\u003e\\u003cimg src=x onerror=parent.evil=window.evil=1\\u003e";

/// What a cell has put out, as text and as HTML.
#[derive(Default)]
struct Shown {
    streams: String,
    text: String,
    html: String,
    errors: Vec<String>,
}

fn joined(value: &Value) -> String {
    match value {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn shown(notebook: &Path) -> Result<BTreeMap<String, Shown>> {
    let notebook: Value = serde_json::from_slice(&std::fs::read(notebook)?)?;
    let mut all = BTreeMap::new();
    for cell in notebook["cells"].as_array().context("no cells")? {
        let mut shown = Shown::default();
        for output in cell["outputs"].as_array().into_iter().flatten() {
            shown.streams += &joined(&output["text"]);
            shown.text += &joined(&output["data"]["text/plain"]);
            shown.html += &joined(&output["data"]["text/html"]);
            if output["output_type"] == "error" {
                shown.errors.push(format!("{} {}", output["ename"], joined(&output["traceback"])));
            }
        }
        all.insert(cell["metadata"]["name"].as_str().unwrap_or_default().to_owned(), shown);
    }
    Ok(all)
}

/// The JSON that a saved page carries.
fn given(page: &Path) -> Result<Value> {
    let page = std::fs::read_to_string(page)?;
    let (_, rest) = page.split_once("id=\"given\">").context("the page has no answer")?;
    let (json, _) = rest.split_once("</script>").context("the answer does not end")?;
    Ok(serde_json::from_str(json)?)
}

/// What is said where there is nothing to show, and that the cells ran all the same.
fn judge_words(cells: &BTreeMap<String, Shown>) -> Result<()> {
    for (cell, words) in [
        ("load", &["answers; a window has 2 s"][..]),
        ("no-session", &["42", "there is no SparkSession"]),
        ("nobody", &["it ran\n", "no daemon answers at unix:", "The cell runs without a profile"]),
        ("no-token", &["it ran, too", "401", "EMBERSCOPE_TOKEN"]),
        ("bad-option", &["it ran as well", "--typ", "--help"]),
    ] {
        let shown = cells.get(cell).with_context(|| format!("no cell {cell}"))?;
        for word in words {
            ensure!(shown.streams.contains(word), "{cell} does not say {word:?}: {}", shown.streams);
        }
        ensure!(shown.html.is_empty() && shown.errors.is_empty(), "{cell}: {:?}", shown.errors);
    }
    let short = &cells["short"];
    ensure!(
        short.text.contains("42") && short.text.contains("less than a window of 2 s"),
        "{} {}",
        short.text,
        short.streams
    );
    let fails = &cells["fails"];
    ensure!(
        fails.errors.len() == 2 && fails.errors.iter().all(|error| error.contains("KeyError")),
        "{:?}",
        fails.errors
    );
    let broken = &cells["broken"].errors;
    ensure!(broken.len() == 2 && broken[1].contains("SyntaxError"), "{broken:?}");
    let awaits = &cells["awaits"];
    ensure!(awaits.streams.contains("does not run under a magic"), "{} {:?}", awaits.streams, awaits.errors);
    ensure!(fails.html.contains("<iframe") && fails.text.contains("<FlameGraph"), "{}", fails.streams);
    let (blocks, cut) = (&cells["blocks"], &cells["cut"]);
    ensure!(blocks.text.contains("'a block': 15.76 s, 1,560 samples"), "{}", blocks.text);
    ensure!(cut.text.contains("nodes are not drawn"), "{}", cut.text);
    ensure!(cells["done"].streams.contains("1560"), "{}", cells["done"].streams);
    Ok(())
}

/// What the cell shows is the daemon's own answer for that application and time.
fn judge_numbers(cells: &BTreeMap<String, Shown>, daemon: &Daemon, dir: &Path) -> Result<()> {
    let profiled = &cells["profiled"];
    ensure!(profiled.html.contains("<iframe"), "{} {}", profiled.text, profiled.streams);
    for word in ["400000", "The cell took", "CPU time: "] {
        ensure!(profiled.text.contains(word), "no {word:?}: {}", profiled.text);
    }
    let app = cells["session"].streams.lines().find_map(|line| line.strip_prefix("app "));
    let app = app.context("no application")?;
    let page = given(&dir.join("cell.html"))?;
    let answer = &page["answer"];
    let range = [&answer["range"]["from"], &answer["range"]["until"]].map(|time| time.as_str().unwrap_or(""));
    let question = format!(
        "/api/v1/flamegraph?app={app}&from={}&until={}&columns=1&unit=ns&max_nodes=5000",
        range[0], range[1]
    );
    let again = daemon.json(&question)?;
    for same in ["total", "cut_nodes", "quality"] {
        ensure!(answer[same] == again[same], "{same} is not what the daemon says of {question}");
    }
    for same in ["parent", "frame", "self", "self_samples"] {
        ensure!(answer["columns"][same] == again["columns"][same], "{same}: not what the daemon says");
    }
    let samples = again["quality"]["samples"].as_u64().context("no samples")?;
    ensure!(samples > 0 && cells["numbers"].streams.starts_with(&format!("{samples} ")), "{samples}");
    let folded = std::fs::read_to_string(dir.join("cell.folded"))?;
    let lines = folded.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    ensure!(lines.sum::<u64>() == samples, "the folded stacks are not all of {samples} samples");
    ensure!(folded.contains("onerror=parent.evil"), "the UDF is not in the profile");
    // The name is in the cell, and nowhere as HTML.
    ensure!(profiled.html.contains(EVIL), "the cell does not name the UDF");
    let attribute = profiled.html.split_once("srcdoc='").context("no document")?.1;
    let (document, _) = attribute.split_once('\'').context("the document does not end")?;
    ensure!(!document.contains('<') && !document.contains("&lt;/script&gt;&lt;img"), "a name is HTML");
    ensure!(document.contains("default-src &#39;none&#39;; script-src"), "the document may load things");
    Ok(())
}

/// The queries below the graph are those that began in the cell, as the daemon tells of them.
fn judge_queries(cells: &BTreeMap<String, Shown>, daemon: &Daemon, dir: &Path) -> Result<()> {
    let profiled = &cells["profiled"];
    ensure!(profiled.html.contains("Queries that began in the cell"), "no queries: {}", profiled.streams);
    let said = &cells["queries"].streams;
    let rows: Vec<Value> = serde_json::from_str(said.lines().next().unwrap_or_default())?;
    let of_graph = given(&dir.join("cell.html"))?;
    let range = [&of_graph["answer"]["range"]["from"], &of_graph["answer"]["range"]["until"]];
    let range = range.map(|time| time.as_str().unwrap_or_default());
    let app =
        rows.first().and_then(|row| row["app"].as_str()).with_context(|| format!("no query: {said}"))?;
    let again =
        daemon.json(&format!("/api/v1/sql?app={app}&from={}&until={}&limit=1000", range[0], range[1]))?;
    let known = again["queries"].as_array().context("no queries by HTTP")?;
    let seconds = |row: &Value| row["cpu_seconds"].as_f64().unwrap_or(-1.0);
    ensure!(rows.len() > 1 && rows.is_sorted_by(|a, b| seconds(a) >= seconds(b)), "{said}");
    for row in &rows {
        // The query of the cell before has the number 0.
        ensure!(row["execution"].as_u64() > Some(0), "{row} began before the cell");
        let same = known.iter().find(|known| known["execution"] == row["execution"]);
        let same = same.with_context(|| format!("{row} is not answered by HTTP"))?;
        // Spark may have told of more of its stages since.
        let more = seconds(same) - seconds(row);
        ensure!(more > -1e-9 && row["description"] == same["description"], "{row} {same}");
    }
    let mut named = rows.iter().flat_map(|row| row["operators"].as_array()).flatten();
    ensure!(named.any(|one| one["operator"] == "HashAggregate"), "no operators: {said}");
    Ok(())
}

/// The cell's output in a browser: searched, zoomed, pointed at.
fn judge_page(seen: &Seen, cell: &Shown, dir: &Path) -> Result<()> {
    let page = dir.join("output.html");
    std::fs::write(&page, format!("<!doctype html><title>notebook</title><body>{}</body>", cell.html))?;
    let browser = &seen.browser;
    browser.go(&format!("file://{}", page.display()))?;
    browser.frame(Some(0))?;
    browser.wait("document.documentElement.dataset.drawn")?;
    seen.drawn()?;
    seen.enter("#search", "onerror")?;
    browser.wait("/ in [1-9]\\d* box/.test(document.querySelector('#found').textContent)")?;
    ensure!(browser.js("return document.querySelector('#whole').hidden")? == true, "zoomed at once");
    // The frames that all tasks share are one box, which a click would open instead of zooming: they are opened before.
    seen.press("#task-frames")?;
    browser.wait("document.querySelector('#task-frames').getAttribute('aria-pressed') === 'true'")?;
    seen.drawn()?;
    let at = seen.place(".graph canvas", 0.3, 28.0)?;
    browser.drag(0, &[at, at])?;
    browser.wait("!document.querySelector('#whole').hidden")?;
    let beside = seen.place(".graph canvas", 0.5, 28.0)?;
    browser.drag(2, &[beside])?;
    seen.press("#whole")?;
    browser.wait("document.querySelector('#whole').hidden")?;
    seen.press("#methods")?;
    browser.wait("document.querySelectorAll('tbody tr.goes').length > 3")?;
    seen.press("tbody tr.goes a")?;
    browser.wait("document.querySelector('.focus').textContent.startsWith('Sandwich of')")?;
    seen.quiet()?;
    browser.frame(None)?;
    seen.quiet()
}

#[test]
fn a_notebook_draws_what_its_cells_did() -> Result<()> {
    const TEST: &str = "a_notebook_draws_what_its_cells_did";
    let Some(here) = Here::or_skip(TEST) else { return Ok(()) };
    let Some(kernel) = packages::notebook_installed(&here.venv) else {
        skip(TEST, "no Jupyter kernel of PyPI has been fetched: `./x setup` does");
        return Ok(());
    };
    let Some(pandas) = packages::pandas_installed(&here.venv) else {
        skip(TEST, "pandas has not been fetched: `./x setup` does");
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    let package = crate::spark_sql::install(&here, dir.path())?;
    let data = dir.path().join("data");
    let daemon = Daemon::start_guarded(&here.binary, &data, &["--window", "2s"])?;
    let out = dir.path().join("spark/notebook.ipynb");
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/store-1");
    let job =
        here.spark("notebook.py", dir.path()).master("local[2]").conf("spark.sql.shuffle.partitions", "2");
    let arguments = [package.as_path(), &data.join("emberscope.sock"), Path::new(daemon.url()), &store, &out];
    let job = arguments.into_iter().fold(job, |job, path| job.arg(path.to_string_lossy()));
    let mut job = job.packages(std::env::join_paths([kernel, pandas])?).start()?;
    job.wait_fact("ran", WARM_UP)?;
    job.wait(WARM_UP)?;
    let cells = shown(&out)?;
    let made = dir.path().join("spark");
    judge_words(&cells)?;
    judge_numbers(&cells, &daemon, &made)?;
    judge_queries(&cells, &daemon, &made)?;
    if let Some(seen) = Seen::or_skip(TEST)? {
        judge_page(&seen, &cells["profiled"], &made)?;
    }
    Ok(())
}

/// Against answers that are made up: which queries are a cell's, and when no more is to be waited for.
#[test]
fn a_cells_queries_are_those_that_began_in_it() -> Result<()> {
    let Some(here) = Here::or_skip("a_cells_queries_are_those_that_began_in_it") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let package = crate::spark_sql::install(&here, dir.path())?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/cell_queries.py");
    let run = Command::new(here.venv.join("bin/python")).arg(script).arg(&package).output()?;
    ensure!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Ok(())
}
