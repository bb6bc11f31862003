//! Where functions begin and end, by a file's .eh_frame, or where it has none by its code: bytes in, addresses out.

use emberscope_arch::CodeFunctions;
use emberscope_target::elf::CodeImage;
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use std::collections::HashMap;

/// Most entries that others refer to (CIEs): linkers leave one for each way that code is written, some hundred in the
/// largest of libraries. A file could have each of its functions refer to another megabyte.
const MAX_COMMON: usize = 4096;

/// The same of a file without unwind information, by its code.
pub fn in_code(functions: CodeFunctions, image: &CodeImage) -> Box<[(u32, u32)]> {
    let code = emberscope_arch::Code {
        address: image.address,
        bytes: &image.code,
        entries: &image.entries,
        pointers: &image.pointers,
        constant: &|at, len| image.constant(at, len),
    };
    let narrow = |function: std::ops::Range<u64>| {
        Some((u32::try_from(function.start).ok()?, u32::try_from(function.end).ok()?))
    };
    functions(&code).into_iter().filter_map(narrow).collect()
}

/// First addresses and those behind the last, ascending, apart from each other; at most `most`. What lies above 4 GiB is
/// left out. `frames` is the section, which wants to be at `address`.
pub fn functions(frames: &[u8], address: u64, most: usize) -> Box<[(u32, u32)]> {
    let section = EhFrame::new(frames, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(address);
    let mut entries = section.entries(&bases);
    let mut found: Vec<(u32, u32)> = Vec::new();
    let mut common = HashMap::new();
    // What is malformed ends it: what was found before is true.
    while let Ok(Some(entry)) = entries.next()
        && found.len() < most
        && common.len() < MAX_COMMON
    {
        let CieOrFde::Fde(partial) = entry else { continue };
        // Each is read once.
        let of = |section: &EhFrame<_>, bases: &BaseAddresses, offset: gimli::EhFrameOffset| {
            let read = || section.cie_from_offset(bases, offset);
            common.entry(offset.0).or_insert_with(read).clone()
        };
        let Ok(entry) = partial.parse(of) else { continue };
        let (start, end) = (entry.initial_address(), entry.initial_address().saturating_add(entry.len()));
        if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end))
            && start < end
        {
            found.push((start, end));
        }
    }
    found.sort_unstable();
    found.dedup_by_key(|(start, _)| *start);
    // A function that another one begins in ends there.
    let next: Vec<u32> = found.iter().skip(1).map(|(start, _)| *start).chain([u32::MAX]).collect();
    for ((_, end), next) in found.iter_mut().zip(next) {
        *end = (*end).min(next);
    }
    found.into()
}
