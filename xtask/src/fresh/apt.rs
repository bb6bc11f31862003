//! How this machine's apt reaches Debian: its mirrors for bookworm and its proxies.

use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::process::Command;

/// The suites that the system gets; the README asks for the same.
const SUITES: [&str; 3] = ["bookworm", "bookworm-updates", "bookworm-security"];

/// Suite and mirror, for each of `SUITES`.
#[derive(Debug, PartialEq, Eq)]
pub struct Sources(Vec<(&'static str, String)>);

impl Sources {
    /// The mirror that debootstrap takes.
    pub fn main(&self) -> &str {
        &self.0[0].1
    }

    /// The mirror of the security archive.
    pub fn security(&self) -> &str {
        &self.0[2].1
    }

    /// A sources.list.
    pub fn list(&self) -> String {
        self.0.iter().map(|(suite, uri)| format!("deb {uri} {suite} main\n")).collect()
    }
}

/// Reads them from /etc/apt.
pub fn sources() -> Result<Sources> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    let listed = std::fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    let wanted = |path: &PathBuf| path.extension().is_some_and(|end| end == "list" || end == "sources");
    files.extend(listed.map(|entry| entry.path()).filter(wanted));
    let text: String =
        files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).map(|t| t + "\n\n").collect();
    parse(&text).context(
        "/etc/apt names no mirror for each of bookworm, bookworm-updates and bookworm-security: run this on \
         a Debian 12 machine that has them",
    )
}

fn parse(text: &str) -> Option<Sources> {
    let mut found: Vec<(String, String)> = Vec::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if let (Some(uri), Some(suites)) = (field("URIs:"), field("Suites:")) {
            let uri = uri.split_whitespace().next()?;
            found.extend(suites.split_whitespace().map(|suite| (suite.to_owned(), uri.to_owned())));
        }
        for line in paragraph.lines().filter_map(|line| line.strip_prefix("deb ")) {
            // Options in brackets may hold spaces and come first.
            let line =
                line.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(line, |(_, l)| l);
            let mut words = line.split_whitespace();
            if let (Some(uri), Some(suite)) = (words.next(), words.next()) {
                found.push((suite.to_owned(), uri.to_owned()));
            }
        }
    }
    let mirror = |suite: &'static str| {
        let (_, uri) = found.iter().find(|(name, _)| name == suite)?;
        Some((suite, uri.clone()))
    };
    SUITES.into_iter().map(mirror).collect::<Option<Vec<_>>>().map(Sources)
}

/// apt's settings of proxies and of the clock checks, as apt.conf lines.
pub fn network_settings() -> Result<String> {
    let output = Command::new("apt-config").arg("dump").output().context("cannot start apt-config")?;
    let dump = String::from_utf8_lossy(&output.stdout).into_owned();
    let carried = |line: &&str| {
        let key = line.split(' ').next().unwrap_or_default();
        key.starts_with("Acquire::") && (key.contains("Proxy") || key.contains("::Check-"))
    };
    Ok(dump.lines().filter(carried).map(|line| format!("{line}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_sources_are_read() {
        let deb822 = "Types: deb\n# a comment\nURIs: http://m/debian\nSuites: bookworm bookworm-updates\n\n\
                      Types: deb\nURIs: http://m/security\nSuites: bookworm-security\n";
        let lines = "deb http://m/debian bookworm main contrib\n# deb http://x/debian sid main\n\
                     deb [arch=amd64 signed-by=/k] http://m/debian bookworm-updates main\n\
                     deb http://m/security bookworm-security main\n";
        let sources = parse(deb822).unwrap();
        assert_eq!(sources.main(), "http://m/debian");
        assert_eq!(sources.list().lines().last(), Some("deb http://m/security bookworm-security main"));
        assert_eq!(parse(lines).unwrap(), sources);
        assert_eq!(parse("deb http://m/debian bookworm main\n"), None);
    }
}
