//! `kernels`: proves the daemon on the kernels that clusters run.
//!
//! Boots Debian's cloud kernels in qemu, each with the same system and the same script (`check.sh`), and runs that
//! script on this machine's own kernel too: loads, attaches, samples a native and a Java program of known stacks. What
//! comes back is judged here. One kernel at a time: each guest takes both of a small machine's CPUs. What cannot be had
//! (no qemu, no network) is a skip that says why; what is wrong is an error.

mod cpio;
mod foreign;
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

use crate::arch::Arch;
use crate::setup::jdk;
use crate::setup::runtime::Runtime;
use crate::{build, places};
use anyhow::{Context as _, Result, bail};
use release::Release;
use std::path::{Path, PathBuf};
use std::time::Instant;
use table::Row;

/// This machine's own kernel.
const HOST: &str = "host";
/// The series that are booted when none is named: each Debian's of now, the oldest that is supported first, which lacks the
/// most.
const fn usual(arch: Arch) -> &'static [&'static str] {
    match arch {
        Arch::X86_64 => &["5.10", "6.1", "6.12"],
        Arch::Arm64 => &["6.1", "6.12"],
    }
}

/// What to run.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Kernels: series (5.10, 6.1), releases, or `host` for this machine's own (default: 5.10, 6.1, 6.12, the newest
    /// that Debian carries, and the machine's own)
    kernels: Vec<String>,
    /// For another architecture than this machine's, by emulation
    #[arg(long, value_enum)]
    arch: Option<Arch>,
    /// List the kernels there are, and end
    #[arg(long)]
    list: bool,
    /// Only the oldest, unless one is named; and only load, attach and sample the native program
    #[arg(long)]
    quick: bool,
    /// Only JVMs of many kinds: compiled, interpreted, mixed, inlined, and native code between Java's
    #[arg(long, conflicts_with = "quick")]
    java: bool,
    /// Only an application of Spark, with a stage in the JVM and one in Python: their stacks, labels and CPU time
    #[arg(long, conflicts_with_all = ["quick", "java"], requires = "arch")]
    spark: bool,
    /// The Java of the guest, of another architecture: 17 (default), 21 or 25
    #[arg(long, requires = "arch", conflicts_with_all = ["quick", "spark"])]
    jdk: Option<u32>,
    /// Read Debian's lists anew, for newer releases
    #[arg(long)]
    update: bool,
    /// Write docs/reference/kernels.md (kernels-arm64.md), when all the usual kernels have run
    #[arg(long, conflicts_with_all = ["quick", "java", "spark", "jdk", "kernels"])]
    write_docs: bool,
    /// Take the daemon as it was built last
    #[arg(long)]
    no_build: bool,
    /// Boot nothing: judge what the last run left
    #[arg(long, conflicts_with = "quick")]
    again: bool,
    /// Let qemu use /dev/kvm
    #[arg(long, conflicts_with = "arch")]
    kvm: bool,
}

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Full,
    /// JVMs of many kinds beside the native program.
    Java,
    /// An application of Spark beside the native program.
    Spark,
    Quick,
}

impl Mode {
    /// As `check.sh` knows it.
    const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Java => "java",
            Self::Spark => "spark",
            Self::Quick => "quick",
        }
    }
}

/// What runs, and on what.
struct Plan<'a> {
    arch: Arch,
    mode: Mode,
    options: &'a Options,
}

/// Runs them.
pub fn run(options: &Options) -> Result<()> {
    let own = Arch::own().context("the daemon runs on x86-64 and arm64 only")?;
    let arch = options.arch.unwrap_or(own);
    let mode = match (options.quick, options.java, options.spark) {
        (true, ..) => Mode::Quick,
        (_, true, _) => Mode::Java,
        (.., true) => Mode::Spark,
        _ => Mode::Full,
    };
    let plan = Plan { arch, mode, options };
    let listed = packages::list(arch, options.update);
    if options.list {
        for release in listed? {
            println!("{:<6} {}", release.series, release.release);
        }
        if arch == own {
            println!("{HOST:<6} {}", rustix::system::uname().release().to_string_lossy());
        }
        return Ok(());
    }
    let oldest = usual(arch).first().map(|series| (*series).to_owned());
    let asked = match (options.kernels.is_empty(), mode) {
        (true, Mode::Quick) => oldest.as_slice(),
        _ => &options.kernels[..],
    };
    let mut rows = Vec::new();
    let releases = match listed {
        Ok(there) => plan.chosen(&there, asked)?,
        Err(error) => {
            rows.push(skipped("Debian's kernels", &error));
            Vec::new()
        }
    };
    let with_host = arch == own && (asked.is_empty() || asked.iter().any(|name| name == HOST));
    if options.again {
        let names = releases.iter().map(|release| release.series.as_str()).chain(with_host.then_some(HOST));
        rows.extend(names.map(|name| plan.left(name)));
    } else if !releases.is_empty() || with_host {
        rows.extend(plan.all(&releases, with_host)?);
    }
    print!("\n{}", table::terminal(&rows));
    if options.write_docs && rows.iter().all(|row| row.result.is_ok()) {
        let page = table::page_of(arch);
        let path = places::workspace().join(page);
        std::fs::write(&path, table::page(&rows, arch))
            .with_context(|| format!("writing {}", path.display()))?;
        println!("wrote {page}");
    }
    let failed = |row: &&Row| row.result.as_ref().is_ok_and(|verdict| !verdict.failures.is_empty());
    let failed: Vec<&str> = rows.iter().filter(failed).map(|row| row.name.as_str()).collect();
    if !failed.is_empty() {
        bail!("not all is right on {}; what they left is in {}", failed.join(", "), plan.dir().display());
    }
    Ok(())
}

