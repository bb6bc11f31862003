//! Settings of an application that are kept: what its CPU time, its memory and its plans depend on.
//!
//! In: a property's name and value, as a driver tells them. Out: a fact, of the names of [`KEPT`] alone and of values that are
//! a number, an amount, a word or a class's name. Nothing else is looked at, so that no secret, path or address is kept,
//! whatever its name. Names, units and defaults are those of Spark 3.5 and 4.x (core's internal/config/package.scala,
//! sql/catalyst's SQLConf.scala, resource-managers/kubernetes' Config.scala).

use super::facts::{SparkFact, SparkFactKind};

/// Names of the settings that are kept; sorted.
const KEPT: [&str; 46] = [
    "spark.cores.max",
    "spark.default.parallelism",
    "spark.driver.cores",
    "spark.driver.memory",
    "spark.driver.memoryOverhead",
    "spark.dynamicAllocation.enabled",
    "spark.dynamicAllocation.maxExecutors",
    "spark.dynamicAllocation.minExecutors",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
    "spark.executor.memoryOverheadFactor",
    "spark.executor.pyspark.memory",
    "spark.io.compression.codec",
    "spark.kubernetes.memoryOverheadFactor",
    "spark.locality.wait",
    "spark.memory.fraction",
    "spark.memory.offHeap.enabled",
    "spark.memory.offHeap.size",
    "spark.memory.storageFraction",
    "spark.python.worker.reuse",
    "spark.rdd.compress",
    "spark.reducer.maxSizeInFlight",
    "spark.scheduler.mode",
    "spark.serializer",
    "spark.shuffle.compress",
    "spark.shuffle.file.buffer",
    "spark.shuffle.manager",
    "spark.shuffle.service.enabled",
    "spark.shuffle.spill.compress",
    "spark.speculation",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    "spark.sql.adaptive.coalescePartitions.enabled",
    "spark.sql.adaptive.enabled",
    "spark.sql.adaptive.skewJoin.enabled",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.codegen.wholeStage",
    "spark.sql.execution.arrow.pyspark.enabled",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.join.preferSortMergeJoin",
    "spark.sql.parquet.compression.codec",
    "spark.sql.parquet.enableVectorizedReader",
    "spark.sql.shuffle.partitions",
    "spark.submit.deployMode",
    "spark.task.cpus",
];
/// Bytes of a value.
const MAX_VALUE: usize = 96;

impl SparkFact {
    /// Whether a property of this name is kept.
    pub fn is_setting(name: &str) -> bool {
        KEPT.binary_search(&name).is_ok()
    }

    /// A property as a fact: its name is the fact's id, its value the name. None: it is none that is kept, or not of a kept
    /// one's form.
    pub fn setting(name: &str, value: &str) -> Option<Self> {
        let known = KEPT.get(KEPT.binary_search(&name).ok()?)?;
        let value = value.trim();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-$".contains(&byte);
        let fits = (1..=MAX_VALUE).contains(&value.len()) && value.bytes().all(is_plain);
        fits.then(|| Self { name: value.into(), ..Self::new(SparkFactKind::Setting, *known) })
    }
}

/// Bytes that Spark means by a size: a number and a unit (`b`, `k`, `kb`, `m`, ... `p`, each 1024 of the one before), or a
/// number of `unit` bytes (JavaUtils.byteStringAs). None: it is none.
pub fn size_in_bytes(text: &str, unit: u64) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let factor = match suffix {
        "" => unit,
        "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        "t" | "tb" => 1 << 40,
        "p" | "pb" => 1 << 50,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_in_the_list_and_of_its_form() {
        assert!(KEPT.is_sorted(), "for the search");
        let kept = |name, value| SparkFact::setting(name, value).map(|fact| fact.name.to_string());
        assert_eq!(kept("spark.executor.memory", " 4g "), Some("4g".to_owned()));
        assert_eq!(kept("spark.sql.autoBroadcastJoinThreshold", "-1"), Some("-1".to_owned()));
        let kryo = "org.apache.spark.serializer.KryoSerializer";
        assert_eq!(kept("spark.serializer", kryo).as_deref(), Some(kryo));
        let fact = SparkFact::setting("spark.task.cpus", "2").unwrap();
        assert_eq!(
            (fact.kind, &*fact.id, fact.is_bounded()),
            (SparkFactKind::Setting, "spark.task.cpus", true)
        );
        for (name, value) in [
            ("spark.hadoop.fs.s3a.secret.key", "abc"),
            ("spark.executor.extraJavaOptions", "-Dx=1"),
            ("spark.executor.memory", ""),
            ("spark.executor.memory", "4g;rm"),
            ("spark.executor.memory", "s3a://key:secret@bucket"),
            ("spark.shuffle.manager", &"x".repeat(97)),
        ] {
            assert_eq!(kept(name, value), None, "{name} {value}");
        }
    }

    #[test]
    fn sizes_are_sparks() {
        for (text, want) in [
            ("1024", Some(1 << 30)),
            ("512m", Some(512 << 20)),
            ("4G", Some(4 << 30)),
            ("1kb", Some(1024)),
            ("7b", Some(7)),
            ("1.5g", None),
            ("g", None),
            ("99999999p", None),
            ("4 g", None),
        ] {
            assert_eq!(size_in_bytes(text, 1 << 20), want, "{text}");
        }
    }
}
