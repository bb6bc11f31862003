//! Names: encodings, what they are in, operators, substitutions.

use super::{BINARY, NAMED, Reader, UNARY};

impl Reader<'_> {
    pub(super) fn encoding(&mut self) -> Option<()> {
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

    pub(super) fn offset(&mut self) -> Option<()> {
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

    pub(super) fn name(&mut self) -> Option<()> {
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

    pub(super) fn nested(&mut self) -> Option<()> {
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

    pub(super) fn local(&mut self) -> Option<()> {
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

    pub(super) fn discriminator(&mut self) -> Option<()> {
        if self.take(b"__") {
            self.digits();
            return self.want(b"_");
        }
        if self.peek() == b'_' && self.second().is_ascii_digit() {
            return self.skip(2);
        }
        Some(())
    }

    pub(super) fn source(&mut self) -> Option<()> {
        if !self.peek().is_ascii_digit() {
            return None;
        }
        let length = self.digits();
        (length > 0).then_some(())?;
        self.skip(length)
    }

    pub(super) fn unqualified(&mut self) -> Option<()> {
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

    pub(super) fn closure(&mut self) -> Option<()> {
        self.skip(2)?;
        self.twice(|it| it.until_end(Self::kind))?;
        self.digits();
        self.want(b"_")
    }

    pub(super) fn operator(&mut self) -> Option<()> {
        self.take(b"on");
        if self.take(b"cv") {
            return self.twice(Self::kind);
        }
        if self.take(b"li") {
            return self.source();
        }
        [UNARY, BINARY, NAMED].into_iter().any(|words| self.one_of(words)).then_some(())
    }

    pub(super) fn substitution(&mut self) -> Option<()> {
        self.skip(1)?;
        match self.peek() {
            b't' | b'a' | b'b' | b's' | b'i' | b'o' | b'd' => self.skip(1),
            _ => self.sequence(),
        }
    }

    pub(super) fn parameter(&mut self) -> Option<()> {
        self.want(b"T")?;
        self.digits();
        self.want(b"_")
    }
}
