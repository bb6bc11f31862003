//! Turns the bytes of ring records into events.
//!
//! Bounds-checked and free of alignment needs: a record that is too short or of an unknown kind is an
//! error value, which the reader counts. Limits are those of the records (`profiler_ebpf`).

use super::decode_sample::sample;
use super::decode_thread::{bound, thread};
use super::decode_wait::{pause, wait};
use emberscope_model::{RawEvent, RawStack, RawTask, StackEnd, TaskEvent, ThreadCause};
use profiler_ebpf::{
    MAX_FRAMES_WITH_PYTHON, MAX_KERNEL_FRAMES, RecordHeader, RecordKind, StackRecord, TaskRecord, UserFrame,
};
use std::mem::offset_of;

/// Why a record was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Shorter than its kind or its own length says.
    #[error("record cut short")]
    Short,
    /// A kind, or a kind of sample, that this daemon does not know.
    #[error("unknown kind {0}")]
    UnknownKind(u16),
    /// More frames than the kernel side ever sends.
    #[error("too many frames")]
    TooManyFrames,
    /// A longer name than the kernel side ever sends.
    #[error("name too long")]
    LongName,
}

/// One record. Bytes after its end (the ring pads to 8) are ignored.
///
/// # Errors
/// A `DecodeError`: too short, a kind that is not known, or larger than the kernel side sends. Nothing of it is used.
pub fn decode(bytes: &[u8]) -> Result<RawEvent, DecodeError> {
    let kind = u16_at(bytes, offset_of!(RecordHeader, kind))?;
    let len = u32_at(bytes, offset_of!(RecordHeader, len))? as usize;
    let bytes = bytes.get(..len).ok_or(DecodeError::Short)?;
    const SAMPLE: u16 = RecordKind::Sample as u16;
    const STACK: u16 = RecordKind::Stack as u16;
    const EXEC: u16 = RecordKind::Exec as u16;
    const FORK: u16 = RecordKind::Fork as u16;
    const EXIT: u16 = RecordKind::Exit as u16;
    const NAMED: u16 = RecordKind::ThreadNamed as u16;
    const ENDED: u16 = RecordKind::ThreadEnded as u16;
    const ASKED: u16 = RecordKind::ThreadAsked as u16;
    const BOUND: u16 = RecordKind::WorkerBound as u16;
    const WAIT: u16 = RecordKind::Wait as u16;
    match kind {
        kind if kind == RecordKind::Pause as u16 => pause(bytes).map(RawEvent::Pause),
        WAIT => wait(bytes).map(RawEvent::Wait),
        SAMPLE => sample(bytes).map(RawEvent::Sample),
        STACK => stack(bytes).map(RawEvent::Stack),
        EXEC => task(bytes, TaskEvent::Exec).map(RawEvent::Task),
        FORK => {
            let event = TaskEvent::Fork {
                parent_pid: u32_at(bytes, offset_of!(TaskRecord, parent_pid))?,
                parent_tid: u32_at(bytes, offset_of!(TaskRecord, parent_tid))?,
            };
            task(bytes, event).map(RawEvent::Task)
        }
        EXIT => task(bytes, TaskEvent::Exit).map(RawEvent::Task),
        NAMED => thread(bytes, ThreadCause::Named).map(RawEvent::Thread),
        ENDED => thread(bytes, ThreadCause::Ended).map(RawEvent::Thread),
        ASKED => thread(bytes, ThreadCause::Asked).map(RawEvent::Thread),
        BOUND => bound(bytes).map(RawEvent::Thread),
        kind => Err(DecodeError::UnknownKind(kind)),
    }
}

/// The bytes of the record behind one, if its flags say that there is one.
pub fn following(bytes: &[u8]) -> Option<&[u8]> {
    let kind = u16_at(bytes, offset_of!(RecordHeader, kind)).ok()?;
    let flags = u16_at(bytes, offset_of!(RecordHeader, flags)).ok()?;
    let len = u32_at(bytes, offset_of!(RecordHeader, len)).ok()? as usize;
    // What follows has less to come behind it: a record is never empty.
    let follows = kind == RecordKind::Stack as u16 && flags & StackRecord::FLAG_SAMPLE_FOLLOWS != 0;
    bytes.get(len.max(size_of::<RecordHeader>())..).filter(|_| follows)
}

