//! Windows that begin in the same stretch, as one.

use crate::facts::WindowFacts;
use emberscope_model::WallTime;
use std::time::Duration;

/// Windows that became one, and where each went.
pub(super) struct Coarse {
    pub windows: Vec<WindowFacts>,
    of: Vec<u32>,
}

impl Coarse {
    pub fn of(old: &[WindowFacts], length: Duration) -> Self {
        let begin = |window: &WindowFacts| window.range.from.floor(length);
        let mut begins: Vec<WallTime> = old.iter().map(begin).collect();
        begins.sort_unstable();
        begins.dedup();
        let mut windows: Vec<Option<WindowFacts>> = begins.iter().map(|_| None).collect();
        let mut of = Vec::with_capacity(old.len());
        for window in old {
            let place = begins.partition_point(|known| *known < begin(window));
            of.push(place as u32);
            match windows.get_mut(place) {
                Some(Some(known)) => {
                    known.range.cover(&window.range);
                    known.partial |= window.partial;
                    known.lost.add(&window.lost);
                    known.records.extend(&window.records);
                }
                Some(none) => *none = Some(window.clone()),
                None => {}
            }
        }
        Self { windows: windows.into_iter().flatten().collect(), of }
    }

    pub fn place(&self, window: u32) -> u32 {
        self.of.get(window as usize).copied().unwrap_or_default()
    }
}
