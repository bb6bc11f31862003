//! `sbom`: what the released daemon is made of, as a CycloneDX 1.6 document in JSON.
//!
//! In: `cargo metadata` and Cargo.lock's checksums. Out: target/emberscope.cdx.json: the daemon, every crate that is
//! compiled into it or into its BPF object, on x86-64 or arm64, with version, licence, checksum and what it asks for.
//! Tools that only build or test (build scripts' crates, tests, xtask) are not in what is shipped, nor here. The same
//! tree gives the same bytes. Made here and not by a tool: these are a hundred lines, and a tool would be a download.

use crate::{lock, places};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What is shipped: the daemon, and in it the BPF programs, each for its machines.
const SHIPPED: [(&str, &[&str]); 2] = [
    ("emberscope", &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]),
    ("profiler-ebpf", &["bpfel-unknown-none"]),
];
const WHOLE: &str = SHIPPED[0].0;

/// Writes it into the target directory; the file is the answer.
pub fn run() -> Result<PathBuf> {
    let path = places::target().join("emberscope.cdx.json");
    write(&path)?;
    Ok(path)
}

/// Writes it into a file.
pub fn write(path: &Path) -> Result<()> {
    let lock = lock::read()?;
    let mut crates = Crates::default();
    for (package, machines) in SHIPPED {
        crates.add(&metadata(machines)?, package)?;
    }
    let text = serde_json::to_string_pretty(&document(&crates, &checksums(&lock))?)?;
    std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    println!("wrote {}: {} components", path.display(), crates.packages.len());
    Ok(())
}

/// What `cargo metadata` says of the workspace, as it is for these machines; of none: for all.
///
/// # Errors
/// cargo cannot be started, or fails.
pub fn metadata(machines: &[&str]) -> Result<Value> {
    let mut cargo = places::cargo();
    cargo.current_dir(places::workspace()).args(["metadata", "--format-version", "1", "--locked"]);
    for machine in machines {
        cargo.args(["--filter-platform", machine]);
    }
    let output = cargo.output().context("starting cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("reading cargo metadata")
}

/// SHA-256 of crates' archives, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |package: &str, key: &str| lock::field(package, key).map(str::to_owned);
    let package =
        |text: &str| Some(((field(text, "name")?, field(text, "version")?), field(text, "checksum")?));
    lock::packages(lock).filter_map(package).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Crates that are compiled in, by cargo's id, and what each asks for.
#[derive(Default)]
struct Crates {
    packages: BTreeMap<String, Value>,
    asks: BTreeMap<String, BTreeSet<String>>,
}

impl Crates {
    /// A package of ours and all that it asks for; no build scripts' crates, no tests'.
    fn add(&mut self, metadata: &Value, package: &str) -> Result<()> {
        let all: BTreeMap<String, &Value> =
            list(&metadata["packages"]).iter().map(|package| (text(&package["id"]), package)).collect();
        let nodes: BTreeMap<String, &Value> =
            list(&metadata["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), node)).collect();
        let ours = |found: &&Value| found["source"].is_null() && found["name"] == package;
        let mut waiting: Vec<String> =
            all.values().copied().filter(ours).map(|package| text(&package["id"])).collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            let (Some(package), Some(node)) = (all.get(&id), nodes.get(&id)) else {
                bail!("cargo metadata names {id} and does not describe it");
            };
            let compiled = |dep: &&Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let on = list(&node["deps"]).iter().filter(compiled).map(|dep| text(&dep["pkg"]));
            let asks = self.asks.entry(id.clone()).or_default();
            asks.extend(on);
            waiting.extend(asks.iter().cloned());
            self.packages.insert(id, (*package).clone());
        }
        Ok(())
    }
}

/// The document.
fn document(crates: &Crates, checksums: &BTreeMap<(String, String), String>) -> Result<Value> {
    let reference = |id: &String| {
        let package = crates.packages.get(id)?;
        Some(format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"])))
    };
    let mut components = BTreeMap::new();
    let mut dependencies = BTreeMap::new();
    let mut whole = None;
    for (id, package) in &crates.packages {
        let Some(purl) = reference(id) else { continue };
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let mut component = json!({
            "type": if name == WHOLE { "application" } else { "library" },
            "bom-ref": purl,
            "name": name,
            "version": version,
            "purl": purl,
        });
        if let Some(licence) = package["license"].as_str() {
            // Old crates write a slash for OR, which is no SPDX.
            component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
        }
        if let Some(sum) = checksums.get(&(name.clone(), version)) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        if let Some(url) = package["repository"].as_str() {
            component["externalReferences"] = json!([{ "type": "vcs", "url": url }]);
        }
        let on: BTreeSet<String> = crates.asks.get(id).into_iter().flatten().filter_map(reference).collect();
        dependencies.insert(purl.clone(), json!({ "ref": purl, "dependsOn": on }));
        match name == WHOLE {
            true => whole = Some(component),
            false => drop(components.insert(purl, component)),
        }
    }
    let Some(whole) = whole else { bail!("cargo metadata has no package {WHOLE}") };
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": whole },
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies.into_values().collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Value {
        let path = run().unwrap();
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    /// The fields that the schema of CycloneDX 1.6 requires, and its rule that references are unique and lead somewhere.
    #[test]
    fn it_is_cyclonedx() {
        let bom = made();
        assert_eq!((&bom["bomFormat"], &bom["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
        assert!(bom["version"].as_u64().is_some_and(|version| version >= 1));
        let components = bom["components"].as_array().unwrap();
        let mut references = BTreeSet::new();
        for component in components.iter().chain([&bom["metadata"]["component"]]) {
            for required in ["type", "name"] {
                assert!(component[required].as_str().is_some_and(|text| !text.is_empty()), "{component}");
            }
            assert!(["application", "library"].contains(&component["type"].as_str().unwrap()));
            assert!(references.insert(component["bom-ref"].as_str().unwrap()), "{component} is there twice");
            for hash in component["hashes"].as_array().into_iter().flatten() {
                let content = hash["content"].as_str().unwrap();
                assert!(content.len() == 64 && content.bytes().all(|b| b.is_ascii_hexdigit()), "{component}");
            }
            assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        }
        for dependency in bom["dependencies"].as_array().unwrap() {
            assert!(references.contains(dependency["ref"].as_str().unwrap()), "{dependency}");
            let on: Vec<_> =
                dependency["dependsOn"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
            assert!(on.iter().all(|on| references.contains(on)), "{dependency}");
            assert_eq!(on.iter().collect::<BTreeSet<_>>().len(), on.len(), "{dependency}");
        }
    }

    /// What is linked is there, with its checksum; what only tests or builds is not.
    #[test]
    fn it_lists_what_is_shipped() {
        let bom = made();
        let components = bom["components"].as_array().unwrap();
        let find = |name: &str| components.iter().find(|component| component["name"] == name);
        for linked in ["parquet", "blazesym", "rustls", "aya-ebpf", "profiler-ebpf"] {
            let component = find(linked).unwrap_or_else(|| panic!("{linked} is missing"));
            assert!(linked == "profiler-ebpf" || component["hashes"][0]["content"].is_string(), "{linked}");
        }
        for other in ["proptest", "xtask", "emberscope-tests", "windows-sys"] {
            assert!(find(other).is_none(), "{other} is not shipped");
        }
    }
}
