//! C++ and Rust names as people write them, with bounds: a symbol's name is what whoever wrote the file chose.
//!
//! In: a symbol. Out: its name as cpp_demangle and rustc-demangle print it, or why it stays as it is. Three things of a
//! hostile name are unbounded in cpp_demangle 0.5.1 but for its depth: text (a template of ten arguments, each the level
//! below, eight levels deep by substitutions, is 290 bytes and 10^8 arguments), visits that print nothing (a pack whose
//! elements are packs, down to an empty one), and parsing (where one reading of a production fails, it is parsed again
//! by the next one: the time doubles with each level). So text and visits end at a limit, and what is parsed is known to
//! be a name, of bounded depth, with few productions within each other that may be read twice ([`mangled`]). Of 282,372
//! symbols of Debian's libraries, libjvm and Spark's native ones 28 are refused. rustc-demangle prints something for
//! whatever branches, so a limit of its text is one of its time.

use super::mangled::{self, Refused};
use cpp_demangle::{DemangleNodeType, DemangleOptions, DemangleWrite, ParseOptions, Symbol};
use std::fmt::{self, Write};

/// Longest symbol that is looked at, and the longest of C++: LLVM 15's have up to 604 bytes.
const MAX_SYMBOL: usize = 4096;
const MAX_CPP_SYMBOL: usize = 1024;
/// Most bytes of text: of LLVM's names one has more.
const MAX_TEXT: usize = 8 << 10;
/// Most nodes of a C++ name that are visited: LLVM's have at most 1,470.
const MAX_NODES: u32 = 20_000;
/// Depth of parsing: 26 of the names above need more.
const DEPTH: u32 = 64;
/// Most visits that print nothing, one after the other.
const MAX_SILENT: u64 = 16_384;
/// Bytes of a C++ name, doubled for each production within another that may be read twice: one of the names above has
/// more. The slowest names that a search found within it take 0.3 ms.
const MAX_PARSED: usize = 8 << 10;

/// Why a symbol stays as it is, though it may have another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mangled {
    /// The symbol is too long.
    Long,
    /// Its parts are nested too deeply.
    Deep,
    /// Its text would be too long.
    Wide,
    /// To read it could take too long, or did so with others of its file.
    Slow,
}

impl Mangled {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Long, Self::Deep, Self::Wide, Self::Slow];

    /// In metrics and the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Long => "long",
            Self::Deep => "deep",
            Self::Wide => "wide",
            Self::Slow => "slow",
        }
    }
}

/// What was spent on a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes of text.
    pub bytes: usize,
    /// Nodes visited and pieces of text written.
    pub steps: u32,
}

/// The name of a symbol, and what it took; None for a symbol of C, and what is no name of these languages after all.
pub fn demangle(symbol: &str) -> (Result<Option<String>, Mangled>, Work) {
    if !is_mangled(symbol) {
        return (Ok(None), Work::default());
    }
    let mut out = Bounded::default();
    let told = print(symbol, &mut out);
    let work = Work { bytes: out.text.len(), steps: out.nodes.saturating_add(out.writes) };
    (told.map(|printed| (printed && !out.text.is_empty()).then_some(out.text)), work)
}

/// Writes the name; false where there is none.
fn print(symbol: &str, out: &mut Bounded) -> Result<bool, Mangled> {
    if symbol.len() > MAX_SYMBOL {
        return Err(Mangled::Long);
    }
    // Rust first, as blazesym has it where it does not know the language: Rust's older names are C++'s to look at.
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return write!(out, "{name:#}").map(|()| true).map_err(|_| Mangled::Wide);
    }
    if symbol.len() > MAX_CPP_SYMBOL {
        return Err(Mangled::Long);
    }
    match mangled::doublings(symbol.as_bytes()) {
        Ok(twice) if symbol.len().checked_shl(twice).is_none_or(|bytes| bytes > MAX_PARSED) => {
            return Err(Mangled::Slow);
        }
        Ok(_) if is_slow(symbol.as_bytes()) => return Err(Mangled::Slow),
        Ok(_) => {}
        Err(Refused::Deep) => return Err(Mangled::Deep),
        Err(Refused::NoName) => return Ok(false),
    }
    let options = ParseOptions::default().recursion_limit(DEPTH);
    let parsed = match Symbol::new_with_options(symbol.as_bytes(), &options) {
        Ok(parsed) => parsed,
        Err(cpp_demangle::error::Error::TooMuchRecursion) => return Err(Mangled::Deep),
        Err(_) => return Ok(false),
    };
    match parsed.structured_demangle(&mut Cpp(out), &DemangleOptions::default()) {
        Ok(()) => Ok(true),
        Err(_) if out.over => Err(Mangled::Wide),
        // References to nothing, or in circles.
        Err(_) => Ok(false),
    }
}

