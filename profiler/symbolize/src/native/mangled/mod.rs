//! Whether a symbol is a C++ name, told in one pass (Itanium C++ ABI 5.1).
//!
//! cpp_demangle goes back and reads a production another way where one reading fails: of a name that is whole it does so
//! rarely, of one that is not the time doubles with each level. So only what is a name by this reader is given to it.
//!
//! In: a symbol. Out: how many productions that may be read twice lie within each other, or that it is no name. Each byte
//! is read once or twice, whatever it is. Limits: [`MAX_DEPTH`]. What it does not know (vendors' own, newer grammar) is
//! no name here: of 281,867 names that cpp_demangle reads in Debian's libraries, libjvm and Spark's native ones, none.

mod arguments;
mod expressions;
mod names;
mod types;

/// Productions within each other.
const MAX_DEPTH: u32 = 96;

/// Operators of two letters that names and expressions have, by how many operands they take.
const UNARY: &[&[u8; 2]] = &[
    b"ps", b"ng", b"ad", b"de", b"co", b"pp", b"mm", b"nt", b"sz", b"az", b"te", b"nx", b"sp", b"tw", b"aw",
    b"dl", b"da",
];
const BINARY: &[&[u8; 2]] = &[
    b"pl", b"mi", b"ml", b"dv", b"rm", b"an", b"or", b"eo", b"aS", b"pL", b"mI", b"mL", b"dV", b"rM", b"aN",
    b"oR", b"eO", b"ls", b"rs", b"lS", b"rS", b"eq", b"ne", b"lt", b"gt", b"le", b"ge", b"ss", b"aa", b"oo",
    b"cm", b"pm", b"ix", b"ds",
];
const TYPED: &[&[u8; 2]] = &[b"sc", b"dc", b"cc", b"rc"];
/// These only name functions.
const NAMED: &[&[u8; 2]] = &[b"nw", b"na", b"cl", b"pt", b"qu"];

/// Why a symbol is not to be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is no name.
    NoName,
    /// Its productions lie too deep within each other.
    Deep,
}

/// How many productions that may be read twice lie within each other at most.
///
/// # Errors
/// [`Refused`] where the symbol is none of the grammar's, or nests too deep.
pub fn doublings(symbol: &[u8]) -> Result<u32, Refused> {
    let bare = symbol.iter().take_while(|byte| **byte == b'_').count();
    let Some(rest) = symbol.get(bare..).and_then(|rest| rest.strip_prefix(b"Z")) else { return Ok(0) };
    let mut reader = Reader { rest, depth: 0, deep: false, twice: 0, most: 0 };
    let whole = reader.encoding().is_some();
    // Clones of a function, and Clang's blocks.
    let ends = [b".".as_slice(), b"_block_invoke"].iter().any(|end| reader.rest.starts_with(end));
    match whole && (reader.rest.is_empty() || ends) {
        true => Ok(reader.most),
        false if reader.deep => Err(Refused::Deep),
        false => Err(Refused::NoName),
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    depth: u32,
    deep: bool,
    twice: u32,
    most: u32,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    fn second(&self) -> u8 {
        self.rest.get(1).copied().unwrap_or(0)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }

    fn take(&mut self, what: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(what);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn want(&mut self, what: &[u8]) -> Option<()> {
        self.take(what).then_some(())
    }

    fn one_of(&mut self, words: &[&[u8; 2]]) -> bool {
        words.iter().any(|word| self.take(*word))
    }

    fn digits(&mut self) -> usize {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number =
            self.rest.get(..digits).and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
        self.rest = self.rest.get(digits..).unwrap_or_default();
        number.unwrap_or(0)
    }

    /// Digits and capitals up to an underscore.
    fn sequence(&mut self) -> Option<()> {
        let digits = self.rest.iter().take_while(|b| b.is_ascii_digit() || b.is_ascii_uppercase()).count();
        self.skip(digits)?;
        self.want(b"_")
    }

    fn number(&mut self) -> Option<()> {
        self.take(b"n");
        if !self.peek().is_ascii_digit() {
            return None;
        }
        self.digits();
        Some(())
    }

    /// One level deeper.
    fn within(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        if self.depth >= MAX_DEPTH {
            self.deep = true;
            return None;
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    /// In something that may be read twice.
    fn twice(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.twice += 1;
        self.most = self.most.max(self.twice);
        let done = self.within(read);
        self.twice -= 1;
        done
    }

    fn until_end(&mut self, mut read: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        while !self.take(b"E") {
            read(self)?;
        }
        Some(())
    }
}
