//! Reading the record of a sample.

use super::decode::{DecodeError, u16_at, u32_at, u64_at};
use emberscope_model::{RawSample, SampleKind};
use profiler_ebpf::{RecordHeader, SampleRecord};
use std::mem::offset_of;

pub(super) fn sample(bytes: &[u8]) -> Result<RawSample, DecodeError> {
    let tag = u16_at(bytes, offset_of!(SampleRecord, sample_kind))?;
    let kind = SampleKind::from_tag(tag).ok_or(DecodeError::UnknownKind(tag))?;
    let flags = u16_at(bytes, offset_of!(RecordHeader, flags))?;
    Ok(RawSample {
        time_ns: u64_at(bytes, offset_of!(SampleRecord, time_ns))?,
        weight: u64_at(bytes, offset_of!(SampleRecord, weight))?,
        stack: u64_at(bytes, offset_of!(SampleRecord, stack))?,
        pid: u32_at(bytes, offset_of!(SampleRecord, pid))?,
        tid: u32_at(bytes, offset_of!(SampleRecord, tid))?,
        cpu: u32_at(bytes, offset_of!(SampleRecord, cpu))?,
        name_seq: u32_at(bytes, offset_of!(SampleRecord, name_seq))?,
        kind,
        slot: u16_at(bytes, offset_of!(SampleRecord, slot))?,
        detail: u32_at(bytes, offset_of!(SampleRecord, detail))?,
        kernel_mode: flags & SampleRecord::FLAG_KERNEL_MODE != 0,
    })
}
