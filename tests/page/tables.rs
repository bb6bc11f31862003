//! The tables: order, search, links, empty and wrong selections, and windows as narrow as a telephone's and half a screen's.

use anyhow::{Result, ensure};
use emberscope_tests::page::Seen;

pub fn all(seen: &Seen) -> Result<()> {
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
    spark_words(seen)?;
    seen.see("#view=flame&app=nobody")?;
    seen.text("There is no app `nobody`")?;
    seen.browser.console()?;
    seen.see("#view=flame&app=app-1&range=-5m&stage=77")?;
    seen.text("No samples here")
}

/// Of these applications nothing is told, so that all tasks are of no known query. Tasks and the tax.
fn spark_words(seen: &Seen) -> Result<()> {
    seen.see("#view=queries")?;
    seen.text("no query known")?;
    seen.press("tbody a")?;
    seen.hash_has("app=app-")?;
    seen.see("#view=queries&app=app-2")?;
    seen.text("no query known")?;
    seen.press("tbody a")?;
    seen.hash_has("stage=0")?;
    seen.hash_has("stage=1")?;
    seen.drawn()?;
    seen.see("#view=queries&app=app-2&execution=3")?;
    seen.text("execution")?;
    seen.browser.console()?;
    seen.see("#view=tasks&app=app-2")?;
    seen.text("Tasks")?;
    seen.see("#view=tax&app=app-2")?;
    // The known rows are of no process that says to be a JVM.
    seen.text("No JVM ran in this range")
}

/// At 400 and 800 pixels nothing makes the page wider than its window, and no name is broken within a word.
pub fn narrow(seen: &Seen) -> Result<()> {
    for width in [400, 800] {
        seen.browser.size(width, 800)?;
        fits(seen)?;
    }
    seen.browser.size(1440, 900)
}

fn fits(seen: &Seen) -> Result<()> {
    for hash in [
        "",
        "#view=stages&app=app-2",
        "#view=queries&app=app-2",
        "#view=tasks&app=app-2",
        "#view=tax",
        "#view=executors",
        "#view=flame&app=app-2",
        "#view=methods&app=app-2",
    ] {
        seen.see(hash)?;
        let widths = seen.browser.js("return [document.documentElement.scrollWidth, innerWidth]")?;
        ensure!(widths[0].as_u64() <= widths[1].as_u64(), "{hash}: {widths}");
    }
    seen.see("#view=compare&app=app-2&stage=0&right.stage=1")?;
    seen.drawn()?;
    let widths = seen.browser.js("return [document.documentElement.scrollWidth, innerWidth]")?;
    ensure!(widths[0].as_u64() <= widths[1].as_u64(), "comparison: {widths}");
    seen.see("#view=methods&app=app-2")?;
    let lines = seen.browser.js("return [...document.querySelectorAll('tbody th a')].find((a) => a.textContent === 'java.util.Arrays.sort').getClientRects().length")?;
    ensure!(lines == 1, "a method's name stands on {lines} lines");
    Ok(())
}
