//! What the kernel keeps of the waits of a thread for one cause, and which of them have their stack walked.
//!
//! Walking at each switch would be too dear, and a wait that is not walked must still be counted. So waits are told apart by
//! their *cause*: the system call and how deep the thread's stack was. The first wait of a cause is walked, and later ones
//! with a chance in proportion to how long waits of this cause last. Those that are not walked count as much as they lasted,
//! at the stack of their cause that was walked last of a wait *about as long* ([`LENGTHS`]). So a thread's sum of waits is
//! exact, and chance decides only which of a cause's stacks an amount goes to. A cause may have several: a compiler puts methods
//! into one frame, and one of them may wait for microseconds and the other for milliseconds. Were the stack walked last taken
//! whatever the length, it would be that of whoever waits most often.
//!
//! How long waits last is the root of their mean square, not the mean: where they differ a lot, most of the time is in few
//! of them, and these are to be walked. Of waits that last the same the two are equal.

/// Causes kept of a thread.
pub const CAUSES: usize = 8;

/// How waits are told apart by how long they lasted: below 1 ms, below [`LONG_NS`], and beyond.
pub const LENGTHS: usize = 3;

/// A wait below it is a short one.
pub const SHORT_NS: u64 = 1_000_000;

/// A wait at least as long is told by itself. Shorter ones are told when they are a period long together
/// ([`together_ns`]), so that of a cause there are about as many records as stacks.
pub const LONG_NS: u64 = 10_000_000;

/// A cause's stack is walked again when it is older. What a wait is told at is no older either, well within the epochs for
/// which the daemon keeps stacks.
pub const REFRESH_NS: u64 = 5_000_000_000;

/// How long short waits of a cause are together when they are told, where a stack is walked each so much of waiting.
#[inline(always)]
pub const fn together_ns(every_ns: u64) -> u64 {
    if every_ns < LONG_NS { LONG_NS } else { every_ns }
}

/// The place of waits that lasted so long, below [`LENGTHS`].
#[inline(always)]
pub const fn length_of(ns: u64) -> usize {
    (ns >= SHORT_NS) as usize + (ns >= LONG_NS) as usize
}

/// Waits of a cause that last about as long.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alike {
    /// Hash of the stack of the one that was walked last.
    pub stack: u64,
    /// When that was told; 0: none was, or not since another task began.
    pub walked_ns: u64,
    /// How long waits lasted that were not told yet.
    pub owed_ns: u64,
    /// When the first of these began.
    pub owed_since_ns: u64,
    /// How many these are.
    pub owed: u64,
}

impl Alike {
    /// A wait that began then is owed: it is told with others.
    #[inline(always)]
    pub fn owe(&mut self, began_ns: u64, ns: u64) {
        if self.owed_ns == 0 {
            self.owed_since_ns = began_ns;
        }
        self.owed_ns += ns;
        self.owed += 1;
    }

    /// What is owed, which is told now: how long all of these waits lasted, and how many they are.
    #[inline(always)]
    pub fn settle(&mut self) -> (u64, u64) {
        let owed = (self.owed_ns, self.owed);
        (self.owed_ns, self.owed) = (0, 0);
        owed
    }
}

/// Units of length in which squares are kept, as a shift: 1,024 ns.
const UNIT: u32 = 10;
/// The longest wait whose square is kept, in units: 18 minutes. Squares of these do not overflow.
const MOST_UNITS: u64 = 1 << 30;
/// How many waits a mean is of, as a shift: about 64.
const MEAN: u32 = 6;
/// Of 2^16 waits at least so many are walked: one of 512.
const LEAST_CHANCE: u64 = 1 << 7;

/// A cause.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Hash of its stack that was walked last.
    pub stack: u64,
    /// When that was; 0: not since another task began.
    pub walked_ns: u64,
    /// How long it lasts, about; units of 1,024 ns.
    pub usual: u64,
    /// The mean of its length's square; such units, squared.
    pub square: u64,
    /// Its waits, by how long they last ([`length_of`]).
    pub alike: [Alike; LENGTHS],
}

