//! Blocks asked by Spark (deploy/spark) and by HTTP: the same question has the same numbers.
//!
//! Once on the store that the first version wrote (tests/fixtures/store-1), and once on what a daemon kept of a real
//! Spark job; by the older Spark that is tested and by the newest. The package is installed by pip into a directory of
//! the test, so it is also seen that it installs, and that executors do not need it.

mod asked;
mod fixture;
mod live;
