//! The time by which windows grow old: the wall clock's at the start, and from there on the monotonic one.
//!
//! A wall clock that is set a year ahead while the daemon runs deletes nothing.

use crate::model::WallTime;
use std::time::Instant;

#[derive(Debug)]
pub(super) struct Clock {
    wall: WallTime,
    since: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Self { wall: WallTime::now(), since: Instant::now() }
    }
    pub fn now(&self) -> WallTime {
        self.wall.plus(self.since.elapsed())
    }
}
