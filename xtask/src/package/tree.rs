//! The files that packages hold, laid out below a directory as they are installed below `/`.

use crate::places;
use crate::step::git;
use anyhow::{Context as _, Result, bail};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Where documents go.
const DOCUMENTS: &str = "usr/share/doc/emberscope";

/// Files of the source tree, and where each is installed.
const FILES: [(&str, &str); 4] = [
    ("deploy/emberscope.toml", "etc/emberscope/emberscope.toml"),
    ("deploy/systemd/emberscope.service", "usr/lib/systemd/system/emberscope.service"),
    ("deploy/systemd/emberscope.socket", "usr/lib/systemd/system/emberscope.socket"),
    ("deploy/systemd/emberscope.sysusers", "usr/lib/sysusers.d/emberscope.conf"),
];

/// Files and folders that are documents, at the same place below [`DOCUMENTS`]. The drop-in wants a newer systemd than
/// some that the unit runs under.
const DOCUMENTED: [&str; 6] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs",
    "deploy/systemd/emberscope.service.d/restart.conf",
];

/// Shells, and where each looks for what completes a command line.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/emberscope"),
    ("zsh", "usr/share/zsh/vendor-completions/_emberscope"),
    ("fish", "usr/share/fish/vendor_completions.d/emberscope.fish"),
];

/// Lays out all but the program, which makes the completions; `emulator` runs it where this machine cannot.
pub fn lay(root: &Path, program: &Path, emulator: Option<&str>) -> Result<()> {
    mode(program, 0o755)?;
    for (from, to) in FILES {
        copy(from, &root.join(to))?;
    }
    // What git knows: nothing else that lies there is ours to ship.
    let mut list = vec!["ls-files", "--"];
    list.extend(DOCUMENTED);
    for name in git(&list)?.lines() {
        copy(name, &root.join(DOCUMENTS).join(name))?;
    }
    for (shell, to) in COMPLETIONS {
        let mut command = Command::new(emulator.map_or(program, Path::new));
        command.args(emulator.map(|_| program)).args(["completions", shell]);
        let output = command.output().with_context(|| format!("starting {}", program.display()))?;
        if !output.status.success() {
            bail!("emberscope completions {shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let to = root.join(to);
        create_parent(&to)?;
        std::fs::write(&to, output.stdout).with_context(|| format!("writing {}", to.display()))?;
        mode(&to, 0o644)?;
    }
    Ok(())
}

/// Makes the directory that a file is to lie in.
pub fn create_parent(file: &Path) -> Result<()> {
    let Some(dir) = file.parent() else { return Ok(()) };
    std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))
}

/// Copies a file of the source tree, to be read by all.
pub fn copy(from: &str, to: &Path) -> Result<()> {
    create_parent(to)?;
    std::fs::copy(places::workspace().join(from), to).with_context(|| format!("copying {from}"))?;
    mode(to, 0o644)
}

/// Sets a file's mode.
pub fn mode(file: &Path, mode: u32) -> Result<()> {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode))
        .with_context(|| format!("setting the mode of {}", file.display()))
}
