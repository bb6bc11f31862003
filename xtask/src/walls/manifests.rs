//! A manifest lists what its crate names, and nothing else.

use super::source::{self, words};
use std::collections::HashSet;

/// Dependencies that no code names, each with why.
const UNNAMED: [(&str, &str); 3] = [
    // Its features are those that the tests' program has.
    ("profiler/archive", "digest"),
    // Its features choose object_store's TLS.
    ("profiler/archive", "reqwest"),
    // The fuzz targets' workspace takes what the package has.
    ("profiler/fuzz", "emberscope"),
];

/// The dependencies of a manifest, those of tests with them.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.contains("workspace");
        } else if inside && line.starts_with(|c: char| c.is_ascii_alphabetic()) {
            found.extend(line.split([' ', '.', '=']).next());
        }
    }
    found
}

#[test]
fn a_dependency_is_named_by_its_crate() {
    let root = crate::places::workspace();
    let rooms = std::fs::read_dir(root.join("profiler")).unwrap();
    let rooms = rooms.map(|entry| format!("profiler/{}", entry.unwrap().file_name().display()));
    let crates: Vec<String> =
        rooms.chain(["profiler", "profiler-ebpf", "tests", "xtask"].map(str::to_owned)).collect();
    let mut unused = Vec::new();
    for dir in &crates {
        let Ok(manifest) = std::fs::read_to_string(root.join(dir).join("Cargo.toml")) else { continue };
        // The fuzz targets are compiled as tests of the package, too.
        let inner = |path: &str| {
            crates.iter().any(|other| path.starts_with(&format!("{other}/src/")) && other != dir)
        };
        let own = source::all()
            .iter()
            .filter(|file| file.path.starts_with(&format!("{dir}/")) && !inner(&file.path));
        let named: HashSet<&str> = own.flat_map(|file| words(&file.code)).collect();
        let names = dependencies(&manifest).into_iter();
        let names = names.filter(|name| !named.contains(name.replace('-', "_").as_str()));
        let names = names.filter(|name| !UNNAMED.contains(&(dir, name)));
        unused.extend(names.map(|name| format!("{dir}/Cargo.toml: {name}")));
    }
    assert!(unused.is_empty(), "no code names these dependencies: {unused:#?}");
}

#[test]
fn dependencies_of_a_manifest() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nb-c.workspace = true\n# d\n[dev-dependencies]\ne = { a = 1 }\n[lints]\nf = 1\n";
    assert_eq!(dependencies(manifest), ["b-c", "e"]);
}
