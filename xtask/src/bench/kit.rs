//! Which Spark a measurement runs, and on which JDK: the options for it, and what they come to.

use crate::setup::{self, SparkKit, python};
use anyhow::Result;

/// The options.
#[derive(clap::Args)]
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
