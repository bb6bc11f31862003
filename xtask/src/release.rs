//! `release`: whether this commit can be released, step by step.
//!
//! In: the work tree, whose version is that of Cargo.toml. Out: a table, a row a step; exit code 1 while one fails. What follows
//! a release (the tag, where the files go) is printed, and left to whoever does it. Steps run in turn, the quick ones first; one
//! that fails does not keep the others from running.

use crate::setup::cross;
use crate::{places, step};
use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The version to be released.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Which steps.
#[derive(clap::Args)]
pub struct Options {
    /// Only these (default: all)
    #[arg(long, value_delimiter = ',')]
    only: Vec<Step>,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Step {
    /// All is committed
    Clean,
    /// Cargo.toml, the changelog, the chart and docs/deploy.md have the same version, which has no tag yet
    Version,
    /// A store and a configuration of each version before are fixtures of the tests
    Fixtures,
    /// `./x package` twice: the same bytes
    Package,
    /// `./x kernels` on x86-64, and on arm64 by emulation
    Kernels,
    /// `./x fuzz 1`
    Fuzz,
    /// `./x fresh`: demo and tests on a bare machine, twice
    Fresh,
}

impl Step {
    const fn title(self) -> &'static str {
        match self {
            Self::Clean => "all is committed",
            Self::Version => "one version everywhere",
            Self::Fixtures => "versions before are fixtures",
            Self::Package => "two packages of one commit are the same",
            Self::Kernels => "kernels",
            Self::Fuzz => "fuzz targets for an hour",
            Self::Fresh => "demo and tests on a bare machine",
        }
    }

    fn run(self) -> Result<()> {
        let root = places::workspace();
        match self {
            Self::Clean => clean(),
            Self::Version => {
                let read = |file: &str| {
                    std::fs::read_to_string(root.join(file)).with_context(|| format!("reading {file}"))
                };
                same_version(
                    VERSION,
                    &read("CHANGELOG.md")?,
                    &read("deploy/chart/Chart.yaml")?,
                    &read("docs/deploy.md")?,
                )?;
                let tags = step::git(&["tag", "--list", &format!("v{VERSION}")])?;
                ensure!(
                    tags.is_empty(),
                    "v{VERSION} is tagged already: the next version wants another number"
                );
                Ok(())
            }
            Self::Fixtures => {
                for fixture in ["store-1", "config-0.1.toml"] {
                    let path = root.join("tests/fixtures").join(fixture);
                    ensure!(path.exists(), "{} is not there", path.display());
                }
                Ok(())
            }
            Self::Package => packages(root),
            Self::Kernels => own(&["kernels"]).and_then(|()| own(&["kernels", "--arch", "arm64"])),
            Self::Fuzz => own(&["fuzz", "1"]),
            Self::Fresh => own(&["fresh"]),
        }
    }
}

/// Runs them.
pub fn run(options: &Options) -> Result<()> {
    let mut rows = Vec::new();
    let wanted = |step: &&Step| options.only.is_empty() || options.only.contains(step);
    for step in Step::value_variants().iter().filter(wanted) {
        println!("== {} ...", step.title());
        let begun = Instant::now();
        let result = step.run();
        if let Err(error) = &result {
            eprintln!("error: {}: {error:#}", step.title());
        }
        rows.push((step.title(), begun.elapsed().as_secs_f64(), result.err()));
    }
    println!("\nversion {VERSION}:");
    for (title, seconds, error) in &rows {
        let verdict = error.as_ref().map_or("ok".to_owned(), |error| format!("FAILED: {error:#}"));
        println!("{seconds:8.1} s  {title}: {verdict}");
    }
    let failed = rows.iter().filter(|(.., error)| error.is_some()).count();
    if failed > 0 {
        bail!("{failed} of {} steps failed: {VERSION} cannot be released", rows.len());
    }
    println!(
        "\nwhat is left to do by hand:\n  git tag --sign v{VERSION} && git push origin v{VERSION}\n  put the files of \
         target/package where docs/deploy.md says that they are\n  a store and a configuration of {VERSION} into tests/fixtures, \
         for the version after"
    );
    Ok(())
}

fn clean() -> Result<()> {
    let changed = step::git(&["status", "--porcelain"])?;
    ensure!(changed.is_empty(), "not committed:\n{changed}");
    Ok(())
}

