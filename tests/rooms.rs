//! Rooms import `model` and `supervise`, never each other: reads every `crate::X` in profiler/src and refuses an arrow
//! that is not in [`ALLOWED`].
//!
//! A room is a directory or a top-level file of profiler/src. Paths in comments and strings do not count;
//! `use emberscope::X` cannot occur inside the library.

use std::path::{Path, PathBuf};

/// Room -> what it may import besides itself, `model` and `rights`, which every thread begins with. `*` is everything.
const ALLOWED: [(&str, &[&str]); 21] = [
    ("model", &[]),
    ("arch", &[]),
    ("rights", &[]),
    ("supervise", &[]),
    ("capture", &["arch"]),
    ("unwind", &["arch", "target"]),
    // What is read of a process may never come.
    ("process", &["target"]),
    ("target", &[]),
    // What every language runtime must do; none of them is known here.
    ("runtime", &["target"]),
    ("hotspot", &["target", "runtime"]),
    // Perf maps of JVMs are written in HotSpot's way.
    ("symbolize", &["target", "runtime", "hotspot"]),
    ("aggregate", &[]),
    ("store", &[]),
    // It copies what a store wrote, and brings a store what it answers from.
    ("archive", &["store"]),
    ("export", &[]),
    // Names as JVMs write them are read alike wherever they come from; its tests read back what was exported.
    ("import", &["target", "hotspot", "export"]),
    ("push", &["export"]),
    // Answers come out of the store by its trait, and go out in an export's format.
    ("serve", &["store", "export"]),
    ("cli", &["*"]),
    ("pipeline", &["*"]),
    ("main", &["*"]),
];

/// The rooms that a line of Rust imports by `crate::`.
fn imports(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let mut found = Vec::new();
    for (at, matched) in code.match_indices("crate::") {
        let whole_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let in_string = code[..at].matches('"').count() % 2 == 1;
        if !whole_word || in_string {
            continue;
        }
        let rest = &code[at + matched.len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut start = 0;
            for (index, c) in group.char_indices().chain([(group.len(), '}')]) {
                match c {
                    '{' => depth += 1,
                    '}' if depth > 0 => depth -= 1,
                    ',' | '}' if depth == 0 => {
                        found.extend(first_word(group[start..index].trim()));
                        start = index + 1;
                        if c == '}' {
                            break;
                        }
                    }
                    _ => {}
                }
            }
        } else {
            found.extend(first_word(rest));
        }
    }
    found
}

fn first_word(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!word.is_empty()).then_some(word)
}

/// Statements of a file, each on one line, so that a `use` broken over lines is seen whole.
fn statements(source: &str) -> String {
    let mut joined = String::new();
    let mut open_use = false;
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or_default().trim();
        open_use |= code.starts_with("use ") || code.starts_with("pub use ");
        joined.push_str(if open_use { code } else { line });
        open_use &= !code.ends_with(';');
        if !open_use {
            joined.push('\n');
        }
    }
    joined
}

/// `room imports other`, for each arrow of a file that is not allowed. `rooms` are those there are: a
/// `crate::X` that is none of them is an item of the crate's root.
fn forbidden(room: &str, source: &str, rooms: &[String]) -> Vec<String> {
    let allowed = ALLOWED.iter().find(|(name, _)| *name == room).map_or(&[][..], |(_, allowed)| *allowed);
    statements(source)
        .lines()
        .flat_map(imports)
        .filter(|to| rooms.contains(to) && to != room && to != "model" && to != "rights")
        // Only tests say that they cannot run.
        .filter(|to| to != "skipped")
        // Every room has threads; this one knows none of them.
        .filter(|to| to != "supervise" || room == "model")
        .filter(|to| !allowed.contains(&"*") && !allowed.contains(&to.as_str()))
        .map(|to| format!("{room} imports {to}"))
        .collect()
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn rooms_import_model_and_never_each_other() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("profiler/src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let room_of = |file: &PathBuf| {
        let first = file.strip_prefix(&source).unwrap().iter().next().unwrap().to_str().unwrap();
        first.trim_end_matches(".rs").to_owned()
    };
    let rooms: Vec<String> =
        files.iter().map(room_of).filter(|room| room != "lib" && room != "main").collect();
    assert!(rooms.contains(&"model".to_owned()) && rooms.contains(&"pipeline".to_owned()));
    let mut wrong = Vec::new();
    for file in &files {
        let room = room_of(file);
        if room != "lib" {
            let text = std::fs::read_to_string(file).unwrap();
            let arrows = forbidden(&room, &text, &rooms);
            wrong.extend(arrows.into_iter().map(|arrow| format!("{}: {arrow}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "rooms import `model`, never each other:\n{}", wrong.join("\n"));
}

#[test]
fn arrows_are_seen_in_every_spelling() {
    let rooms = ["store", "serve", "export", "model"].map(str::to_owned);
    let arrows = |room, source| forbidden(room, source, &rooms);
    assert_eq!(arrows("store", "use crate::serve::Api;"), ["store imports serve"]);
    assert_eq!(arrows("store", "use crate::{model::{A, B}, export};"), ["store imports export"]);
    assert_eq!(
        arrows("store", "use crate::{\n    model::A, // a\n    serve::{B, C},\n};"),
        ["store imports serve"]
    );
    assert_eq!(arrows("store", "    let a = crate::serve::api(1);"), ["store imports serve"]);
    assert_eq!(arrows("a_new_room", "pub(crate) use crate::store::Store;"), ["a_new_room imports store"]);
}

#[test]
fn what_is_allowed_or_no_import_passes() {
    let rooms = ["store", "serve", "export", "model"].map(str::to_owned);
    let source = "//! [`crate::serve`]\nuse crate::model::A;\nuse crate::store::inner;\nlet s = \"crate::serve\";\n\
                  pub(crate) fn f() {} // crate::serve\nuse mycrate::serve;\n";
    assert_eq!(forbidden("store", source, &rooms), Vec::<String>::new());
    let serve = "use crate::{store::Store, export::svg, model::*};";
    assert_eq!(forbidden("serve", serve, &rooms), Vec::<String>::new());
    assert_eq!(forbidden("pipeline", serve, &rooms), Vec::<String>::new());
}
