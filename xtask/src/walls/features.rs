//! A dependency has one set of features, whether the daemon, its unit tests or the end-to-end tests are built: else it, and all
//! that stands on it, is compiled once more for each.

use crate::places;
use std::collections::{BTreeMap, BTreeSet};

/// The features of each dependency, by name and version: more than one set where build scripts have their own.
type Features = BTreeMap<String, BTreeSet<String>>;

fn features(tree: &str) -> Features {
    let mut found = Features::new();
    for line in tree.lines() {
        // A package that was shown before is so marked.
        let mut words = line.trim_end_matches(" (*)").split(' ');
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            // A procedural macro, and a package of the workspace, says so behind its version.
            let features = words.rfind(|word| !word.starts_with('(')).unwrap_or_default();
            found.entry(format!("{name} {version}")).or_default().insert(features.to_owned());
        }
    }
    found
}

fn tree(arguments: &[&str]) -> Features {
    let mut cargo = places::cargo();
    cargo
        .current_dir(places::workspace())
        .args(["tree", "--locked", "--prefix", "none", "--format", "{p} {f}"]);
    let out = cargo.args(arguments).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    features(&String::from_utf8(out.stdout).unwrap())
}

#[test]
fn features_of_a_tree() {
    let tree =
        "a v1.0.0 default,std\nb v2.0.0 (proc-macro) \na v1.0.0 default,std (*)\nc v0.1.0 (/work/c) x\n";
    let found = features(tree);
    let of = |name: &str| found[name].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((of("a v1.0.0"), of("b v2.0.0"), of("c v0.1.0")), (vec!["default,std"], vec![""], vec!["x"]));
}

#[test]
fn the_daemon_and_its_tests_have_the_same_dependencies() {
    let daemon = tree(&["--package", "emberscope", "--edges", "normal"]);
    let tests = tree(&["--workspace", "--edges", "normal,dev"]);
    assert!(daemon.len() > 100, "{daemon:?}");
    let other: Vec<_> = daemon
        .iter()
        .filter_map(|(name, own)| tests.get(name).map(|seen| (name, own, seen)))
        .filter(|(_, own, seen)| !own.is_subset(seen))
        .collect();
    assert!(other.is_empty(), "name, features in the daemon, features in tests: {other:#?}");
}
