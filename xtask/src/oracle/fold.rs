//! Names of generated classes without what differs from run to run: counters, addresses. Told and seen names are
//! both folded, so this must only be no coarser than it need be.

/// Prefixes that a counter follows.
const COUNTED: [&str; 4] = ["$$Lambda$", "GeneratedMethodAccessor", "GeneratedConstructorAccessor", "$Proxy"];

/// `A$$Lambda$14/0x7f00.run` and `A$$Lambda+0x7f00.run` become `A$$Lambda.run`.
pub fn fold(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some(prefix) = COUNTED.iter().find(|prefix| rest.starts_with(**prefix)) {
            out.push_str(prefix.strip_suffix("Lambda$").map_or(*prefix, |_| "$$Lambda"));
            rest = rest[prefix.len()..].trim_start_matches(|d: char| d.is_ascii_digit());
            continue;
        }
        let hidden = rest.strip_prefix(['/', '+']).and_then(|tail| {
            let after = match tail.strip_prefix("0x") {
                Some(digits) => digits.trim_start_matches(|d: char| d.is_ascii_hexdigit()),
                None => tail.trim_start_matches(|d: char| d.is_ascii_digit()),
            };
            (after.len() < tail.len() && (after.is_empty() || after.starts_with('.'))).then_some(after)
        });
        match hidden {
            Some(after) => rest = after,
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// A Java method as async-profiler's collapsed stacks have it, folded: `java/util/A$$Lambda.0x000071e4.apply` is
/// `java.util.A$$Lambda.apply`.
pub fn of_collapsed(name: &str) -> String {
    let text = name.replace('/', ".");
    let parts = text.split('.').filter(|part| {
        let digits = part.strip_prefix("0x").unwrap_or(part);
        let hidden = part.starts_with("0x") || part.len() > 4;
        !(hidden
            && !digits.is_empty()
            && digits.chars().all(|c| c.is_ascii_hexdigit())
            && digits.contains(|c: char| c.is_ascii_digit()))
    });
    fold(&parts.collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_addresses_go() {
        for (from, to) in [
            ("Oracle$$Lambda$3/0x00007f3de0001cb8.run", "Oracle$$Lambda.run"),
            ("Oracle$$Lambda/0x0000000078041800.run", "Oracle$$Lambda.run"),
            ("Oracle$$Lambda+0x0000000078041800.run", "Oracle$$Lambda.run"),
            ("A$$Lambda$14/1234567.apply", "A$$Lambda.apply"),
            ("A$$Lambda.apply", "A$$Lambda.apply"),
            (
                "java.lang.invoke.LambdaForm$DMH/0x0000000078043000.invokeStatic",
                "java.lang.invoke.LambdaForm$DMH.invokeStatic",
            ),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor1.invoke",
                "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
            ),
            ("Programs.lambda$body$4", "Programs.lambda$body$4"),
            ("Storm000123.burn000123", "Storm000123.burn000123"),
        ] {
            assert_eq!(fold(from), to);
        }
    }

    #[test]
    fn names_of_collapsed_stacks() {
        assert_eq!(of_collapsed("org/A$$Lambda.0x000071e4c0.apply"), "org.A$$Lambda.apply");
        assert_eq!(of_collapsed("a/feed.add"), "a.feed.add");
    }
}
