//! From a perf map's text to a frame: `java.lang.String java.io.File.getPath()` becomes the name
//! `java.io.File.getPath` with the signature `()java.lang.String` beside it; everything that is no
//! method (`Interpreter`, `StubRoutines (1)`, `I2C/C2I adapters`) is a stub.
//!
//! HotSpot writes `Method::external_name` with the return type (codeCache.cpp `write_perf_map`, JDK 17
//! and 25); perf-map-agent, used with JDK 8, writes `Ljava/io/File;::getPath`. Names that a JVM makes
//! up with a counter or an address are folded, so that two runs can be compared.

use emberscope_hotspot::fold;
use emberscope_model::{Frame, FrameKind};
use emberscope_target::text;
use std::borrow::Cow;

/// The frame for one entry of a perf map. `java` says that a JVM wrote it; other runtimes' names
/// (node, CPython) are kept as they are.
pub fn frame(entry: &[u8], java: bool) -> Frame {
    let entry = text::bounded(entry, text::MAX_NAME);
    if !java {
        return Frame::new(FrameKind::Native, entry, "");
    }
    match method(&entry) {
        Some((name, signature)) => Frame {
            signature: signature.map(|s| fold(&s).into()),
            ..Frame::new(FrameKind::JavaCompiled, fold(&name).as_ref(), "")
        },
        None => Frame::new(FrameKind::Stub, entry, ""),
    }
}

/// Name and signature, when `entry` is a method.
fn method(entry: &str) -> Option<(Cow<'_, str>, Option<String>)> {
    if let Some((class, method)) = entry.split_once("::") {
        let class = class.strip_prefix('L').unwrap_or(class).trim_end_matches(';').replace('/', ".");
        return Some((format!("{class}.{method}").into(), None));
    }
    // A return type has no blank in it; a method's name (Kotlin, Scala) may have.
    let (returns, rest) = entry.split_once(' ')?;
    // A name that was cut at the limit has lost its end, and perhaps its parameters.
    let (name, parameters) = match rest.split_once('(') {
        Some((name, parameters)) if parameters.ends_with(')') || entry.ends_with('…') => {
            (name, Some(parameters))
        }
        None if entry.ends_with('…') => (rest, None),
        _ => return None,
    };
    let (class, method) = name.rsplit_once('.')?;
    if class.is_empty() || method.is_empty() || method.ends_with(' ') || class.contains(' ') {
        return None;
    }
    Some((name.into(), parameters.map(|p| format!("({p}{returns}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(entry: &str) -> (FrameKind, String, String) {
        let f = frame(entry.as_bytes(), true);
        (f.kind, f.name.to_string(), f.signature.as_deref().unwrap_or("").to_owned())
    }
    fn java(name: &str, signature: &str) -> (FrameKind, String, String) {
        (FrameKind::JavaCompiled, name.to_owned(), signature.to_owned())
    }

    #[test]
    fn methods_as_hotspot_writes_them() {
        assert_eq!(
            parts("java.lang.String java.io.File.getPath()"),
            java("java.io.File.getPath", "()java.lang.String")
        );
        assert_eq!(parts("void java.lang.Object.<init>()"), java("java.lang.Object.<init>", "()void"));
        assert_eq!(
            parts("int java.lang.StringLatin1.compareTo(byte[], byte[])"),
            java("java.lang.StringLatin1.compareTo", "(byte[], byte[])int")
        );
        assert_eq!(
            parts("scala.Option org.a.B$.$anonfun$x$1(int)"),
            java("org.a.B$.$anonfun$x$1", "(int)scala.Option")
        );
        assert_eq!(parts("void Foo.adds two numbers(int)"), java("Foo.adds two numbers", "(int)void"));
    }

    #[test]
    fn stubs() {
        for stub in [
            "Interpreter",
            "StubRoutines (1)",
            "StubRoutines (initialstubs)",
            "I2C/C2I adapters",
            "C2 Runtime new_array",
            "vtable chunks",
            "NullPointerException at call throw_exception",
        ] {
            assert_eq!(parts(stub), (FrameKind::Stub, stub.to_owned(), String::new()));
        }
    }

    #[test]
    fn other_writers() {
        assert_eq!(parts("Ljava/io/File;::getPath").1, "java.io.File.getPath");
        let frame = frame(b"LazyCompile:*foo /app/x.js:1", false);
        assert_eq!((frame.kind, &*frame.name), (FrameKind::Native, "LazyCompile:*foo /app/x.js:1"));
    }

    #[test]
    fn long_names_are_cut() {
        let long = format!("void a.{}.m(int)", "b".repeat(5000));
        let f = frame(long.as_bytes(), true);
        assert!(f.name.len() <= text::MAX_NAME + 3);
        assert_eq!(f.kind, FrameKind::JavaCompiled);
    }

    proptest! {
        #[test]
        fn takes_anything(entry in proptest::collection::vec(any::<u8>(), 0..200), java: bool) {
            let f = frame(&entry, java);
            prop_assert!(f.name.len() <= 3 * text::MAX_NAME + 3);
        }
    }
}