impl Cause {
    /// Takes in one that lasted so long. So walks are at least as many as the time that is waited asks for, whatever single
    /// waits last.
    #[inline(always)]
    pub fn lasted(&mut self, ns: u64) {
        let units = ns >> UNIT;
        let units = if units > MOST_UNITS { MOST_UNITS } else { units };
        let square = units * units;
        let mean = self.square;
        self.square = if mean == 0 { square } else { mean - (mean >> MEAN) + (square >> MEAN) };
        // A step towards the root each time (Newton's), from no further below than a wait can bring it.
        let least = (units >> (MEAN / 2)) + 1;
        let from = if self.usual < least { least } else { self.usual };
        self.usual = (from + self.square / from) / 2;
    }

    /// Of 2^16 waits of this cause, how many are walked; never none.
    #[inline(always)]
    pub fn chance(&self, every_ns: u64) -> u32 {
        let every = every_ns >> UNIT;
        if self.usual >= every {
            return 1 << 16;
        }
        let chance = (self.usual << 16) / if every == 0 { 1 } else { every };
        if chance < LEAST_CHANCE { LEAST_CHANCE as u32 } else { chance as u32 }
    }

    /// The stack at which waits of this length are told now, of those that were not walked: the last one of their like, or,
    /// where that is too old, of any.
    #[inline(always)]
    pub fn stack_of(&self, length: usize, now_ns: u64) -> u64 {
        match self.alike.get(length) {
            Some(alike) if alike.stack != 0 && now_ns.wrapping_sub(alike.walked_ns) < REFRESH_NS => {
                alike.stack
            }
            _ => self.stack,
        }
    }
}

const _: () = {
    assert!(size_of::<Alike>() == 40);
    assert!(size_of::<Cause>() == 32 + LENGTHS * 40);
    assert!(CAUSES.is_power_of_two());
};

#[cfg(test)]
mod tests {
    use super::*;

    /// A wait that lasted so long, of a method.
    type Wait = (u64, u64);

    /// Linear congruential: Knuth's constants, the upper bits.
    struct Random(u64);

    impl Random {
        fn below(&mut self, most: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % most
        }
    }

    /// What is told of each of two methods that wait for one cause, as the programs of `off_cpu` do it; and the truth.
    fn told(waits: impl Iterator<Item = Wait>, random: &mut Random) -> ([u64; 3], [u64; 3]) {
        const EVERY: u64 = 50_000_000;
        let (mut cause, mut now, mut told, mut truth) = (Cause::default(), REFRESH_NS, [0; 3], [0; 3]);
        for (method, ns) in waits {
            let is_walked =
                now - cause.walked_ns >= REFRESH_NS || random.below(1 << 16) < u64::from(cause.chance(EVERY));
            if is_walked {
                (cause.stack, cause.walked_ns) = (method, now);
            }
            now += ns;
            truth[method as usize] += ns;
            cause.lasted(ns);
            let length = length_of(ns);
            let stack = cause.stack_of(length, now);
            let alike = &mut cause.alike[length];
            if is_walked {
                told[stack as usize] += alike.settle().0;
                (alike.stack, alike.walked_ns) = (method, now);
                told[method as usize] += ns;
            } else if ns >= LONG_NS {
                told[stack as usize] += ns;
            } else {
                alike.owe(now - ns, ns);
                if alike.owed_ns >= together_ns(EVERY) {
                    told[stack as usize] += alike.settle().0;
                }
            }
        }
        for length in 0..LENGTHS {
            told[cause.stack_of(length, now) as usize] += cause.alike[length].settle().0;
        }
        (told, truth)
    }

