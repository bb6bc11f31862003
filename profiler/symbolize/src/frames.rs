//! Frames that are equal share one allocation, within bounds of their number and of their bytes.
//!
//! In: frames, and whose process they are of. Out: the shared copies. Whoever writes a file chooses the names in it, of up
//! to [`emberscope_target::text::MAX_NAME`] bytes each: 65,536 of them would be 64 MB. Frames that nobody holds go first. Where
//! those that are held are too much, no new frame is taken of the tenants that hold more than their share
//! ([`Excess`]): they get `[unknown: table full]`, counted. Windows let go of frames when they close, so that is looked at
//! again each [`AGAIN`].

use emberscope_model::{Excess, FastMap, FastSet, Frame, Refusals, Tenant, UnknownReason};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Unused frames go each time that there are so many more, or so many bytes.
const SWEPT: usize = 8_192;
const SWEPT_BYTES: usize = 4 << 20;
/// How long a tenant that holds too much waits until it is looked at again: a window.
const AGAIN: Duration = Duration::from_secs(10);
/// What a frame takes beside its name and signature: itself and the counters of three `Arc`s, and its place in the table.
const FRAME_BYTES: usize = size_of::<Frame>() + 3 * 16 + size_of::<(Arc<Frame>, Tenant)>() * 8 / 7;

/// Limits of a [`FrameTable`].
#[derive(Clone, Copy, Debug)]
pub struct FrameLimits {
    /// Frames that are held at most.
    pub frames: usize,
    /// Bytes of all of them at most, estimated.
    pub bytes: usize,
}

/// A busy Spark node holds some 20,000 frames of some 250 bytes.
impl Default for FrameLimits {
    fn default() -> Self {
        Self { frames: 65_536, bytes: 24 << 20 }
    }
}

/// The frames that are shared.
pub struct FrameTable {
    all: FastMap<Arc<Frame>, Tenant>,
    limits: FrameLimits,
    bytes: usize,
    /// Frames and bytes at which those that nobody holds go.
    sweep_at: FrameLimits,
    /// The tenant of the frames that come now.
    tenant: Tenant,
    /// Tenants that were found to hold too much, and when.
    crowding: (FastSet<Tenant>, Instant),
    refused: Refusals,
    /// Times that the table was full of frames that are held.
    pub sweeps: u64,
}

impl FrameTable {
    /// A table of no frames.
    pub fn new(limits: FrameLimits) -> Self {
        let limits = FrameLimits { frames: limits.frames.max(16), bytes: limits.bytes.max(16 << 10) };
        Self {
            all: FastMap::default(),
            limits,
            bytes: 0,
            sweep_at: FrameLimits { frames: limits.frames.min(SWEPT), bytes: limits.bytes.min(SWEPT_BYTES) },
            tenant: Tenant::default(),
            crowding: (FastSet::default(), Instant::now()),
            refused: Refusals::default(),
            sweeps: 0,
        }
    }

    /// The frames that come next are of a process of this tenant.
    pub fn of(&mut self, tenant: Tenant) {
        self.tenant = tenant;
    }

    /// The shared copy of `frame`; a frame that says why where its tenant holds too much.
    pub fn intern(&mut self, frame: Frame) -> Arc<Frame> {
        if let Some((known, _)) = self.all.get_key_value(&frame) {
            return Arc::clone(known);
        }
        let bytes = bytes_of(&frame);
        if self.all.len() >= self.sweep_at.frames || self.bytes + bytes > self.sweep_at.bytes {
            self.sweep();
        }
        let (crowding, since) = &self.crowding;
        if crowding.contains(&self.tenant) && frame.unknown != Some(UnknownReason::TableFull) {
            if since.elapsed() < AGAIN {
                self.refused.add(self.tenant);
                return self.intern(Frame::unknown(UnknownReason::TableFull, ""));
            }
            self.sweep();
        }
        let frame = Arc::new(frame);
        self.bytes += bytes;
        self.all.insert(Arc::clone(&frame), self.tenant);
        frame
    }

