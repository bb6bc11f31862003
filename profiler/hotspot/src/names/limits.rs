//! How much is kept of what was read of JVMs.

/// How much a [`super::Namer`] keeps, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Methods by their address; as much again for those from before classes were unloaded last.
    pub methods: usize,
    /// Debug info of nmethods.
    pub codes: usize,
    /// Names of classes.
    pub classes: usize,
}

/// Bytes that the namers of all JVMs keep together, as far as each has its least.
const TOGETHER: usize = 12 << 20;
/// The most and the least that one keeps.
const MOST: usize = 3 << 20;
const LEAST: usize = 640 << 10;

/// Bytes of names of classes: some hundred, which is what stacks of allocations have.
const CLASSES: usize = 64 << 10;

impl Limits {
    /// For each of so many JVMs.
    pub fn of_each(jvms: usize) -> Self {
        let all = (TOGETHER / jvms.max(1)).clamp(LEAST, MOST);
        // Methods count twice once classes are unloaded.
        Self { methods: all / 4, codes: all / 2, classes: CLASSES }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::of_each(1)
    }
}
