//! Maps for what is looked up with every sample and frame.
//!
//! The standard library's hash withstands keys that were chosen to collide, at 20 ns a word. These maps' keys are
//! addresses and numbers from profiled processes: each map's hash has a random seed of its own (`foldhash`), which
//! keeps collisions from being worked out ahead; the maps are bounded by their owners.

use foldhash::fast::RandomState;

/// A [`std::collections::HashMap`] with a faster hash; made by `default`.
pub type FastMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A [`std::collections::HashSet`] with a faster hash; made by `default`.
pub type FastSet<K> = std::collections::HashSet<K, RandomState>;
