//! Functions of the product have at most 80 lines and files at most 300: what is longer has parts that have a name.

use super::source;
use std::collections::BTreeSet;

const FUNCTION: usize = 80;
const FILE: usize = 300;

/// Functions of the product that are longer, each with why.
const LONG_FUNCTIONS: [(&str, &str); 1] = [
    // A call of a BPF program takes of the 512 bytes of stack that all of its callers share; what this one keeps in
    // registers from step to step would go through it.
    ("profiler-ebpf/src/walk/hotspot/steps.rs", "known"),
];

/// Files that are longer, each with why.
const LONG_FILES: [&str; 0] = [];

/// Functions of some code: name, and lines from `fn` to the brace that closes it. rustfmt puts that brace below the
/// beginning of the function's first line.
fn functions(code: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = source::function(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let ends = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| rest == "}");
        let own = || !line.ends_with([';', '}']);
        if let Some(more) = lines[at..].iter().position(ends).filter(|_| own()) {
            found.push((name, more + 1));
        }
    }
    found
}

#[test]
fn functions_are_read_in_one_sitting() {
    let mut long = BTreeSet::new();
    for file in source::all() {
        let all = functions(file.product()).into_iter().filter(|(_, lines)| *lines > FUNCTION);
        long.extend(all.map(|(name, lines)| (file.path.as_str(), name, lines)));
    }
    let is_known = |path: &str, name: &str| LONG_FUNCTIONS.contains(&(path, name));
    let new: Vec<_> = long.iter().filter(|(path, name, _)| !is_known(path, name)).collect();
    assert!(new.is_empty(), "split these functions where a part has a name: {new:#?}");
    let still = |known: &&(&str, &str)| !long.iter().any(|(path, name, _)| (*path, *name) == **known);
    let short: Vec<_> = LONG_FUNCTIONS.iter().filter(still).collect();
    assert!(short.is_empty(), "these are no longer long: {short:#?}");
}

#[test]
fn files_hold_one_concept() {
    let long: Vec<(&str, usize)> = source::all()
        .iter()
        .map(|file| (file.path.as_str(), file.lines))
        .filter(|file| file.1 > FILE)
        .collect();
    let new: Vec<_> = long.iter().filter(|(path, _)| !LONG_FILES.contains(path)).collect();
    assert!(new.is_empty(), "split these files by what they mean: {new:#?}");
    let short: Vec<_> =
        LONG_FILES.iter().filter(|known| !long.iter().any(|(path, _)| path == *known)).collect();
    assert!(short.is_empty(), "these are no longer long: {short:#?}");
}

#[test]
fn a_function_ends_below_where_it_begins() {
    let code = "pub fn a() {\n    if b {\n    }\n}\nimpl C {\n    unsafe fn d(\n        e: F,\n    ) -> G {\n        fn h() {}\n        1\n    }\n    fn i();\n}\n";
    assert_eq!(functions(code), [("a", 4), ("d", 6)]);
}
