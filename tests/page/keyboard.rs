//! The page by keys alone.

use anyhow::{Context as _, Result, bail, ensure};
use emberscope_tests::page::{DOWN, ENTER, ESCAPE, READY, RIGHT, Seen, TAB};

pub fn in_the_graph(seen: &Seen) -> Result<()> {
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

/// From the first table to a zoomed graph, its search, its controls and the timeline, with no mouse: whatever has the
/// focus has a name and is seen to have it.
pub fn alone(seen: &Seen) -> Result<()> {
    seen.see("")?;
    tab_to(seen, "tbody a")?;
    seen.browser.keys(&[ENTER])?;
    seen.hash_has("view=stages")?;
    seen.browser.wait(READY)?;
    // What was pressed is gone, and the way goes on from the view.
    seen.browser.wait("document.querySelector('main').contains(document.activeElement)")?;
    tab_to(seen, "tbody a")?;
    seen.browser.keys(&[ENTER])?;
    seen.hash_has("view=flame")?;
    seen.drawn()?;
    tab_to(seen, "#search")?;
    seen.browser.keys(&["J", "o", "b", ".", "w", ENTER])?;
    seen.hash_has("q=Job.w")?;
    tab_to(seen, "#order")?;
    seen.browser.keys(&[DOWN])?;
    seen.hash_has("order=flame")?;
    tab_to(seen, "#hide-kernel")?;
    seen.browser.keys(&[" "])?;
    seen.hash_has("hide=kernel")?;
    tab_to(seen, ".graph")?;
    // The search's next match, zoomed to; then out again.
    seen.browser.keys(&["n"])?;
    seen.browser.wait(
        "document.querySelector('[role=treeitem][aria-selected=true]')?.textContent.startsWith('Job.work,')",
    )?;
    seen.browser.keys(&[ENTER])?;
    seen.hash_has("zoom=")?;
    seen.browser.keys(&["+"])?;
    seen.browser.wait("!document.querySelector('#whole').hidden")?;
    seen.browser.keys(&[ESCAPE])?;
    seen.browser.wait("!location.hash.includes('zoom=') && document.querySelector('#whole').hidden")?;
    seen.browser.keys(&["t", RIGHT])?;
    seen.hash_has("from=")?;
    seen.browser
        .wait("document.querySelector('.timeline').getAttribute('aria-valuetext').includes(' to ')")?;
    seen.browser.keys(&["5"])?;
    seen.hash_has("view=methods")?;
    seen.browser.wait(READY)?;
    tab_to(seen, ".filter")?;
    seen.browser.keys(&["A", "r", "r"])?;
    seen.browser.wait("location.hash.includes('tq=Arr') && document.activeElement.className === 'filter'")?;
    tab_to(seen, "thead button")?;
    seen.browser.keys(&[ENTER])?;
    seen.hash_has("ts=")?;
    // What is pressed is made anew, and keeps the focus.
    seen.browser.wait("document.activeElement.closest('thead')")
}

/// Presses Tab until an element has the focus that fits. Parts of a time field show it by the browser's own means.
fn tab_to(seen: &Seen, wanted: &str) -> Result<()> {
    let look = format!(
        "const e = document.activeElement; if (e === document.body) return {{ there: false, named: true, shown: true }}; \
         const s = getComputedStyle(e); \
         const name = e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent || e.title; \
         return {{ there: e.matches({wanted:?}), named: Boolean(name.trim()), \
                   shown: s.outlineStyle !== 'none' || e.type === 'datetime-local', is: e.outerHTML.slice(0, 200) }}"
    );
    for _ in 0..80 {
        seen.browser.keys(&[TAB])?;
        let at = seen.browser.js(&look)?;
        ensure!(at["named"] == true && at["shown"] == true, "no name, or the focus is not seen: {at}");
        if at["there"] == true {
            return Ok(());
        }
    }
    bail!("Tab does not reach {wanted}")
}
