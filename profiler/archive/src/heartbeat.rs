//! The heartbeat of a node that copies: that it lives, what its clock says, and what waits there.
//!
//! In: a node's clock and its blocks that wait. Out: an object whose name says it, put each [`EVERY`], the one before
//! deleted; and for readers what is wrong with a node, in words. A reader asks for one list: the names have all, and when
//! each was put is the object store's own clock, so that a node's clock can be held against it. A daemon that is told to stop
//! takes its heartbeat away: what stays behind is of one that died, or cannot reach the archive.
//!
//! A heartbeat is never what keeps blocks from being copied: where it cannot be put (a policy of before there were any),
//! that is told and nothing else.

use super::layout;
use super::remote::Object;
use emberscope_model::{MissingPart, TimeRange, WallTime};
use std::time::Duration;

/// How often a node puts one.
pub const EVERY: Duration = Duration::from_secs(60);
/// A node is silent when the last is so old: it missed four, and the object store's clock may be another than ours.
pub const SILENT: Duration = Duration::from_secs(300);
/// Clocks that are so far apart are told: the object store's is in whole seconds, and a request takes time.
pub const CLOCK: Duration = Duration::from_secs(5);
/// A node is behind when what waits there is so old.
pub const BEHIND: Duration = Duration::from_secs(900);
/// A node that has been silent for so long is gone: it is told no more.
pub const GONE: Duration = Duration::from_secs(24 * 3600);

/// What a heartbeat says. Times are milliseconds since the Unix epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// The node's name, escaped by [`layout::part`].
    pub host: String,
    /// The node's clock when it was put.
    pub now_ms: i64,
    /// How many blocks wait to be copied.
    pub waiting: u64,
    /// When the oldest of them begins, by the node's clock; 0: none waits.
    pub oldest_ms: i64,
    /// The object store's clock when it was put; 0 before.
    pub put_ms: i64,
}

impl Heartbeat {
    /// Its object's name.
    pub fn name(&self) -> String {
        let Self { host, now_ms, waiting, oldest_ms, .. } = self;
        format!("{}/{now_ms}-{waiting}-{oldest_ms}", layout::heartbeats(host))
    }

    /// The heartbeat that an object below `v1/heartbeats` is; None: the name is no such object's.
    pub fn of(object: &Object) -> Option<Self> {
        let mut parts = object.name.strip_prefix(layout::ROOT)?.strip_prefix("/heartbeats/")?.split('/');
        let (host, name) = (parts.next().filter(|host| layout::is_plain(host))?, parts.next()?);
        let mut numbers = name.split('-');
        let (now_ms, waiting) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let oldest_ms = numbers.next()?.parse().ok()?;
        let whole = numbers.next().is_none() && parts.next().is_none();
        let put_ms = object.put_ms;
        whole.then(|| Self { host: host.to_owned(), now_ms, waiting, oldest_ms, put_ms })
    }

    /// The last of each node's, in the order of nodes.
    pub fn last_of(objects: &[Object]) -> Vec<Self> {
        let mut all: Vec<Self> = objects.iter().filter_map(Self::of).collect();
        all.sort_by(|a, b| (&a.host, b.put_ms, b.now_ms).cmp(&(&b.host, a.put_ms, a.now_ms)));
        all.dedup_by(|next, kept| next.host == kept.host);
        all
    }

    /// By how much the node's clock is ahead of the object store's, milliseconds.
    pub fn ahead_ms(&self) -> i64 {
        self.now_ms.saturating_sub(self.put_ms)
    }

    /// What is wrong with the node at an instant of the reader's clock.
    pub fn state(&self, now: WallTime) -> State {
        let silent = millis(now).saturating_sub(self.put_ms);
        let behind = match self.waiting {
            0 => 0,
            _ => self.now_ms.saturating_sub(self.oldest_ms),
        };
        match () {
            () if over(silent, SILENT) => State::Silent,
            () if over(self.ahead_ms().saturating_abs(), CLOCK) => State::Clock,
            () if over(behind, BEHIND) => State::Behind,
            () => State::Live,
        }
    }

    /// What an answer over a range lacks of the node, or may: None where it lacks nothing.
    pub fn lack(&self, range: &TimeRange, now: WallTime) -> Option<MissingPart> {
        let name = format!("node {}", layout::unescaped(&self.host));
        match self.state(now) {
            State::Live => None,
            State::Silent => {
                // By the node's clock, as its windows are.
                let last = at(self.now_ms);
                let lacks = TimeRange { from: last, until: last.plus(GONE) };
                let says = format!("has sent nothing since {last}: it is gone, or cannot reach the archive");
                lacks.overlaps(range).then(|| MissingPart::new(&name, lacks, &says))
            }
            State::Clock => {
                let (seconds, way) = (self.ahead_ms().unsigned_abs() as f64 / 1e3, self.ahead_ms() > 0);
                let way = if way { "ahead of" } else { "behind" };
                let says = format!("its clock is {seconds:.0} s {way} the archive's, and so are its windows");
                Some(MissingPart::new(&name, *range, &says))
            }
            State::Behind => {
                let lacks = TimeRange { from: at(self.oldest_ms), until: at(self.now_ms) };
                let says =
                    format!("{} of its blocks are not here yet, the oldest of {}", self.waiting, lacks.from);
                lacks.overlaps(range).then(|| MissingPart::new(&name, lacks, &says))
            }
        }
    }
}

