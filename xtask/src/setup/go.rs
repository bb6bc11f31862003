//! A Go that builds what tests talk to (tests/s3-server, tests/pyroscope-client): the one on the PATH where it is new
//! enough, else one that an older Go brings as a module.
//!
//! Go's releases are modules of the name golang.org/toolchain, checked by Go's own checksum database; Debian's Go 1.19
//! cannot run them by itself (1.21 and newer can) but can fetch one.

use crate::{places, root, step};
use anyhow::{Context as _, Result, bail};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest that the modules in tests/ take (their go.mod).
const OLDEST: (u32, u32) = (1, 25);
/// What is fetched where there is none.
const RELEASE: &str = "1.25.5";

/// Finds or installs one. Its directory of programs, where that is not on the PATH.
pub fn ensure() -> Result<Option<PathBuf>> {
    if places::on_path("go").is_some_and(|go| new_enough(&go)) {
        return Ok(None);
    }
    if let Some(bin) = installed() {
        return Ok(Some(bin));
    }
    if places::on_path("go").is_none() {
        root::apt_install(&["golang-go"], "Go, which fetches a newer Go")?;
    }
    let _lock = places::lock_cache()?;
    fetch(&home()?)?;
    installed().with_context(|| format!("Go {RELEASE} was fetched and does not run")).map(Some)
}

/// The directory of programs of the one that was fetched, if it was.
pub fn installed() -> Option<PathBuf> {
    let bin = home().ok()?.join("bin");
    new_enough(&bin.join("go")).then_some(bin)
}

/// The one that was fetched, else that of the PATH.
pub fn command() -> Command {
    Command::new(installed().map_or_else(|| PathBuf::from("go"), |bin| bin.join("go")))
}

fn home() -> Result<PathBuf> {
    Ok(places::tools()?.join("go"))
}

fn new_enough(go: &Path) -> bool {
    let mut command = Command::new(go);
    // Asked outside of any module, which could ask for another version.
    command.args(["env", "GOVERSION"]).current_dir("/").env("GOTOOLCHAIN", "local");
    let output = command.output().ok().filter(|output| output.status.success());
    output.and_then(|output| version(&String::from_utf8_lossy(&output.stdout))).is_some_and(|v| v >= OLDEST)
}

fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers =
        said.trim().strip_prefix("go")?.split(['.', 'r', 'b']).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn fetch(home: &Path) -> Result<()> {
    let module = format!("golang.org/toolchain@v0.0.1-go{RELEASE}.linux-{}", architecture()?);
    let cache = places::cache()?.join("go-fetched");
    let mut go = Command::new("go");
    go.args(["mod", "download", &module])
        .env("GOMODCACHE", &cache)
        .env("GOFLAGS", "-modcacherw")
        .current_dir("/");
    step::run(
        &format!("fetching Go {RELEASE}, a module"),
        &mut go,
        "check that go reaches its module proxy (GOPROXY and the proxy variables are heeded)",
    )?;
    for dir in ["bin", "pkg/tool"] {
        executable(&cache.join(&module).join(dir))?;
    }
    let _ = std::fs::remove_dir_all(home);
    std::fs::create_dir_all(places::tools()?).context("creating the directory of tools")?;
    std::fs::rename(cache.join(&module), home).with_context(|| format!("moving Go to {}", home.display()))?;
    let _ = std::fs::remove_dir_all(&cache);
    Ok(())
}

/// Files of modules are never executable (golang.org/x/mod/zip).
fn executable(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry.with_context(|| format!("reading {}", dir.display()))?.path();
        if path.is_dir() {
            executable(&path)?;
        } else {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
                .with_context(|| format!("making {} executable", path.display()))?;
        }
    }
    Ok(())
}

fn architecture() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("no Go is known for {other}: install Go {RELEASE} or newer by hand"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(version("go1.19.8\n"), Some((1, 19)));
        assert_eq!(version("go1.26rc1"), Some((1, 26)));
        assert!(version("go1.25.0").is_some_and(|v| v >= OLDEST) && version("devel").is_none());
    }
}
