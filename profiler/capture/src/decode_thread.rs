//! Turns the bytes of a thread's record into an event: accounts, and a name in UTF-8 where it came in a
//! String's own code.
//!
//! Bounds-checked like the rest of `decode`. A name has at most [`MAX_NAME`] bytes, before and after.

use super::decode::{DecodeError, u16_at, u32_at, u64_at};
use emberscope_model::{Accounts, RawThread, ThreadCause};
use profiler_ebpf::{BoundRecord, MAX_NAME, RecordHeader, TaskThread, ThreadRecord};
use std::mem::offset_of;

/// One record, without what the ring put behind it.
pub(super) fn thread(bytes: &[u8], cause: ThreadCause) -> Result<RawThread, DecodeError> {
    let u64_of = |at| u64_at(bytes, at);
    let name_len = u32_at(bytes, offset_of!(ThreadRecord, name_len))? as usize;
    if name_len > MAX_NAME {
        return Err(DecodeError::LongName);
    }
    let name = bytes.get(size_of::<ThreadRecord>()..).ok_or(DecodeError::Short)?;
    let name = name.get(..name_len).ok_or(DecodeError::Short)?;
    let flags = u32_at(bytes, offset_of!(ThreadRecord, flags))?;
    let accounts = Accounts {
        cpu_ns: u64_of(offset_of!(ThreadRecord, cpu_ns))?,
        run_delay_ns: u64_of(offset_of!(ThreadRecord, run_delay_ns))?,
        user_ns: u64_of(offset_of!(ThreadRecord, user_ns))?,
        system_ns: u64_of(offset_of!(ThreadRecord, system_ns))?,
        voluntary_switches: u64_of(offset_of!(ThreadRecord, voluntary_switches))?,
        involuntary_switches: u64_of(offset_of!(ThreadRecord, involuntary_switches))?,
        minor_faults: u64_of(offset_of!(ThreadRecord, minor_faults))?,
        major_faults: u64_of(offset_of!(ThreadRecord, major_faults))?,
        read_bytes: u64_of(offset_of!(ThreadRecord, read_bytes))?,
        written_bytes: u64_of(offset_of!(ThreadRecord, written_bytes))?,
        python_wait_ns: u64_of(offset_of!(ThreadRecord, python_wait_ns))?,
        throttled_ns: u64_of(offset_of!(ThreadRecord, throttled_ns))?,
        paused_ns: u64_of(offset_of!(ThreadRecord, paused_ns))?,
    };
    Ok(RawThread {
        time_ns: u64_of(offset_of!(ThreadRecord, time_ns))?,
        start_ns: u64_of(offset_of!(ThreadRecord, start_ns))?,
        pid: u32_at(bytes, offset_of!(ThreadRecord, pid))?,
        tid: u32_at(bytes, offset_of!(ThreadRecord, tid))?,
        name_seq: u32_at(bytes, offset_of!(ThreadRecord, name_seq))?,
        previous_seq: u32_at(bytes, offset_of!(ThreadRecord, previous_seq))?,
        cause,
        name: utf8(name, flags),
        accounts: (flags & ThreadRecord::FLAG_ACCOUNTS != 0).then_some(accounts),
    })
}

/// A worker's record, with the task's thread and its name's number, or with the task before.
pub(super) fn bound(bytes: &[u8]) -> Result<RawThread, DecodeError> {
    let at = offset_of!(BoundRecord, task);
    let tid = u32_at(bytes, at + offset_of!(TaskThread, tid))?;
    let seq = u32_at(bytes, at + offset_of!(TaskThread, seq))?;
    let flags = u16_at(bytes, offset_of!(RecordHeader, flags))?;
    let outlived = flags & BoundRecord::FLAG_OUTLIVED != 0;
    let cause = if outlived { ThreadCause::Outlived } else { ThreadCause::Bound { tid, seq } };
    let worker = thread(bytes, cause)?;
    // What follows is no name.
    Ok(RawThread { name: Box::default(), ..worker })
}

