//! Old blocks get coarser windows, one block at each look: the work of a day is spread over the next.
//!
//! In: the ages of [`RollUp`](super::RollUp). Out: the same blocks with fewer windows, groups and rows, and the same
//! sums. A query that still reads a block as it was begins anew with what it is now.

use super::blocks::Chain;
use super::health::Failing;
use super::*;
use std::fs;

impl Shared {
    /// Makes the oldest block coarser that is to be.
    pub(super) fn roll_up(&self) {
        let Some((block, length)) = self.to_roll_up() else { return };
        let before = block.windows();
        match block.roll_up(length, self.config.fsync == Fsync::Window) {
            Ok((new, gone)) => {
                let new = Arc::new(new);
                tracing::info!(
                    block = %block.dir().display(),
                    seconds = length.as_secs(),
                    windows = new.windows(),
                    before,
                    bytes = new.bytes(),
                    "made the windows of a block coarser"
                );
                let mut held = write(&self.held);
                for known in held.blocks.iter_mut().filter(|known| known.part() == block.part()) {
                    known.clone_from(&new);
                }
                drop(held);
                block.retire();
                let removed = gone.iter().try_for_each(fs::remove_file);
                let mut health = lock(&self.health);
                match removed {
                    Ok(()) => health.went_well(Failing::Remove),
                    Err(error) => health.failed(Failing::Remove, &error.to_string()),
                }
                health.went_well(Failing::RollUp);
            }
            Err(super::super::block::BlockError::Damaged { path, says }) => self.move_away(&path, &says),
            Err(error) => lock(&self.health).failed(Failing::RollUp, &format!("{:#}", Chain(&error))),
        }
    }

    /// The oldest block that is to have longer windows, and how long.
    fn to_roll_up(&self) -> Option<(Arc<Block>, Duration)> {
        let now = self.clock.age();
        let length = |block: &Block| {
            let until = block.range().until;
            let old = self.config.roll_ups.iter().filter(|roll| until < now.minus(roll.after));
            let known = block.window_length().unwrap_or(self.config.window_length);
            old.map(|roll| roll.window).max().filter(|window| *window > known)
        };
        let held = read(&self.held);
        let found = held.blocks.iter().filter_map(|block| Some((block.clone(), length(block)?)));
        found.min_by_key(|(block, _)| block.range().until)
    }
}
