//! What an allocation stands for, and what a sample of it weighs.
//!
//! HotSpot tells of an object that does not fit into its thread's buffer (TLAB): the buffer is given up for a new one that begins
//! with the object, or, where more than a part of it (1/64) would be lost, the object goes outside and the buffer stays. An object of s
//! bytes in a buffer of C does not fit with a chance of s/C, wherever the buffer's end is for it, so it must stand for C
//! bytes: were a new buffer's bytes those of the object at its beginning, and an object outside for itself alone, all that is told of objects
//! larger than C/64 would be those outside, and what they have of the buffers would be told of small ones. Here a thread's
//! bytes are an account ([`Allocation::stands_for`]). An object that begins a new buffer stands for all that its thread allocated
//! before it and that nothing stood for yet: C bytes, or those that were used where a collection took the buffer. One outside stands
//! for itself and for C - s of what is owed: C; where its buffer was given up and there is no new one (G1, at the end of a region), for all
//! that is owed, and the object that begins the next buffer for nothing. So a thread's sum is what the JVM counts, but for what is owed at the end.
//!
//! Each allocation is then drawn by itself ([`allocation_weight`]): one that stands for at least a period is always taken and weighs that, one
//! of less is taken with probability bytes/period and weighs a period. The expectation is the bytes themselves, whatever a program
//! allocates (the draw is true to 2^-32 of a period). As no sample weighs less than a period and only those of a period vary,
//! the relative standard error of a sum over n samples is at most 1/sqrt(n). A threshold that follows an exponential
//! distribution has the same expectation, a larger variance, and a state for each thread.

/// Bytes of one allocation, at most: an array has fewer than 2^31 elements of 8 bytes. What a process says beyond is not
/// believed.
const MOST: u64 = 1 << 34;

/// Which of HotSpot's two functions a probe is on, as its cookie says it: each has the bytes of the object itself in another
/// argument.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocPlace {
    /// `AllocTracer::send_allocation_in_new_tlab`.
    InNewTlab = 1,
    /// `AllocTracer::send_allocation_outside_tlab`.
    OutsideTlab = 2,
}

/// What a thread had allocated when it was last told.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Its `JavaThread*`: another one's tid may be the same.
    pub thread: u64,
    /// Bytes, from the first that it allocated on, for which some allocation stood.
    pub bytes: u64,
}

/// An allocation of which HotSpot tells.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// A new buffer begins with it; else it is outside.
    pub in_new_tlab: bool,
    /// Bytes that the heap gave: of the buffer, or the object.
    pub given: u64,
    /// Bytes of the object.
    pub object: u64,
    /// Bytes that the thread has allocated since it began, with this object.
    pub all: u64,
    /// Bytes of its buffer; 0: it has none.
    pub buffer: u64,
}

impl Told {
    /// What was told of a thread of which nothing is known. (Of an `Option` the compiler compares the number before it asks whether
    /// there is one, and the verifier wants every register written that is read.)
    pub const UNKNOWN: u64 = u64::MAX;
}

impl Allocation {
    /// Bytes that it stands for, and those for which some allocation stood then. `told` are those that did before, or
    /// [`Told::UNKNOWN`]. What it allocates behind its last buffer is never told: half a buffer, on average, which its first
    /// allocation stands for.
    #[inline(always)]
    pub const fn stands_for(&self, told: u64) -> (u64, u64) {
        let before = self.all.saturating_sub(self.object);
        // What was told of another thread may be more.
        let is_known = told <= before && told != Told::UNKNOWN;
        match (self.in_new_tlab, is_known) {
            (true, true) => (before - told, before),
            (false, true) => {
                let owed = before - told;
                let room = if self.buffer == 0 { owed } else { self.buffer.saturating_sub(self.object) };
                let stands = self.object.saturating_add(if owed < room { owed } else { room });
                (stands, told.saturating_add(stands))
            }
            (true, false) if before == 0 => (self.given / 2, 0),
            // The buffer before it is not known, but about as large.
            (true, false) => (self.given, before),
            (false, false) => (self.object, self.all),
        }
    }
}

/// Bytes of an object as a record has them: `u32::MAX` where it has as many or more.
#[inline(always)]
pub const fn object_bytes(bytes: u64) -> u32 {
    if bytes > u32::MAX as u64 { u32::MAX } else { bytes as u32 }
}

