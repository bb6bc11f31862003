//! What is kept of blocks between questions: tables that were read, as many as fit.
//!
//! In: that a block was read, that a question is answered. Limit: [`DiskStoreConfig::cache_bytes`].

use super::*;
use std::cmp::Reverse;

impl Shared {
    /// Lets the tables of the blocks go that were asked longest ago, until the rest fits. True: there were such.
    pub(super) fn trim(&self) -> bool {
        let mut blocks: Vec<Arc<Block>> = read(&self.held).blocks.clone();
        // Each is looked at once: other queries use blocks meanwhile, and a sort panics when what it compares changes.
        blocks.sort_by_cached_key(|block| Reverse(block.used()));
        let (mut bytes, mut any) = (0, false);
        for block in blocks {
            let own = block.kept_bytes();
            bytes += own;
            if own > 0 && bytes > self.config.cache_bytes {
                block.let_go();
                any = true;
            }
        }
        any
    }

    /// Of frames that several blocks had, those that are left have more when some were let go: once a question, as it looks at
    /// all of them.
    pub(super) fn weigh(&self, any_went: bool) {
        if any_went {
            let blocks = read(&self.held).blocks.clone();
            blocks.iter().for_each(|block| block.weigh());
        }
    }
}
