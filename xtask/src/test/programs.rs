//! The programs that the end-to-end tests are. They are started without cargo, which would wait until another cargo is done
//! that compiles in the same directory.

use crate::{places, root, step};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// The step that compiles them.
pub(super) const COMPILING: &str = "compiling the end-to-end tests";

/// Their files, by name.
#[derive(Default)]
pub struct Programs(BTreeMap<String, PathBuf>);

impl Programs {
    /// Compiles them, optimised as the daemon is: its crates are compiled already.
    ///
    /// # Errors
    /// They do not compile.
    pub fn compile() -> Result<Self> {
        let mut cargo = places::cargo();
        cargo.current_dir(places::workspace());
        cargo.args(["test", "--locked", "--release", "--package", "emberscope-tests", "--no-run"]);
        cargo.args(["--test", "kernel", "--test", "spark", "--message-format", "json-render-diagnostics"]);
        step::run(COMPILING, &mut cargo, "the compiler's message is above")?;
        let log = step::log_file(COMPILING)?;
        let text = std::fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
        Ok(Self(programs(&text)))
    }

    /// What starts one of them, as root where that can be had.
    pub fn command(&self, name: &str) -> Command {
        // cargo names a file that it made. One that is not there gives its own error when it is started.
        let mut command = root::tests(self.0.get(name).cloned().unwrap_or_else(|| name.into()));
        // Where cargo starts the tests of a package.
        command.current_dir(places::workspace().join("tests"));
        command
    }
}

/// The programs that cargo says it made (the Cargo Book, "External tools", "Artifact messages"), beside whatever else it says.
fn programs(said: &str) -> BTreeMap<String, PathBuf> {
    let made = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let file = message["executable"].as_str()?;
        Some((message["target"]["name"].as_str()?.to_owned(), file.into()))
    };
    said.lines().filter(|line| line.starts_with('{')).filter_map(made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_those_that_cargo_made() {
        let said = r#"   Compiling emberscope-tests v0.2.0
{"reason":"compiler-artifact","target":{"name":"emberscope_tests"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"kernel"},"executable":"/work/target/release/deps/kernel-1"}
{"reason":"build-finished","success":true}
"#;
        let made =
            BTreeMap::from([("kernel".to_owned(), PathBuf::from("/work/target/release/deps/kernel-1"))]);
        assert_eq!(programs(said), made);
    }
}
