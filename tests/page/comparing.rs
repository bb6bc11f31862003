//! Comparisons of two selections.

use anyhow::Result;
use emberscope_tests::page::{READY, Seen};

pub fn all(seen: &Seen) -> Result<()> {
    seen.see("#view=compare&app=app-1&stage=0")?;
    seen.text("What should be compared?")?;
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
