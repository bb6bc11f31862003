//! A column of numbers in as few bytes each as the largest needs.
//!
//! In: numbers, one after the other. Out: the number at a place. A column of one number only takes no room.

/// A column of numbers.
#[derive(Clone, Debug)]
pub(crate) enum Packed {
    /// One number, and how often it stands there.
    Same(u64, usize),
    /// Numbers of 8 bits.
    U8(Vec<u8>),
    /// Numbers of 16 bits.
    U16(Vec<u16>),
    /// Numbers of 32 bits.
    U32(Vec<u32>),
    /// Numbers of 64 bits.
    U64(Vec<u64>),
}

impl Default for Packed {
    fn default() -> Self {
        Self::Same(0, 0)
    }
}

impl Packed {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Same(_, length) => *length,
            Self::U8(all) => all.len(),
            Self::U16(all) => all.len(),
            Self::U32(all) => all.len(),
            Self::U64(all) => all.len(),
        }
    }

    /// The number at a place; 0 beyond the end.
    pub fn get(&self, place: usize) -> u64 {
        match self {
            Self::Same(number, length) => (place < *length).then_some(*number),
            Self::U8(all) => all.get(place).copied().map(u64::from),
            Self::U16(all) => all.get(place).copied().map(u64::from),
            Self::U32(all) => all.get(place).copied().map(u64::from),
            Self::U64(all) => all.get(place).copied(),
        }
        .unwrap_or_default()
    }

    /// Adds a number; a larger one than before makes all numbers wider.
    pub fn push(&mut self, number: u64) {
        match self {
            Self::Same(known, length) if *known == number || *length == 0 => {
                (*known, *length) = (number, *length + 1);
                return;
            }
            Self::U8(all) if u8::try_from(number).is_ok() => return all.push(number as u8),
            Self::U16(all) if u16::try_from(number).is_ok() => return all.push(number as u16),
            Self::U32(all) if u32::try_from(number).is_ok() => return all.push(number as u32),
            Self::U64(all) => return all.push(number),
            _ => {}
        }
        let numbers = (0..self.len()).map(|place| self.get(place)).chain([number]);
        let most = (0..self.len()).map(|place| self.get(place)).fold(number, u64::max);
        *self = match most {
            0..=0xff => Self::U8(numbers.map(|number| number as u8).collect()),
            0x100..=0xffff => Self::U16(numbers.map(|number| number as u16).collect()),
            0x1_0000..=0xffff_ffff => Self::U32(numbers.map(|number| number as u32).collect()),
            _ => Self::U64(numbers.collect()),
        };
    }

    /// Gives back room for numbers that do not come.
    pub fn shrink(&mut self) {
        match self {
            Self::Same(..) => {}
            Self::U8(all) => all.shrink_to_fit(),
            Self::U16(all) => all.shrink_to_fit(),
            Self::U32(all) => all.shrink_to_fit(),
            Self::U64(all) => all.shrink_to_fit(),
        }
    }

    /// Bytes of memory that the numbers take.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Same(..) => 0,
            Self::U8(all) => all.capacity(),
            Self::U16(all) => all.capacity() * 2,
            Self::U32(all) => all.capacity() * 4,
            Self::U64(all) => all.capacity() * 8,
        }
    }
}

impl FromIterator<u64> for Packed {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut packed = Self::default();
        numbers.into_iter().for_each(|number| packed.push(number));
        packed.shrink();
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec((0_u64.., 0_u32..64).prop_map(|(n, s)| n >> s), 0..200)) {
            let packed: Packed = numbers.iter().copied().collect();
            prop_assert_eq!(packed.len(), numbers.len());
            let back: Vec<u64> = (0..packed.len()).map(|place| packed.get(place)).collect();
            prop_assert_eq!(back, numbers);
            prop_assert_eq!(packed.get(packed.len()), 0);
        }
    }

    #[test]
    fn one_number_takes_no_room_and_small_ones_little() {
        let same: Packed = std::iter::repeat_n(7, 1000).collect();
        assert_eq!((same.bytes(), same.get(999)), (0, 7));
        let small: Packed = (0..1000).map(|n| n % 256).collect();
        assert_eq!((small.bytes(), small.get(257)), (1000, 1));
    }
}