/// An instant as heartbeats have it.
pub fn millis(time: WallTime) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// What such a number stands for; before the epoch there is nothing.
pub fn at(ms: i64) -> WallTime {
    WallTime::from_millis(u64::try_from(ms).unwrap_or(0))
}

fn over(ms: i64, limit: Duration) -> bool {
    u128::try_from(ms).is_ok_and(|ms| ms > limit.as_millis())
}

/// How a node is; the first that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It has not been heard of for five minutes.
    Silent,
    /// Its clock is another than the object store's, by more than five seconds.
    Clock,
    /// Blocks wait there that are older than a quarter of an hour.
    Behind,
    /// Nothing is wrong.
    Live,
}

impl State {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Silent, Self::Clock, Self::Behind, Self::Live];

    /// As metrics and the status have it.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Clock => "clock",
            Self::Behind => "behind",
            Self::Live => "live",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_764_214_000_000;

    fn of(now_ms: i64, waiting: u64, oldest_ms: i64, put_ms: i64) -> Heartbeat {
        Heartbeat { host: "node=2d1".into(), now_ms, waiting, oldest_ms, put_ms }
    }

    fn minute_from(ms: i64) -> TimeRange {
        let from = WallTime::from_millis(ms as u64);
        TimeRange { from, until: from.plus(Duration::from_secs(60)) }
    }

    fn lack(beat: &Heartbeat, range: i64) -> Option<String> {
        beat.lack(&minute_from(range), WallTime::from_millis(NOW as u64)).map(|part| part.says)
    }

    #[test]
    fn its_name_says_all() {
        let beat = of(NOW, 3, NOW - 5_000, NOW);
        let object = Object { name: beat.name(), bytes: 1, put_ms: NOW };
        assert_eq!(Heartbeat::of(&object), Some(beat));
        for bad in [
            "v1/heartbeats/h/1-2",
            "v1/heartbeats/h/1-2-3-4",
            "v1/heartbeats/h/1-2-3/x",
            "v1/heartbeats/../1-2-3",
        ] {
            assert_eq!(Heartbeat::of(&Object { name: bad.into(), ..object.clone() }), None, "{bad}");
        }
    }

    #[test]
    fn the_last_of_each_node_counts() {
        let object = |host: &str, ms: i64| Object {
            name: Heartbeat { host: host.into(), now_ms: ms, ..Heartbeat::default() }.name(),
            bytes: 1,
            put_ms: ms,
        };
        let last = Heartbeat::last_of(&[object("a", 5), object("b", 7), object("a", 9)]);
        assert_eq!(
            last.iter().map(|beat| (&*beat.host, beat.now_ms)).collect::<Vec<_>>(),
            [("a", 9), ("b", 7)]
        );
    }

    #[test]
    fn a_node_that_lives_lacks_nothing() {
        let beat = of(NOW - 70_000, 2, NOW - 100_000, NOW - 70_000);
        assert_eq!((beat.state(WallTime::from_millis(NOW as u64)), lack(&beat, NOW)), (State::Live, None));
    }

    #[test]
    fn one_that_died_is_named_where_it_lacks() {
        let beat = of(NOW - 600_000, 0, 0, NOW - 600_000);
        assert!(lack(&beat, NOW - 60_000).is_some_and(|says| says.starts_with("has sent nothing since 20")));
        assert_eq!(lack(&beat, NOW - 900_000), None, "it lived then");
        let long_ago = of(NOW - 200_000_000, 0, 0, NOW - 200_000_000);
        assert_eq!(lack(&long_ago, NOW - 60_000), None, "it is gone");
    }

    #[test]
    fn a_clock_that_is_off_is_told_of_all_its_windows() {
        let beat = of(NOW + 30_200, 0, 0, NOW);
        let says = "its clock is 30 s ahead of the archive's, and so are its windows";
        assert_eq!(lack(&beat, NOW - 900_000_000).as_deref(), Some(says));
        let behind = of(NOW - 30_200, 0, 0, NOW);
        assert!(lack(&behind, NOW).is_some_and(|says| says.contains("30 s behind the archive's")));
        assert_eq!(lack(&of(NOW + 1_500, 0, 0, NOW), NOW), None, "whole seconds, and a request's time");
    }

    #[test]
    fn one_that_is_a_day_behind_says_from_when_on() {
        let day = 86_400_000;
        let beat = of(NOW, 288, NOW - day, NOW);
        assert!(
            lack(&beat, NOW - day / 2)
                .is_some_and(|says| says.starts_with("288 of its blocks are not here yet"))
        );
        assert_eq!(lack(&beat, NOW - day - 120_000), None, "these are here");
    }
}