/// A name in UTF-8, of at most [`MAX_NAME`] bytes, where the kernel gave it in a String's own code; else as it is.
fn utf8(name: &[u8], flags: u32) -> Box<[u8]> {
    let mut text: String = if flags & ThreadRecord::FLAG_NAME_UTF16 != 0 {
        let units = name.chunks_exact(2).filter_map(|unit| unit.first_chunk().copied());
        char::decode_utf16(units.map(u16::from_ne_bytes))
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    } else if flags & ThreadRecord::FLAG_NAME_LATIN1 != 0 {
        name.iter().copied().map(char::from).collect()
    } else {
        return name.into();
    };
    text.truncate(text.floor_char_boundary(MAX_NAME));
    text.into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::super::decode::decode;
    use super::super::decode::tests::Bytes;
    use super::*;
    use emberscope_model::RawEvent;
    use profiler_ebpf::RecordKind;

    fn a_name(flags: u32, name: &[u8]) -> Vec<u8> {
        let mut bytes = Bytes::new(RecordKind::ThreadNamed, 0)
            .u64s(&[1, 2])
            .u32s(&[3, 4, 5, 6])
            .u64s(&[10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22])
            .u32s(&[name.len() as u32, flags]);
        bytes.0.extend(name);
        bytes.done()
    }

    #[test]
    fn a_thread_comes_out_as_it_went_in() {
        let accounts = Accounts {
            cpu_ns: 10,
            run_delay_ns: 11,
            user_ns: 12,
            system_ns: 13,
            voluntary_switches: 14,
            involuntary_switches: 15,
            minor_faults: 16,
            major_faults: 17,
            read_bytes: 18,
            written_bytes: 19,
            python_wait_ns: 20,
            throttled_ns: 21,
            paused_ns: 22,
        };
        let want = RawThread {
            time_ns: 1,
            start_ns: 2,
            pid: 3,
            tid: 4,
            name_seq: 5,
            previous_seq: 6,
            cause: ThreadCause::Named,
            name: b"a \xff"[..].into(),
            accounts: Some(accounts),
        };
        let bytes = a_name(ThreadRecord::FLAG_ACCOUNTS, b"a \xff");
        assert_eq!(decode(&bytes), Ok(RawEvent::Thread(want.clone())));
        let bare = RawThread { accounts: None, ..want };
        assert_eq!(decode(&a_name(0, b"a \xff")), Ok(RawEvent::Thread(bare)));
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]), Err(DecodeError::Short));
        }
        assert_eq!(decode(&a_name(0, &[b'x'; MAX_NAME + 1])), Err(DecodeError::LongName));
    }

    #[test]
    fn a_worker_comes_with_its_tasks_thread() {
        let bytes = Bytes::new(RecordKind::WorkerBound, 0).u64s(&[1, 2]).u32s(&[3, 3, 5, 6]).u64s(&[7; 13]);
        let bytes = bytes.u32s(&[0, ThreadRecord::FLAG_ACCOUNTS, 70, 71]).done();
        let Ok(RawEvent::Thread(worker)) = decode(&bytes) else { panic!("not decoded") };
        assert_eq!(worker.cause, ThreadCause::Bound { tid: 70, seq: 71 });
        assert_eq!((worker.pid, worker.name_seq, worker.previous_seq, &*worker.name), (3, 5, 6, &b""[..]));
        assert_eq!(worker.accounts.map(|accounts| accounts.written_bytes), Some(7));
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]), Err(DecodeError::Short));
        }
        let mut over = bytes;
        let flags = offset_of!(RecordHeader, flags);
        over[flags..flags + 2].copy_from_slice(&BoundRecord::FLAG_OUTLIVED.to_ne_bytes());
        let Ok(RawEvent::Thread(worker)) = decode(&over) else { panic!("not decoded") };
        assert_eq!((worker.cause, worker.name_seq), (ThreadCause::Outlived, 5));
    }

    #[test]
    fn names_out_of_strings_become_utf8() {
        let name = |flags, bytes: &[u8]| match decode(&a_name(flags, bytes)) {
            Ok(RawEvent::Thread(thread)) => String::from_utf8(thread.name.into()).expect("UTF-8"),
            other => panic!("{other:?}"),
        };
        assert_eq!(name(ThreadRecord::FLAG_NAME_LATIN1, b"gr\xf6\xdfe"), "größe");
        let utf16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_ne_bytes).collect() };
        assert_eq!(name(ThreadRecord::FLAG_NAME_UTF16, &utf16("線程 🦀")), "線程 🦀");
        // Cut through a pair, and an odd byte.
        let half = [&utf16("🦀")[..2], b"x"].concat();
        assert_eq!(name(ThreadRecord::FLAG_NAME_UTF16, &half), "\u{fffd}");
        assert_eq!(name(ThreadRecord::FLAG_NAME_LATIN1, &[0xe9; MAX_NAME]), "é".repeat(MAX_NAME / 2));
        assert_eq!(name(ThreadRecord::FLAG_NAME_UTF16, &utf16(&"線".repeat(128))), "線".repeat(85));
    }
}
