//! A program whose threads allocate known classes in known methods, and have the JVM's account of how much
//! (tests/jobs/Allocates.java); and what a flame graph says of it.

use super::{JavaProgram, Running};
use anyhow::{Context as _, Result};
use std::path::Path;

const SOURCE: &str = include_str!("../../../tests/jobs/Allocates.java");

/// What is allocated in a method.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The program's fact that tells its bytes.
    pub fact: &'static str,
    /// The method.
    pub method: &'static str,
    /// The class, as Java writes it.
    pub class: &'static str,
}

/// All of them. The second is half of the first, the third a quarter.
pub const PARTS: [Part; 3] = [
    Part { fact: "bytes", method: "Allocates.bytes", class: "byte[]" },
    Part { fact: "nodes", method: "Allocates.nodes", class: "Allocates$Node" },
    Part { fact: "strings", method: "Allocates.strings", class: "java.lang.String[]" },
];

/// Small and large objects, one among the other: what of the program tells their bytes, and their class.
pub const MIXED: [Part; 4] = [
    Part { fact: "mixed.Small", method: "Allocates.mixed", class: "Allocates$Small" },
    Part { fact: "mixed.short", method: "Allocates.mixed", class: "short[]" },
    Part { fact: "mixed.int", method: "Allocates.mixed", class: "int[]" },
    Part { fact: "mixed.long", method: "Allocates.mixed", class: "long[]" },
];

/// The program, each of whose two threads allocates so many MB of the first class. It says `ready`, and waits in its directory
/// for the file `go`; `done`, and waits for `stop`.
pub fn program(java_home: &Path, mb: u32) -> JavaProgram {
    JavaProgram::new("Allocates", SOURCE, java_home).release(11).arg(mb.to_string())
}

/// The method that does all of it, and runs interpreted: its frame keeps its name. A method that the JIT compiled anew may have
/// lost its older code before it was named.
const ALL: &str = "Allocates.all";

/// Bytes or objects by folded stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Of the class, in the program's work.
    pub of_class: f64,
    /// In the method, of whatever class.
    pub in_method: f64,
    /// Of these, of the class.
    pub both: f64,
}

impl Part {
    /// Bytes that the JVM has on its threads' accounts.
    ///
    /// # Errors
    /// The program has not told them.
    pub fn counted(&self, java: &Running) -> Result<f64> {
        let told = java.fact(self.fact).with_context(|| format!("nothing of {}", self.fact))?;
        told.parse().with_context(|| format!("{told:?} of {}", self.fact))
    }

    /// Objects that the program made.
    ///
    /// # Errors
    /// The program has not told them.
    pub fn objects(&self, java: &Running) -> Result<f64> {
        let fact = format!("{}.objects", self.fact);
        let told = java.fact(&fact).with_context(|| format!("nothing of {fact}"))?;
        told.parse().with_context(|| format!("{told:?} of {fact}"))
    }

    /// What was sampled of it.
    ///
    /// # Errors
    /// A line has no weight.
    pub fn sampled(&self, folded: &str) -> Result<Sampled> {
        let mut sum = Sampled::default();
        for line in folded.lines() {
            let (stack, weight) = line.rsplit_once(' ').context("a weight")?;
            let weight: f64 = weight.parse().with_context(|| format!("a weight in {line:?}"))?;
            let has = |name: &str| stack.split(';').any(|frame| frame == name);
            let of_class = stack.rsplit(';').next() == Some(self.class);
            sum.of_class += if of_class && has(ALL) { weight } else { 0.0 };
            if has(self.method) {
                sum.in_method += weight;
                sum.both += if of_class { weight } else { 0.0 };
            }
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_has_what_is_below_it() {
        let folded = "Allocates.all;Allocates.bytes;x;byte[] 7\nAllocates.all;Allocates.bytes;[unloaded] 2\n\
                      b;byte[] 4\nAllocates.all;[unloaded];byte[] 3\n";
        let sampled = PARTS[0].sampled(folded).unwrap();
        assert_eq!(sampled, Sampled { of_class: 10.0, in_method: 9.0, both: 7.0 });
        assert_eq!(PARTS[1].sampled(folded).unwrap(), Sampled::default());
        assert!(PARTS[0].sampled("nothing").is_err());
    }
}