/// Whether files agree on a version.
fn same_version(version: &str, changelog: &str, chart: &str, deploy: &str) -> Result<()> {
    let mut sections = changelog.split("\n## [").skip(1);
    let unreleased = sections.next().and_then(|section| section.strip_prefix("Unreleased]"));
    let unreleased = unreleased.context("CHANGELOG.md does not begin with `## [Unreleased]`")?;
    ensure!(
        unreleased.trim().is_empty(),
        "CHANGELOG.md has something under `## [Unreleased]`: a release moves it below `## [{version}] - DATE`"
    );
    let newest = sections.next().context("CHANGELOG.md has no version")?;
    let heading = newest.lines().next().unwrap_or_default();
    let dated = heading.strip_prefix(&format!("{version}] - ")).is_some_and(is_date);
    ensure!(dated, "the newest version of CHANGELOG.md is `## [{heading}`, not `## [{version}] - DATE`");
    for key in ["version: ", "appVersion: "] {
        let said = chart.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        ensure!(said.trim_matches('"') == version, "deploy/chart/Chart.yaml has {key}{said}, not {version}");
    }
    for file in [
        format!("emberscope_{version}-1_"),
        format!("emberscope-{version}-1."),
        format!("emberscope-{version}.tgz"),
    ] {
        ensure!(deploy.contains(&file), "docs/deploy.md names no {file}..");
    }
    Ok(())
}

/// Whether it is YYYY-MM-DD.
fn is_date(text: &str) -> bool {
    let shape: String = text.trim().chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00"
}

fn packages(root: &Path) -> Result<()> {
    let sums = || -> Result<String> {
        own(&["package", "--arch", "x86-64,arm64"])?;
        let file = places::target().join("package/SHA256SUMS");
        std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
    };
    let first = sums()?;
    // From nothing, else it is the same file that is packed twice.
    for target in [places::target().to_owned(), cross::target_dir()] {
        let mut clean = places::cargo();
        clean
            .current_dir(root)
            .args(["clean", "--locked", "--profile", "dist"])
            .env("CARGO_TARGET_DIR", target);
        step::run("removing what was built", &mut clean, "cargo's message is above")?;
    }
    let second = sums()?;
    ensure!(first == second, "two builds differ:\n{first}\n{second}");
    Ok(())
}

/// A command of this program.
fn own(words: &[&str]) -> Result<()> {
    let program = std::env::current_exe().context("the path of this program")?;
    let status = Command::new(program).args(words).status().with_context(|| format!("starting {words:?}"))?;
    ensure!(status.success(), "./x {} failed", words.join(" "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHART: &str = "name: x\nversion: 1.2.0\nappVersion: \"1.2.0\"\n";
    const DEPLOY: &str = "emberscope_1.2.0-1_amd64.deb emberscope-1.2.0-1.x86_64.rpm emberscope-1.2.0.tgz";
    const LOG: &str = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-27\n\n- All.\n";

    fn wrong(log: &str, chart: &str, deploy: &str) -> String {
        same_version("1.2.0", log, chart, deploy).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn files_that_agree_are_well() {
        assert_eq!(wrong(LOG, CHART, DEPLOY), "");
    }

    #[test]
    fn each_that_does_not_is_named() {
        let log = |from, to| wrong(&LOG.replace(from, to), CHART, DEPLOY);
        assert!(log("\n\n## [1.2.0]", "\n\n- New.\n\n## [1.2.0]").contains("something under"));
        assert!(log("1.2.0] - 2026-11-27", "1.1.0] - 2026-11-27").contains("newest version"));
        assert!(log(" - 2026-11-27", "").contains("newest version"));
        assert!(
            wrong(LOG, &CHART.replace("appVersion: \"1.2.0", "appVersion: \"1.1.0"), DEPLOY)
                .contains("appVersion")
        );
        assert!(wrong(LOG, CHART, &DEPLOY.replace("rpm", "")).is_empty());
        assert!(
            wrong(LOG, CHART, &DEPLOY.replace("1.2.0.tgz", "1.1.0.tgz")).contains("emberscope-1.2.0.tgz")
        );
    }

    /// Until a release moves what is new below a version, only that is not well.
    #[test]
    fn our_own_files_have_one_version() {
        let read = |file: &str| std::fs::read_to_string(places::workspace().join(file)).unwrap();
        let log = format!("\n## [Unreleased]\n\n## [{VERSION}] - 2026-11-27\n");
        same_version(VERSION, &log, &read("deploy/chart/Chart.yaml"), &read("docs/deploy.md")).unwrap();
        assert!(read("CHANGELOG.md").contains("\n## [Unreleased]\n"));
    }
}