/// Whether a symbol may have another name: how mangled ones begin (Itanium C++ ABI 5.1.2, with the underscores that some
/// compilers put before; rust's RFC 2603), and what cpp_demangle takes for a global constructor.
fn is_mangled(symbol: &str) -> bool {
    let bare = symbol.trim_start_matches('_');
    symbol.starts_with(['_', 'R', 'Z']) && bare.starts_with(['Z', 'R', 'G'])
}

/// Whether a C++ name has packs whose references to each other multiply to more than the limit though an empty one prints
/// nothing.
fn is_slow(symbol: &[u8]) -> bool {
    let grammar = without_identifiers(symbol);
    let count = |what: &[u8; 2]| grammar.windows(2).filter(|two| two == what).count();
    let empty_pack = count(b"JE") + count(b"IE") > 0;
    empty_pack && silent(&grammar) > MAX_SILENT
}

/// At most so many visits without text come after each other: paths through packs, each of which refers to those before
/// it as often as it has references (`T_`, `S_`) in it. Without a parameter no pack is reached by reference at all.
fn silent(grammar: &[u8]) -> u64 {
    let parameter = |two: &[u8]| matches!(two, [b'T', b'_' | b'0'..=b'9']);
    if !grammar.windows(2).any(parameter) {
        return 0;
    }
    let packs = grammar.split(|byte| matches!(byte, b'J'));
    packs.skip(1).fold(1, |paths: u64, pack| {
        let references = pack.iter().filter(|byte| **byte == b'_').count() as u64;
        paths.saturating_mul(references + 1)
    })
}

/// What of a C++ name is grammar for sure or perhaps: identifiers (a length and so many bytes) are left out where no
/// other production has a number there, so that nothing can be hidden in one that is none.
fn without_identifiers(symbol: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(symbol.len());
    let mut rest = symbol;
    while let Some((first, tail)) = rest.split_first() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            out.push(*first);
            rest = tail;
            continue;
        }
        let (number, after) = rest.split_at(digits);
        let length = std::str::from_utf8(number).ok().and_then(|number| number.parse::<usize>().ok());
        // Literals end in E, sequence numbers and dimensions in _. Constructors, destructors, discriminators, parameters
        // of functions and binary literals have a number that anything may follow.
        let plain = after.first().is_some_and(|next| next.is_ascii_alphabetic() && *next != b'E');
        let other = matches!(
            out.as_slice(),
            [.., b'C' | b'D' | b'L' | b'_' | b'S' | b'T' | b'A' | b'p' | b'h' | b'v']
                | [.., b'C', b'I']
                | [.., b'D', b'F']
                | [.., b'L', _]
                | [.., b'n']
        );
        match length.and_then(|length| after.get(length..)).filter(|_| plain && !other) {
            Some(behind) => rest = behind,
            None => {
                out.extend_from_slice(number);
                rest = after;
            }
        }
    }
    out
}

/// Text up to a limit.
#[derive(Default)]
struct Bounded {
    text: String,
    nodes: u32,
    writes: u32,
    over: bool,
}

impl Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.writes = self.writes.saturating_add(1);
        self.over |= self.text.len() + piece.len() > MAX_TEXT || self.nodes > MAX_NODES;
        if self.over {
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

/// The same, told of nodes.
struct Cpp<'a>(&'a mut Bounded);

impl DemangleWrite for Cpp<'_> {
    fn push_demangle_node(&mut self, _: DemangleNodeType) {
        self.0.nodes = self.0.nodes.saturating_add(1);
    }
    fn write_string(&mut self, piece: &str) -> fmt::Result {
        self.0.write_str(piece)
    }
}

#[cfg(test)]
#[path = "demangle_tests.rs"]
mod tests;