    /// A compiler may put both into one frame: the same system call as deep.
    #[test]
    fn who_waits_longer_at_a_time_has_what_he_waited() {
        let mut random = Random(7);
        let us = 1_000;
        // Of a hundred waits, how many are the second one's; how long each one's last; how far his share may be off.
        for (of_100, lasts, off) in [
            (50, [200, 8_000], 0.03),
            (10, [200, 8_000], 0.06),
            (1, [200, 200_000], 0.1),
            (50, [200, 200], 0.05),
        ] {
            let mut drawn = Random(of_100);
            let waits = (0..40_000).map(|_| {
                let second = usize::from(drawn.below(100) < of_100);
                let usual = lasts[second] * us;
                (second as u64 + 1, usual / 2 + drawn.below(usual))
            });
            let (told, truth) = told(waits, &mut random);
            assert_eq!(told.iter().sum::<u64>(), truth.iter().sum::<u64>(), "the sum is exact");
            let share = |of: [u64; 3]| of[2] as f64 / of.iter().sum::<u64>() as f64;
            let (told, truth) = (share(told), share(truth));
            assert!((told - truth).abs() < off, "{of_100} of 100, {lasts:?} us: {told:.3}, truth {truth:.3}");
        }
    }

    #[test]
    fn the_chance_follows_how_long_waits_last() {
        let mut cause = Cause::default();
        assert_eq!(cause.chance(LONG_NS), LEAST_CHANCE as u32, "never none");
        cause.lasted(LONG_NS);
        assert_eq!(cause.chance(LONG_NS), 1 << 16, "all of those that are long");
        for _ in 0..2_000 {
            cause.lasted(1_000_000);
        }
        let tenth = (1 << 16) / 10;
        assert!((tenth - 300..tenth + 300).contains(&cause.chance(LONG_NS)), "{}", cause.chance(LONG_NS));
        for _ in 0..2_000 {
            cause.lasted(3 * LONG_NS);
        }
        assert!((cause.usual << UNIT).abs_diff(3 * LONG_NS) < LONG_NS / 20, "{}", cause.usual);
        assert_eq!(cause.chance(0), 1 << 16);
        cause.lasted(u64::MAX);
        cause.lasted(u64::MAX);
        assert!(cause.usual <= 2 * MOST_UNITS);
    }

    #[test]
    fn walks_follow_the_time_that_is_waited() {
        let walks = |lasts: fn(u64) -> u64| {
            let (mut cause, mut waited, mut walks) = (Cause::default(), 0, 0.0);
            for wait in 0..10_000 {
                let ns = lasts(wait);
                walks += f64::from(cause.chance(LONG_NS)) / 65536.0;
                cause.lasted(ns);
                waited += ns;
            }
            walks / (waited as f64 / LONG_NS as f64)
        };
        let alike = walks(|_| LONG_NS / 20);
        assert!((alike - 1.0).abs() < 0.05, "{alike} walks for each period");
        // Nine of ten are short; each tenth lasts a hundred times as long, and is most of the time.
        let mixed = walks(|wait| if wait % 10 == 9 { LONG_NS / 2 } else { LONG_NS / 200 });
        assert!((1.0..4.0).contains(&mixed), "{mixed} walks for each period");
    }

    #[test]
    fn each_wait_that_is_owed_is_told_once() {
        let mut alike = Alike { stack: 7, ..Alike::default() };
        alike.owe(100, 30);
        alike.owe(200, 5);
        assert_eq!((alike.owed_since_ns, alike.owed_ns, alike.owed), (100, 35, 2));
        assert_eq!(alike.settle(), (35, 2));
        assert_eq!(alike.settle(), (0, 0));
        alike.owe(300, 1);
        assert_eq!((alike.owed_since_ns, alike.settle(), alike.stack), (300, (1, 1), 7));
    }

    #[test]
    fn a_stack_that_is_old_is_not_told_at() {
        let mut cause = Cause { stack: 7, walked_ns: 100, ..Cause::default() };
        cause.alike[1] = Alike { stack: 8, walked_ns: 50, ..Alike::default() };
        assert_eq!([0, 1, 2, 3].map(|length| cause.stack_of(length, 200)), [7, 8, 7, 7]);
        assert_eq!(cause.stack_of(1, 50 + REFRESH_NS), 7);
    }

    #[test]
    fn short_waits_are_told_as_often_as_stacks_are_walked() {
        assert_eq!(together_ns(1), LONG_NS, "none more often for a finer period");
        assert_eq!(together_ns(5 * LONG_NS), 5 * LONG_NS);
        assert_eq!([0, SHORT_NS, LONG_NS, u64::MAX].map(length_of), [0, 1, 2, 2]);
    }
}
