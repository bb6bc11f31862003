//! The program as it is shipped: without symbols and debug info, which stand in a file beside it. That file is found by the
//! build id in both, or by its name in the program (.gnu_debuglink).

use super::tree;
use crate::arch::Arch;
use crate::setup::packaging;
use crate::step;
use anyhow::{Context as _, Result, bail};
use std::fmt;
use std::path::Path;
use std::process::Command;

/// Most bytes that the stripped program is to have.
pub const AIM: u64 = 20_000_000;

const MEND: &str = "binutils must be installed, and the program an ELF file that is not stripped";

/// Writes the stripped program and its debug info.
pub fn split(arch: Arch, binary: &Path, stripped: &Path, debug: &Path) -> Result<()> {
    let objcopy = packaging::binutils(arch, "objcopy");
    let mut keep = Command::new(&objcopy);
    // zlib: gdb and the unwinders of Rust's backtraces all read it.
    keep.args(["--only-keep-debug", "--compress-debug-sections=zlib"]).arg(binary).arg(debug);
    step::run("taking the debug info out of the program", &mut keep, MEND)?;
    tree::mode(debug, 0o644)?;
    let mut strip = Command::new(&objcopy);
    strip.arg("--strip-all").arg(format!("--add-gnu-debuglink={}", debug.display()));
    step::run("stripping the program", strip.arg(binary).arg(stripped), MEND)?;
    Ok(())
}

/// A version of glibc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The newest version of glibc that a symbol of the program asks for: it runs with no older one. None of a static program.
pub fn glibc(arch: Arch, program: &Path) -> Result<Option<Version>> {
    let objdump = packaging::binutils(arch, "objdump");
    let output = Command::new(&objdump).arg("-T").arg(program).output();
    let output = output.with_context(|| format!("starting {objdump}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("not a dynamic object") {
        return Ok(None);
    }
    if !output.status.success() {
        bail!("{objdump} failed: {}", said);
    }
    let symbols = String::from_utf8_lossy(&output.stdout);
    Ok(newest(&symbols))
}

fn newest(symbols: &str) -> Option<Version> {
    let version = |text: &str| {
        let end = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
        let mut numbers = text[..end].split('.').map(|number| number.parse().ok());
        Some(Version(numbers.next()??, numbers.next()??))
    };
    symbols.split("GLIBC_").skip(1).filter_map(version).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        let symbols = "DF *UND* 0 (GLIBC_2.4) a\nDF *UND* 0 (GLIBC_2.2.5) b\nDF *UND* 0  GLIBC_2.34  c\n\
                       DF *UND* 0 (GLIBC_2.9) d\nw D *UND* 0 (GLIBC_PRIVATE) e\n";
        assert_eq!(newest(symbols), Some(Version(2, 34)));
        assert_eq!(newest(symbols).unwrap().to_string(), "2.34");
        assert_eq!(newest("DF *UND* 0 (GLIBC_PRIVATE) e"), None);
    }
}
