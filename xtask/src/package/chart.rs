//! The Helm chart as one file, as `helm package` makes it, without Helm: deploy/chart with the release's version, and with
//! the digest of the release's image among its values.

use super::archive::{self, GZIP, Tree};
use super::tree;
use anyhow::{Context as _, Result, ensure};
use std::path::Path;

/// The chart below the source tree.
const CHART: &str = "deploy/chart";
/// Lines of the chart that are the release's, by their beginning.
const VERSIONS: [&str; 2] = ["version: ", "appVersion: "];
const DIGEST: &str = "  digest: ";

/// Packs the chart; `image` is the digest of the image, `sha256:` and its hexadecimal digits. `dir` is for its files.
pub fn pack(version: &str, image: &str, epoch: &str, dir: &Path, to: &Path) -> Result<()> {
    let chart = dir.join("emberscope");
    // What git knows: nothing else that lies there is ours to ship.
    for name in crate::step::git(&["ls-files", "--", CHART])?.lines() {
        let below = Path::new(name).strip_prefix(CHART)?;
        tree::copy(name, &chart.join(below))?;
    }
    rewrite(&chart.join("Chart.yaml"), &VERSIONS.map(|key| (key, format!("\"{version}\""))))?;
    rewrite(&chart.join("values.yaml"), &[(DIGEST, image.to_owned())])?;
    archive::pack(Tree { root: dir, entries: &["emberscope"], name: ".", by: Some(GZIP) }, epoch, to)
}

/// Writes other values behind keys, each the beginning of one line.
fn rewrite(file: &Path, values: &[(&str, String)]) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (key, value) in values {
        let mut found = lines.iter_mut().filter(|line| line.starts_with(key));
        let line = found.next().with_context(|| format!("{} has no line `{key}`", file.display()))?;
        *line = format!("{key}{value}");
        ensure!(found.next().is_none(), "{} has two lines `{key}`", file.display());
    }
    std::fs::write(file, lines.join("\n") + "\n").with_context(|| format!("writing {}", file.display()))
}
