//! From a perf map's text to a frame: `java.lang.String java.io.File.getPath()` becomes the name
//! `java.io.File.getPath` with the signature `()java.lang.String` beside it; everything that is no
//! method (`Interpreter`, `StubRoutines (1)`, `I2C/C2I adapters`) is a stub.
//!
//! HotSpot writes `Method::external_name` with the return type (codeCache.cpp `write_perf_map`, JDK 17
//! and 25); perf-map-agent, used with JDK 8, writes `Ljava/io/File;::getPath`. Names that a JVM makes
//! up with a counter or an address are folded, so that two runs can be compared.

use crate::model::{Frame, FrameKind};
use crate::target::text;
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

/// Replaces what differs from run to run: `$$Lambda$14/0x00007f1e` and `$$Lambda+0x00007f1e` become
/// `$$Lambda`, `LambdaForm$MH/0x00007f1e` becomes `LambdaForm$MH`, `GeneratedMethodAccessor12` and
/// `$Proxy7` lose their numbers.
pub fn fold(name: &str) -> Cow<'_, str> {
    const COUNTED: [&str; 5] = [
        "$$Lambda$",
        "GeneratedMethodAccessor",
        "GeneratedConstructorAccessor",
        "GeneratedSerializationConstructorAccessor",
        "$Proxy",
    ];
    if !name.contains(['/', '+']) && !COUNTED.iter().any(|c| name.contains(c)) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        // The suffix of a hidden class: `/0x` or `+0x` and hexadecimal digits (JDK 15 and newer), or
        // `/` and decimal digits (the anonymous classes of JDK 8 to 14).
        if let Some(tail) = rest.strip_prefix(['/', '+'])
            && let Some(after) = hidden_suffix(tail)
        {
            rest = after;
            continue;
        }
        if let Some(counted) = COUNTED.iter().find(|p| rest.starts_with(**p)) {
            let after = rest.get(counted.len()..).unwrap_or_default();
            let kept = after.trim_start_matches(|d: char| d.is_ascii_digit());
            if kept.len() < after.len() {
                out.push_str(if *counted == "$$Lambda$" { "$$Lambda" } else { counted });
                rest = kept;
                continue;
            }
        }
        out.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    Cow::Owned(out)
}

fn hidden_suffix(tail: &str) -> Option<&str> {
    let (digits, hex) = match tail.strip_prefix("0x") {
        Some(digits) => (digits, true),
        None => (tail, false),
    };
    let after = digits.trim_start_matches(|d: char| d.is_ascii_digit() || (hex && d.is_ascii_hexdigit()));
    let ends = after.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_');
    (after.len() < digits.len() && ends).then_some(after)
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
    fn folds_what_differs_from_run_to_run() {
        for (from, to) in [
            ("Work$$Lambda$9/0x00007fbff4001448.apply", "Work$$Lambda.apply"),
            ("Work$$Lambda/0x0000000061045228.apply", "Work$$Lambda.apply"),
            ("H$$Lambda$1+0x00007f00aa.run", "H$$Lambda.run"),
            ("H$$Lambda+0x00007f00aa.run", "H$$Lambda.run"),
            ("A$$Lambda$14/1234567.apply", "A$$Lambda.apply"),
            ("scala.F$$$Lambda$7/0x01.apply$mcV$sp", "scala.F$$$Lambda.apply$mcV$sp"),
            (
                "java.lang.invoke.LambdaForm$MH/0x00007fbff4005800.invoke",
                "java.lang.invoke.LambdaForm$MH.invoke",
            ),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor1.invoke",
                "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
            ),
            ("$Proxy0.area", "$Proxy.area"),
            ("jdk.proxy2.$Proxy17.area", "jdk.proxy2.$Proxy.area"),
            ("a.B$C.d$1", "a.B$C.d$1"),
            ("a.Vec3.x+y", "a.Vec3.x+y"),
        ] {
            assert_eq!(fold(from), to);
        }
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
        #[test]
        fn folding_never_grows(name in "[A-Za-z$./+x0-9]{0,60}") {
            let once = fold(&name).into_owned();
            prop_assert!(once.len() <= name.len());
        }
    }
}
