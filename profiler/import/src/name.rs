//! Names of other profilers as ours: what kind of code a frame is, told by its name where nothing else tells.
//!
//! In: a frame of folded stacks or pprof. Out: a [`Frame`]. async-profiler's suffixes (`_[j]` compiled, `_[1]` compiled by C1,
//! `_[i]` inlined, `_[0]` interpreted, `_[k]` kernel) are taken off. Without one, a name of Java's shape
//! (`a/b/C.m`, `a.b.C.m`) is taken for Java's.

use emberscope_hotspot::fold;
use emberscope_model::{Frame, FrameKind, UnknownReason};
use emberscope_target::text;
use std::borrow::Cow;

const SUFFIXES: [(&str, FrameKind); 5] = [
    ("_[j]", FrameKind::JavaCompiled),
    ("_[1]", FrameKind::JavaCompiled),
    ("_[i]", FrameKind::JavaInlined),
    ("_[0]", FrameKind::JavaInterpreted),
    ("_[k]", FrameKind::Kernel),
];

/// A frame by its name alone.
pub fn frame(name: &str) -> Frame {
    let known = SUFFIXES.iter().find_map(|(suffix, kind)| Some((name.strip_suffix(suffix)?, *kind)));
    let kind = known.map(|(_, kind)| kind);
    let bare = known.map_or(name, |(bare, _)| bare);
    match kind {
        Some(FrameKind::Kernel) => Frame::new(FrameKind::Kernel, clean(bare), ""),
        Some(kind) => Frame::new(kind, java(bare), ""),
        None => plain(bare),
    }
}

fn plain(name: &str) -> Frame {
    if let Some(slug) = name.strip_prefix("[unknown: ").and_then(|rest| rest.strip_suffix(']'))
        && let Some(reason) = UnknownReason::from_slug(slug)
    {
        return Frame::unknown(reason, "");
    }
    match name {
        "[unloaded]" => Frame::unknown(UnknownReason::Unloaded, ""),
        "[unknown]" | "[unknown_Java]" | "" => Frame::unknown(UnknownReason::NoSymbol, ""),
        _ if is_java(name) => Frame::new(FrameKind::JavaCompiled, java(name), ""),
        _ => Frame::new(FrameKind::Native, clean(name), ""),
    }
}

/// A frame of a source file, which tells the language better than the name.
pub fn of_file(name: &str, file: &str) -> Frame {
    let ends = |ends: &[&str]| ends.iter().any(|end| file.ends_with(end));
    if ends(&[".java", ".scala", ".kt", ".groovy", ".clj"]) {
        Frame::new(FrameKind::JavaCompiled, java(name), "")
    } else if ends(&[".py"]) {
        Frame::new(FrameKind::Python, clean(name), "")
    } else if ends(&[".go", ".s", ".c", ".cc", ".cpp", ".h", ".rs"]) {
        Frame::new(FrameKind::Native, clean(name), "")
    } else {
        frame(name)
    }
}

/// `package.Class.method` of a class in the JVM's own form or with dots.
pub fn method(class: &str, name: &str) -> String {
    let class = hidden(class);
    format!(
        "{}.{}",
        emberscope_hotspot::class_name(class.as_bytes()),
        emberscope_hotspot::plain_name(name.as_bytes())
    )
}

/// A class in the JVM's own form, `a/b/C` or `[[B`, as `a.b.C` and `byte[][]`.
pub fn class(name: &str) -> String {
    let array = emberscope_hotspot::array_name(name.as_bytes());
    array.unwrap_or_else(|| clean(&emberscope_hotspot::class_name(hidden(name).as_bytes())))
}

/// The address of a hidden class behind a plus sign, as HotSpot 17 and newer write it: async-profiler and JFR of JDK 17 have a dot there
/// (`Foo$$Lambda$14.0x00007fd6a4000a08`).
fn hidden(name: &str) -> Cow<'_, str> {
    match name.contains(".0x") || name.contains("/0x") {
        true => Cow::Owned(name.replace(".0x", "+0x").replace("/0x", "+0x")),
        false => Cow::Borrowed(name),
    }
}

/// Text without what acts on a terminal, of bounded length.
pub fn clean(name: &str) -> String {
    text::bounded(name.as_bytes(), text::MAX_NAME)
}

/// `a/b/C.m` and `a.b.C.m` as `a.b.C.m`.
fn java(name: &str) -> String {
    // What the JVM makes up is folded first: `Foo$$Lambda/0x0000.run` has a slash that is no package's.
    let name = hidden(name);
    let folded: Cow<'_, str> = fold(&name);
    let (class, method) = folded.rsplit_once('.').unwrap_or(("", &folded));
    clean(&match class {
        "" => method.to_owned(),
        _ => format!("{}.{method}", class.replace('/', ".")),
    })
}

/// Java's shape: identifiers with dots or slashes between, a package or a class with a capital; nothing that
/// compilers and linkers add to native names.
fn is_java(name: &str) -> bool {
    let name = hidden(name);
    let folded = fold(&name);
    let Some((class, method)) = folded.rsplit_once('.') else { return false };
    let identifier = |text: &str| {
        let mut chars = text.chars();
        let first = chars.next().is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '$'));
        first && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'))
    };
    let is_method = matches!(method, "<init>" | "<clinit>") || identifier(method);
    let last = class.rsplit(['.', '/']).next().unwrap_or_default();
    let added = matches!(method, "so" | "cold" | "part" | "isra" | "constprop" | "llvm");
    is_method
        && !added
        && class.split(['.', '/']).all(identifier)
        && last.chars().next().is_some_and(|c| c.is_uppercase() || c == '$')
}
