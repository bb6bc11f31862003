//! Places of a program file in a process's memory: segments and mappings in, addresses out.

use super::Segment;
use crate::maps::Mapping;

/// Where in the file the code at an address (as linked) is.
pub fn file_offset(segments: &[Segment], address: u64) -> Option<u64> {
    let inside = |s: &&Segment| s.executable && address.wrapping_sub(s.address) < s.file_size;
    let segment = segments.iter().find(inside)?;
    segment.offset.checked_add(address - segment.address)
}

/// What the loader added to the addresses of a file of which `mapping` is code.
pub fn bias(segments: &[Segment], mapping: &Mapping) -> Option<u64> {
    // A segment's first page may begin before it: the loader maps whole pages.
    let page = |at: u64| at & !0xfff;
    let holds = |s: &&Segment| {
        s.executable
            && mapping.offset >= page(s.offset)
            && mapping.offset < s.offset.saturating_add(s.file_size)
    };
    let segment = segments.iter().find(holds)?;
    let linked = segment.address.checked_add(mapping.offset)?.checked_sub(segment.offset)?;
    Some(mapping.start.wrapping_sub(linked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::Backing;
    use std::path::Path;

    fn mapping(start: u64, offset: u64) -> Mapping {
        let backing = Backing::File { path: Path::new("/x/libjvm.so").into(), deleted: false };
        let end = start + 0x1000;
        Mapping { start, end, first_end: end, offset, device: (8, 1), inode: 7, backing }
    }

    #[test]
    fn addresses_and_offsets() {
        // Code linked at another distance than it has in the file, as lld does.
        let code = |offset, address, file_size| Segment {
            offset,
            address,
            file_size,
            memory_size: file_size,
            executable: true,
        };
        let data = Segment { executable: false, ..code(0, 0, 0x2000) };
        let segments = [data, code(0x2345, 0x3345, 0x10000)];
        assert_eq!(file_offset(&segments, 0x3400), Some(0x2400));
        assert_eq!(file_offset(&segments, 0x1000), None, "data");
        assert_eq!(file_offset(&segments, 0x13345), None, "behind it");
        assert_eq!(bias(&segments, &mapping(0x7f00_0000_2000, 0x2000)), Some(0x7f00_0000_2000 - 0x3000));
        // A mapping that was cut in two by mprotect.
        assert_eq!(bias(&segments, &mapping(0x7f00_0000_8000, 0x8000)), Some(0x7f00_0000_2000 - 0x3000));
        assert_eq!(bias(&segments, &mapping(0x7f00_0000_2000, 0x1000)), None);
    }
}
