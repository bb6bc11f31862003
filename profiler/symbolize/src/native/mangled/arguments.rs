//! Arguments of templates, literals among them.

use super::Reader;

impl Reader<'_> {
    pub(super) fn some_arguments(&mut self) -> Option<()> {
        if self.peek() == b'I' { self.arguments() } else { Some(()) }
    }

    pub(super) fn arguments(&mut self) -> Option<()> {
        self.skip(1)?;
        self.within(|it| it.until_end(Self::argument))
    }

    pub(super) fn argument(&mut self) -> Option<()> {
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

    pub(super) fn literal(&mut self) -> Option<()> {
        self.skip(1)?;
        if self.take(b"_Z") {
            self.encoding()?;
            return self.want(b"E");
        }
        self.kind()?;
        let value = self.rest.iter().take_while(|byte| **byte != b'E').count();
        self.skip(value + 1)
    }
}
