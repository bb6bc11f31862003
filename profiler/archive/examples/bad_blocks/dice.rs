//! Bytes that are spoilt by chance.

use super::*;

/// Numbers that look like chance and are the same each time (xorshift64*).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides.max(1)
    }
}

/// Numbers that are larger than what they count, as Thrift, LEB128 and Parquet have them.
pub(super) const HUGE: [&[u8]; 7] = [
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xfe, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    &[0xff, 0xff, 0xff, 0x7f],
    &[0x80, 0x80, 0x80, 0x80, 0x08],
    &[0xff; 8],
    &[0xfc, 0xff, 0xff, 0xff, 0x07],
];

/// Changes some bytes; in place where the length is to stay.
pub(super) fn spoil(bytes: &mut Vec<u8>, dice: &mut Dice, in_place: bool) {
    if bytes.is_empty() {
        return;
    }
    // The end of a file of Parquet is what says where all else is.
    let near_end = dice.roll(2) == 0;
    let length = bytes.len();
    let somewhere = |dice: &mut Dice| match near_end {
        true => length - 1 - dice.roll(length.min(400)),
        false => dice.roll(length),
    };
    let at = somewhere(dice);
    match dice.roll(if in_place { 4 } else { 8 }) {
        0 => bytes[at] ^= 1 << dice.roll(8),
        1 => bytes[at] = [0, 0xff, 0x7f, 0x80, 1][dice.roll(5)],
        2 => {
            let huge = HUGE[dice.roll(HUGE.len())];
            bytes.iter_mut().skip(at).zip(huge).for_each(|(byte, huge)| *byte = *huge);
        }
        3 => (0..1 + dice.roll(4)).for_each(|_| {
            let at = somewhere(dice);
            bytes[at] = dice.roll(256) as u8;
        }),
        4 => bytes.truncate(at),
        5 => {
            let from = dice.roll(length);
            let some = bytes[from..(from + dice.roll(64)).min(length)].to_vec();
            bytes.splice(at..at, some);
        }
        6 => drop(bytes.drain(at..(at + 1 + dice.roll(16)).min(length))),
        _ => drop(bytes.splice(at..at, HUGE[dice.roll(HUGE.len())].iter().copied())),
    }
}

/// Spoils what a page inflates to; the page stays as long as it is.
pub(super) fn spoil_page(bytes: &mut Vec<u8>, dice: &mut Dice) -> Option<()> {
    let frames: Vec<usize> =
        (bytes.windows(4).enumerate()).filter(|(_, at)| **at == FRAME).map(|(at, _)| at).collect();
    let at = *frames.get(dice.roll(frames.len()))?;
    let length = zstd::zstd_safe::find_frame_compressed_size(bytes.get(at..)?).ok()?;
    let mut page = zstd::bulk::decompress(bytes.get(at..at + length)?, 1 << 20).ok()?;
    spoil(&mut page, dice, true);
    let mut packed = (1..20).find_map(|level| {
        let packed = zstd::bulk::compress(&page, level).ok()?;
        (packed.len() == length || packed.len() + 8 <= length).then_some(packed)
    })?;
    // What is left is a frame that is passed over.
    if let Some(left) = length.checked_sub(packed.len() + 8).filter(|_| packed.len() < length) {
        packed.extend(0x184d_2a50_u32.to_le_bytes());
        packed.extend((left as u32).to_le_bytes());
        packed.resize(length, 0);
    }
    bytes.splice(at..at + length, packed);
    Some(())
}
