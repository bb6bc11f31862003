//! What is checked without running anything: formatting, clippy, rustdoc, licences and sources of dependencies.

use super::{Bench, Part};
use crate::arch::Arch;
use crate::setup::lint;
use crate::{bpf, check, places, step};
use anyhow::{Context as _, Result, anyhow, bail};
use std::process::Command;
use std::time::Duration;

/// What compilers do most of.
pub(super) const COMPILED: &str = "compiling the unit tests";

/// What clippy and the compiler said in a step; cargo says again what they said of what is compiled already.
pub(super) fn is_silent(step: &str) -> Result<()> {
    let log = step::log_file(step)?;
    let text = std::fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
    let warnings: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("warning")).take(60).collect();
    if !warnings.is_empty() {
        bail!("warnings, of which {} has all:\n{}\nmend what they say", log.display(), warnings.join("\n"));
    }
    Ok(())
}

/// Whether the BPF programs of an architecture compile, and without a warning.
pub(super) fn bpf_is_silent(arch: Arch) -> Result<()> {
    check::programs(arch)?;
    is_silent(&bpf::compiling(arch))
}

/// The check that nothing else of the tests makes: they do not build that workspace, and `./x fuzz` refuses a lock file that is out of
/// date.
pub(super) const FUZZ_LOCK: &str = "the fuzz targets' lock file";
/// What cargo says where the registry breaks off, or answers otherwise than it should. All else is a failure.
const AWAY: [&str; 2] = ["curl failed", "failed to get successful HTTP response"];
/// How often the registry is asked. What breaks off says nothing of the file.
const ASKED: u32 = 3;

/// Whether the fuzz targets' lock file is up to date. The answer is why that cannot be told.
///
/// # Errors
/// It is not, or cargo fails for another reason than the registry.
pub(super) fn fuzz_lock() -> Result<Option<String>> {
    let mend = "cargo metadata --manifest-path profiler/fuzz/Cargo.toml, and commit profiler/fuzz/Cargo.lock";
    let mut says = String::new();
    for asked in 0..ASKED {
        std::thread::sleep(Duration::from_secs(20) * asked);
        let mut fetch = places::cargo();
        fetch.current_dir(places::workspace());
        fetch.args(["fetch", "--locked", "--manifest-path", "profiler/fuzz/Cargo.toml"]);
        // Cargo's configuration: `net.retry`, `http.multiplexing`.
        fetch.envs([("CARGO_NET_RETRY", "10"), ("CARGO_HTTP_MULTIPLEXING", "false")]);
        match step::run(FUZZ_LOCK, &mut fetch, mend) {
            Ok(_) => return Ok(None),
            Err(error) if !AWAY.iter().any(|away| format!("{error:#}").contains(away)) => return Err(error),
            Err(_) => says = step::tail(&step::log_file(FUZZ_LOCK)?, 1),
        }
    }
    Ok(Some(format!("the registry did not answer, {ASKED} times: {}", says.trim())))
}

/// What it is called, what runs it, what mends it.
type Check = (&'static str, Command, &'static str);

impl Bench<'_> {
    /// All but clippy, which has its say when the unit tests are compiled.
    pub(super) fn checks(&self) -> Result<Vec<Check>> {
        let cargo = |arguments: &[&str]| {
            let mut command = places::cargo();
            command.current_dir(places::workspace()).args(arguments);
            command
        };
        let mut deny = lint::deny()?.ok_or_else(|| anyhow!("cargo-deny is not there: run `./x setup`"))?;
        deny.current_dir(places::workspace()).args(["--locked", "check", "licenses", "bans", "sources"]);
        Ok(vec![
            ("formatting", cargo(&["fmt", "--all", "--check"]), "cargo fmt --all"),
            ("licences, bans and sources of dependencies", deny, "deny.toml says what is allowed and why"),
            ("rustdoc", self.rustdoc()?, "mend what rustdoc says above"),
        ])
    }

    /// The unit tests and, where clippy is to look, all else that it looks at.
    pub(super) fn compile(&self) -> Result<()> {
        let mut command = if self.options.wants(Part::Checks) {
            self.unoptimised(&["--no-run", "--workspace", "--all-targets"])
        } else {
            self.unit(&["--no-run"])
        };
        step::run(COMPILED, &mut command, "the compiler's message is above").map(drop)
    }
}
