//! What a sample of an allocation weighs.
//!
//! In: the bytes that a JVM took from its heap at once, the sampling period, a random number. Out: how many bytes a sample
//! stands for. Each allocation is drawn by itself: one of at least a period is always taken and weighs what it is, a smaller
//! one is taken with probability bytes/period and weighs a period. The expectation is the bytes themselves, whatever a program
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

    #[test]
    fn an_object_that_no_record_holds_has_the_most() {
        assert_eq!((object_bytes(0), object_bytes(24)), (0, 24));
        assert_eq!((object_bytes(1 << 32), object_bytes(u64::MAX)), (u32::MAX, u32::MAX));
    }
}
