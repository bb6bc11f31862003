//! Tests on this machine's own kernel, of programs and JVMs that are made for them: the sampler alone, and the optimised
//! daemon. Most need root and skip else. One at a time, but for those in `together`: each samples the whole machine.

mod allocations;
mod capture;
mod hostile;
mod killed;
mod large;
mod launchers;
mod layouts;
mod musl;
mod native;
mod pauses;
mod python;
mod quotas;
mod stacks;
mod stripped;
mod threads;
mod together;
mod walk;
