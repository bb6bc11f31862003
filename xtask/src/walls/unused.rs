//! Nothing is `pub` that the product does not use: the compiler asks that of a crate's own names only.

use super::source::{self, words};
use std::collections::HashMap;

/// Items that tests alone may name, each with why.
const FOR_TESTS: [(&str, &str); 1] = [
    // A load and a second of sampling without a daemon: what runs on old kernels in qemu.
    ("profiler/capture/src/session/smoke.rs", "smoke"),
];

/// What may stand between `pub` and the kind of an item.
const BEFORE: [&str; 3] = ["const", "unsafe", "async"];
/// Kinds of items; a `pub` with none of them is a field.
const KINDS: [&str; 8] = ["fn", "struct", "enum", "trait", "const", "static", "type", "mod"];

/// The name of the item or field that a line makes public.
fn made_public(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(to) => to.split_once(')')?.1,
        None => rest,
    };
    if !rest.starts_with(' ') || rest.trim_start().starts_with("use ") {
        return None;
    }
    words(rest).find(|word| !BEFORE.contains(word) && !KINDS.contains(word))
}

/// Names that a room's lib.rs exports of its modules, but for types: those may be what a function gives.
fn exported(code: &str) -> Vec<&str> {
    let uses = code.split("pub use ").skip(1).filter_map(|after| after.split(';').next());
    let names = uses.flat_map(|tree| tree.split([',', '{', '}']));
    let last = names.filter(|path| !path.ends_with("::")).filter_map(|path| words(path).last());
    last.filter(|name| !name.starts_with(char::is_uppercase) || name.to_uppercase() == **name).collect()
}

/// Names that a file makes public, but for what is compiled for tests or the fuzz targets alone.
fn public(code: &str) -> impl Iterator<Item = &str> {
    let mut before = "";
    code.lines().filter_map(move |line| {
        let apart = std::mem::replace(&mut before, line.trim()).starts_with("#[cfg(");
        made_public(line).filter(|_| !apart)
    })
}

#[test]
fn what_is_public_is_named_by_the_product() {
    let product = || source::all().iter().filter(|file| !file.test);
    let mut named: HashMap<&str, u32> = HashMap::new();
    for word in product().flat_map(|file| words(file.product())) {
        *named.entry(word).or_default() += 1;
    }
    let mut unused = Vec::new();
    for file in product().filter(|file| file.room().is_some()) {
        let names = public(file.product()).filter(|name| named[name] < 2);
        let names = names.filter(|name| !FOR_TESTS.contains(&(&file.path, name)));
        unused.extend(names.map(|name| format!("{}: {name}", file.path)));
    }
    assert!(
        unused.is_empty(),
        "the product does not name these; remove them, or move them to tests: {unused:#?}"
    );
}

#[test]
fn what_a_room_exports_is_named_by_another() {
    // A room for each name, and none for one that two have.
    let mut only: HashMap<&str, Option<&str>> = HashMap::new();
    for file in source::all() {
        let of = file.room().unwrap_or("");
        for word in words(&file.code) {
            only.entry(word).and_modify(|room| *room = room.filter(|room| *room == of)).or_insert(Some(of));
        }
    }
    let mut unused = Vec::new();
    for lib in source::all().iter().filter(|file| file.room().is_some() && file.path.ends_with("/src/lib.rs"))
    {
        let names = exported(&lib.code).into_iter().filter(|name| only[name] == lib.room());
        unused.extend(names.map(|name| format!("{}: {name}", lib.path)));
    }
    assert!(unused.is_empty(), "no other room, test or tool names these: {unused:#?}");
}

#[test]
fn lines_that_make_a_name_public() {
    let of = |line| made_public(line);
    assert_eq!(of("    pub const fn pages(&self) -> u64 {"), Some("pages"));
    assert_eq!(of("pub(in super::super) async fn once() {"), Some("once"));
    assert_eq!((of("    pub bytes: u64,"), of("pub const MAX: usize = 1;")), (Some("bytes"), Some("MAX")));
    assert_eq!((of("pub use a::b;"), of("publish = 1"), of("fn pub_of() {")), (None, None, None));
    assert_eq!(exported("\npub use a::{Bc, c, D_E};\npub use f::g as h;\n"), ["c", "D_E", "h"]);
}