/// The oldest kernel, with the daemon that is built: nothing when all is right there, or why it could not be tried.
pub fn oldest() -> Result<Option<String>> {
    let arch = Arch::own().context("the daemon runs on x86-64 and arm64 only")?;
    let series = usual(arch).first().map(|series| (*series).to_owned());
    let options = Options { kernels: series.into_iter().collect(), no_build: true, ..Options::default() };
    let plan = Plan { arch, mode: Mode::Full, options: &options };
    let releases = match packages::list(arch, false) {
        Ok(there) => plan.chosen(&there, &options.kernels)?,
        Err(error) => return Ok(Some(format!("{error:#}"))),
    };
    for row in plan.all(&releases, false)? {
        match row.result {
            Err(why) => return Ok(Some(why)),
            Ok(verdict) if !verdict.failures.is_empty() => bail!("{}", verdict.failures.join("; ")),
            Ok(_) => {}
        }
    }
    Ok(None)
}

impl Plan<'_> {
    /// The releases that are asked for, this machine's own apart.
    fn chosen(&self, there: &[Release], asked: &[String]) -> Result<Vec<Release>> {
        let names: Vec<String> = asked.iter().filter(|name| *name != HOST).cloned().collect();
        if names.is_empty() && !asked.is_empty() {
            return Ok(Vec::new());
        }
        release::chosen(there, &names, usual(self.arch)).map_err(|unknown| {
            let known: Vec<&str> = there.iter().map(|release| release.series.as_str()).collect();
            anyhow::anyhow!(
                "there is no kernel {unknown:?}: Debian carries {}, and {HOST} is this machine's own \
                 (`--update` reads Debian's lists anew)",
                known.join(", ")
            )
        })
    }

    fn all(&self, releases: &[Release], with_host: bool) -> Result<Vec<Row>> {
        // Nothing runs without it: no fault of ours.
        if let Err(error) = system::busybox() {
            return Ok(vec![skipped("all", &error)]);
        }
        let binary = match self.options.no_build {
            true => build::binary(self.arch),
            false => build::run_for(self.arch)?,
        };
        let jdk = if self.mode == Mode::Quick { None } else { Some(jdk::ensure()?.home) };
        let dir = self.dir();
        std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        let java = self.options.jdk.filter(|major| *major != foreign::JAVA);
        let content = system::Content {
            jdk: jdk.as_deref(),
            java: java.map(|major| Runtime::of_pypi(major, self.arch)).transpose()?,
            with_spark: self.mode == Mode::Spark,
        };
        let system = system::make(&dir, self.arch, &binary, &content)?;
        let mut rows = Vec::new();
        for release in releases {
            // What cannot be had is no fault of the kernel's.
            let had =
                guest::ensure(self.arch).and_then(|qemu| Ok((qemu, packages::ensure(self.arch, release)?)));
            let (qemu, kernel) = match had {
                Ok(had) => had,
                Err(error) => {
                    rows.push(skipped(&release.series, &error));
                    continue;
                }
            };
            println!("== booting Linux {} ...", release.release);
            let begun = Instant::now();
            let at = dir.join(&release.series);
            let outcome = guest::run(&qemu, &kernel, &system, &at, (self.mode, self.options.kvm));
            rows.push(self.judged(&release.series, outcome, begun));
        }
        if with_host {
            println!("== checking this machine's own kernel ...");
            let begun = Instant::now();
            let outcome = host::run(&system, jdk.as_deref().map(Path::new), &dir.join(HOST), self.mode);
            rows.push(self.judged(HOST, outcome, begun));
        }
        Ok(rows)
    }

    /// What an earlier run left of a kernel.
    fn left(&self, name: &str) -> Row {
        let at = self.dir().join(name);
        if at.is_dir() {
            self.judged(name, Ok(outcome::Outcome::read(&at)), Instant::now())
        } else {
            skipped(name, &anyhow::anyhow!("it has not run yet"))
        }
    }

    fn judged(&self, name: &str, outcome: Result<outcome::Outcome>, begun: Instant) -> Row {
        let verdict = match outcome {
            Ok(outcome) => judge::judge(&outcome, self.mode),
            Err(error) => {
                judge::Verdict { failures: vec![format!("{error:#}")], ..judge::Verdict::default() }
            }
        };
        let state = if verdict.failures.is_empty() { "all right" } else { "NOT right" };
        println!("   {name}: {state}, {:.0} s", begun.elapsed().as_secs_f64());
        Row { name: name.to_owned(), result: Ok(verdict), took: begun.elapsed() }
    }

    /// Where guests are made and leave what they found.
    fn dir(&self) -> PathBuf {
        places::target().join("xtask").join(self.arch.own_or_named("kernels"))
    }
}

fn skipped(name: &str, error: &anyhow::Error) -> Row {
    Row { name: name.to_owned(), result: Err(format!("{error:#}")), took: Default::default() }
}
