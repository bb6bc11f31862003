//! Tests of the optimised daemon that wait most of the time and hold nothing that others on the machine disturb: several
//! of them run at a time.

mod access;
mod archive;
mod chart;
mod daemon;
mod deploy;
mod health;
mod image;
mod package;
