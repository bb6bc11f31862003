//! Expressions, which types and arguments may have.

use super::{BINARY, Reader, TYPED, UNARY};

impl Reader<'_> {
    pub(super) fn expression(&mut self) -> Option<()> {
        self.within(Self::of_expression)
    }

    pub(super) fn expressions(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.expression())
    }

    pub(super) fn of_expression(&mut self) -> Option<()> {
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

    pub(super) fn function_parameter(&mut self) -> Option<()> {
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
    pub(super) fn base(&mut self) -> Option<()> {
        if self.take(b"dn") {
            return if self.peek().is_ascii_digit() { self.simple() } else { self.kind() };
        }
        if self.take(b"on") {
            self.operator()?;
            return self.some_arguments();
        }
        self.simple()
    }

    pub(super) fn simple(&mut self) -> Option<()> {
        self.source()?;
        self.some_arguments()
    }

    pub(super) fn resolved(&mut self) -> Option<()> {
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
