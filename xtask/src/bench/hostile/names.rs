//! Programs whose functions have names that are a burden to demangle: C source in text, each function under the symbol
//! that it is given.

use std::fmt::Write as _;

/// Mangled names of the program with many; a profiler meets as many in a large C++ binary.
pub const MANY: usize = 1000;
/// Longest of them.
pub const LONGEST: usize = 64 << 10;

/// A name of 290 bytes that stands for some gigabytes: a template of ten arguments, each the level below, eight levels
/// deep (Itanium C++ ABI, 5.1.10: substitutions).
pub fn small() -> String {
    // S_ is A, S0_ is A<int, ...>, S1_ the level above, and so on.
    let mut name = format!("_Z1f1AI{}E", "i".repeat(10));
    for level in 0..8 {
        let _ = write!(name, "S_I{}E", format!("S{level}_").repeat(10));
    }
    // Each level but the last is an argument of the function, too, and of the level above.
    name
}

/// The same in Rust's v0 mangling (RFC 2603): a tuple of ten, each a reference back to the level below.
pub fn rust() -> String {
    let mut name = "INvC1a1f".to_owned();
    let mut below = name.len();
    let _ = write!(name, "T{}E", "m".repeat(10));
    for _ in 0..8 {
        let at = name.len();
        let back = format!("B{}_", base_62(below - 1));
        let _ = write!(name, "T{}E", back.repeat(10));
        below = at;
    }
    format!("_R{name}E")
}

fn base_62(mut number: usize) -> String {
    const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut digits = Vec::new();
    loop {
        digits.push(char::from(DIGITS[number % 62]));
        number /= 62;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Names made of pieces of the C++ and Rust manglings in no order, 16 bytes to [`LONGEST`]; the same each time.
pub fn random(count: usize) -> Vec<String> {
    const PIECES: [&str; 40] = [
        "N",
        "I",
        "E",
        "S_",
        "S0_",
        "S1_",
        "S9_",
        "T_",
        "T0_",
        "L",
        "J",
        "X",
        "Dp",
        "DT",
        "cv",
        "F",
        "P",
        "K",
        "R",
        "O",
        "i",
        "l",
        "St",
        "Ss",
        "Sa",
        "1A",
        "3foo",
        "9999999999x",
        "C1",
        "D0",
        "B0_",
        "Bz_",
        "M",
        "A9_",
        "sZ",
        "fL_",
        "Ul",
        "Ut_",
        "Z",
        "Tm",
    ];
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = move |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % n
    };
    let mut names = Vec::new();
    for i in 0..count {
        let length = 16 << random(13);
        let mut name = format!("{}{i}", ["_ZN1x", "_Z1f", "_RNvC1a", "_RINvC1a1f"][random(4)]);
        // Nested as deep as it is long, every so often.
        let deep = ["", "P", "I1A", "T"][random(4)];
        while name.len() < length.min(LONGEST) - 16 {
            let piece = if deep.is_empty() { PIECES[random(PIECES.len())] } else { deep };
            name.push_str(piece);
        }
        names.push(name);
    }
    names
}

/// A program that runs a function of each name in turn, a few milliseconds each, for so many seconds. Its own names are
/// the only burden: nothing else is in it.
pub fn source(names: &[String], seconds: u64) -> String {
    let mut text = "#include <time.h>\nstatic volatile unsigned long sink;\nstatic double now(void) {\n  \
                    struct timespec at;\n  clock_gettime(CLOCK_MONOTONIC, &at);\n  return at.tv_sec + at.tv_nsec / 1e9;\n}\n"
        .to_owned();
    for (i, name) in names.iter().enumerate() {
        let _ = writeln!(
            text,
            "void f{i}(void) __asm__(\"{name}\");\n\
             __attribute__((noinline)) void f{i}(void) {{ for (int i = 0; i < 3000000; i++) sink += i; }}"
        );
    }
    let all: Vec<String> = (0..names.len()).map(|i| format!("f{i}")).collect();
    let _ = writeln!(
        text,
        "static void (*all[])(void) = {{{}}};\nint main(void) {{\n  double until = now() + {seconds};\n  \
         while (now() < until) for (unsigned i = 0; i < sizeof all / sizeof *all && now() < until; i++) all[i]();\n  return 0;\n}}",
        all.join(", ")
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_names_stand_for_large_ones() {
        let name = small();
        assert_eq!(name.len(), 290);
        assert!(name.starts_with("_Z1f1AIiiiiiiiiiiES_IS0_S0_"), "{name}");
        assert!(rust().starts_with("_RINvC1a1fTmmmmmmmmmmETB7_B7_"), "{}", rust());
        assert!(rust().len() < 400);
    }

    #[test]
    fn random_names_are_the_same_each_time() {
        let names = random(200);
        assert_eq!(names, random(200));
        let longest = names.iter().map(String::len).max().unwrap_or(0);
        assert!((LONGEST / 2..=LONGEST).contains(&longest), "{longest}");
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')));
    }
}
