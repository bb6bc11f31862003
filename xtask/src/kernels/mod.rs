//! `kernels`: proves the daemon on the kernels that clusters run.
//!
//! Boots Debian's cloud kernels in qemu, each with the same system and the same script (`check.sh`), and runs that
//! script on this machine's own kernel too: loads, attaches, samples a native and a Java program of known stacks. What
//! comes back is judged here. One kernel at a time: each guest takes both of a small machine's CPUs. What cannot be had
//! (no qemu, no network) is a skip that says why; what is wrong is an error.

mod cpio;
mod guest;
mod host;
mod initramfs;
mod judge;
mod outcome;
mod packages;
mod programs;
mod release;
mod system;

pub use system::libraries_of;
mod table;

use crate::setup::jdk;
use crate::{build, places};
use anyhow::{Context as _, Result, bail};
use release::Release;
use std::path::{Path, PathBuf};
use std::time::Instant;
use table::Row;

/// The page that `--write-docs` makes.
const PAGE: &str = "docs/reference/kernels.md";
/// This machine's own kernel.
const HOST: &str = "host";
/// What `--quick` boots: the oldest that is supported, which lacks the most.
const OLDEST: &str = "5.10";

/// What to run.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Kernels: series (5.10, 6.1), releases, or `host` for this machine's own (default: 5.10, 6.1, 6.12, the newest
    /// that Debian carries, and the machine's own)
    kernels: Vec<String>,
    /// List the kernels there are, and end
    #[arg(long)]
    list: bool,
    /// Only the oldest, unless one is named; and only load, attach and sample the native program
    #[arg(long)]
    quick: bool,
    /// Read Debian's lists anew, for newer releases
    #[arg(long)]
    update: bool,
    /// Write docs/reference/kernels.md, when all the usual kernels have run
    #[arg(long, conflicts_with_all = ["quick", "kernels"])]
    write_docs: bool,
    /// Take target/release/emberscope as it is
    #[arg(long)]
    no_build: bool,
    /// Boot nothing: judge what the last run left
    #[arg(long, conflicts_with = "quick")]
    again: bool,
    /// Let qemu use /dev/kvm
    #[arg(long)]
    kvm: bool,
}

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Full,
    Quick,
}

impl Mode {
    /// As `check.sh` knows it.
    const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
        }
    }
}

/// Runs them.
pub fn run(options: &Options) -> Result<()> {
    let mode = if options.quick { Mode::Quick } else { Mode::Full };
    let listed = packages::list(options.update);
    if options.list {
        for release in listed? {
            println!("{:<6} {}", release.series, release.release);
        }
        println!("{HOST:<6} {}", rustix::system::uname().release().to_string_lossy());
        return Ok(());
    }
    let asked = match (options.kernels.is_empty(), mode) {
        (true, Mode::Quick) => &[OLDEST.to_owned()][..],
        _ => &options.kernels[..],
    };
    let mut rows = Vec::new();
    let releases = match listed {
        Ok(there) => chosen(&there, asked)?,
        Err(error) => {
            rows.push(skipped("Debian's kernels", &error));
            Vec::new()
        }
    };
    let with_host = asked.is_empty() || asked.iter().any(|name| name == HOST);
    if options.again {
        let names = releases.iter().map(|release| release.series.as_str()).chain(with_host.then_some(HOST));
        rows.extend(names.map(left));
    } else if !releases.is_empty() || with_host {
        rows.extend(all(&releases, with_host, mode, options)?);
    }
    print!("\n{}", table::terminal(&rows));
    if options.write_docs && rows.iter().all(|row| row.result.is_ok()) {
        let page = places::workspace().join(PAGE);
        std::fs::write(&page, table::page(&rows)).with_context(|| format!("writing {}", page.display()))?;
        println!("wrote {PAGE}");
    }
    let failed = |row: &&Row| row.result.as_ref().is_ok_and(|verdict| !verdict.failures.is_empty());
    let failed: Vec<&str> = rows.iter().filter(failed).map(|row| row.name.as_str()).collect();
    if !failed.is_empty() {
        bail!("not all is right on {}; what they left is in {}", failed.join(", "), dir().display());
    }
    Ok(())
}

