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

/// The program, each of whose two threads allocates so many MB of the first class. It says `ready`, and waits in its directory
/// for the file `go`; `done`, and waits for `stop`.
pub fn program(java_home: &Path, mb: u32) -> JavaProgram {
    JavaProgram::new("Allocates", SOURCE, java_home).release(11).arg(&mb.to_string())
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

    /// Bytes allocated in the method by folded stacks, and of them those of the class.
    ///
    /// # Errors
    /// A line has no weight.
    pub fn sampled(&self, folded: &str) -> Result<(f64, f64)> {
        let (mut inside, mut right) = (0.0, 0.0);
        for line in folded.lines() {
            let (stack, weight) = line.rsplit_once(' ').context("a weight")?;
            if stack.split(';').any(|frame| frame == self.method) {
                let weight: f64 = weight.parse().with_context(|| format!("a weight in {line:?}"))?;
                inside += weight;
                right += if stack.rsplit(';').next() == Some(self.class) { weight } else { 0.0 };
            }
        }
        Ok((inside, right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_has_what_is_below_it() {
        let folded =
            "a;Allocates.bytes;AllocTracer::x;byte[] 7\na;Allocates.bytes;[unloaded] 2\nb;byte[] 4\n";
        assert_eq!(PARTS[0].sampled(folded).unwrap(), (9.0, 7.0));
        assert_eq!(PARTS[1].sampled(folded).unwrap(), (0.0, 0.0));
        assert!(PARTS[0].sampled("nothing").is_err());
    }
}