    /// Lets go of what nobody holds; what is held beyond the limits is laid to those who hold too much of it.
    fn sweep(&mut self) {
        self.all.retain(|frame, _| Arc::strong_count(frame) > 1);
        self.all.shrink_to(self.all.len() * 2);
        self.bytes = self.all.keys().map(|frame| bytes_of(frame)).sum();
        let FrameLimits { frames, bytes } = self.limits;
        let (many, large) = (self.all.len() >= frames, self.bytes + SWEPT_BYTES.min(bytes / 8) > bytes);
        let size = |frame: &Frame| if large { bytes_of(frame) } else { 1 };
        let room = if large { bytes - bytes / 8 } else { frames - frames / 8 };
        self.crowding = (FastSet::default(), Instant::now());
        if many || large {
            self.sweeps += 1;
            let held: Vec<_> = self.all.iter().map(|(frame, who)| (*who, size(frame))).collect();
            let mut excess = Excess::over(room, held.iter().copied());
            let who: FastSet<Tenant> = held.iter().map(|(who, _)| *who).collect();
            self.crowding.0 = who.into_iter().filter(|who| excess.take(who, 0)).collect();
        }
        self.sweep_at =
            FrameLimits { frames: self.all.len() + SWEPT, bytes: self.bytes + SWEPT_BYTES.min(bytes / 8) };
    }

    /// How many frames the table holds.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Bytes of the frames that are held, estimated.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Names that were not taken for want of room, by whose they were.
    pub fn refusals(&self) -> (&'static str, &Refusals) {
        ("frames", &self.refused)
    }
}

fn bytes_of(frame: &Frame) -> usize {
    FRAME_BYTES + frame.name.len() + frame.signature.as_ref().map_or(0, |signature| signature.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::FrameKind;

    fn frame(name: String) -> Frame {
        Frame::new(FrameKind::Native, name, "")
    }

    fn tenant(uid: u32) -> Tenant {
        Tenant { spark: false, uid, group: 0 }
    }

    #[test]
    fn equal_frames_are_one() {
        let mut table = FrameTable::new(FrameLimits::default());
        let a = table.intern(Frame::new(FrameKind::Native, "a", "m"));
        assert!(Arc::ptr_eq(&a, &table.intern(Frame::new(FrameKind::Native, "a", "m"))));
        assert!(!Arc::ptr_eq(&a, &table.intern(Frame::new(FrameKind::Kernel, "a", "m"))));
    }

    #[test]
    fn what_is_unused_goes_before_there_is_no_room() {
        let mut table = FrameTable::new(FrameLimits::default());
        let name = |i: usize| frame(format!("f{i}"));
        let used: Vec<_> = (0..SWEPT / 2).map(|i| table.intern(name(i))).collect();
        (SWEPT..2 * SWEPT).for_each(|i| drop(table.intern(name(i))));
        assert!(table.len() < SWEPT + 1 && table.sweeps == 0, "{}", table.len());
        assert!(Arc::ptr_eq(&used[7], &table.intern(name(7))));
    }

    #[test]
    fn a_flooder_of_long_names_loses_his_own() {
        let limits = FrameLimits { frames: 1 << 20, bytes: 8 << 20 };
        let mut table = FrameTable::new(limits);
        table.of(tenant(1));
        let calm: Vec<_> = (0..100).map(|i| table.intern(frame(format!("calm{i}")))).collect();
        table.of(tenant(2));
        let flood: Vec<_> = (0..20_000).map(|i| table.intern(frame(format!("{i:01000}")))).collect();
        assert!(table.bytes() <= limits.bytes + limits.bytes / 4, "{}", table.bytes());
        let full = |frame: &Arc<Frame>| frame.unknown == Some(UnknownReason::TableFull);
        assert!(flood.iter().filter(|frame| full(frame)).count() > 10_000 && full(&flood[19_999]));
        // Another's new names are still taken, and his old ones are the same.
        table.of(tenant(1));
        assert!((0..1000).all(|i| !full(&table.intern(frame(format!("new{i}"))))));
        assert!(Arc::ptr_eq(&calm[5], &table.intern(frame("calm5".to_owned()))));
        assert!(table.refusals().1.by_tenant().all(|(who, _)| who == tenant(2)));
        // When the flood has gone, he is served again.
        drop(flood);
        table.of(tenant(2));
        table.crowding.1 -= AGAIN;
        assert!(!full(&table.intern(frame("again".to_owned()))));
    }

    #[test]
    fn the_number_is_bounded_too() {
        let mut table = FrameTable::new(FrameLimits { frames: 10_000, bytes: 1 << 30 });
        let held: Vec<_> = (0..40_000).map(|i| table.intern(frame(format!("f{i}")))).collect();
        assert!(table.len() <= 10_000 + SWEPT + 1, "{}", table.len());
        assert!(held.iter().any(|frame| frame.unknown.is_some()) && table.sweeps > 0);
    }
}
