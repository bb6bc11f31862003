//! The text of a selector, piece by piece.

use super::{Comparison, LabelMatcher, MAX_MATCHERS, SelectorError};

/// Where in a text.
pub(super) struct Reader<'a> {
    pub text: &'a str,
    pub at: usize,
}

impl<'a> Reader<'a> {
    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
    pub fn expected(&self, wanted: &'static str) -> SelectorError {
        SelectorError::Expected { wanted, at: self.at }
    }
    pub fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
    }
    pub fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }
    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// A name; empty when none stands here. Metric names may hold colons.
    pub fn word(&mut self, colons: bool) -> &'a str {
        let rest = self.rest();
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colons && c == ':');
        let end = match rest.chars().next() {
            Some(first) if part(first) && !first.is_ascii_digit() => {
                rest.find(|c| !part(c)).unwrap_or(rest.len())
            }
            _ => 0,
        };
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Reads what stands between the braces, and the closing one.
    ///
    /// # Errors
    /// [`SelectorError::TooMany`]: there are more than [`MAX_MATCHERS`]. [`SelectorError::Expected`],
    /// [`SelectorError::Escape`]: something else stands there.
    pub fn matchers(&mut self, out: &mut Vec<LabelMatcher>) -> Result<(), SelectorError> {
        loop {
            self.skip_space();
            if self.eat("}") {
                return Ok(());
            }
            if out.len() == MAX_MATCHERS {
                return Err(SelectorError::TooMany);
            }
            let name = self.word(false).to_owned();
            if name.is_empty() {
                return Err(self.expected("a label name or `}`"));
            }
            self.skip_space();
            let comparison = self.comparison()?;
            self.skip_space();
            let value = self.string()?;
            out.push(LabelMatcher { name, comparison, value });
            self.skip_space();
            if !self.eat(",") {
                return if self.eat("}") { Ok(()) } else { Err(self.expected("`,` or `}`")) };
            }
        }
    }

    fn comparison(&mut self) -> Result<Comparison, SelectorError> {
        // Longest first: `=` is the start of `=~`.
        [Comparison::Matches, Comparison::NotMatches, Comparison::NotEqual, Comparison::Equal]
            .into_iter()
            .find(|c| self.eat(c.symbol()))
            .ok_or_else(|| self.expected("`=`, `!=`, `=~` or `!~`"))
    }

    fn string(&mut self) -> Result<String, SelectorError> {
        let quote = match self.rest().chars().next() {
            Some(c @ ('"' | '\'' | '`')) => c,
            _ => return Err(self.expected("a quoted value")),
        };
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let at = self.at;
            match self.next() {
                Some(c) if c == quote => {
                    return String::from_utf8(out).map_err(|_| SelectorError::Escape { at });
                }
                Some('\\') if quote != '`' => {
                    self.escape(quote, &mut out).ok_or(SelectorError::Escape { at })?;
                }
                Some('\n') if quote != '`' => {
                    return Err(SelectorError::Expected { wanted: "a closing quote", at });
                }
                Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => return Err(SelectorError::Expected { wanted: "a closing quote", at }),
            }
        }
    }

    /// What follows a backslash. `\x41` and `\101` are bytes (together they must be UTF-8), `\u0041` and
    /// `\U00000041` are characters: the Go specification's "String literals".
    fn escape(&mut self, quote: char, out: &mut Vec<u8>) -> Option<()> {
        let byte = match self.next()? {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' => b'\\',
            c if c == quote => c as u8,
            'x' => self.digits(16, 2)? as u8,
            'u' => return self.character(4, out),
            'U' => return self.character(8, out),
            '0'..='7' => {
                self.at -= 1;
                u8::try_from(self.digits(8, 3)?).ok()?
            }
            _ => return None,
        };
        out.push(byte);
        Some(())
    }

    fn character(&mut self, digits: usize, out: &mut Vec<u8>) -> Option<()> {
        let c = char::from_u32(self.digits(16, digits)?)?;
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        Some(())
    }

    fn digits(&mut self, radix: u32, count: usize) -> Option<u32> {
        let mut value = 0u32;
        for _ in 0..count {
            value = value.checked_mul(radix)?.checked_add(self.next()?.to_digit(radix)?)?;
        }
        Some(value)
    }
}
