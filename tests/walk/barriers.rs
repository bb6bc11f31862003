//! The barrier at a method's entry, which calls the JVM from a frame of its own: collectors that unload classes while
//! the program goes on arm it for all compiled methods.

use super::*;

/// Samples that the judgement rests on, and runs of the program in which there are to be so many.
const ENOUGH: usize = 20;
const ROUNDS: usize = 6;

/// Samples in native code below Java frames are rooted, those in the barrier too.
fn barriers(test: &str, major: u32, flags: &[&str]) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(java) = java(test, major) else { return };
    // On a crowded machine one run has too few samples in them.
    let (mut all, mut rooted, mut ends) = (0, 0, BTreeMap::new());
    for _ in 0..ROUNDS {
        let Some(seen) = seen(test, &features, &java, flags, &["Walk", "entries"]) else { return };
        seen.print(&format!("JDK {major} {flags:?} entries"));
        (all, rooted) = (all + seen.below.0, rooted + seen.below.1);
        for (stack, count) in seen.native.iter().filter(|(stack, _)| !seen.rooted(stack)) {
            *ends.entry(stack.end.slug()).or_insert(0) += count;
        }
        if all >= ENOUGH {
            break;
        }
    }
    println!("    those that are not: {ends:?}");
    assert!(all >= ENOUGH, "{all} samples in what Java calls");
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
