//! A browser at the page: what tests do there, and wait for.

use crate::skip;
use anyhow::{Context as _, Result, ensure};
use xtask::launch::{Browser, browser};

/// The key Enter, as WebDriver writes it.
pub const ENTER: &str = "\u{E007}";
/// The key Escape.
pub const ESCAPE: &str = "\u{E00C}";
/// The key Tab.
pub const TAB: &str = "\u{E004}";
/// The right arrow.
pub const RIGHT: &str = "\u{E014}";
/// The down arrow.
pub const DOWN: &str = "\u{E015}";
/// The up arrow.
pub const UP: &str = "\u{E013}";

/// A browser at an address of the page; `see` opens another and waits for its answer.
pub struct Seen {
    /// The browser.
    pub browser: Browser,
    /// Address of the page, without what comes after its path.
    pub base: String,
}

/// True in a page that shows the answer to what was asked last.
pub const READY: &str = "document.querySelector('.busy')?.hidden && !document.querySelector('main').hasAttribute('aria-busy') && document.querySelector('main').children.length";

impl Seen {
    /// With no address yet; None after saying that `test` is skipped.
    pub fn or_skip(test: &str) -> Result<Option<Self>> {
        if let Some(reason) = browser::missing() {
            skip(test, &reason);
            return Ok(None);
        }
        Ok(Some(Self { browser: Browser::start()?, base: String::new() }))
    }
    /// Opens the page with this hash, from an empty one, and waits for its answer.
    pub fn see(&self, hash: &str) -> Result<()> {
        self.browser.go("about:blank")?;
        self.browser.go(&format!("{}/{hash}", self.base))?;
        self.browser.wait(READY)
    }
    /// Clicks on an element.
    pub fn press(&self, what: &str) -> Result<()> {
        self.browser.js(&format!("document.querySelector({what:?}).click()")).map(drop)
    }
    /// Chooses a value of a list.
    pub fn choose(&self, what: &str, value: &str) -> Result<()> {
        let script = format!(
            "const e = document.querySelector({what:?}); e.value = {value:?}; e.dispatchEvent(new Event('change', {{ bubbles: true }}))"
        );
        self.browser.js(&script).map(drop)
    }
    /// Types a text into a field.
    pub fn enter(&self, what: &str, text: &str) -> Result<()> {
        let script = format!(
            "const e = document.querySelector({what:?}); e.focus(); e.value = {text:?}; e.dispatchEvent(new Event('input', {{ bubbles: true }}))"
        );
        self.browser.js(&script).map(drop)
    }
    /// Waits until the address has this part in its hash.
    pub fn hash_has(&self, part: &str) -> Result<()> {
        self.browser.wait(&format!("location.hash.includes({part:?})"))
    }
    /// Waits until the page shows this text.
    pub fn text(&self, part: &str) -> Result<()> {
        self.browser.wait(&format!("document.body.innerText.includes({part:?})"))
    }
    /// Middle of an element, for the mouse.
    pub fn place(&self, what: &str, x: f64, y: f64) -> Result<(i64, i64)> {
        let script = format!(
            "const r = document.querySelector({what:?}).getBoundingClientRect(); return [Math.round(r.left + r.width * {x}), Math.round(r.top + {y})]"
        );
        let at = self.browser.js(&script)?;
        Ok((at[0].as_i64().context("x")?, at[1].as_i64().context("y")?))
    }
    /// The graph has pixels of more than a few colours.
    pub fn drawn(&self) -> Result<()> {
        self.browser.wait("(() => { const c = document.querySelector('.graph canvas'); if (!c?.width) return false; const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const s = new Set(); for (let i = 0; i < d.length; i += 164) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size > 2; })()")
    }
    /// Asserts that the console has no error and that no name ran as a script.
    pub fn quiet(&self) -> Result<()> {
        let said = self.browser.console()?;
        let bad: Vec<_> = said
            .iter()
            .filter(|line| !line.contains("401") && !line.contains("willReadFrequently"))
            .collect();
        ensure!(bad.is_empty(), "{bad:?}");
        ensure!(self.browser.js("return window.evil ?? null")?.is_null(), "a name ran as a script");
        Ok(())
    }
}
