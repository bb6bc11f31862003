//! The controls of the graph and of the page, each pressed, and what it changes looked at.

use anyhow::Result;
use emberscope_tests::page::{DOWN, READY, Seen, UP};

pub fn of_the_graph(seen: &Seen) -> Result<()> {
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
    // The method with all that it is, between its callers and its callees.
    seen.browser.keys(&["g", DOWN, UP])?;
    let around = |text: &str| format!("document.getElementById('graph-tree').textContent.includes({text:?})");
    seen.browser.wait(&around("Job.work, java: 100.0 %, 1.20 s, self 0 s"))?;
    seen.browser.wait(&around("java.util.Arrays.sort, java: 100.0 %, 1.20 s, self 1.20 s"))?;
    seen.browser.keys(&[UP])?;
    seen.browser.wait(&around("Job.run, java: 100.0 %, 1.20 s"))?;
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

pub fn of_the_page(seen: &Seen) -> Result<()> {
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