fn stack(bytes: &[u8]) -> Result<RawStack, DecodeError> {
    let kernel_frames = usize::from(u16_at(bytes, offset_of!(StackRecord, kernel_frames))?);
    let user_frames = usize::from(u16_at(bytes, offset_of!(StackRecord, user_frames))?);
    if kernel_frames > MAX_KERNEL_FRAMES || user_frames > MAX_FRAMES_WITH_PYTHON {
        return Err(DecodeError::TooManyFrames);
    }
    let end = *bytes.get(offset_of!(StackRecord, end)).ok_or(DecodeError::Short)?;
    let body = bytes.get(size_of::<StackRecord>()..).ok_or(DecodeError::Short)?;
    let (kernel, user) = body.split_at_checked(kernel_frames * 8).ok_or(DecodeError::Short)?;
    let user = user.get(..user_frames * size_of::<UserFrame>()).ok_or(DecodeError::Short)?;
    let kernel: Result<Box<[u64]>, _> = kernel.chunks_exact(8).map(|word| u64_at(word, 0)).collect();
    let user: Result<Box<[UserFrame]>, _> =
        user.chunks_exact(size_of::<UserFrame>()).map(user_frame).collect();
    Ok(RawStack {
        hash: u64_at(bytes, offset_of!(StackRecord, hash))?,
        generation: u64_at(bytes, offset_of!(StackRecord, generation))?,
        time_ns: u64_at(bytes, offset_of!(StackRecord, time_ns))?,
        pid: u32_at(bytes, offset_of!(StackRecord, pid))?,
        kernel: kernel?,
        user: user?,
        end: StackEnd::from_number(end).unwrap_or(StackEnd::Unknown),
    })
}

fn user_frame(bytes: &[u8]) -> Result<UserFrame, DecodeError> {
    Ok(UserFrame {
        value: u64_at(bytes, offset_of!(UserFrame, value))?,
        cookie: u32_at(bytes, offset_of!(UserFrame, cookie))?,
        kind: *bytes.get(offset_of!(UserFrame, kind)).ok_or(DecodeError::Short)?,
        flags: *bytes.get(offset_of!(UserFrame, flags)).ok_or(DecodeError::Short)?,
        runtime: *bytes.get(offset_of!(UserFrame, runtime)).ok_or(DecodeError::Short)?,
        pad: 0,
    })
}

