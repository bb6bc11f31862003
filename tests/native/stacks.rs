//! A program of known stacks (fixtures/native.c), held against them frame by frame.

use super::*;
use profiler_ebpf::UserFrame;
use std::ffi::OsStr;

/// leaf, down, work, handler, compare, aligned, callback, tick, main, _start.
const LETTERS: [char; 10] = ['l', 'd', 'w', 'h', 'c', 'a', 'k', 't', 'm', 's'];

/// A stack as letters, leaf first: one for each frame of the program, a dot for any number of frames of libraries.
fn letters(stack: &RawStack, functions: &[(u64, char)], own: &[std::ops::Range<u64>]) -> String {
    let mut text = String::new();
    for frame in &stack.user {
        let at = frame.value - u64::from(frame.flags & UserFrame::FLAG_RETURN_ADDRESS);
        let letter = if own.iter().any(|range| range.contains(&at)) {
            let nearest = functions.iter().rev().find(|(start, _)| at >= *start);
            nearest.map_or('?', |(_, letter)| *letter)
        } else {
            '.'
        };
        if letter != '.' || !text.ends_with('.') {
            text.push(letter);
        }
    }
    text
}

/// Runs the C program.
fn known(test: &str, args: &[&OsStr], right: &[String]) {
    let Some((features, _guard)) = host(test) else { return };
    let program = Running::start(Command::new(native()).args(args));
    if args.first() == Some(&OsStr::new("load")) {
        std::thread::sleep(Duration::from_millis(1500));
    }
    judge(&features, test, &program, right);
}

/// At least 99.5 of 100 samples of the C program are rooted and as one of `right`.
pub fn judge(features: &HostFeatures, test: &str, program: &Running, right: &[String]) {
    let seen = sampled(features, program.pid(), |_| {});
    let (rooted, exact) = shares(test, program, right, &seen);
    assert!(seen.all > 100, "{} samples", seen.all);
    assert!(rooted >= 99.5 && exact >= 99.5, "{rooted:.2} % rooted, {exact:.2} % right");
}

/// How many of 100 samples of the C program are rooted, and how many are as one of `right`.
pub fn shares(test: &str, program: &Running, right: &[String], seen: &Seen) -> (f64, f64) {
    let addresses = program.first_line.split_whitespace();
    let addresses =
        addresses.map(|w| u64::from_str_radix(w.trim_start_matches("0x"), 16).expect("hexadecimal"));
    let mut functions: Vec<(u64, char)> = addresses.zip(LETTERS).collect();
    functions.sort_unstable();
    let own = program.own_code();
    seen.print(test);
    let rooted = seen.share("reach the root", |s| s.end == StackEnd::Root);
    let exact = |s: &RawStack| right.iter().any(|r| *r == letters(s, &functions, &own));
    let share = seen.share("are right, frame by frame", exact);
    let mut others: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for (stack, count) in &seen.stacks {
        *others.entry((letters(stack, &functions, &own), stack.end.slug())).or_default() += count;
    }
    let mut others: Vec<_> = others.into_iter().collect();
    others.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    others.iter().take(8).for_each(|(how, count)| println!("    {count:6} {how:?}"));
    seen.strays(program.pid(), exact);
    (rooted, share)
}

fn known_c(test: &str, args: &[&str], right: &[&str]) {
    let right: Vec<String> = right.iter().map(|r| (*r).to_owned()).collect();
    known(test, &args.iter().map(OsStr::new).collect::<Vec<_>>(), &right);
}

/// Stacks of a recursion: in leaf all of it, in down as far as it has come.
pub fn chains(depth: usize, below: &str) -> Vec<String> {
    let down = |n: usize| format!("{}{below}", "d".repeat(n));
    (0..=depth).map(down).chain([format!("l{}", down(depth))]).collect()
}

#[test]
fn a_chain_of_calls_in_the_main_thread() {
    known("chain", &["chain", "10"].map(OsStr::new), &chains(10, "wm.s"));
}

#[test]
fn a_chain_of_calls_in_a_thread() {
    known("thread", &["thread", "10"].map(OsStr::new), &chains(10, "w."));
}

#[test]
fn four_hundred_and_eighty_calls() {
    known("deep", &["chain", "480"].map(OsStr::new), &chains(480, "wm.s"));
}

#[test]
fn a_callback_from_the_c_library() {
    known_c("sort", &["sort"], &["c.wm.s", ".wm.s", "wm.s"]);
}

#[test]
fn the_c_librarys_own_code_in_a_thread() {
    known_c("copy", &["copy"], &[".w.", "w."]);
}

#[test]
fn a_signals_handler_and_what_it_interrupts() {
    let right =
        ["lh.ldddddwm.s", "ldddddwm.s", "lh.l.ldddddwm.s", "lh.dddddwm.s", "h.ldddddwm.s", ".ldddddwm.s"];
    known_c("signal", &["signal", "5"], &right);
    known_c("altstack", &["altstack", "5"], &right);
}

#[test]
fn functions_that_align_their_stack() {
    known_c("aligned", &["aligned", "8"], &["laaaaaaaawm.s", "aaaaaaaawm.s"]);
}

#[test]
fn a_library_that_is_opened_later() {
    let library = compiled(
        "cc",
        "loaded.c",
        &["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-shared", "-fPIC"],
        "loaded.so",
    );
    let args = [OsStr::new("load"), library.as_os_str()];
    known("load", &args, &["lk.wm.s", "k.wm.s", ".wm.s"].map(str::to_owned));
}

#[test]
fn the_page_of_code_that_the_kernel_stands_in_for() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if !maps.contains("[vsyscall]") {
        return skip("vsyscall", "this kernel has no [vsyscall]");
    }
    // The kernel runs that page's code for its caller, and sets the stack's pointer and the instruction's one after the other
    // (`emulate_vsyscall`, arch/x86/entry/vsyscall/vsyscall_64.c, Linux 6.18): a sample between them, one of a thousand, has
    // the page alone, for the word that stands where the return address stood is a zero there.
    known_c("vsyscall", &["vsyscall"], &["?twm.s", "twm.s", ".twm.s", "wm.s", ".wm.s", "."]);
}

#[test]
fn the_kernels_own_page_of_code() {
    known_c("vdso", &["vdso"], &[".twm.s", "twm.s", "wm.s", "?twm.s", ".wm.s"]);
}
