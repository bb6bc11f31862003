//! `bench page --week`: from the page's first paint to the flame graph of yesterday's longest query's largest operator.
//!
//! In: a week of a node's store (`profiler/examples/store_bench/week.rs`), and a server on it. Out: clicks, and how
//! long each was waited for until what it leads to is there: n, median, smallest, largest; the sum against its bar. The page is
//! loaded anew for each round, the server is not started anew: the first round finds nothing in its memory.

use crate::bench::row::{self, Row};
use crate::bench::stats::Summary;
use crate::bench::store;
use crate::launch::{Browser, Daemon};
use crate::{build, places, step};
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::Command;

/// Most waiting in all, milliseconds.
const WAITED: f64 = 1000.0;
/// What is clicked, and what is there then.
const CLICKS: [(&str, &str, &str); 3] = [
    ("the last day", ".nothing button.primary", "document.querySelector('[data-longest] tbody a')"),
    ("its longest query", "[data-longest] tbody a", "document.querySelector('.plan .box a')"),
    ("its largest operator", "", "performance.getEntriesByName('painted').length"),
];
/// The box of a plan with the longest bar.
const LARGEST: &str = "[...document.querySelectorAll('.plan .box a')].map((a) => [parseFloat(a.parentNode.style.getPropertyValue('--part')), a]).sort((a, b) => b[0] - a[0])[0][1]";

/// Runs it.
pub fn run(browser: &Browser, binary: Option<&Path>, rounds: usize) -> Result<()> {
    let binary = binary.map_or_else(build::run, |binary| Ok(binary.to_owned()))?;
    let dir = places::target().join("bench/week");
    // It ends now: one of the day before yesterday has no last day.
    let _ = std::fs::remove_dir_all(&dir);
    written(&dir)?;
    let server = Daemon::serve_data_dir(&binary, &dir)?;
    let mut waited: [Vec<f64>; CLICKS.len()] = Default::default();
    let mut whole = Vec::new();
    for _ in 0..rounds {
        browser.go("about:blank")?;
        browser.go(server.url())?;
        browser.wait(&format!("document.querySelector('{}')", CLICKS[0].1))?;
        let mut sum = 0.0;
        for ((_, what, there), times) in CLICKS.iter().zip(&mut waited) {
            let found = if what.is_empty() {
                LARGEST.to_owned()
            } else {
                format!("document.querySelector('{what}')")
            };
            let script = format!(
                "performance.clearMarks('painted'); const begun = performance.now(); {found}.click(); \
                 return new Promise((done) => {{ const look = () => {{ if ({there}) requestAnimationFrame(() => done(performance.now() - begun)); else requestAnimationFrame(look); }}; look(); }})"
            );
            let took = browser.js(&script)?.as_f64().context("no time of a click")?;
            times.push(took);
            sum += took;
        }
        whole.push(sum);
    }
    server.stop()?;
    let mut rows = Vec::new();
    for ((name, ..), times) in CLICKS.iter().zip(&waited) {
        rows.push(told(name, times)?);
    }
    rows.push(told("all three", &whole)?);
    let worst = whole.iter().copied().fold(0.0, f64::max);
    let holds = worst <= WAITED;
    rows.push(Row::is(
        "page: most waiting in all, of one round",
        format!("{worst:.0} ms"),
        &format!("<= {WAITED} ms"),
        holds,
        whole.len(),
    ));
    row::print(&rows);
    if rows.iter().any(Row::fails) {
        bail!("not within its bar");
    }
    Ok(())
}

fn told(name: &str, times: &[f64]) -> Result<Row> {
    let s = Summary::of(times).context("no figures")?;
    let figure = format!("{:.0} ms (min {:.0}, max {:.0})", s.median, s.min, s.max);
    Ok(Row::told(format!("page: waited for {name}"), figure, s.n))
}

fn written(dir: &Path) -> Result<()> {
    let mut writer = Command::new(store::build()?);
    writer.args(["--only", "week", "--dir"]).arg(dir);
    step::run("writing the week", &mut writer, "its message is above")?;
    Ok(())
}
