//! Types.

use super::Reader;

impl Reader<'_> {
    /// A type.
    pub(super) fn kind(&mut self) -> Option<()> {
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

    pub(super) fn function(&mut self) -> Option<()> {
        self.want(b"F")?;
        self.take(b"Y");
        self.until_end(|it| match (it.peek(), it.second()) {
            (b'R' | b'O', b'E') => it.skip(1),
            _ => it.kind(),
        })
    }

    pub(super) fn array(&mut self) -> Option<()> {
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
    pub(super) fn d_kind(&mut self) -> Option<()> {
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

    pub(super) fn decltype(&mut self) -> Option<()> {
        self.skip(2)?;
        self.expression()?;
        self.want(b"E")
    }
}
