//! Names as a JVM keeps them, made into those that people read: Symbols (modified UTF-8) in, text out.
//!
//! `java/io/File` becomes `java.io.File`, and `([BI)J` becomes `(byte[], int)long`, as HotSpot's own
//! `Method::external_name` writes them and so as perf maps have them. What a JVM makes up with a counter or
//! an address is folded, so that two runs can be compared. Text is bounded and has no control characters.

use emberscope_target::text;
use std::borrow::Cow;

/// `package.Class` from a class's internal name.
pub fn class(symbol: &[u8]) -> String {
    let dotted: Vec<u8> = symbol.iter().map(|b| if *b == b'/' { b'.' } else { *b }).collect();
    fold(&plain(&dotted)).into_owned()
}

/// A name without packages: a method's, a file's.
pub fn plain(symbol: &[u8]) -> String {
    text::bounded(&utf8(symbol), text::MAX_NAME)
}

/// `(byte[], int)long` from a method's descriptor; None when it is none, or too long.
pub fn signature(descriptor: &[u8]) -> Option<String> {
    let mut rest = descriptor.strip_prefix(b"(")?;
    let mut out = String::from("(");
    loop {
        if let Some(returned) = rest.strip_prefix(b")") {
            let end = one_type(returned, &mut String::new())?;
            let mut last = String::new();
            one_type(returned, &mut last)?;
            out.push(')');
            out.push_str(&last);
            return (end.is_empty() && out.len() <= text::MAX_NAME).then(|| fold(&out).into_owned());
        }
        if out.len() > 1 {
            out.push_str(", ");
        }
        rest = one_type(rest, &mut out)?;
        if out.len() > text::MAX_NAME {
            return None;
        }
    }
}

/// `byte[][]` from an array class's internal name, which is its descriptor; None when it is none.
pub fn array(symbol: &[u8]) -> Option<String> {
    let mut out = String::new();
    let rest = one_type(symbol, &mut out)?;
    let sound = symbol.starts_with(b"[") && rest.is_empty() && out.len() <= text::MAX_NAME;
    sound.then(|| fold(&out).into_owned())
}

/// Writes the type that `rest` begins with, and returns what follows it.
fn one_type<'a>(rest: &'a [u8], out: &mut String) -> Option<&'a [u8]> {
    let dimensions = rest.iter().take_while(|b| **b == b'[').count();
    let rest = rest.get(dimensions..)?;
    let (kind, mut rest) = rest.split_first()?;
    match kind {
        b'L' => {
            let end = rest.iter().position(|b| *b == b';')?;
            let dotted: Vec<u8> =
                rest.get(..end)?.iter().map(|b| if *b == b'/' { b'.' } else { *b }).collect();
            out.push_str(&plain(&dotted));
            rest = rest.get(end + 1..)?;
        }
        b'B' => out.push_str("byte"),
        b'C' => out.push_str("char"),
        b'D' => out.push_str("double"),
        b'F' => out.push_str("float"),
        b'I' => out.push_str("int"),
        b'J' => out.push_str("long"),
        b'S' => out.push_str("short"),
        b'Z' => out.push_str("boolean"),
        b'V' => out.push_str("void"),
        _ => return None,
    }
    // An array has at most 255 dimensions (JVMS 4.3.2).
    (0..dimensions.min(255)).for_each(|_| out.push_str("[]"));
    Some(rest)
}

/// Modified UTF-8 (JVMS 4.4.7) as UTF-8: zero is in two bytes, characters beyond U+FFFF are two surrogates of
/// three bytes each. What is neither stays as it is.
fn utf8(symbol: &[u8]) -> Cow<'_, [u8]> {
    if !symbol.iter().any(|b| matches!(b, 0xc0 | 0xed)) {
        return Cow::Borrowed(symbol);
    }
    let mut out = Vec::with_capacity(symbol.len());
    let mut rest = symbol;
    while let Some((first, tail)) = rest.split_first() {
        match rest {
            [0xc0, 0x80, tail @ ..] => {
                out.push(0);
                rest = tail;
            }
            [0xed, a @ 0xa0..=0xaf, b @ 0x80..=0xbf, 0xed, c @ 0xb0..=0xbf, d @ 0x80..=0xbf, tail @ ..] => {
                let bits = |byte: &u8, count: u32| u32::from(*byte) & ((1 << count) - 1);
                let high = bits(a, 4) << 6 | bits(b, 6);
                let low = bits(c, 4) << 6 | bits(d, 6);
                let c = char::from_u32(0x1_0000 + (high << 10 | low)).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = tail;
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    Cow::Owned(out)
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

    #[test]
    fn descriptors_as_hotspot_prints_them() {
        for (descriptor, expected) in [
            ("()V", "()void"),
            ("([B[B)I", "(byte[], byte[])int"),
            (
                "(IJLjava/lang/String;[[Ljava/util/Map;Z)[D",
                "(int, long, java.lang.String, java.util.Map[][], boolean)double[]",
            ),
            ("(CFS)Lx$$Lambda$14;", "(char, float, short)x$$Lambda"),
        ] {
            assert_eq!(signature(descriptor.as_bytes()).as_deref(), Some(expected));
        }
        for broken in ["", "(", "()", "(V", "(Lx)V", "()VV", "()L;x", "(X)V"] {
            assert_eq!(signature(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn classes_are_dotted_and_folded() {
        assert_eq!(class(b"java/io/File"), "java.io.File");
        assert_eq!(class(b"a/H$$Lambda$1+0x00007f00aa001200"), "a.H$$Lambda");
        assert_eq!(class(b"a/H$$Lambda+0x00007f00aa001200"), "a.H$$Lambda");
        assert_eq!(class(b"A$$Lambda$14"), "A$$Lambda");
    }

    #[test]
    fn arrays_as_java_writes_them() {
        for (symbol, expected) in [
            ("[B", "byte[]"),
            ("[[J", "long[][]"),
            ("[Ljava/lang/String;", "java.lang.String[]"),
            ("[[La/H$$Lambda+0x00007f00aa001200;", "a.H$$Lambda[][]"),
        ] {
            assert_eq!(array(symbol.as_bytes()).as_deref(), Some(expected));
        }
        for broken in ["", "B", "[", "[X", "[Lx", "[BB", "Lx;"] {
            assert_eq!(array(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn characters_of_every_plane() {
        assert_eq!(plain("名前é".as_bytes()), "名前é");
        assert_eq!(plain(b"a\xed\xa0\xbd\xed\xb8\x80b"), "a😀b");
        assert_eq!(plain(b"a\xc0\x80b"), "a?b", "a zero is a control character");
        assert_eq!(plain(b"\xed\xa0\xbd").chars().next(), Some(char::REPLACEMENT_CHARACTER));
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

    proptest! {
        #[test]
        fn takes_anything(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert!(class(&bytes).len() <= 3 * text::MAX_NAME + 3);
            prop_assert!(signature(&bytes).is_none_or(|s| s.len() <= text::MAX_NAME));
        }
        #[test]
        fn folding_never_grows(name in "[A-Za-z$./+x0-9]{0,60}") {
            let once = fold(&name).into_owned();
            prop_assert!(once.len() <= name.len());
        }
    }
}
