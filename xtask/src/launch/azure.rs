//! A real Azure Blob server: azurite (MIT), Microsoft's own for tests, in node, over a directory, on a free port of
//! loopback.
//!
//! npm installs what tests/azure-server pins by checksum, once, into the cache. It looks at signatures and API versions
//! as Azure does; it has no hierarchical namespace and hands out no tokens. Dropped, it ends.

use super::Running;
use super::port::free_port;
use super::storage::{Environment, Storage, environment};
use crate::places;
use anyhow::{Context as _, Result};
use rustix::process::Signal;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What npm is given.
const FILES: [(&str, &str); 2] = [
    ("package.json", include_str!("../../../tests/azure-server/package.json")),
    ("package-lock.json", include_str!("../../../tests/azure-server/package-lock.json")),
];
/// Azure signs with a key's bytes: these are base64.
const KEY: &str = "bm90LWEtc2VjcmV0";
const WRONG: &str = "d3Jvbmc=";
const ACCOUNT: &str = "emberscope";
/// The container that is there.
const CONTAINER: &str = "profiles";
/// How long node may take to read some thousand files, or to write what it keeps, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The server.
pub struct Azure {
    running: Option<Running>,
    modules: PathBuf,
    dir: PathBuf,
    port: u16,
}

/// Installs the server: a directory of node's modules. The inner error says why it cannot be had here.
pub fn install() -> Result<Result<PathBuf, String>> {
    let mut hasher = DefaultHasher::new();
    FILES.hash(&mut hasher);
    let home = places::cache()?.join("azure-server").join(format!("{:016x}", hasher.finish()));
    let modules = home.join("node_modules");
    if let Err(error) = Command::new("node").arg("--version").output() {
        return Ok(Err(format!("no node command: {error}")));
    }
    if modules.is_dir() {
        return Ok(Ok(modules));
    }
    let _lock = places::lock_cache()?;
    if modules.is_dir() {
        return Ok(Ok(modules));
    }
    let making = home.with_extension("part");
    let _ = std::fs::remove_dir_all(&making);
    std::fs::create_dir_all(&making).with_context(|| format!("creating {}", making.display()))?;
    for (name, text) in FILES {
        let path = making.join(name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=optional"]).current_dir(&making);
    // A busy machine's network is slow: npm itself asks again, but not after a time-out of the socket. Warnings (azurite
    // itself runs on Debian's node, one of its parts says it wants a newer) would hide why it failed.
    npm.args(["--loglevel=error", "--fetch-retries=5", "--fetch-timeout=600000"]);
    match npm.output() {
        Ok(out) if out.status.success() => {}
        Ok(out) => {
            let says = String::from_utf8_lossy(&out.stderr).trim().to_owned();
            return Ok(Err(format!("azurite cannot be installed: {says}")));
        }
        Err(error) => return Ok(Err(format!("no npm command to install azurite with: {error}"))),
    }
    // Whole or not at all.
    std::fs::rename(&making, &home).with_context(|| format!("renaming {}", making.display()))?;
    Ok(Ok(modules))
}

impl Azure {
    /// Starts one whose files are in `dir`.
    pub fn start(modules: &Path, dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let mut server =
            Self { running: None, modules: modules.to_owned(), dir: dir.to_owned(), port: free_port()? };
        server.begin()?;
        Ok(server)
    }

    fn environment_with(&self, key: &str) -> Environment {
        environment([
            ("AZURE_ENDPOINT", format!("http://127.0.0.1:{}/{ACCOUNT}", self.port)),
            ("AZURE_STORAGE_ACCOUNT_KEY", key.to_owned()),
        ])
    }
}

impl Storage for Azure {
    fn url(&self, prefix: &str) -> String {
        format!("abfs://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/{prefix}")
    }

    fn environment(&self) -> Environment {
        self.environment_with(KEY)
    }

    fn refused(&self) -> (Environment, &'static str) {
        (self.environment_with(WRONG), "AZURE_STORAGE_ACCOUNT_KEY")
    }

    /// By a signal that it hears: killed, it loses what it was told in the last seconds, as no cloud does.
    fn end(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.signal(Signal::TERM);
            let _ = running.wait(PATIENCE);
        }
    }

    fn begin(&mut self) -> Result<()> {
        let mut node = Command::new("node");
        node.arg(places::workspace().join("tests/azure-server/server.js"));
        node.arg(self.port.to_string()).arg(self.dir.join("files")).arg(CONTAINER);
        node.env("NODE_PATH", &self.modules).env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY}"));
        let mut running = Running::start("the Azure server", &mut node, &self.dir.join("server.log"))?;
        running.wait_fact("ready", PATIENCE)?;
        self.running = Some(running);
        Ok(())
    }
}
