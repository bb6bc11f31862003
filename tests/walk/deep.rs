//! Stacks of hundreds of calls.

use super::*;

/// Recursions that deep are whole: most samples are below all of it.
fn deep(test: &str, major: u32, depth: usize, flags: &[&str]) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(java) = java(test, major) else { return };
    let Some(seen) = seen(test, &features, &java, flags, &["Walk", "deep", &depth.to_string()]) else {
        return;
    };
    seen.print(&format!("JDK {major} {flags:?} {depth} deep"));
    // Without inlining a frame a call.
    let whole = seen.count(|stack| seen.rooted(stack) && stack.user.len() >= depth);
    let all = seen.count(|_| true);
    assert!(all > 300 && whole * 100 >= all * 95, "{whole} of {all} have {depth} frames and are rooted");
    let cut = seen.count(|stack| stack.end == StackEnd::DepthLimit);
    assert_eq!(cut, 0, "cut at the depth limit");
}

#[test]
fn deep_480_is_whole_17() {
    deep("deep_480_is_whole_17", 17, 480, &["-XX:-Inline"]);
}

/// As [`all_other_jvms`].
#[test]
#[ignore = "`cargo xtask bench stacks --rows walk` runs it"]
fn deep_stacks_of_other_jvms() {
    each(&[
        ("deep_300_is_whole_17", &|name| deep(name, 17, 300, &["-XX:-Inline"])),
        ("deep_480_is_whole_8", &|name| deep(name, 8, 480, &["-XX:-Inline"])),
        ("deep_480_is_whole_25", &|name| deep(name, 25, 480, &["-XX:-Inline"])),
        ("deep_480_interpreted_is_whole_17", &|name| deep(name, 17, 480, &["-Xint"])),
    ]);
}
