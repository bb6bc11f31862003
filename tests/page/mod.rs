//! The page, in headless Chromium: every control, on known rows with hostile names through the real API. Its parts are
//! tested by node (profiler/ui/test), and it on a real Spark run by `page_on_spark`.

mod comparing;
mod controls;
mod files;
mod keyboard;
mod known;
mod pointer;
mod tables;

use anyhow::{Context as _, Result, ensure};
use emberscope_serve::Access;
use emberscope_tests::page::Seen;
use emberscope_tests::{BEHIND_A_PROXY, skip};
use std::process::Command;

/// A name that would run a script or turn the line around, were it not text.
const EVIL: &str =
    "<img src=x onerror=\"window.evil=1\">\u{202e}\n<script>window.evil=1</script>javascript:evil()";

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

#[test]
fn every_control_on_known_rows_with_hostile_names() -> Result<()> {
    let Some(mut seen) = Seen::or_skip("every_control_on_known_rows_with_hostile_names")? else {
        return Ok(());
    };
    seen.base = format!("{}{BEHIND_A_PROXY}", known::serve(Access::LocalHostOnly)?);
    let files = tempfile::tempdir()?;
    seen.browser.downloads(files.path())?;
    tables::all(&seen).context("tables")?;
    controls::of_the_graph(&seen).context("graph")?;
    keyboard::in_the_graph(&seen).context("keys")?;
    keyboard::alone(&seen).context("keyboard")?;
    pointer::all(&seen).context("mouse")?;
    files::all(&seen, files.path()).context("downloads")?;
    comparing::all(&seen).context("comparisons")?;
    controls::of_the_page(&seen).context("frame")?;
    tables::narrow(&seen).context("narrow window")?;
    // Last: the page is then one that has no token.
    seen.quiet()?;
    seen.base = known::serve(Access::token("s3cret").map_err(anyhow::Error::msg)?)?;
    token(&seen).context("token")
}

fn token(seen: &Seen) -> Result<()> {
    seen.see("")?;
    seen.text("This daemon needs a token")?;
    for (token, says) in [("wrong", "is not one of this daemon"), ("s3cret", "etl")] {
        seen.browser.wait("document.querySelector('input[type=password]')")?;
        seen.browser.js(&format!("const f = document.querySelector('input[type=password]'); f.value = {token:?}; f.form.requestSubmit()"))?;
        seen.text(says)?;
    }
    ensure!(!seen.browser.js("return location.href")?.to_string().contains("s3cret"));
    seen.quiet()
}
