//! Names look as they did, and hostile ones take a bounded amount of work.

use super::*;

#[path = "demangle_names.rs"]
mod names;
use std::time::Instant;

fn name(symbol: &str) -> Option<String> {
    demangle(symbol).0.unwrap()
}

fn why(symbol: &str) -> Mangled {
    demangle(symbol).0.unwrap_err()
}

/// Named or not, within the limits; how many steps and how long it took.
fn spent(symbol: &str) -> (u32, u128) {
    let began = Instant::now();
    let (shown, work) = demangle(symbol);
    let took = began.elapsed().as_micros();
    assert!(work.bytes <= MAX_TEXT, "{symbol:.60}: {work:?}");
    // Each piece has a byte, but for what is visited before the limit is seen.
    assert!(work.steps <= 2 * MAX_NODES + MAX_SILENT as u32 + MAX_TEXT as u32, "{symbol:.60}: {work:?}");
    assert!(shown.ok().flatten().is_none_or(|name| name.len() <= MAX_TEXT));
    (work.steps, took)
}

#[test]
fn names_look_as_they_did() {
    for (symbol, shown) in [
        ("_ZN2os22set_native_thread_nameEPKc", "os::set_native_thread_name(char const*)"),
        (
            "_ZNSt6vectorIiSaIiEE9push_backERKi",
            "std::vector<int, std::allocator<int> >::push_back(int const&)",
        ),
        ("_Z3maxIiET_S0_S0_", "int max<int>(int, int)"),
        ("_ZN4test1a2bcE", "test::a::bc"),
        ("_ZN3foo3bar17h05af221e174051e9E", "foo::bar"),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()"),
        ("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"),
        ("_Z1fIJEEvDpT_", "void f<>()"),
        ("_Z1fIJiPcEEvDpT_", "void f<int, char*>(int, char*)"),
        ("_ZN1fcvPKcEv", "f::operator char const*()"),
        ("_Z1fPFivE", "f(int (*)())"),
        ("_Z1fi.constprop.0", "f(int) [clone .constprop.0]"),
    ] {
        assert_eq!(name(symbol).as_deref(), Some(shown), "{symbol}");
    }
    for plain in
        ["", "main", "x", "i", "_", "_start", "__libc_start_main", "_Zebra", "_ZN", "_Rust", "java_Z"]
    {
        assert_eq!(demangle(plain).0, Ok(None), "{plain}");
    }
}

/// Eight levels of ten arguments, each the level below, by substitutions.
#[test]
fn a_name_that_grows_stays_mangled() {
    let mut symbol = "_Z1f1AIiiiiiiiiiiE".to_owned();
    for level in ["_", "0_", "1_", "2_", "3_", "4_", "5_"] {
        // The template is S_; each instance is the next substitution.
        let below = match level {
            "_" => "0_".to_owned(),
            digit => format!("{}_", digit.trim_end_matches('_').parse::<u32>().unwrap() + 1),
        };
        symbol.push_str(&format!("S_I{}E", format!("S{below}").repeat(10)));
    }
    assert!(symbol.len() < 400);
    assert_eq!(why(&symbol), Mangled::Wide);
    spent(&symbol);
}

#[test]
fn packs_of_nothing_stay_mangled() {
    // Each pack is the one before, twenty times; the first is empty.
    let mut symbol = "_Z1fIJE".to_owned();
    for level in 0..12 {
        let before = if level == 0 { "T_".to_owned() } else { format!("T{}_", level - 1) };
        symbol.push_str(&format!("J{}E", before.repeat(20)));
    }
    symbol.push_str("EvT11_");
    assert!(matches!(demangle(&symbol).0, Err(_) | Ok(None)), "{symbol}");
    spent(&symbol);
    // Two levels are within the limit, and are shown.
    assert!(name("_Z1fIJEJT_T_EEvT0_").is_some());
}

