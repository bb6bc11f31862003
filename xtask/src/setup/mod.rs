//! `setup`: finds or installs all that building, the demo and the tests need.
//!
//! Each part looks first and touches the network only when something is missing, so a second run is
//! quick and works offline. What it installs: Debian packages, and under the cache directory
//! (`places::cache`) the BPF linker, cargo-deny and a Python environment with Spark; for the tests also Go, Python 3.14, Java 8, 11,
//! 21 and 25, and the newest Spark.

pub mod async_profiler;
pub mod bpf_toolchain;
pub mod cargo_tool;
pub mod chroot;
pub mod cross;
pub mod go;
pub mod helm;
pub mod jdk;
pub mod lint;
pub mod new_python;
pub mod old_java;
pub mod packages;
pub mod packaging;
pub mod peers;
pub mod python;
pub mod runtime;
pub mod seccomp;

use anyhow::{Context as _, Result};
use std::path::PathBuf;

/// What `setup` is asked for.
#[derive(clap::Args)]
pub struct Options {
    /// Leave out what only `test` needs (rustfmt, clippy, cargo-deny, a browser, servers, other Javas, the newest Spark)
    #[arg(long)]
    pub no_lint: bool,
}

/// What running Spark needs.
#[derive(Clone, Debug)]
pub struct SparkKit {
    /// Python environment with pyspark in it.
    pub venv: PathBuf,
    /// A JDK that this Spark runs on.
    pub jdk: jdk::Jdk,
}

/// Sets all up, and says what was found.
pub fn run(options: &Options) -> Result<SparkKit> {
    beside(options, || ()).map(|(kit, ())| kit)
}

/// Sets all up. Does `work` as soon as the daemon can be built: the rest is mostly downloads.
pub fn beside<T>(options: &Options, work: impl FnOnce() -> T) -> Result<(SparkKit, T)> {
    let bpf = bpf_toolchain::ensure()?;
    println!("BPF toolchain: {bpf}");
    std::thread::scope(|scope| {
        let rest = scope.spawn(|| rest(options));
        let done = work();
        let kit = rest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((kit, done))
    })
}

/// All but the BPF toolchain.
fn rest(options: &Options) -> Result<SparkKit> {
    let kit = spark()?;
    if !options.no_lint {
        lint::ensure()?;
        println!("checks: rustfmt, clippy, cargo-deny");
        peers::ensure()?;
    }
    Ok(kit)
}

/// A JDK and a Python environment with Spark.
pub fn spark() -> Result<SparkKit> {
    let jdk = jdk::ensure()?;
    println!("JDK for Spark: {} in {}", jdk.major, jdk.home.display());
    let venv = python::ensure()?;
    println!("Spark: pyspark {} in {}", python::PYSPARK, venv.display());
    Ok(SparkKit { venv, jdk })
}

/// A Spark of this version and a JDK for it: of this major version, else the one that all Sparks get.
pub fn spark_version(version: &str, major: Option<u32>) -> Result<SparkKit> {
    let jdk = match major {
        None => jdk::ensure()?,
        Some(major) => jdk::all().into_iter().find(|jdk| jdk.major == major).with_context(|| {
            let found: Vec<_> = jdk::all().iter().map(|jdk| jdk.major.to_string()).collect();
            format!("no JDK {major} with javac here: set JAVA_HOME to one (found: {})", found.join(", "))
        })?,
    };
    Ok(SparkKit { venv: python::ensure_version(version)?, jdk })
}
