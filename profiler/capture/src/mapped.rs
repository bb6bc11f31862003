//! Newly mapped code, from perf's own records.
//!
//! In: the bytes of the rings of all CPUs ([`PerfRing`]). Out: a [`RawEvent::Mmap`] for each executable
//! mapping of a file; anonymous ones (JIT code) and the kernel's own (`[vdso]`) are skipped. Layout of
//! PERF_RECORD_MMAP and PERF_RECORD_LOST: include/uapi/linux/perf_event.h. At most a ring's size of each
//! CPU a call.

use super::decode::{DecodeError, u16_at, u32_at, u64_at};
use super::perf_ring::PerfRing;
use emberscope_model::RawEvent;
use perf_event_open_sys::bindings as perf;

/// `perf_event_header`: type u32, misc u16, size u16.
const HEADER: usize = 8;
/// In a mapping's record: pid and tid, address, length and offset in the file; then its name.
const NAME_AT: usize = HEADER + 32;
/// What `sample_id_all` adds at the end of a record: the time.
const TIME: usize = 8;

/// Reads the rings, and counts what they did not hold and what made no sense.
#[derive(Debug, Default)]
pub(super) struct MappedCode {
    bytes: Vec<u8>,
    /// Mappings that did not fit into a ring.
    pub(super) lost: u64,
    /// Records that were not understood.
    pub(super) undecodable: u64,
    /// Records of anything but a file's mapping: they wake the reader as well, and tell it nothing.
    pub(super) passed_over: u64,
}

impl MappedCode {
    /// Appends what has come in the rings.
    pub(super) fn read<'a>(
        &mut self,
        rings: impl Iterator<Item = &'a mut PerfRing>,
        out: &mut Vec<RawEvent>,
    ) {
        for ring in rings {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.clear();
            if !ring.take(&mut bytes) {
                self.undecodable += 1;
            }
            self.records(&bytes, out);
            self.bytes = bytes;
        }
    }

    fn records(&mut self, mut bytes: &[u8], out: &mut Vec<RawEvent>) {
        while !bytes.is_empty() {
            let size = u16_at(bytes, 6).map_or(0, usize::from);
            let Some((record, rest)) = bytes.split_at_checked(size).filter(|_| size >= HEADER) else {
                // Without a length nothing after it can be found.
                self.undecodable += 1;
                return;
            };
            match self.record(record) {
                Ok(Some(event)) => out.push(event),
                Ok(None) => self.passed_over += 1,
                Err(_) => self.undecodable += 1,
            }
            bytes = rest;
        }
    }

    fn record(&mut self, record: &[u8]) -> Result<Option<RawEvent>, DecodeError> {
        match u32_at(record, 0)? {
            perf::PERF_RECORD_MMAP => mapping(record),
            perf::PERF_RECORD_LOST => {
                // After the header: the event's id, then how many.
                self.lost = self.lost.saturating_add(u64_at(record, HEADER + 8)?);
                Ok(None)
            }
            // Come with mappings, asked for or not (perf_event_task_match); the BPF side tells them.
            perf::PERF_RECORD_FORK | perf::PERF_RECORD_EXIT => Ok(None),
            other => Err(DecodeError::UnknownKind(other as u16)),
        }
    }
}

fn mapping(record: &[u8]) -> Result<Option<RawEvent>, DecodeError> {
    let time_at = record.len().checked_sub(TIME).ok_or(DecodeError::Short)?;
    let name = record.get(NAME_AT..time_at).ok_or(DecodeError::Short)?;
    // kernel/events/core.c, perf_event_mmap_event: `//anon`, `[vdso]`, `[heap]`; a file whose name is not
    // to be had is `//enomem` or `//toolong`.
    if name.starts_with(b"//anon") || name.starts_with(b"[") {
        return Ok(None);
    }
    let (pid, start, len) =
        (u32_at(record, HEADER)?, u64_at(record, HEADER + 8)?, u64_at(record, HEADER + 16)?);
    Ok(Some(RawEvent::Mmap { time_ns: u64_at(record, time_at)?, pid, start, end: start.saturating_add(len) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, words: &[u64], name: &[u8], time: u64) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        let size = HEADER + words.len() * 8 + name.len() + TIME;
        bytes.extend(0u16.to_ne_bytes());
        bytes.extend((size as u16).to_ne_bytes());
        bytes.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
        bytes.extend(name);
        bytes.extend(time.to_ne_bytes());
        bytes
    }

    /// Process 7, thread 9, 0x2000 bytes at 0x1000.
    fn mmap(name: &[u8]) -> Vec<u8> {
        let ids = u64::from_ne_bytes([7u32.to_ne_bytes(), 9u32.to_ne_bytes()].concat().try_into().unwrap());
        record(perf::PERF_RECORD_MMAP, &[ids, 0x1000, 0x2000, 0], name, 55)
    }

    fn read(bytes: &[u8]) -> (MappedCode, Vec<RawEvent>) {
        let (mut code, mut out) = (MappedCode::default(), Vec::new());
        code.records(bytes, &mut out);
        (code, out)
    }

    #[test]
    fn files_come_out_and_anonymous_memory_does_not() {
        let bytes = [
            mmap(b"/lib/x.so\0\0\0\0\0\0\0"),
            mmap(b"//anon\0\0"),
            mmap(b"[vdso]\0\0"),
            mmap(b"//enomem\0\0\0\0\0\0\0\0"),
        ]
        .concat();
        let (code, out) = read(&bytes);
        let want = RawEvent::Mmap { time_ns: 55, pid: 7, start: 0x1000, end: 0x3000 };
        assert_eq!(out, [want.clone(), want]);
        assert_eq!((code.lost, code.undecodable, code.passed_over), (0, 0, 2));
    }

    #[test]
    fn losses_are_added_up() {
        let lost = record(perf::PERF_RECORD_LOST, &[1, 40], b"", 0);
        let fork = record(perf::PERF_RECORD_FORK, &[1, 2, 3], b"", 0);
        let (code, out) = read(&[lost.clone(), mmap(b"/a\0\0\0\0\0\0"), fork, lost].concat());
        assert_eq!((code.lost, code.undecodable, out.len()), (80, 0, 1));
    }

    #[test]
    fn strange_and_cut_records_are_counted() {
        let strange = record(77, &[], b"", 0);
        let (code, out) = read(&[strange, mmap(b"/a\0\0\0\0\0\0")].concat());
        assert_eq!((code.undecodable, out.len()), (1, 1));
        let whole = mmap(b"/a\0\0\0\0\0\0");
        for len in 1..whole.len() {
            let (code, out) = read(&whole[..len]);
            assert_eq!((code.undecodable, out.len()), (1, 0), "cut at {len}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_and_make_few_events(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let (code, out) = read(&bytes);
            prop_assert!(out.len() as u64 + code.undecodable <= bytes.len() as u64);
        }

        #[test]
        fn damaged_records_never_panic(at in 0usize..64, value: u8, cut in 0usize..64) {
            let mut bytes = mmap(b"/lib/x.so\0\0\0\0\0\0\0");
            if let Some(byte) = bytes.get_mut(at) { *byte = value; }
            bytes.truncate(bytes.len() - cut.min(bytes.len()));
            prop_assert!(read(&bytes).1.len() <= 1);
        }
    }
}
