//! Turns the bytes of a wait's or a pause's record into an event, as [`super::decode`] does with the others.

use super::decode::{DecodeError, u16_at, u32_at, u64_at};
use super::decode_sample::sample;
use emberscope_model::{RawPause, RawWait};
use profiler_ebpf::{PauseRecord, RecordHeader, WaitRecord};
use std::mem::offset_of;

pub(super) fn wait(bytes: &[u8]) -> Result<RawWait, DecodeError> {
    let flags = u16_at(bytes, offset_of!(RecordHeader, flags))?;
    Ok(RawWait {
        sample: sample(bytes)?,
        began_ns: u64_at(bytes, offset_of!(WaitRecord, began_ns))?,
        several: flags & WaitRecord::FLAG_SEVERAL != 0,
        walked: flags & (WaitRecord::FLAG_SEVERAL | WaitRecord::FLAG_UNWALKED) == 0,
    })
}

pub(super) fn pause(bytes: &[u8]) -> Result<RawPause, DecodeError> {
    Ok(RawPause {
        began_ns: u64_at(bytes, offset_of!(PauseRecord, began_ns))?,
        ended_ns: u64_at(bytes, offset_of!(PauseRecord, time_ns))?,
        operation: u64_at(bytes, offset_of!(PauseRecord, operation))?,
        pid: u32_at(bytes, offset_of!(PauseRecord, pid))?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::decode::decode;
    use super::super::decode::tests::Bytes;
    use super::*;
    use emberscope_model::{RawEvent, SampleKind};
    use profiler_ebpf::{RecordKind, SampleKindTag};

    #[test]
    fn a_wait_comes_out_as_it_went_in() {
        let of = |flags| {
            let bytes = Bytes::new(RecordKind::Wait, flags).u64s(&[50, 20, 3]).u32s(&[5, 6, 7, 8]);
            bytes.u16s(&[SampleKindTag::OffCpu as u16, 0]).u32s(&[4]).u64s(&[30]).done()
        };
        let Ok(RawEvent::Wait(wait)) = decode(&of(0)) else { panic!("not a wait") };
        assert_eq!(
            (wait.began_ns, wait.sample.time_ns, wait.sample.weight, wait.several),
            (30, 50, 20, false)
        );
        assert_eq!((wait.sample.kind, wait.sample.tid, wait.sample.detail), (SampleKind::OffCpu, 6, 4));
        let flagged = |flags| match decode(&of(flags)) {
            Ok(RawEvent::Wait(wait)) => (wait.several, wait.walked),
            other => panic!("not a wait: {other:?}"),
        };
        let flags = [0, WaitRecord::FLAG_SEVERAL, WaitRecord::FLAG_UNWALKED];
        assert_eq!(flags.map(flagged), [(false, true), (true, false), (false, false)]);
        assert_eq!(decode(&of(0)[..63]), Err(DecodeError::Short));
    }

    #[test]
    fn a_pause_comes_out_as_it_went_in() {
        let bytes = Bytes::new(RecordKind::Pause, 0).u64s(&[50, 20, 0x7f00]).u32s(&[5, 6]).done();
        let want = RawPause { began_ns: 20, ended_ns: 50, operation: 0x7f00, pid: 5 };
        assert_eq!(decode(&bytes), Ok(RawEvent::Pause(want)));
        assert_eq!(decode(&bytes[..35]), Err(DecodeError::Short));
    }
}
