//! The filter of system calls that container engines put on where a pod asks for `RuntimeDefault`: Docker's, after which
//! containerd's is made, from the Go module that it is published as. Debian 12 has one of 2022, which knows neither CAP_BPF
//! nor CAP_PERFMON.

use super::go;
use anyhow::{Context as _, Result, ensure};
use std::path::PathBuf;

const MODULE: &str = "github.com/moby/profiles/seccomp@v0.3.0";

/// Finds or fetches it: a file in JSON.
pub fn ensure() -> Result<PathBuf> {
    go::ensure()?;
    let output = go::command().args(["mod", "download", "-json", MODULE]).current_dir("/").output();
    let output = output.context("starting go")?;
    let said: serde_json::Value =
        serde_json::from_slice(&output.stdout).with_context(|| format!("go mod download {MODULE}"))?;
    ensure!(output.status.success(), "go mod download {MODULE}: {}", said["Error"]);
    let dir = said["Dir"].as_str().with_context(|| format!("go mod download {MODULE} names no directory"))?;
    Ok(PathBuf::from(dir).join("default.json"))
}
