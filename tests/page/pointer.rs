//! The mouse on the graph and on the timeline.

use anyhow::Result;
use emberscope_tests::page::{READY, RIGHT, Seen};

pub fn all(seen: &Seen) -> Result<()> {
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