/// Bytes that a sample of an allocation stands for; 0: it is not taken. `every` is the period, 1 to 2^30.
#[inline(always)]
pub const fn allocation_weight(bytes: u64, every: u64, random: u32) -> u64 {
    let bytes = if bytes > MOST { MOST } else { bytes };
    if bytes >= every {
        bytes
    } else if (random as u64 * every) >> 32 < bytes {
        every
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: u64 = 512 << 10;

    /// Over all random numbers, by the least that is not taken.
    fn expected(bytes: u64) -> f64 {
        let (mut low, mut high) = (0u64, 1 << 32);
        while low < high {
            let middle = (low + high) / 2;
            if allocation_weight(bytes, EVERY, middle as u32) == 0 { high = middle } else { low = middle + 1 }
        }
        low as f64 / (1u64 << 32) as f64 * EVERY as f64
    }

    #[test]
    fn the_expectation_is_the_bytes() {
        for bytes in [1, 16, 24, 1_000, 2_048, 100_000, EVERY - 1] {
            let error = expected(bytes) - bytes as f64;
            assert!(error.abs() <= EVERY as f64 / (1u64 << 32) as f64, "{bytes}: off by {error}");
        }
        assert_eq!(allocation_weight(0, EVERY, 0), 0);
    }

    #[test]
    fn what_is_as_large_as_a_period_is_what_it_is() {
        for bytes in [EVERY, EVERY + 1, 7 * EVERY + 3, MOST] {
            assert_eq!(allocation_weight(bytes, EVERY, u32::MAX), bytes);
        }
        assert_eq!(allocation_weight(u64::MAX, EVERY, 0), MOST);
        assert_eq!(allocation_weight(5, 1, u32::MAX), 5);
    }

    /// A thread with a buffer, as HotSpot has it (allocate_inside_tlab_slow in memAllocator.cpp, JDK 17), and what is told of objects
    /// of four kinds: by bytes that they stand for.
    struct Thread {
        size: u64,
        /// Of the buffer; none: 0.
        end: u64,
        used: u64,
        /// What may be lost of one (`_refill_waste_limit`).
        limit: u64,
        is_second: bool,
        given_up: u64,
        told: u64,
        sums: [[u64; 4]; 2],
    }

    impl Thread {
        fn new(size: u64) -> Self {
            Self {
                size,
                end: 0,
                used: 0,
                limit: size / 64,
                is_second: true,
                given_up: 0,
                told: Told::UNKNOWN,
                sums: [[0; 4]; 2],
            }
        }

        fn allocates(&mut self, kind: usize, object: u64) {
            self.sums[0][kind] += object;
            let left = self.end - self.used;
            if object <= left {
                self.used += object;
                return;
            }
            let gives_up = left <= self.limit && object <= self.size;
            // A region has two buffers, and room for the object behind them.
            let in_new_tlab = gives_up && (self.end == 0 || !self.is_second);
            self.is_second ^= gives_up;
            if gives_up {
                self.given_up += self.used;
                (self.end, self.used, self.limit) = (0, 0, self.size / 64);
            }
            if in_new_tlab {
                (self.end, self.used) = (self.size, object);
            } else {
                self.given_up += object;
                self.limit += 32;
            }
            let (given, all) = (if in_new_tlab { self.end } else { object }, self.given_up + self.used);
            let allocation = Allocation { in_new_tlab, given, object, all, buffer: self.end };
            let (stands, told) = allocation.stands_for(self.told);
            assert!((self.told == Told::UNKNOWN || told == self.told + stands) && told <= all);
            self.told = told;
            self.sums[1][kind] += stands;
        }

        /// A collection takes the buffer.
        fn collects(&mut self) {
            self.given_up += self.used;
            (self.end, self.used) = (0, 0);
        }
    }

    /// What is told of each kind over what it was.
    fn told_of(size: u64, allocations: u64, collection: u64) -> ([f64; 4], f64) {
        let mut thread = Thread::new(size);
        let mut state = size;
        // Linear congruential: Knuth's constants, the upper bits.
        let mut below = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for n in 0..allocations {
            let (kind, object) = match below(10_000) {
                0..9_000 => (0, 16 + 8 * below(5)),
                9_000..9_900 => (1, 504 + 8 * below(300)),
                9_900..9_995 => (2, 10_000 + 8 * below(3_750)),
                _ => (3, 100_000 + 8 * below(60_000)),
            };
            thread.allocates(kind, object);
            if n % collection == collection - 1 {
                thread.collects();
            }
        }
        let [truth, told] = thread.sums;
        let share = core::array::from_fn(|kind| told[kind] as f64 / truth[kind] as f64);
        (share, told.iter().sum::<u64>() as f64 / truth.iter().sum::<u64>() as f64)
    }

    /// With a new buffer's bytes for its first object and an object outside for itself, kinds of these had 0.3 to 2.2 of what they were.
    #[test]
    fn small_and_large_objects_have_what_they_are() {
        for (size, off) in [(64 << 10, 0.08), (300 << 10, 0.1), (2 << 20, 0.2)] {
            let (shares, sum) = told_of(size, 10_000_000, 500_000);
            assert!(shares.iter().all(|share| (share - 1.0).abs() < off), "{size}: {shares:.3?}");
            assert!((sum - 1.0).abs() < 0.002, "{size}: {sum}");
        }
    }

    #[test]
    fn a_thread_that_is_not_known_is_told_about_as_much() {
        let new = Allocation { in_new_tlab: true, given: 1_000, object: 24, all: 24, buffer: 1_000 };
        assert_eq!(new.stands_for(Told::UNKNOWN), (500, 0), "it has just begun");
        let old = Allocation { all: 90_024, ..new };
        assert_eq!(old.stands_for(Told::UNKNOWN), (1_000, 90_000));
        assert_eq!(old.stands_for(91_000), (1_000, 90_000), "what is known is of another");
        assert_eq!(old.stands_for(89_100), (900, 90_000));
        let outside = Allocation { in_new_tlab: false, given: 400, object: 400, all: 90_400, buffer: 1_000 };
        assert_eq!(outside.stands_for(Told::UNKNOWN), (400, 90_400));
        assert_eq!(outside.stands_for(89_900), (500, 90_400), "all that is owed");
        assert_eq!(outside.stands_for(89_100), (1_000, 90_100), "no more than a buffer");
        let alone = Allocation { buffer: 0, ..outside };
        assert_eq!(alone.stands_for(89_100), (1_300, 90_400), "its buffer is gone, and all of it is owed");
        let huge = Allocation { object: u64::MAX, given: u64::MAX, all: u64::MAX, ..outside };
        assert_eq!(huge.stands_for(0), (u64::MAX, u64::MAX));
        assert_eq!(huge.stands_for(7).1, u64::MAX);
    }

    #[test]
    fn an_object_that_no_record_holds_has_the_most() {
        assert_eq!((object_bytes(0), object_bytes(24)), (0, 24));
        assert_eq!((object_bytes(1 << 32), object_bytes(u64::MAX)), (u32::MAX, u32::MAX));
    }
}
