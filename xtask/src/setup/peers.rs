//! What tests talk to: Chromium with its WebDriver and node for the page, elfutils' debuginfod for symbols. Needed by
//! `test` only.

use crate::{places, root};
use anyhow::Result;

/// Programs and Debian's packages of them.
const PROGRAMS: [(&str, &str); 4] = [
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ("node", "nodejs"),
    ("debuginfod", "debuginfod"),
];

/// Finds or installs them. Without apt their tests skip, and say what they lack.
pub fn ensure() -> Result<()> {
    let gone: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| places::on_path(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if !gone.is_empty() && places::on_path("apt-get").is_some() {
        root::apt_install(&gone, "a browser and a debuginfod server, to test with")?;
    }
    Ok(())
}
