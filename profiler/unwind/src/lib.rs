//! What the kernel's walker needs from us to step through code: read from the processes, handed to `capture` by the
//! pipeline.

pub mod table;
