//! Whether a symbol is a C++ name, told in one pass (Itanium C++ ABI 5.1).
//!
//! cpp_demangle goes back and reads a production another way where one reading fails: of a name that is whole it does so
//! rarely, of one that is not the time doubles with each level. So only what is a name by this reader is given to it.
//!
//! In: a symbol. Out: how many productions that may be read twice lie within each other, or that it is no name. Each byte
//! is read once or twice, whatever it is. Limits: [`MAX_DEPTH`]. What it does not know (vendors' own, newer grammar) is
//! no name here: of 281,867 names that cpp_demangle reads in Debian's libraries, libjvm and Spark's native ones, none.

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

    fn encoding(&mut self) -> Option<()> {
        self.within(|it| {
            match (it.peek(), it.second()) {
                (b'T', b'V' | b'T' | b'I' | b'S') => return it.skip(2).and_then(|()| it.kind()),
                (b'T', b'C') => {
                    it.skip(2)?;
                    it.kind()?;
                    it.number()?;
                    it.want(b"_")?;
                    return it.kind();
                }
                (b'T', b'h' | b'v') => {
                    it.skip(1)?;
                    it.offset()?;
                    return it.encoding();
                }
                (b'T', b'c') => {
                    it.skip(2)?;
                    it.offset()?;
                    it.offset()?;
                    return it.encoding();
                }
                (b'T', b'W' | b'H') | (b'G', b'V') => return it.skip(2).and_then(|()| it.name()),
                (b'G', b'R') => {
                    it.skip(2)?;
                    it.name()?;
                    return it.sequence();
                }
                (b'G', b'T') => return it.skip(3).and_then(|()| it.encoding()),
                _ => {}
            }
            it.name()?;
            while !matches!(it.peek(), 0 | b'E' | b'.') {
                it.kind()?;
            }
            Some(())
        })
    }

    fn offset(&mut self) -> Option<()> {
        let virtual_one = self.take(b"v");
        if !virtual_one {
            self.want(b"h")?;
        }
        self.number()?;
        self.want(b"_")?;
        if virtual_one {
            self.number()?;
            self.want(b"_")?;
        }
        Some(())
    }

    fn name(&mut self) -> Option<()> {
        self.within(|it| match (it.peek(), it.second()) {
            (b'N', _) => it.nested(),
            (b'Z', _) => it.local(),
            (b'S', b't') => {
                it.skip(2)?;
                it.unqualified()?;
                it.some_arguments()
            }
            (b'S', _) => {
                it.substitution()?;
                it.some_arguments()
            }
            _ => {
                it.unqualified()?;
                it.some_arguments()
            }
        })
    }

    fn nested(&mut self) -> Option<()> {
        self.skip(1)?;
        while matches!(self.peek(), b'r' | b'V' | b'K')
            && !self.rest.starts_with(b"rs")
            && !self.rest.starts_with(b"rm")
        {
            self.skip(1)?;
        }
        let _ = self.take(b"R") || self.take(b"O");
        self.until_end(|it| match (it.peek(), it.second()) {
            (b'S', b't') => it.skip(2),
            (b'S', _) => it.substitution(),
            (b'T', _) => it.parameter(),
            (b'I', _) => it.arguments(),
            (b'M', _) => it.skip(1),
            (b'D', b't' | b'T') => it.decltype(),
            _ => it.unqualified(),
        })
    }

    fn local(&mut self) -> Option<()> {
        self.skip(1)?;
        self.encoding()?;
        self.want(b"E")?;
        if self.take(b"s") {
            return self.discriminator();
        }
        if self.take(b"d") {
            self.digits();
            self.want(b"_")?;
            return self.name();
        }
        self.name()?;
        self.discriminator()
    }

    fn discriminator(&mut self) -> Option<()> {
        if self.take(b"__") {
            self.digits();
            return self.want(b"_");
        }
        if self.peek() == b'_' && self.second().is_ascii_digit() {
            return self.skip(2);
        }
        Some(())
    }

    fn source(&mut self) -> Option<()> {
        if !self.peek().is_ascii_digit() {
            return None;
        }
        let length = self.digits();
        (length > 0).then_some(())?;
        self.skip(length)
    }

    fn unqualified(&mut self) -> Option<()> {
        match (self.peek(), self.second()) {
            (b'0'..=b'9', _) => self.source()?,
            (b'L', _) => {
                self.skip(1)?;
                self.source()?;
                self.discriminator()?;
            }
            (b'U', b'l') => self.closure()?,
            (b'U', b't') => {
                self.skip(2)?;
                self.digits();
                self.want(b"_")?;
            }
            (b'C', b'I') => {
                self.skip(3)?;
                self.twice(Self::kind)?;
            }
            (b'C', b'1'..=b'5') | (b'D', b'0'..=b'5') => self.skip(2)?,
            _ => self.operator()?,
        }
        while self.take(b"B") {
            self.source()?;
        }
        Some(())
    }

    fn closure(&mut self) -> Option<()> {
        self.skip(2)?;
        self.twice(|it| it.until_end(Self::kind))?;
        self.digits();
        self.want(b"_")
    }

    fn operator(&mut self) -> Option<()> {
        self.take(b"on");
        if self.take(b"cv") {
            return self.twice(Self::kind);
        }
        if self.take(b"li") {
            return self.source();
        }
        [UNARY, BINARY, NAMED].into_iter().any(|words| self.one_of(words)).then_some(())
    }

    fn substitution(&mut self) -> Option<()> {
        self.skip(1)?;
        match self.peek() {
            b't' | b'a' | b'b' | b's' | b'i' | b'o' | b'd' => self.skip(1),
            _ => self.sequence(),
        }
    }

    fn parameter(&mut self) -> Option<()> {
        self.want(b"T")?;
        self.digits();
        self.want(b"_")
    }

    fn decltype(&mut self) -> Option<()> {
        self.skip(2)?;
        self.expression()?;
        self.want(b"E")
    }

    fn some_arguments(&mut self) -> Option<()> {
        if self.peek() == b'I' { self.arguments() } else { Some(()) }
    }

    fn arguments(&mut self) -> Option<()> {
        self.skip(1)?;
        self.within(|it| it.until_end(Self::argument))
    }

    fn argument(&mut self) -> Option<()> {
        match self.peek() {
            b'L' => self.literal(),
            b'X' => {
                self.skip(1)?;
                self.expression()?;
                self.want(b"E")
            }
            b'J' | b'I' => self.arguments(),
            _ => self.kind(),
        }
    }

    fn literal(&mut self) -> Option<()> {
        self.skip(1)?;
        if self.take(b"_Z") {
            self.encoding()?;
            return self.want(b"E");
        }
        self.kind()?;
        let value = self.rest.iter().take_while(|byte| **byte != b'E').count();
        self.skip(value + 1)
    }

    /// A type.
    fn kind(&mut self) -> Option<()> {
        self.within(|it| match (it.peek(), it.second()) {
            // A constructor to cpp_demangle; to others a complex number of a class, which there is none of.
            (b'C', b'0'..=b'9' | b'I') => None,
            (b'r' | b'V' | b'K' | b'P' | b'R' | b'O' | b'C' | b'G', _) => {
                it.skip(1)?;
                it.kind()
            }
            (
                b'v' | b'w' | b'b' | b'c' | b'a' | b'h' | b's' | b't' | b'i' | b'j' | b'l' | b'm' | b'x'
                | b'y',
                _,
            )
            | (b'n' | b'o' | b'f' | b'd' | b'e' | b'g' | b'z', _) => it.skip(1),
            (b'u', _) => {
                it.skip(1)?;
                it.source()
            }
            (b'U', b'l' | b't') => it.name(),
            (b'U', _) => {
                it.skip(1)?;
                it.source()?;
                it.some_arguments()?;
                it.kind()
            }
            (b'F', _) => it.function(),
            (b'A', _) => it.array(),
            (b'M', _) => {
                it.skip(1)?;
                it.kind()?;
                it.kind()
            }
            (b'T', _) => {
                it.parameter()?;
                it.twice(Self::some_arguments)
            }
            (b'S', second) if second != b't' => {
                it.substitution()?;
                it.twice(Self::some_arguments)
            }
            (b'D', _) => it.d_kind(),
            (b'0'..=b'9' | b'N' | b'Z' | b'S', _) => it.name(),
            _ => None,
        })
    }

    fn function(&mut self) -> Option<()> {
        self.want(b"F")?;
        self.take(b"Y");
        self.until_end(|it| match (it.peek(), it.second()) {
            (b'R' | b'O', b'E') => it.skip(1),
            _ => it.kind(),
        })
    }

    fn array(&mut self) -> Option<()> {
        self.skip(1)?;
        match self.peek() {
            b'_' => {}
            b'0'..=b'9' => {
                self.digits();
            }
            _ => self.expression()?,
        }
        self.want(b"_")?;
        self.kind()
    }

    /// Types that begin with D.
    fn d_kind(&mut self) -> Option<()> {
        match self.second() {
            b't' | b'T' => self.decltype(),
            b'p' => {
                self.skip(2)?;
                self.kind()
            }
            b'v' => {
                self.skip(2)?;
                match self.take(b"_") {
                    true => self.expression()?,
                    false => self.number()?,
                }
                self.want(b"_")?;
                self.kind()
            }
            b'F' => {
                self.skip(2)?;
                self.digits();
                self.take(b"_").then_some(()).or_else(|| self.want(b"b")).or_else(|| self.want(b"x"))
            }
            b'o' | b'x' => {
                self.skip(2)?;
                self.kind()
            }
            b'O' => {
                self.skip(2)?;
                self.expression()?;
                self.want(b"E")?;
                self.kind()
            }
            b'w' => {
                self.skip(2)?;
                self.until_end(Self::kind)?;
                self.kind()
            }
            b'd' | b'e' | b'f' | b'h' | b'i' | b's' | b'u' | b'a' | b'c' | b'n' => self.skip(2),
            _ => None,
        }
    }

    fn expression(&mut self) -> Option<()> {
        self.within(Self::of_expression)
    }

    fn expressions(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.expression())
    }

    fn of_expression(&mut self) -> Option<()> {
        self.take(b"gs");
        match (self.peek(), self.second()) {
            (b'L', _) => return self.literal(),
            (b'T', _) => return self.parameter(),
            (b'f', b'p') => {
                self.skip(2)?;
                return self.function_parameter();
            }
            (b'f', b'L') if self.rest.get(2).is_some_and(u8::is_ascii_digit) => {
                self.skip(2)?;
                self.digits();
                self.want(b"p")?;
                return self.function_parameter();
            }
            (b'f', b'l' | b'r') => {
                self.skip(4)?;
                return self.expression();
            }
            (b'f', b'L' | b'R') => {
                self.skip(4)?;
                return self.expressions(2);
            }
            (b'0'..=b'9', _) | (b'o', b'n') | (b'd', b'n') => return self.base(),
            _ => {}
        }
        if self.take(b"cl") || self.take(b"il") {
            return self.until_end(Self::expression);
        }
        if self.take(b"tl") {
            self.kind()?;
            return self.until_end(Self::expression);
        }
        if self.take(b"cv") {
            self.kind()?;
            return match self.take(b"_") {
                true => self.until_end(Self::expression),
                false => self.expression(),
            };
        }
        if self.take(b"nw") || self.take(b"na") {
            return self.twice(|it| {
                while !it.take(b"_") {
                    it.expression()?;
                }
                it.kind()?;
                it.take(b"pi");
                it.until_end(Self::expression)
            });
        }
        if self.take(b"sr") {
            return self.resolved();
        }
        if self.take(b"dt") || self.take(b"pt") {
            self.expression()?;
            return if self.take(b"sr") { self.resolved() } else { self.base() };
        }
        if self.take(b"sZ") {
            return if self.peek() == b'T' { self.parameter() } else { self.expression() };
        }
        if self.take(b"st") || self.take(b"at") || self.take(b"ti") {
            return self.kind();
        }
        if self.take(b"tr") {
            return Some(());
        }
        if self.take(b"qu") {
            return self.expressions(3);
        }
        if self.one_of(TYPED) {
            self.kind()?;
            return self.expression();
        }
        if self.take(b"pp_") || self.take(b"mm_") || self.one_of(UNARY) {
            return self.expression();
        }
        self.one_of(BINARY).then_some(()).and_then(|()| self.expressions(2))
    }

    fn function_parameter(&mut self) -> Option<()> {
        while matches!(self.peek(), b'r' | b'V' | b'K') {
            self.skip(1)?;
        }
        if self.take(b"T") {
            return Some(());
        }
        self.digits();
        self.want(b"_")
    }

    /// A name in an expression that is not known what it is.
    fn base(&mut self) -> Option<()> {
        if self.take(b"dn") {
            return if self.peek().is_ascii_digit() { self.simple() } else { self.kind() };
        }
        if self.take(b"on") {
            self.operator()?;
            return self.some_arguments();
        }
        self.simple()
    }

    fn simple(&mut self) -> Option<()> {
        self.source()?;
        self.some_arguments()
    }

    fn resolved(&mut self) -> Option<()> {
        if self.take(b"N") {
            self.kind()?;
            self.until_end(Self::simple)?;
        } else if self.peek().is_ascii_digit() {
            self.until_end(Self::simple)?;
        } else {
            self.kind()?;
        }
        self.base()
    }
}