/// The oldest kernel, with the daemon that is built: nothing when all is right there, or why it could not be tried.
pub fn oldest() -> Result<Option<String>> {
    let options = Options { kernels: vec![OLDEST.to_owned()], no_build: true, ..Options::default() };
    let releases = match packages::list(false) {
        Ok(there) => chosen(&there, &options.kernels)?,
        Err(error) => return Ok(Some(format!("{error:#}"))),
    };
    for row in all(&releases, false, Mode::Full, &options)? {
        match row.result {
            Err(why) => return Ok(Some(why)),
            Ok(verdict) if !verdict.failures.is_empty() => bail!("{}", verdict.failures.join("; ")),
            Ok(_) => {}
        }
    }
    Ok(None)
}

/// The releases that are asked for, this machine's own apart.
fn chosen(there: &[Release], asked: &[String]) -> Result<Vec<Release>> {
    let names: Vec<String> = asked.iter().filter(|name| *name != HOST).cloned().collect();
    if names.is_empty() && !asked.is_empty() {
        return Ok(Vec::new());
    }
    release::chosen(there, &names).map_err(|unknown| {
        let known: Vec<&str> = there.iter().map(|release| release.series.as_str()).collect();
        anyhow::anyhow!(
            "there is no kernel {unknown:?}: Debian carries {}, and {HOST} is this machine's own \
             (`--update` reads Debian's lists anew)",
            known.join(", ")
        )
    })
}

fn all(releases: &[Release], with_host: bool, mode: Mode, options: &Options) -> Result<Vec<Row>> {
    // Nothing runs without it: no fault of ours.
    let busybox = match system::busybox() {
        Ok(busybox) => busybox,
        Err(error) => return Ok(vec![skipped("all", &error)]),
    };
    let binary = match options.no_build {
        true => places::target().join("release").join("emberscope"),
        false => build::run()?,
    };
    let jdk = if mode == Mode::Full { Some(jdk::ensure()?.home) } else { None };
    std::fs::create_dir_all(dir()).with_context(|| format!("creating {}", dir().display()))?;
    let system = system::make(&dir(), &binary, jdk.as_deref(), &busybox)?;
    let mut rows = Vec::new();
    for release in releases {
        // What cannot be had is no fault of the kernel's.
        let had = guest::ensure().and_then(|qemu| Ok((qemu, packages::ensure(release)?)));
        let (qemu, kernel) = match had {
            Ok(had) => had,
            Err(error) => {
                rows.push(skipped(&release.series, &error));
                continue;
            }
        };
        println!("== booting Linux {} ...", release.release);
        let begun = Instant::now();
        let at = dir().join(&release.series);
        let outcome = guest::run(&qemu, &kernel, &system, &busybox, &at, (mode, options.kvm));
        rows.push(judged(&release.series, outcome, mode, begun));
    }
    if with_host {
        println!("== checking this machine's own kernel ...");
        let begun = Instant::now();
        let outcome = host::run(&system, jdk.as_deref().map(Path::new), &dir().join(HOST), mode);
        rows.push(judged(HOST, outcome, mode, begun));
    }
    Ok(rows)
}

/// What an earlier run left of a kernel.
fn left(name: &str) -> Row {
    let at = dir().join(name);
    if at.is_dir() {
        judged(name, Ok(outcome::Outcome::read(&at)), Mode::Full, Instant::now())
    } else {
        skipped(name, &anyhow::anyhow!("it has not run yet"))
    }
}

fn judged(name: &str, outcome: Result<outcome::Outcome>, mode: Mode, begun: Instant) -> Row {
    let verdict = match outcome {
        Ok(outcome) => judge::judge(&outcome, mode == Mode::Quick),
        Err(error) => judge::Verdict { failures: vec![format!("{error:#}")], ..judge::Verdict::default() },
    };
    let state = if verdict.failures.is_empty() { "all right" } else { "NOT right" };
    println!("   {name}: {state}, {:.0} s", begun.elapsed().as_secs_f64());
    Row { name: name.to_owned(), result: Ok(verdict), took: begun.elapsed() }
}

fn skipped(name: &str, error: &anyhow::Error) -> Row {
    Row { name: name.to_owned(), result: Err(format!("{error:#}")), took: Default::default() }
}

/// Where guests are made and leave what they found.
fn dir() -> PathBuf {
    places::target().join("xtask").join("kernels")
}
