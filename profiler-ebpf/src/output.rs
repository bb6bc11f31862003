//! Sending records and counting what could not be sent.
#![allow(unsafe_code)]

use crate::globals::{RING_BYTES, WAKE_BYTES};
use crate::maps::{COUNTERS, EVENTS};
use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP};
use aya_ebpf::helpers::bpf_get_smp_processor_id;
use aya_log_ebpf::warn;
use profiler_ebpf::{Counter, DropReason};

/// The counters of this CPU.
pub struct Counts(*mut u64);

impl Counts {
    /// None does not happen: the array has its one entry on each CPU.
    #[inline(always)]
    pub fn of_this_cpu() -> Option<Self> {
        COUNTERS.get_ptr_mut(0).map(|slots| Self(slots.cast()))
    }

    /// Adds to a counter.
    #[inline(always)]
    pub fn add(&self, counter: Counter, n: u64) {
        self.bump(counter as usize, n);
    }

    /// Counts a loss; the first on a CPU is logged too.
    #[inline(always)]
    pub fn lost(&self, reason: DropReason) {
        if self.bump(reason as usize, 1) == 1 {
            first_loss(reason as u64);
        }
    }

    /// The slot itself.
    #[inline(always)]
    pub fn slot(&self, counter: Counter) -> *mut u64 {
        // SAFETY: the slot numbers are below COUNTER_SLOTS.
        unsafe { self.0.add(counter as usize) }
    }

    #[inline(always)]
    fn bump(&self, slot: usize, n: u64) -> u64 {
        // SAFETY: the slot numbers are below COUNTER_SLOTS (asserted where they are made), and only this
        // CPU writes here. An interrupt between load and store can lose a count, never memory.
        unsafe {
            let slot = self.0.add(slot);
            *slot += n;
            *slot
        }
    }
}

/// Logs it. Global, as the functions of `shares` are: it is some 400 instructions.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn first_loss(reason: u64) -> u64 {
    // SAFETY: the helper has no preconditions.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    warn!((), "first loss on CPU {}: reason {}", cpu, reason as u32);
    0
}

/// Counts the loss of an event.
#[inline(always)]
pub fn lost_event() {
    if let Some(counts) = Counts::of_this_cpu() {
        counts.lost(DropReason::RingFullEvent);
    }
}

/// Bytes that wait to be read.
#[inline(always)]
pub fn waiting() -> u64 {
    EVENTS.query(u64::from(BPF_RB_AVAIL_DATA))
}

/// Flags for a record that the reader should have at once.
pub const WAKE_NOW: u64 = BPF_RB_FORCE_WAKEUP as u64;

/// Flags for a record: wake the reader only when enough waits to be worth it.
#[inline(always)]
pub fn wake_flags(waiting: u64) -> u64 {
    if waiting >= WAKE_BYTES.load() { WAKE_NOW } else { u64::from(BPF_RB_NO_WAKEUP) }
}

/// Whether the ring has room for what is no sample and no stack: its last eighth is for these, however many users put
/// events; what one of them may put is `shares`'.
#[inline(always)]
pub fn room_for_events(waiting: u64) -> bool {
    waiting < RING_BYTES.load() / 8 * 7
}

/// Whether less than half of the ring is used: what is asked for fills no more, since it can be asked for again.
#[inline(always)]
pub fn half_is_free() -> bool {
    waiting() < RING_BYTES.load() / 2
}

/// Sends a record of a fixed size, with the flags of [`wake_flags`] or [`WAKE_NOW`]; whether the ring took it.
#[inline(always)]
pub fn send<T: 'static>(record: T, flags: u64) -> bool {
    match EVENTS.reserve::<T>(0) {
        Some(mut entry) => {
            entry.write(record);
            entry.submit(flags);
            true
        }
        None => false,
    }
}
