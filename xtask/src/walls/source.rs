//! The product's files as the walls' tests read them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A file of Rust.
pub struct Source {
    /// From the root of the tree.
    pub path: String,
    /// Its text without comments.
    pub code: String,
    /// How many lines its text has.
    pub lines: usize,
    /// Where the module of its tests begins in it.
    tests: usize,
    /// True of a file that is compiled for tests alone.
    pub test: bool,
}

impl Source {
    /// One of the product that is made up.
    pub fn of_product(path: &str, code: &str) -> Self {
        Self { path: path.to_owned(), code: code.to_owned(), lines: 0, tests: code.len(), test: false }
    }

    /// Its code, without that of its tests.
    pub fn product(&self) -> &str {
        if self.test { "" } else { &self.code[..self.tests] }
    }

    /// The room that it is in: `store` of profiler/store/src.
    pub fn room(&self) -> Option<&str> {
        let (room, rest) = self.path.strip_prefix("profiler/")?.split_once('/')?;
        rest.starts_with("src/").then_some(room)
    }
}

/// All files of the tree, in order of their paths.
pub fn all() -> &'static [Source] {
    static ALL: LazyLock<Vec<Source>> = LazyLock::new(read);
    &ALL
}

fn read() -> Vec<Source> {
    let root = crate::places::workspace();
    let mut paths = Vec::new();
    for dir in ["profiler", "profiler-ebpf", "tests", "xtask"] {
        find(&root.join(dir), &mut paths);
    }
    paths.sort();
    let mut tests = HashSet::new();
    let mut read = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = plain(&text);
        tests.extend(declared_for_tests(&path, &code));
        read.push((path, code, text.lines().count()));
    }
    let source = |(path, code, lines): (PathBuf, String, usize)| {
        let test = path.ancestors().any(|above| tests.contains(above));
        let path = path.strip_prefix(root).unwrap().display().to_string();
        let tests = code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len());
        let product = path.starts_with("profiler") && !path.contains("/examples/");
        let apart = ["profiler/testkit", "profiler/fuzz", "profiler/tests"];
        let test = test || !product || apart.iter().any(|dir| path.starts_with(dir));
        Source { path, code, lines, tests, test }
    };
    read.into_iter().map(source).collect()
}

/// Files of Rust in a directory and below.
fn find(dir: &Path, to: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            if !path.join("CACHEDIR.TAG").exists() && entry.file_name() != "node_modules" {
                find(&path, to);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            to.push(path);
        }
    }
}

/// The directory and the file of each module that a file has for tests alone.
fn declared_for_tests(path: &Path, code: &str) -> Vec<PathBuf> {
    let dir = module_dir(path);
    // The doors of the fuzz targets are compiled with debug assertions.
    let marks = ["#[cfg(test)]\n", "#[cfg(debug_assertions)]\n"];
    let after = marks.iter().flat_map(|mark| code.split(mark).skip(1));
    let names = after.filter_map(|after| {
        let line = after.lines().next()?.trim();
        line.strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name)
    });
    names.flat_map(|name| [dir.join(name), dir.join(format!("{name}.rs"))]).collect()
}

/// Where the modules of a file are.
fn module_dir(path: &Path) -> PathBuf {
    match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") => path.parent().unwrap().to_owned(),
        _ => path.with_extension(""),
    }
}

/// Code without its comments. Texts stay: attributes of serde name functions in them.
fn plain(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            _ if first.is_ascii_alphabetic() && first != 'r' => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                code.push_str(&rest[..end]);
                end
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => {
                code.push_str(&rest[..text_len(rest)]);
                text_len(rest)
            }
            'r' if raw_hashes(rest).is_some()
                && !code.ends_with(|c: char| c.is_alphanumeric() || c == '_') =>
            {
                let end = format!("\"{}", "#".repeat(raw_hashes(rest).unwrap()));
                let begun = end.len() + 1;
                let len = rest[begun..].find(&end).map_or(rest.len(), |at| begun + at + end.len());
                code.push_str(&rest[..len]);
                len
            }
            // The characters that would open a text.
            '\'' if rest.starts_with("'\"'") => 3,
            '\'' if rest.starts_with("'\\\"'") => 4,
            other => {
                code.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[len..];
    }
    code
}

/// Bytes of the text that `rest` begins with, its quotes with it.
fn text_len(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// How many `#` a raw text has, if `rest` begins with one.
fn raw_hashes(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let opened = after.trim_start_matches('#');
    opened.starts_with('"').then(|| after.len() - opened.len())
}

/// The words of some code.
pub fn words(code: &str) -> impl Iterator<Item = &str> {
    let bytes = code.as_bytes();
    let in_word = |at: usize| bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = (at..bytes.len()).find(|&at| in_word(at))?;
        at = (from..bytes.len()).find(|&at| !in_word(at)).unwrap_or(bytes.len());
        Some(&code[from..at])
    })
}

/// The name of the function that a line begins.
pub fn function(line: &str) -> Option<&str> {
    let mut before = line.trim_start();
    if let Some(rest) = before.strip_prefix("pub") {
        before = rest.split_once([' ', ')'])?.1.trim_start();
    }
    for word in ["const ", "async ", "unsafe ", "extern \"C\" "] {
        before = before.strip_prefix(word).unwrap_or(before);
    }
    words(before.strip_prefix("fn ")?).next()
}

#[test]
fn comments_are_gone_and_texts_stay() {
    let code = plain("a /* b */ \"c \\\" // d\" 'e' '\"' r#\"f \" // g\"# // h\ni for j in r");
    let words: Vec<_> = words(&code).collect();
    assert_eq!(words, ["a", "b", "c", "d", "e", "r", "f", "g", "i", "for", "j", "in", "r"]);
}
