//! A table from offsets in code to scopes, kept small: each entry is told by how far it is from the one before. Some
//! three bytes an entry instead of eight; a look-up goes through it from the start, a microsecond for a usual method.

/// Offsets, ascending, with scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs(Box<[u8]>);

impl Runs {
    /// A table of entries that ascend; one that does not is told as if it were where the one before is.
    pub fn of(entries: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let (mut bytes, mut last) = (Vec::new(), (0u32, 0u32));
        for (offset, scope) in entries {
            put(&mut bytes, offset.saturating_sub(last.0));
            let step = scope.wrapping_sub(last.1) as i32;
            put(&mut bytes, (step << 1 ^ step >> 31) as u32);
            last = (offset.max(last.0), scope);
        }
        Self(bytes.into())
    }

    /// The entries: offset and scope, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let (mut bytes, mut last) = (self.0.iter(), (0u32, 0u32));
        std::iter::from_fn(move || {
            let (gap, step) = (take(&mut bytes)?, take(&mut bytes)?);
            last = (last.0.wrapping_add(gap), last.1.wrapping_add(step >> 1 ^ (step & 1).wrapping_neg()));
            Some(last)
        })
    }

    /// The scope of the entry at an offset.
    pub fn at(&self, offset: u32) -> Option<u32> {
        self.iter().take_while(|(at, _)| *at <= offset).find(|(at, _)| *at == offset).map(|(_, scope)| scope)
    }

    /// The scope of the first entry that is not below an offset.
    pub fn from(&self, offset: u32) -> Option<u32> {
        self.iter().find(|(at, _)| *at >= offset).map(|(_, scope)| scope)
    }

    /// The scope of the last entry that is not above an offset.
    pub fn up_to(&self, offset: u32) -> Option<u32> {
        self.iter().take_while(|(at, _)| *at <= offset).last().map(|(_, scope)| scope)
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of memory that the table takes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// Seven bits a byte, the lowest first.
fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let byte = *bytes.next()?;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_are_found_as_they_were_put(mut entries in proptest::collection::vec(any::<(u32, u32)>(), 0..60), at: u32) {
            entries.sort_by_key(|(at, _)| *at);
            let runs = Runs::of(entries.iter().copied());
            prop_assert_eq!(runs.iter().collect::<Vec<_>>(), entries.clone());
            prop_assert!(runs.bytes() <= 10 * entries.len());
            for at in entries.iter().map(|(at, _)| *at).chain([at, 0, u32::MAX]) {
                let scope = |entry: Option<&(u32, u32)>| entry.map(|(_, scope)| *scope);
                prop_assert_eq!(runs.at(at), scope(entries.iter().find(|(offset, _)| *offset == at)));
                prop_assert_eq!(runs.from(at), scope(entries.iter().find(|(offset, _)| *offset >= at)));
                prop_assert_eq!(runs.up_to(at), scope(entries.iter().rfind(|(offset, _)| *offset <= at)));
            }
        }
    }
}
