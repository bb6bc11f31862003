//! Files of different folders of a room import each other in one direction, but for a file and those of its own folder.
//!
//! Which file a path leads to is read from the text: `crate::`, `super::` and `self::` lead to modules, and what a
//! module takes from one of its own (`use child::Name`) to that one.

use super::source::{self, Source};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A module's path in its crate.
type Module<'a> = Vec<&'a str>;

/// The files of a room's product.
#[derive(Default)]
struct Room<'a> {
    code: BTreeMap<Module<'a>, &'a str>,
    /// What each module takes from its own, by name.
    taken: HashMap<Module<'a>, HashMap<&'a str, Module<'a>>>,
}

/// The module that a file is.
fn module(path: &str) -> Option<Module<'_>> {
    let (_, path) = path.strip_suffix(".rs")?.split_once("/src/")?;
    let mut module: Module<'_> = path.split('/').collect();
    module.pop_if(|last| matches!(*last, "mod" | "lib"));
    Some(module)
}

/// The paths of a tree, `a::{b, c::d}`, which ends where a path cannot go on.
fn paths<'a>(tree: &'a str, before: &[&'a str], to: &mut Vec<Module<'a>>) -> usize {
    let mut path = before.to_vec();
    let mut at = 0;
    loop {
        at += tree[at..].len() - tree[at..].trim_start().len();
        if tree[at..].starts_with('{') {
            at += 1;
            while let Some(next) = tree[at..].trim_start().chars().next() {
                at = tree.len() - tree[at..].trim_start().len();
                match next {
                    '}' => return at + 1,
                    ',' => at += 1,
                    _ => at += paths(&tree[at..], &path, to).max(1),
                }
            }
            return at;
        }
        let len = tree[at..].bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        path.extend((len > 0).then_some(&tree[at..at + len]));
        at += len;
        if len == 0 || !tree[at..].starts_with("::") {
            to.push(path);
            return at;
        }
        at += 2;
    }
}

/// All paths in some code that begin with one of these words.
fn begun_with<'a>(code: &'a str, begins: &[&str]) -> Vec<Module<'a>> {
    let mut found = Vec::new();
    for begin in begins {
        for (at, _) in code.match_indices(&format!("{begin}::")) {
            let inner = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if !inner {
                paths(&code[at..], &[], &mut found);
            }
        }
    }
    found
}

impl<'a> Room<'a> {
    fn of(files: &[&'a Source]) -> Self {
        let mut room = Self::default();
        room.code.extend(files.iter().filter_map(|file| Some((module(&file.path)?, file.product()))));
        for (module, code) in &room.code {
            let children = room.code.keys().filter(|other| other.len() == module.len() + 1);
            let children =
                children.filter(|other| other.starts_with(module)).filter_map(|other| other.last());
            let begins: Vec<String> = children.map(|child| format!("use {child}")).collect();
            let mut taken = HashMap::new();
            for begin in &begins {
                for (at, _) in code.match_indices(&format!("{begin}::")) {
                    let mut found = Vec::new();
                    paths(&code[at + "use ".len()..], &[], &mut found);
                    let whole = |path: Module<'a>| Some((*path.last()?, [module.clone(), path].concat()));
                    taken.extend(found.into_iter().filter_map(whole));
                }
            }
            room.taken.insert(module.clone(), taken);
        }
        room
    }

    /// The file that a path in `from` leads to.
    fn file(&self, from: &[&'a str], path: &[&'a str]) -> Module<'a> {
        let mut at: Module<'a> = if path.first() == Some(&"crate") { Vec::new() } else { from.to_vec() };
        let mut rest = path.iter().copied();
        let mut name = None;
        for word in rest.by_ref() {
            match word {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                word if self.code.contains_key(&[&at[..], &[word]].concat()) => at.push(word),
                word => {
                    name = Some(word);
                    break;
                }
            }
        }
        match name.and_then(|name| self.taken.get(&at)?.get(name)) {
            Some(inner) => self.file(&[], inner),
            None => at,
        }
    }

    /// What each file imports, but for those of its own folder.
    fn imports(&self) -> BTreeMap<&Module<'a>, BTreeSet<Module<'a>>> {
        let of = |(module, code): (&'_ Module<'a>, &&'a str)| -> BTreeSet<Module<'a>> {
            let paths = begun_with(code, &["crate", "super", "self"]);
            let files = paths.iter().map(|path| self.file(module, path));
            files.filter(|file| !file.starts_with(module)).collect()
        };
        self.code.iter().map(|each| (each.0, of(each))).collect()
    }

    /// Files that lead to themselves, with all that lie on the way.
    fn circles(&self) -> BTreeSet<Vec<String>> {
        let imports = self.imports();
        let reached = |from: &Module<'a>| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<&Module<'a>> = imports.get(from).into_iter().flatten().collect();
            while let Some(module) = next.pop() {
                if reached.insert(module) {
                    next.extend(imports.get(module).into_iter().flatten());
                }
            }
            reached
        };
        let reached: BTreeMap<_, _> = imports.keys().map(|module| (*module, reached(module))).collect();
        let circle = |module: &&Module<'a>| {
            let both = reached[module]
                .iter()
                .filter(|other| reached.get(*other).is_some_and(|r| r.contains(module)));
            both.map(|other| other.join("/")).collect::<Vec<_>>()
        };
        imports.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
    }
}

#[test]
fn folders_import_each_other_in_one_direction() {
    let mut rooms: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for file in source::all().iter().filter(|file| !file.test) {
        rooms.entry(file.room().unwrap_or("")).or_default().push(file);
    }
    rooms.remove("");
    // Files of one folder are read together.
    let folders = |circle: &Vec<String>| {
        let folders = circle.iter().map(|file| file.rsplit_once('/').map_or("", |(folder, _)| folder));
        folders.collect::<BTreeSet<_>>().len()
    };
    let mut circles = Vec::new();
    for (name, files) in &rooms {
        let wide = Room::of(files).circles().into_iter().filter(|circle| folders(circle) > 1);
        circles.extend(wide.map(|circle| format!("{name}: {circle:?}")));
    }
    assert!(circles.is_empty(), "put what these share into a file that imports none of them: {circles:#?}");
}

#[test]
fn a_path_leads_to_a_file() {
    let source = |path: &str, code: &str| Source::of_product(&format!("profiler/r/src/{path}"), code);
    let files = [
        source("lib.rs", "mod a;\nmod b;\npub use a::Top;"),
        source("a/mod.rs", "mod c;\npub use c::{Deep as D, Inner};\nuse super::b::Other;"),
        source("a/c.rs", "use crate::{b::{self, Other}, a::Top};"),
        source("b.rs", "fn f() -> super::a::Inner {}"),
    ];
    let files: Vec<&Source> = files.iter().collect();
    let room = Room::of(&files);
    let imports = room.imports();
    let of = |module: &[&str]| imports[&module.to_vec()].iter().map(|m| m.join("/")).collect::<Vec<_>>();
    assert_eq!((of(&["a"]), of(&["a", "c"])), (vec!["b".to_owned()], vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(of(&["b"]), ["a/c"]);
    assert_eq!(room.circles().len(), 1);
}