#[test]
fn what_is_read_again_and_again_is_not_read() {
    // Ever deeper in what may be read twice: lambdas, arguments of template parameters and of what was named before.
    for (open, close) in [("Ul", "E_"), ("T_I", "E"), ("S_I", "E")] {
        let symbol = format!("_Z1f{}i{}", open.repeat(14), close.repeat(14));
        assert_eq!(why(&symbol), Mangled::Slow, "{symbol}");
    }
    // What is cut off, so that the other reading is tried at each level, is no name.
    for unit in ["T_I", "S_I", "Ul", "cvT_I", "C1I", "SsI", "1aI", "XnwLi5E_", "DTsrT_1aI"] {
        for times in [8, 12, 40, 100] {
            let symbol = format!("_Z1f{}i", unit.repeat(times));
            assert!(matches!(demangle(&symbol).0, Ok(None) | Err(Mangled::Deep)), "{symbol}");
        }
    }
    assert_eq!(demangle(&format!("_Z1fIX{}i", "nw".repeat(17))).0, Ok(None));
    // The same in identifiers is none, nor in what only looks like one.
    let harmless = "_ZN12xna_na_na_na4nwnw6cvcvcv3runEv";
    assert!(name(harmless).is_some(), "{:?}", demangle(harmless));
}

#[test]
fn deep_and_long_names_stay_mangled() {
    for (symbol, reason) in [
        (format!("_Z1f{}i", "P".repeat(1000)), Mangled::Deep),
        (format!("_Z1f{}i{}", "1aI".repeat(200), "E".repeat(200)), Mangled::Deep),
        (format!("_Z{}{}", 60_000, "a".repeat(60_000)), Mangled::Long),
        (format!("_Z{}{}", 2_000, "a".repeat(2_000)), Mangled::Long),
        (format!("_ZN{}{}E", 60_000, "a".repeat(60_000)), Mangled::Long),
    ] {
        assert_eq!(why(&symbol), reason, "{symbol:.40}");
        spent(&symbol);
    }
}

/// Rust's references back: eleven tuples of ten, each element the tuple before. What rustc-demangle prints of it is more
/// than a limit of its own.
#[test]
fn rust_names_that_grow_stay_mangled() {
    let mut symbol = "_RINvC1a1b".to_owned();
    let mut before = String::from("u");
    for _ in 0..11 {
        let at = symbol.len() - 2;
        symbol.push_str(&format!("T{}E", before.repeat(10)));
        before = format!("B{}_", base_62(at));
    }
    symbol.push('E');
    assert_eq!(why(&symbol), Mangled::Wide, "{symbol}");
    spent(&symbol);
    // Back to itself, and to a reference back.
    for circle in ["_RNvB_1a", "_RINvC1a1bB7_E", "_RINvC1a1bTB8_B8_EE"] {
        spent(circle);
    }
}

/// As in the RFC: `_` is 0, `0_` is 1.
fn base_62(value: usize) -> String {
    const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let Some(mut value) = value.checked_sub(1) else { return String::new() };
    let mut digits = Vec::new();
    loop {
        digits.push(DIGITS[value % 62]);
        value /= 62;
        if value == 0 {
            break;
        }
    }
    digits.reverse();
    String::from_utf8(digits).unwrap()
}

