//! Helm, which tests render the chart of deploy/chart with: a Go module, built once into the cache (three minutes of CPU).

use super::go;
use crate::{places, step};
use anyhow::{Context as _, Result};
use std::path::PathBuf;

/// A release that the Go of [`go`] builds.
const VERSION: &str = "v3.19.0";
const PACKAGE: &str = "helm.sh/helm/v3/cmd/helm";

/// Finds or builds it.
pub fn ensure() -> Result<PathBuf> {
    let dir = places::tools()?.join(format!("helm-{VERSION}"));
    let helm = dir.join("helm");
    if helm.is_file() {
        return Ok(helm);
    }
    go::ensure()?;
    let _lock = places::lock_cache()?;
    // Another run may have built it meanwhile.
    if helm.is_file() {
        return Ok(helm);
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let mut go = go::command();
    // Outside of any module.
    go.args(["install", "-ldflags=-s -w", &format!("{PACKAGE}@{VERSION}")])
        .env("GOBIN", &dir)
        .current_dir("/");
    step::run("building Helm, a Go module", &mut go, "check that go reaches its module proxy")?;
    Ok(helm)
}
