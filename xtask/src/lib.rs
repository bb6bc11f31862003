//! The one door to building, testing, showing and measuring Emberscope: `cargo xtask COMMAND`.
//!
//! A file for each command; [`setup`] has a file for each thing that it finds or installs. [`launch`]
//! starts real Spark jobs, Java programs and the daemon; the end-to-end tests use the same.
//! Long steps say what they do and how long it took; what fails names its command, the end of its
//! output and the mend.

// Errors here are sentences for whoever ran a command, with what mends them: no caller tells them apart.
#![allow(clippy::missing_errors_doc)]

pub mod arch;
pub mod bench;
pub mod bpf;
pub mod build;
pub mod check;
pub mod ci;
mod clock;
pub mod demo;
pub mod fresh;
pub mod fuzz;
pub mod kernels;
pub mod launch;
mod lock;
pub mod oracle;
pub mod package;
pub mod places;
pub mod release;
pub mod root;
pub mod said;
pub mod sbom;
pub mod setup;
pub mod step;
pub mod tally;
pub mod test;
mod turn;
#[cfg(test)]
mod walls;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Builds, shows, tests and measures Emberscope.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "./x", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find or install what building, the demo and the tests need
    Setup(setup::Options),
    /// Build the daemon, its BPF object inside: target/release/emberscope
    Build(build::Options),
    /// Compile both sides for an architecture, and run clippy; nothing is run
    Check(check::Options),
    /// Profile a real Spark job and leave its flame graphs in target/demo (needs root)
    Demo(demo::Options),
    /// Run every check and test (the privileged ones need root)
    Test(test::Options),
    /// Run what continuous integration runs
    Ci,
    /// Measure; without a name, list what can be measured
    Bench(bench::Options),
    /// Prove the commands in a bare Debian bookworm made by debootstrap (needs root)
    Fresh(fresh::Options),
    /// Run the fuzz targets in turn, and keep what they learn
    Fuzz(fuzz::Options),
    /// List what the daemon is made of: target/emberscope.cdx.json (CycloneDX)
    Sbom,
    /// Make what is released: an archive, a Debian package, debug info, SBOM, checksums
    Package(package::Options),
    /// Prove the daemon on Debian's kernels in qemu, and on this machine's own
    Kernels(kernels::Options),
    /// Say whether this commit can be released: versions, fixtures, packages, kernels, fuzz targets, a bare machine
    Release(release::Options),
}

/// Parses the command line and runs the command. A failed command is one report on stderr and exit
/// code 1; a wrong command line is exit code 2.
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Setup(options) => setup::run(&options).map(|_| ()),
        Command::Build(options) => build::of(&options).map(|_| ()),
        Command::Check(options) => check::run(&options),
        Command::Demo(options) => demo::run(&options),
        Command::Test(options) => test::run(&options),
        Command::Ci => ci::run(),
        Command::Bench(options) => bench::run(&options),
        Command::Fresh(options) => fresh::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Release(options) => release::run(&options),
        Command::Sbom => sbom::run().map(|_| ()),
        Command::Package(options) => package::run(&options),
        Command::Kernels(options) => kernels::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