/// A thousand names of up to 64 KiB, from the pieces of which names are made, the same ones each time.
#[test]
fn a_thousand_names_take_a_bounded_amount_of_work() {
    const PIECES: &[&str] = &[
        "N", "1a", "3foo", "I", "E", "J", "JE", "X", "L_Z", "Li5E", "T_", "T0_", "S_", "S0_", "S1_", "St",
        "Sa", "cv", "sr", "gs", "UlvE_", "Ul", "DT", "Dp", "sp", "P", "K", "R", "F", "M", "A1_", "A_", "i",
        "v", "c", "Z", "fp_", "cl", "qu", "sz", "il", "nw", "dt", "TV", "GR", "Dv4_", "C1", "D0", "B3abi",
        "te", "pl", "Tn", "E_", "B_", "B4_", "NvC1a1b", "TuE",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        // xorshift64*: Marsaglia, Vigna.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    };
    let (mut most, mut longest, mut named, mut mangled) = (0, 0, 0, 0);
    for nth in 0..1000 {
        let mut symbol = if nth % 8 == 0 { "_R" } else { "_Z1fI" }.to_owned();
        let length = 1 << (3 + next(14));
        // Some repeat what they are made of: that is what nests.
        let unit: Vec<&str> = (0..1 + next(4)).map(|_| PIECES[next(PIECES.len())]).collect();
        while symbol.len() < length.min(65_536) {
            match nth % 2 {
                0 => symbol.push_str(PIECES[next(PIECES.len())]),
                _ => unit.iter().for_each(|piece| symbol.push_str(piece)),
            }
        }
        let (steps, took) = spent(&symbol);
        (most, longest) = (most.max(steps), longest.max(took));
        match demangle(&symbol).0 {
            Ok(Some(_)) => named += 1,
            Err(_) => mangled += 1,
            Ok(None) => {}
        }
    }
    println!("1000 names: {named} named, {mangled} over a limit; at most {most} steps and {longest} us each");
    assert!(named > 0 && mangled > 0);
}

/// A thousand names of up to 64 KiB as the grammar has them, some cut off or spoiled.
#[test]
fn a_thousand_names_by_the_grammar_take_a_bounded_amount_of_work() {
    let mut names = names::Names::new(1);
    let (mut most, mut longest, mut counts) = (0, 0, [0; 3]);
    for _ in 0..1000 {
        let symbol = names.name();
        assert!(symbol.len() <= names::MAX);
        let (steps, took) = spent(&symbol);
        (most, longest) = (most.max(steps), longest.max(took));
        counts[match demangle(&symbol).0 {
            Ok(Some(_)) => 0,
            Err(_) => 1,
            Ok(None) => 2,
        }] += 1;
    }
    let [named, mangled, none] = counts;
    println!(
        "{named} named, {mangled} over a limit, {none} no names; at most {most} steps and {longest} us each"
    );
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

/// Productions that real names have, and what they must not be taken for.
#[test]
fn names_are_told_from_what_looks_like_them() {
    for symbol in [
        "_ZN5clang4ento12CheckerFn2ndEv",
        "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
        "_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJZ4mainEUlvE_EEEEE6_M_runEv",
        "_ZN1AC2ERKS_",
        "_ZTVN10__cxxabiv117__class_type_infoE",
        "_ZThn16_N1A1fEv",
        "_ZTv0_n24_N1A1fEv",
        "_ZGVZ4mainE1x",
        "_ZZ4mainE3foo_0",
        "_ZZN1A1fEvEs",
        "_ZN1AcvbEv",
        "_ZN1AIXadL_Z1gvEEE1fEv",
        "_Z1fIiEDTplfp_fp_ET_S1_",
        "_Z1fIiENSt9enable_ifIXsr11is_integralIT_EE5valueEvE4typeES1_",
        "_Z1fM1AKFvvE",
        "_Z1fDv4_f",
        "_Z1fRA10_i",
        "_Z1fIJiiEEvDpT_",
        "_ZN1AD0Ev",
        "_ZN1AB5cxx113fooEv",
        "_ZlsRSoRK1A",
        "_ZN1AixEm",
        "_Z1fPDoFvvE",
    ] {
        assert!(mangled::doublings(symbol.as_bytes()).is_ok(), "{symbol}");
        assert!(name(symbol).is_some(), "{symbol}");
    }
    for symbol in
        ["_Z", "_Zebra", "_ZN1A", "_Z1fI", "_Z5ab", "_Z1fS", "_ZTV", "_Z1fiE", "_ZL", "_Z1fA_", "_Z1fIX"]
    {
        assert!(mangled::doublings(symbol.as_bytes()) == Err(Refused::NoName), "{symbol}");
    }
}

/// What is not grammar for sure is kept; what has a number before it and is an identifier is not.
#[test]
fn identifiers_are_left_out() {
    let left = |symbol: &str| String::from_utf8(without_identifiers(symbol.as_bytes())).unwrap();
    assert_eq!(left("_ZN3foo3barEv"), "_ZNEv");
    assert_eq!(left("_Z1fILi5EA10_iE"), "_ZILi5EA10_iE");
    assert_eq!(left("_ZN3fooC1Ev"), "_ZNC1Ev");
    assert_eq!(left("_Z99short"), "_Z99short");
    assert_eq!(left("_Z99999999999999999999999short"), "_Z99999999999999999999999short");
}
