//! What the compiler does not hold of the rooms below profiler/, held by tests on their text.
//!
//! In: the product's source files, without comments and tests; manifests, and what cargo says of dependencies. Out: what stands
//! there against the rule, by file.
//! It reads some 800 files and takes a second or two.

mod circles;
mod features;
mod lengths;
mod manifests;
mod source;
mod unused;
