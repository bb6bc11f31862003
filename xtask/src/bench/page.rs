//! `bench page`: how long a graph of many nodes takes in headless Chromium.
//!
//! A small server answers with the page's files and one flame graph of so many nodes, made here, deep as Spark's.
//! Prints what passes from the question to the painted graph, from the answer's arrival to it, and to the next paint
//! from a click, from a letter typed into the search, from the pointer's move, and from turning all stacks around; n,
//! median, smallest and largest. The daemon's own part is not in it.
//!
//! With `--week` a real server answers from a week of a node's store ([`week`]).

use super::stats::Summary;
use crate::launch::{Browser, browser};
use crate::places;
use anyhow::{Context as _, Result, bail};
use clap::Parser;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

mod week;

#[derive(Parser)]
struct Options {
    /// The way from the page's first paint to the flame graph of yesterday's longest query's largest operator, on a week of data
    #[arg(long)]
    week: bool,
    /// The program that answers, where it is built already; with --week
    #[arg(long)]
    bin: Option<PathBuf>,
    /// Nodes of the graph: a table for each number
    #[arg(long, value_delimiter = ',', default_values_t = [50_000, 100_000])]
    nodes: Vec<u32>,
    /// How often
    #[arg(long, default_value_t = 15)]
    rounds: usize,
}

/// Runs it.
pub fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse_from(std::iter::once("page").chain(arguments.iter().map(String::as_str)));
    if let Some(missing) = browser::missing() {
        bail!("{missing}");
    }
    let browser = Browser::start()?;
    if options.week {
        return week::run(&browser, options.bin.as_deref(), options.rounds);
    }
    options.nodes.iter().try_for_each(|nodes| measure(&browser, *nodes, options.rounds))
}

/// Steps of one round, in their order: what is measured, how often, and what makes the page paint.
const STEPS: [(&str, usize, &str); 5] = [
    ("zoom: key to paint", 1, "key('Enter')"),
    ("zoom out: key to paint", 1, "key('Escape')"),
    ("hover: move to paint", 3, "hover(step)"),
    ("search: letter to paint", 3, "search('method' + step)"),
    ("callers first: press to paint", 2, "document.querySelector('#invert').click()"),
];
/// What the steps are made of. A step is over when the canvas is painted; a worker may have shaped it meanwhile.
const TOOLS: &str = "const g = document.querySelector('.graph'), c = g.querySelector('canvas'), s = document.querySelector('#search'); \
    const key = (key) => g.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })); \
    const hover = (n) => c.dispatchEvent(new PointerEvent('pointermove', { clientX: c.getBoundingClientRect().left + 200 + 300 * n, clientY: c.getBoundingClientRect().top + 30 + 19 * n, bubbles: true })); \
    const search = (text) => { s.value = text; s.dispatchEvent(new Event('input', { bubbles: true })); }; ";

fn measure(browser: &Browser, nodes: u32, rounds: usize) -> Result<()> {
    let answer = graph(nodes);
    println!("{nodes} nodes, {} KiB of JSON", answer.len() / 1024);
    let port = serve(places::workspace().join("profiler/ui"), answer)?;
    let (mut asked, mut arrived) = (Vec::new(), Vec::new());
    let mut steps: [Vec<f64>; STEPS.len()] = Default::default();
    for _ in 0..rounds {
        browser.go("about:blank")?;
        browser.go(&format!("http://127.0.0.1:{port}/#view=flame"))?;
        browser.wait("performance.getEntriesByName('painted').length")?;
        let mark = |name: &str| -> Result<f64> {
            let script = format!("return performance.getEntriesByName('{name}').at(-1).startTime");
            browser.js(&script)?.as_f64().context("no mark")
        };
        let painted = mark("painted")?;
        asked.push(painted - mark("ask")?);
        arrived.push(painted - mark("answer")?);
        for ((_, times, does), figures) in STEPS.iter().zip(&mut steps) {
            for step in 0..*times {
                let script = format!(
                    "{TOOLS} g.focus(); key('ArrowDown'); const step = {step}; \
                     return new Promise((done) => requestAnimationFrame(() => setTimeout(() => {{ const begun = performance.now(); {does}; \
                     const look = () => {{ const m = performance.getEntriesByName('painted').at(-1); if (m.startTime > begun) done(m.startTime - begun); else requestAnimationFrame(look); }}; look(); }}, 50)))"
                );
                figures.push(browser.js(&script)?.as_f64().context("no time of a step")?);
            }
        }
    }
    println!("{:<34} {:>4} {:>9} {:>9} {:>9}", "milliseconds", "n", "median", "min", "max");
    let names = STEPS.iter().map(|(name, ..)| *name);
    let first = [("question to first paint", &asked), ("answer parsed to first paint", &arrived)];
    for (what, figures) in first.into_iter().chain(names.zip(&steps)) {
        let s = Summary::of(figures).context("no figures")?;
        println!("{what:<34} {:>4} {:>9.1} {:>9.1} {:>9.1}", s.n, s.median, s.min, s.max);
    }
    Ok(())
}

