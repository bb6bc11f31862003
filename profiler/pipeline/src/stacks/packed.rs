//! A raw stack as it is kept until it comes again, which is for two epochs: in a third of the bytes.
//!
//! In and out: a [`RawStack`], the same to the last bit. Its frames are read once or twice, when the stack is begun, but
//! lie there by the ten thousand; each is the step from its caller's address, and its other fields only where they
//! differ from the caller's. What is read back was written here, so that bytes which make no sense end the stack.

use emberscope_model::{Pid, RawStack, StackEnd};
use profiler_ebpf::UserFrame;
use prost::encoding::{decode_varint, encode_varint};

/// What a user frame's first byte says: kind, flags and runtime follow, and a cookie.
const OTHER_FIELDS: u8 = 1;
const COOKIE: u8 = 2;

/// A raw stack without its hash.
#[derive(Clone, Debug)]
pub struct Packed {
    /// When the stack was taken, nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Process whose stack this is.
    pub pid: Pid,
    kernel: u16,
    user: u16,
    end: StackEnd,
    generation: u64,
    bytes: Box<[u8]>,
}

impl Packed {
    /// Packs a stack. Frames beyond 65,535 of a kind, a hundred times what the kernel side sends, are left out.
    pub fn of(raw: &RawStack) -> Self {
        let count = |frames: usize| u16::try_from(frames).unwrap_or(u16::MAX);
        let (kernel, user) = (count(raw.kernel.len()), count(raw.user.len()));
        let mut bytes = Vec::with_capacity(raw.kernel.len() * 5 + raw.user.len() * 6);
        let mut before = 0;
        for address in raw.kernel.iter().take(usize::from(kernel)) {
            encode_varint(step(before, *address), &mut bytes);
            before = *address;
        }
        let mut before = UserFrame::default();
        for frame in raw.user.iter().take(usize::from(user)) {
            let other = fields(frame) != fields(&before);
            bytes.push(if other { OTHER_FIELDS } else { 0 } | if frame.cookie == 0 { 0 } else { COOKIE });
            if other {
                bytes.extend(fields(frame));
            }
            if frame.cookie != 0 {
                encode_varint(u64::from(frame.cookie), &mut bytes);
            }
            encode_varint(step(before.value, frame.value), &mut bytes);
            before = *frame;
        }
        let bytes = bytes.into();
        Self {
            time_ns: raw.time_ns,
            pid: raw.pid,
            kernel,
            user,
            end: raw.end,
            generation: raw.generation,
            bytes,
        }
    }

    /// The stack, whose hash this is.
    pub fn unpacked(&self, hash: u64) -> RawStack {
        let mut rest = &*self.bytes;
        let mut address = 0;
        let kernel = (0..self.kernel).map_while(|_| {
            address = stepped(address, decode_varint(&mut rest).ok()?);
            Some(address)
        });
        let kernel = kernel.collect();
        let mut frame = UserFrame::default();
        let user = (0..self.user).map_while(|_| {
            let (head, after) = rest.split_first()?;
            rest = after;
            if head & OTHER_FIELDS != 0 {
                let ([kind, flags, runtime, pad], after) = rest.split_first_chunk()?;
                (frame.kind, frame.flags, frame.runtime, frame.pad) = (*kind, *flags, *runtime, *pad);
                rest = after;
            }
            frame.cookie = if head & COOKIE == 0 { 0 } else { decode_varint(&mut rest).ok()? as u32 };
            frame.value = stepped(frame.value, decode_varint(&mut rest).ok()?);
            Some(frame)
        });
        let user = user.collect();
        let Self { time_ns, pid, end, generation, .. } = *self;
        RawStack { hash, time_ns, pid, kernel, user, end, generation }
    }

    /// Frames, of both halves.
    pub fn frames(&self) -> usize {
        usize::from(self.kernel) + usize::from(self.user)
    }

    /// Bytes that its frames take as they are kept here.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

fn fields(frame: &UserFrame) -> [u8; 4] {
    [frame.kind, frame.flags, frame.runtime, frame.pad]
}

/// From one address to another, small in either direction: the sign is the lowest bit.
fn step(from: u64, to: u64) -> u64 {
    let step = to.wrapping_sub(from) as i64;
    (step << 1 ^ step >> 63) as u64
}

fn stepped(from: u64, step: u64) -> u64 {
    from.wrapping_add(step >> 1 ^ (step & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stack(kernel: Vec<u64>, user: Vec<UserFrame>) -> RawStack {
        let (kernel, user) = (kernel.into(), user.into());
        RawStack { hash: 7, time_ns: 8, pid: 9, kernel, user, end: StackEnd::Root, generation: 10 }
    }

    #[test]
    fn a_stack_of_one_library_takes_a_third() {
        let frame =
            |at: u64| UserFrame { value: 0x7f12_3456_0000 + at * 0x1234, flags: 1, ..UserFrame::default() };
        let raw = stack(vec![u64::MAX - 5, u64::MAX - 0x1000], (0..100).map(frame).collect());
        let packed = Packed::of(&raw);
        assert_eq!(packed.unpacked(7), raw);
        assert_eq!(
            (packed.frames(), packed.bytes() <= 102 * 16 / 3),
            (102, true),
            "{} bytes",
            packed.bytes()
        );
    }

    #[test]
    fn bytes_that_end_too_soon_end_the_stack() {
        let raw = stack(vec![1, 2], vec![UserFrame { value: 3, cookie: 4, ..UserFrame::default() }; 3]);
        let packed = Packed::of(&raw);
        for length in 0..packed.bytes() {
            let cut = Packed { bytes: packed.bytes[..length].into(), ..packed.clone() };
            let found = cut.unpacked(7);
            assert!(raw.kernel.starts_with(&found.kernel) && raw.user.starts_with(&found.user));
            assert!(found.kernel.len() + found.user.len() < 5);
        }
        let endless = Packed { bytes: vec![0xff; 64].into(), ..packed };
        assert!(endless.unpacked(7).kernel.is_empty());
    }

    prop_compose! {
        fn frames()(value in prop_oneof![any::<u64>(), 0x7f00_0000_0000u64..0x7f00_0010_0000], cookie in prop_oneof![Just(0), any::<u32>()],
                kind in 0u8..3, flags in any::<u8>(), runtime in 0u8..3, pad in 0u8..2) -> UserFrame {
            UserFrame { value, cookie, kind, flags, runtime, pad }
        }
    }

    proptest! {
        #[test]
        fn what_was_packed_comes_back(
            kernel in proptest::collection::vec(any::<u64>(), 0..20),
            user in proptest::collection::vec(frames(), 0..80),
        ) {
            let raw = stack(kernel, user);
            prop_assert_eq!(Packed::of(&raw).unpacked(7), raw);
        }
    }
}
