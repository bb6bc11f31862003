//! Where the symbols of a file begin: how far around an address its name holds.
//!
//! A function is sampled at many addresses, and finding the symbol of one takes microseconds. In: an image, an address
//! and the symbol that was found for it. Out: the part of that symbol, around the address, in which no other begins or
//! ends; symbols of hand-written code lie within each other.

use emberscope_target::elf::{Headers, Image, each_symbol_entry};
use std::ops::Range;

/// Addresses at which symbols begin, ascending. Those above 4 GiB are left out, with [`Starts::alone`] of what is there.
#[derive(Debug, Default)]
pub struct Starts(Box<[u32]>);

impl Starts {
    /// Of all symbols of an image, whatever they are.
    pub fn of(image: &Image) -> Self {
        let mut starts = Vec::new();
        let size = image.file.metadata().map_or(0, |metadata| metadata.len());
        let tables =
            Headers::read(&image.file, size).map(|headers| headers.symbol_tables()).unwrap_or_default();
        for table in tables {
            // Of one that cannot be read to its end what was read.
            let _ = each_symbol_entry(&image.file, table.symbols, |entry| {
                starts.extend(start(entry));
                Ok(())
            });
        }
        starts.sort_unstable();
        starts.dedup();
        Self(starts.into())
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        (self.0.len() * size_of::<u32>()) as u64
    }

    /// The part of `symbol` around `address`, which lies in it, that has this name for sure.
    pub fn alone(&self, address: u64, symbol: Range<u64>) -> Range<u64> {
        let Ok(low) = u32::try_from(address) else { return address..address + 1 };
        let after = self.0.partition_point(|start| *start <= low);
        let before = after.checked_sub(1).and_then(|at| self.0.get(at));
        // Another one that began since may have ended before the address.
        let own = before.is_some_and(|start| u64::from(*start) == symbol.start);
        let next = self.0.get(after).map_or(symbol.end, |start| u64::from(*start));
        (if own { symbol.start } else { address })..next.min(symbol.end).max(address + 1)
    }
}

/// The address of a symbol that is defined in its file.
fn start(entry: &[u8]) -> Option<u32> {
    let section = u16::from_le_bytes(entry.get(6..8)?.try_into().ok()?);
    let address = u64::from_le_bytes(entry.get(8..16)?.try_into().ok()?);
    if section == 0 { None } else { u32::try_from(address).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_as_far_as_no_other_symbol_begins() {
        let starts = Starts([100, 120, 150, 200].into());
        assert_eq!(starts.alone(105, 100..200), 100..120);
        // 120 may have ended anywhere before.
        assert_eq!(starts.alone(130, 100..200), 130..150);
        assert_eq!(starts.alone(160, 150..180), 150..180);
        assert_eq!(starts.alone(200, 200..201), 200..201);
        assert_eq!(starts.alone(500, 200..900), 200..900);
        assert_eq!(starts.alone(1 << 40, 0..u64::MAX), 1 << 40..(1 << 40) + 1);
        assert_eq!(Starts::default().alone(7, 0..9), 7..9);
    }
}
