//! What a sample counts of the kind that is made of its own: objects of an allocation.
//!
//! In: a sample. Out: a whole number, whose mean over samples is the bytes that they stand for over those of their objects. A
//! number of waits is counted where waits are (`waits`).

use emberscope_model::{RawSample, SampleKind};

/// How much a sample counts of the derived kind; 0 where there is none, or where that is not known.
pub fn derived(sample: &RawSample) -> u64 {
    match sample.kind {
        SampleKind::Alloc => objects(sample.weight, sample.detail, drawn(sample)),
        _ => 0,
    }
}

/// How many objects of this size so many bytes are. What is left over is one more with a chance of its part of an object, so that
/// sums are as they would be with fractions.
fn objects(bytes: u64, size: u32, random: u64) -> u64 {
    match u64::from(size) {
        0 => 0,
        // As large or larger: it is outside of any buffer, and larger than any period, so that its sample stands for it alone.
        size if size == u64::from(u32::MAX) => 1,
        size => bytes / size + u64::from(random % size < bytes % size),
    }
}

/// A number as good as a random one, the same for the same sample: the finalizer of splitmix64 (Steele, Lea and Flood, 2014),
/// of when and where the sample was taken.
fn drawn(sample: &RawSample) -> u64 {
    let of = sample.time_ns ^ u64::from(sample.tid).rotate_left(40) ^ sample.stack;
    let once = (of ^ of >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ once >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ twice >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a period.
    const EVERY: u64 = 512 << 10;

    fn sample(time_ns: u64, weight: u64, size: u32) -> RawSample {
        RawSample {
            time_ns,
            weight,
            stack: 0x9e37_79b9_7f4a_7c15,
            pid: 1,
            tid: 7,
            cpu: 0,
            name_seq: 0,
            kind: SampleKind::Alloc,
            slot: 0,
            detail: size,
            kernel_mode: false,
        }
    }

    #[test]
    fn sums_of_objects_are_those_of_their_bytes() {
        for size in [16, 24, 1_000, 100_000, 400_016, 524_280, 524_289, 3_000_000] {
            // One each ten milliseconds and some.
            let samples = 20_000_u64;
            let sum: u64 = (0..samples).map(|n| derived(&sample(n * 10_101_013, EVERY, size))).sum();
            let (found, expected) = (sum as f64, (samples * EVERY) as f64 / f64::from(size));
            // Each is drawn by itself: p (1 - p) of a sample, a quarter at most. Four of its standard errors.
            let slack = 4.0 * (samples as f64 / 4.0).sqrt();
            assert!((found - expected).abs() <= slack, "{size}: {found} objects, not {expected}");
        }
    }

    #[test]
    fn an_object_that_has_a_sample_of_its_own_is_one() {
        assert_eq!(derived(&sample(1, 3_000_000, 3_000_000)), 1);
        assert_eq!(derived(&sample(2, 6 << 30, u32::MAX)), 1, "its size is not known exactly");
        assert_eq!(derived(&sample(3, EVERY, 0)), 0, "its size is not known");
    }

    #[test]
    fn a_sample_is_the_same_number_whenever_it_is_counted() {
        let one = sample(5, EVERY, 24);
        assert_eq!(derived(&one), derived(&one));
        assert!((0..1_000).any(|n| derived(&sample(n, EVERY, 24)) != derived(&one)));
        assert_eq!(derived(&RawSample { kind: SampleKind::Cpu, ..one }), 0);
    }
}
