//! Finds the machine's JDKs, and installs Debian's JDK 17 where none suits Spark.
//!
//! A JDK says its version in its `release` file, so none is started to ask. Spark 3.5 runs on 8, 11, 17
//! and 21; the tests want javac too and HotSpot as it is from 17 on.

use crate::{places, root};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

/// Versions that suit the Spark used here, the most wanted first.
const FOR_SPARK: [u32; 2] = [17, 21];

/// A JDK: it has bin/java and bin/javac.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jdk {
    /// Its JAVA_HOME.
    pub home: PathBuf,
    /// 8, 11, 17, ...
    pub major: u32,
}

/// Every JDK in JAVA_HOME, on the PATH and under /usr/lib/jvm, each once.
pub fn all() -> Vec<Jdk> {
    let mut homes: Vec<PathBuf> = std::env::var_os("JAVA_HOME").into_iter().map(PathBuf::from).collect();
    homes.extend(places::on_path("java").and_then(|java| {
        let java = java.canonicalize().ok()?;
        Some(java.parent()?.parent()?.to_owned())
    }));
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let mut below: Vec<PathBuf> = installed.map(|entry| entry.path()).collect();
    below.sort();
    homes.extend(below);
    let mut found: Vec<Jdk> = Vec::new();
    for home in homes.iter().filter_map(|home| home.canonicalize().ok()) {
        if let Some(jdk) = inspect(&home).filter(|jdk| !found.contains(jdk)) {
            found.push(jdk);
        }
    }
    found
}

/// The JDK that Spark gets.
pub fn ensure() -> Result<Jdk> {
    if let Some(jdk) = best(&all()) {
        return Ok(jdk);
    }
    root::apt_install(&["openjdk-17-jdk-headless"], "a JDK")?;
    best(&all()).context("openjdk-17-jdk-headless is installed, yet there is no JDK 17 in /usr/lib/jvm")
}

/// A tool of the JDK in `home` (javac, jar). Where that is a runtime without tools, it is that of the JDK for Spark: newer
/// Java runs what it makes.
pub fn tool(home: &Path, name: &str) -> PathBuf {
    let own = home.join("bin").join(name);
    if own.is_file() {
        return own;
    }
    let other = best(&all()).map(|jdk| jdk.home.join("bin").join(name));
    other.unwrap_or(own)
}

fn best(found: &[Jdk]) -> Option<Jdk> {
    FOR_SPARK.iter().find_map(|major| found.iter().find(|jdk| jdk.major == *major)).cloned()
}

fn inspect(home: &Path) -> Option<Jdk> {
    let has = |name: &str| home.join("bin").join(name).is_file();
    let major = parse_major(&std::fs::read_to_string(home.join("release")).ok()?)?;
    (has("java") && has("javac")).then(|| Jdk { home: home.to_owned(), major })
}

fn parse_major(release: &str) -> Option<u32> {
    let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?.trim_matches('"');
    let mut numbers = version.split(['.', '_', '-', '+']).map(|number| number.parse().ok());
    match numbers.next()?? {
        1 => numbers.next()?, // 1.8.0_504 is 8
        major => Some(major),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn majors_of_old_and_new_spellings() {
        assert_eq!(parse_major("IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.15\"\n"), Some(17));
        assert_eq!(parse_major("JAVA_VERSION=\"1.8.0_504\""), Some(8));
        assert_eq!(parse_major("JAVA_VERSION=\"25\""), Some(25));
        assert_eq!(parse_major("JAVA_VERSION=\"x\""), None);
        assert_eq!(parse_major(""), None);
    }

    #[test]
    fn spark_prefers_17_and_refuses_25() {
        let jdk = |major| Jdk { home: format!("/jdk{major}").into(), major };
        assert_eq!(best(&[jdk(25), jdk(21), jdk(17)]), Some(jdk(17)));
        assert_eq!(best(&[jdk(25), jdk(11)]), None);
    }
}
