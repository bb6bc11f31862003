//! A perf event on one CPU that samples nothing and reports mapped code, and the ring it writes to.
//!
//! In: a CPU. Out: the bytes of the records that have come ([`super::mapped`] understands them). Needs
//! CAP_PERFMON and no BTF (perf_event_open(2), Linux 3.12 for the dummy event; include/uapi/linux/
//! perf_event.h for the layout). Forks and exits come up too, perf will have it so. A ring holds
//! [`DATA_BYTES`], some 280 mappings (a JVM's start makes about 30), and wakes the reader when half full;
//! what does not fit is counted by the kernel.
#![allow(unsafe_code)]

use perf_event_open_sys::{bindings as perf, perf_event_open};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes for records, where a page is not larger: a power of two, as perf asks.
const DATA_BYTES: usize = 32 * 1024;

/// The event, closed when dropped, and its ring.
pub(super) struct PerfRing {
    fd: OwnedFd,
    map: *mut c_void,
    page: usize,
    data: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for PerfRing {}

/// Opens an event of all processes on a CPU.
pub(super) fn open_event(attr: &mut perf::perf_event_attr, cpu: u32) -> io::Result<OwnedFd> {
    // SAFETY: `attr` is valid and says its size; the kernel copies it.
    let fd = unsafe { perf_event_open(attr, -1, cpu as i32, -1, u64::from(perf::PERF_FLAG_FD_CLOEXEC) as _) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl PerfRing {
    /// Starts reporting executable mappings made on a CPU; ENODEV when it is offline.
    pub(super) fn open(cpu: u32) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let data = DATA_BYTES.max(page);
        let mut attr = perf::perf_event_attr {
            type_: perf::PERF_TYPE_SOFTWARE,
            size: size_of::<perf::perf_event_attr>() as u32,
            config: u64::from(perf::PERF_COUNT_SW_DUMMY),
            // Ends each record, by `sample_id_all`.
            sample_type: u64::from(perf::PERF_SAMPLE_TIME),
            clockid: libc::CLOCK_MONOTONIC,
            ..Default::default()
        };
        attr.set_use_clockid(1);
        attr.set_sample_id_all(1);
        // Executable mappings only: others would come with `mmap_data`.
        attr.set_mmap(1);
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = (data / 2) as u32;
        let fd = open_event(&mut attr, cpu)?;
        // SAFETY: a new mapping at an address of the kernel's choice. Writable, so that the kernel waits
        // for the reader instead of writing over what was not read.
        let map = unsafe {
            mmap(
                std::ptr::null_mut(),
                page + data,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &fd,
                0,
            )?
        };
        Ok(Self { fd, map, page, data })
    }

    /// Appends the bytes of all whole records that have come, at most the ring's size, and makes room for
    /// others. False when the kernel's position makes no sense: all that was there is skipped.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) -> bool {
        let head = self.position(offset_of!(perf::perf_event_mmap_page, data_head));
        let tail = self.position(offset_of!(perf::perf_event_mmap_page, data_tail));
        // Acquire pairs with the kernel's barrier before it moves the head: the records are there.
        let (to, from) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let bytes = to.wrapping_sub(from);
        let sane = bytes <= self.data as u64;
        if sane {
            let at = from as usize & (self.data - 1);
            let first = (bytes as usize).min(self.data - at);
            out.extend_from_slice(self.records(at, first));
            out.extend_from_slice(self.records(0, bytes as usize - first));
        }
        // Release: the kernel may write here only after the bytes were copied.
        tail.store(to, Ordering::Release);
        sane
    }

    /// A position in the first page, which the kernel shares.
    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: an aligned field of `perf_event_mmap_page`, within the mapping, which lives as long as
        // `self` does; both sides access it atomically.
        unsafe { AtomicU64::from_ptr(self.map.byte_add(offset).cast()) }
    }

    /// Bytes of the ring that the reader owns: between tail and head.
    fn records(&self, at: usize, len: usize) -> &[u8] {
        // SAFETY: `at + len <= self.data` by the caller's arithmetic, so it lies in the mapping; the kernel
        // does not write between tail and head.
        unsafe { std::slice::from_raw_parts(self.map.byte_add(self.page + at).cast(), len) }
    }
}

impl AsFd for PerfRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length; no reference into it outlives `self`.
        let _ = unsafe { munmap(self.map, self.page + self.data) };
    }
}
