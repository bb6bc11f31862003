//! Which Spark a measurement runs, and on which JDK: the options for it, and what they come to.

use crate::setup::{self, SparkKit, python};
use anyhow::Result;

/// The options.
#[derive(clap::Args)]
// A group is called by its type, which a benchmark's own may be called, too.
#[group(id = "kit")]
pub struct Options {
    /// Version of Spark
    #[arg(long, default_value = python::PYSPARK)]
    pub spark: String,
    /// Major version of the JDK; without it the one that all Sparks get
    #[arg(long)]
    jdk: Option<u32>,
}

impl Options {
    /// Finds or installs it, and says what it is.
    pub fn kit(&self) -> Result<SparkKit> {
        let kit = setup::spark_version(&self.spark, self.jdk)?;
        println!("Spark {} on JDK {} in {}", self.spark, kit.jdk.major, kit.jdk.home.display());
        Ok(kit)
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        kit: super::Options,
    }

    #[test]
    fn a_benchmark_may_call_its_own_options_so() {
        Options::command().debug_assert();
        assert_eq!(Options::parse_from(["x", "--jdk", "25"]).kit.jdk, Some(25));
    }
}
