//! The tools of the checks: rustfmt, clippy and cargo-deny. Needed by `test` only.

use super::cargo_tool::CargoTool;
use crate::{places, root, step};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installed where there is none.
const CARGO_DENY: CargoTool =
    CargoTool { name: "cargo-deny", subcommand: "deny", version: "0.20.2", exact: false, arguments: &[] };

/// Finds or installs them.
pub fn ensure() -> Result<()> {
    let missing = |tool: &str| !succeeds(places::cargo().args([tool, "--version"]));
    if missing("fmt") || missing("clippy") {
        install_components()?;
    }
    if places::on_path("git").is_none() {
        root::apt_install(&["git"], "git, by which cargo-deny reads advisories")?;
    }
    CARGO_DENY.ensure()
}

/// A `cargo deny` command, if there is one.
pub fn deny() -> Result<Option<Command>> {
    CARGO_DENY.command()
}

/// Names a clone of [`DATABASE`].
const CLONE: &str = "EMBERSCOPE_ADVISORIES";
/// Where cargo-deny has its advisories from.
const DATABASE: &str = "https://github.com/rustsec/advisory-db";

/// `cargo deny check advisories` on a database that is on this machine: the clone that `CLONE` names, else the one
/// that cargo-deny fetched at another time. Some: there is none. The network is not asked: a test does not hang on it.
pub fn advisories() -> Result<Option<String>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let fetched = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).and_then(|home| {
        let mut dirs = std::fs::read_dir(home.join("advisory-dbs")).ok()?.flatten().map(|entry| entry.path());
        dirs.find(|path| path.join(".git").is_dir())
    });
    match std::env::var_os(CLONE).map(PathBuf::from).or(fetched) {
        Some(clone) => check_advisories(&clone).map(|()| None),
        None => Ok(Some(format!("there is no advisory database here: set {CLONE} to a clone of {DATABASE}"))),
    }
}

/// Checks the crates against a clone.
fn check_advisories(clone: &Path) -> Result<()> {
    let clone = clone.canonicalize().with_context(|| format!("{CLONE}={}", clone.display()))?;
    let Some(mut deny) = deny()? else { bail!("cargo-deny is not there: run `./x setup`") };
    let dir = places::target().join("xtask/advisories");
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let ours = places::workspace().join("deny.toml");
    let ours = std::fs::read_to_string(&ours).with_context(|| format!("reading {}", ours.display()))?;
    // cargo-deny takes URLs with a host alone; git puts the clone in that one's place.
    let database =
        format!("[advisories]\ndb-path = {dir:?}\ndb-urls = [\"{DATABASE}\"]\ngit-fetch-with-cli = true\n");
    let config = dir.join("deny.toml");
    std::fs::write(&config, format!("{ours}\n{database}"))
        .with_context(|| format!("writing {}", config.display()))?;
    deny.current_dir(places::workspace()).arg("--locked").arg("--config").arg(&config);
    deny.env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", clone.display()))
        .env("GIT_CONFIG_VALUE_0", DATABASE);
    let mend = "take a newer version of the crate, or say in deny.toml why it does not matter here";
    // Without the graph of who uses a crate: it is longer than the end of a log that is shown.
    let check = ["check", "--hide-inclusion-graph", "advisories"];
    step::run("advisories", deny.args(check), mend).map(drop)
}

fn install_components() -> Result<()> {
    let debian = places::on_path("rustc").is_some_and(|rustc| rustc.starts_with("/usr/bin"));
    if debian {
        return root::apt_install(&["rustfmt-web", "rust-web-clippy"], "rustfmt and clippy");
    }
    if places::on_path("rustup").is_none() {
        bail!("`cargo fmt` or `cargo clippy` is missing: install rustfmt and clippy for your Rust toolchain");
    }
    let mut add = Command::new("rustup");
    add.args(["component", "add", "rustfmt", "clippy"]);
    step::run("adding rustfmt and clippy", &mut add, "check the network")?;
    Ok(())
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAW: &str = "```toml
[advisory]
id = \"RUSTSEC-2026-9999\"
package = \"serde_json\"
date = \"2026-01-01\"
[versions]
patched = [\">= 99.0.0\"]
```

# A made-up flaw
";

    #[test]
    fn a_flaw_of_a_crate_is_found() {
        // `cargo xtask setup` installs them; who runs this test alone is told.
        assert!(matches!(deny(), Ok(Some(_))), "cargo-deny is not installed: `cargo xtask setup`");
        assert!(succeeds(Command::new("git").arg("--version")), "git is not installed");
        let dir = std::env::temp_dir().join(format!("emberscope-advisories-{}", std::process::id()));
        let advisories = dir.join("crates/serde_json");
        std::fs::create_dir_all(&advisories).unwrap();
        std::fs::write(advisories.join("RUSTSEC-2026-9999.md"), FLAW).unwrap();
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        for git in [
            &["init", "-q", "-b", "main"][..],
            &["add", "-A"],
            &[&who[..], &["commit", "-q", "-m", "a"]].concat(),
        ] {
            assert!(succeeds(Command::new("git").current_dir(&dir).args(git)), "{git:?}");
        }
        let error = check_advisories(&dir).unwrap_err().to_string();
        std::fs::remove_dir_all(&dir).unwrap();
        // The next run reads another database.
        std::fs::remove_dir_all(places::target().join("xtask/advisories")).unwrap();
        assert!(error.contains("RUSTSEC-2026-9999"), "{error}");
    }
}