/// A tree as `/flamegraph?columns=1` gives it: 4000 frames, up to 80 deep; the same each time.
fn graph(nodes: u32) -> String {
    let mut seed = 1_u32;
    let mut random = |n: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(seed) * u64::from(n)) >> 32) as u32
    };
    let kinds = ["java", "java-inlined", "native", "kernel"];
    let mut frames = vec![json!({ "name": "total", "kind": "label" })];
    frames.extend((0..4000).map(|i| {
        json!({
            "name": format!("org.apache.spark.sql.package{}.Class{i}.method{}", i % 40, i % 7),
            "kind": kinds[i % 4], "module": if i % 4 == 2 { "libjvm.so" } else { "" },
        })
    }));
    let (mut parent, mut frame, mut level, mut own) = (vec![0], vec![0], vec![0_u32], vec![0_u64]);
    for last in 0..nodes.saturating_sub(1) {
        let mut at = if random(3) == 0 { random(last + 1) } else { last };
        if level[at as usize] >= 80 {
            at = random((last + 1).min(200));
        }
        parent.push(at);
        frame.push(1 + random(4000));
        level.push(level[at as usize] + 1);
        own.push(if random(4) == 0 { 1 + u64::from(random(40)) } else { 0 });
    }
    let mut total = own.clone();
    for i in (1..total.len()).rev() {
        total[parent[i] as usize] += total[i];
    }
    let ns = |counts: &[u64]| counts.iter().map(|n| n * 10_101_010).collect::<Vec<_>>();
    let range = json!({ "from": "2026-11-22T10:00:00.000Z", "until": "2026-11-22T11:00:00.000Z" });
    let quality = json!({ "samples": total[0], "lost": 0, "truncated": 0, "frames": 1, "unnamed_frames": 0 });
    json!({
        "range": range, "windows": 360, "window_seconds": 10, "span": range, "quality": quality, "unit": "ns",
        "step_seconds": 60, "series": [], "stages": [], "node": "bench", "version": "0", "ready": true,
        "frames": frames,
        "columns": { "parent": parent, "frame": frame, "self": ns(&own), "total": ns(&total), "self_samples": own, "total_samples": total },
    })
    .to_string()
}

/// Serves the page from its directory, and the answer to all that it asks. It ends with the process.
fn serve(dir: PathBuf, answer: String) -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("listening")?;
    let port = listener.local_addr().context("listening")?.port();
    let shared = Arc::new((dir, answer));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || reply(stream, &shared.0, &shared.1));
        }
    });
    Ok(port)
}

fn reply(mut stream: TcpStream, dir: &std::path::Path, answer: &str) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines().map_while(Result::ok);
    let first = lines.next()?;
    lines.find(String::is_empty);
    let path = first.split(' ').nth(1)?.split('?').next()?.to_owned();
    let (kind, body) = if path.starts_with("/api/v1/flamegraph") {
        ("application/json", answer.as_bytes().to_vec())
    } else if path.starts_with("/api/") {
        let short = r#"{"range":{"from":"2026-11-22T10:00:00.000Z","until":"2026-11-22T11:00:00.000Z"},"windows":0,"window_seconds":10,"step_seconds":60,"series":[],"stages":[],"node":"bench","version":"0","ready":true}"#;
        ("application/json", short.into())
    } else {
        let name = if path == "/" { "index.html" } else { path.strip_prefix("/ui/")? };
        let kind = match name.rsplit('.').next()? {
            "js" => "text/javascript",
            "css" => "text/css",
            "svg" => "image/svg+xml",
            _ => "text/html",
        };
        (kind, std::fs::read(dir.join(name)).ok()?)
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}
