//! The barrier at a method's entry, which calls the JVM from a frame of its own: collectors that unload classes while
//! the program goes on arm it for all compiled methods.

use super::*;

/// Samples in native code below Java frames are rooted, those in the barrier too.
fn barriers(test: &str, major: u32, flags: &[&str]) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(java) = java(test, major) else { return };
    let Some(seen) = seen(test, &features, &java, flags, &["Walk", "entries"]) else { return };
    seen.print(&format!("JDK {major} {flags:?} entries"));
    let (all, rooted) = seen.below;
    let lost = seen.native.iter().filter(|(stack, _)| !seen.rooted(stack));
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    lost.for_each(|(stack, count)| *ends.entry(stack.end.slug()).or_default() += count);
    println!("    those that are not: {ends:?}");
    assert!(all >= 20, "{all} samples in what Java calls");
    assert!(rooted * 100 >= all * 95, "{rooted} of {all}: {ends:?}");
}

#[test]
fn entry_barriers_of_zgc_25() {
    barriers("entry_barriers_of_zgc_25", 25, &["-XX:+UseZGC", "-Xmx256m"]);
}

#[test]
fn entry_barriers_of_g1_25() {
    barriers(
        "entry_barriers_of_g1_25",
        25,
        &["-XX:+UseG1GC", "-XX:+ExplicitGCInvokesConcurrent", "-Xmx256m"],
    );
}