fn task(bytes: &[u8], event: TaskEvent) -> Result<RawTask, DecodeError> {
    Ok(RawTask {
        time_ns: u64_at(bytes, offset_of!(TaskRecord, time_ns))?,
        pid: u32_at(bytes, offset_of!(TaskRecord, pid))?,
        tid: u32_at(bytes, offset_of!(TaskRecord, tid))?,
        event,
    })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], DecodeError> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(DecodeError::Short)
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Result<u16, DecodeError> {
    array(bytes, at).map(u16::from_ne_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Result<u32, DecodeError> {
    array(bytes, at).map(u32::from_ne_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Result<u64, DecodeError> {
    array(bytes, at).map(u64::from_ne_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use emberscope_model::{RawSample, SampleKind};
    use profiler_ebpf::{SampleKindTag, SampleRecord};
    use proptest::prelude::*;

    /// Builds a record as the kernel does: native byte order, no holes.
    pub(in super::super) struct Bytes(pub(in super::super) Vec<u8>);

    impl Bytes {
        pub(in super::super) fn new(kind: RecordKind, flags: u16) -> Self {
            let mut bytes = (kind as u16).to_ne_bytes().to_vec();
            bytes.extend(flags.to_ne_bytes());
            bytes.extend([0; 4]);
            Self(bytes)
        }
        pub(in super::super) fn u64s(mut self, values: &[u64]) -> Self {
            self.0.extend(values.iter().flat_map(|v| v.to_ne_bytes()));
            self
        }
        pub(in super::super) fn u32s(mut self, values: &[u32]) -> Self {
            self.0.extend(values.iter().flat_map(|v| v.to_ne_bytes()));
            self
        }
        pub(in super::super) fn u16s(mut self, values: &[u16]) -> Self {
            self.0.extend(values.iter().flat_map(|v| v.to_ne_bytes()));
            self
        }
        pub(in super::super) fn done(mut self) -> Vec<u8> {
            let len = self.0.len() as u32;
            self.0[4..8].copy_from_slice(&len.to_ne_bytes());
            self.0
        }
    }

    fn a_stack() -> Vec<u8> {
        Bytes::new(RecordKind::Stack, 0)
            .u64s(&[77, 1000])
            .u32s(&[5, 6])
            .u16s(&[1, 2])
            .u32s(&[u32::from_ne_bytes([StackEnd::Root as u8, 0, 0, 0])])
            .u64s(&[12, 0xffff_ffff_8100_0000, 0x40_1000, 0])
            .u64s(&[0x40_2000, 1 << 40])
            .done()
    }

    #[test]
    fn a_sample_comes_out_as_it_went_in() {
        let bytes = Bytes::new(RecordKind::Sample, SampleRecord::FLAG_KERNEL_MODE)
            .u64s(&[1, 2, 3])
            .u32s(&[5, 6, 7, 8])
            .u16s(&[SampleKindTag::Cpu as u16, 3])
            .u32s(&[9])
            .done();
        assert_eq!(bytes.len(), 56);
        let want = RawSample {
            time_ns: 1,
            weight: 2,
            stack: 3,
            pid: 5,
            tid: 6,
            cpu: 7,
            name_seq: 8,
            kind: SampleKind::Cpu,
            slot: 3,
            detail: 9,
            kernel_mode: true,
        };
        assert_eq!(decode(&bytes), Ok(RawEvent::Sample(want)));
    }

    #[test]
    fn a_stack_comes_out_as_it_went_in() {
        let Ok(RawEvent::Stack(stack)) = decode(&a_stack()) else { panic!("not a stack") };
        assert_eq!((stack.hash, stack.time_ns, stack.pid, stack.end), (77, 1000, 5, StackEnd::Root));
        assert_eq!((&*stack.kernel, stack.generation), (&[0xffff_ffff_8100_0000][..], 12));
        let flags = UserFrame::FLAG_RETURN_ADDRESS;
        assert_eq!(
            *stack.user,
            [
                UserFrame { value: 0x40_1000, ..Default::default() },
                UserFrame { value: 0x40_2000, flags, ..Default::default() }
            ]
        );
    }

    #[test]
    fn a_stack_is_followed_by_its_sample_where_it_says_so() {
        let sample =
            Bytes::new(RecordKind::Sample, 0).u64s(&[1, 2, 77]).u32s(&[5, 6, 7, 8]).u16s(&[0; 4]).done();
        let mut both = a_stack();
        both.extend(&sample);
        assert_eq!(following(&both), None);
        both[2..4].copy_from_slice(&StackRecord::FLAG_SAMPLE_FOLLOWS.to_ne_bytes());
        assert!(matches!(decode(&both), Ok(RawEvent::Stack(stack)) if stack.user.len() == 2));
        assert_eq!(following(&both), Some(&sample[..]));
        assert_eq!(following(&sample), None);
    }

    #[test]
    fn a_stack_that_says_more_than_it_has_is_refused() {
        let mut bytes = a_stack();
        bytes[offset_of!(StackRecord, user_frames)] = 3;
        assert_eq!(decode(&bytes), Err(DecodeError::Short));
        bytes[offset_of!(StackRecord, user_frames) + 1] = 0xff;
        assert_eq!(decode(&bytes), Err(DecodeError::TooManyFrames));
    }

    #[test]
    fn tasks_and_strangers() {
        let fork = Bytes::new(RecordKind::Fork, 0).u64s(&[9]).u32s(&[1, 2, 3, 4]).done();
        let event = TaskEvent::Fork { parent_pid: 3, parent_tid: 4 };
        assert_eq!(decode(&fork), Ok(RawEvent::Task(RawTask { time_ns: 9, pid: 1, tid: 2, event })));
        let mut strange = fork.clone();
        strange[..2].copy_from_slice(&999u16.to_ne_bytes());
        assert_eq!(decode(&strange), Err(DecodeError::UnknownKind(999)));
        for len in 0..fork.len() {
            assert_eq!(decode(&fork[..len]), Err(DecodeError::Short));
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn damaged_records_never_panic_and_stay_bounded(
            kind in 0u16..11, len in 0u32..300, at in 8usize..48, byte: u8,
            body in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut bytes = kind.to_ne_bytes().to_vec();
            bytes.extend([0, 0]);
            bytes.extend(len.to_ne_bytes());
            bytes.extend(body);
            if let Some(b) = bytes.get_mut(at) { *b = byte; }
            if let Ok(RawEvent::Stack(stack)) = decode(&bytes) {
                prop_assert!(stack.kernel.len() * 8 + stack.user.len() * 16 <= bytes.len());
            }
        }
    }
}
