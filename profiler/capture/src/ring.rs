//! The reading end of the ring buffer.
//!
//! The kernel side wakes only when a quarter of the ring is used, so a wait lasts its whole timeout in
//! quiet times and one wake-up brings many records. Edge-triggered epoll is what makes it so: poll(2)
//! would return at once whenever anything at all is there.

use super::decode::{decode, following};
use super::error::CaptureError;
use aya::maps::{MapData, RingBuf};
use emberscope_model::RawEvent;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Events taken by one call, but for those of its last record: the ring can fill as fast as it is read. The caller keeps the memory
/// for as many, 360 KB.
const MAX_BATCH: usize = 4096;

pub(super) struct EventRing {
    ring: RingBuf<MapData>,
    epoll: OwnedFd,
    /// The last batch was cut: records wait for which no wake-up will come.
    more: bool,
    /// Records that were not understood.
    pub(super) undecodable: u64,
}

impl EventRing {
    pub(super) fn new(ring: RingBuf<MapData>) -> Result<Self, CaptureError> {
        let io = |e: rustix::io::Errno| CaptureError::Io { operation: "epoll on the ring", source: e.into() };
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(io)?;
        epoll::add(&epoll, &ring, EventData::new_u64(0), EventFlags::IN | EventFlags::ET).map_err(io)?;
        Ok(Self { ring, epoll, more: false, undecodable: 0 })
    }

    /// Another ring that wakes the reader when it fills; forgotten when it is closed.
    pub(super) fn wake_by(&self, other: impl AsFd) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, other, EventData::new_u64(0), EventFlags::IN | EventFlags::ET)?)
    }

    /// Waits until enough is there or the time is over, then takes what is there.
    pub(super) fn read(&mut self, timeout: Duration, out: &mut Vec<RawEvent>) -> Result<(), CaptureError> {
        if !self.more {
            self.wait(timeout)?;
        }
        let mut taken = 0;
        while taken < MAX_BATCH {
            let Some(record) = self.ring.next() else { break };
            let mut next: Option<&[u8]> = Some(&record);
            while let Some(bytes) = next {
                taken += 1;
                match decode(bytes) {
                    Ok(event) => out.push(event),
                    Err(_) => self.undecodable += 1,
                }
                next = following(bytes);
            }
        }
        self.more = taken >= MAX_BATCH;
        Ok(())
    }

    fn wait(&self, timeout: Duration) -> Result<(), CaptureError> {
        let timeout = Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut events = [epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }];
        match epoll::wait(&self.epoll, &mut events, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(CaptureError::Io { operation: "waiting for the ring", source: io::Error::from(e) }),
        }
    }
}
