//! The rules: prefixes of generated methods, and classes.
//!
//! Prefixes are those of `CodegenSupport.variablePrefix` (WholeStageCodegenExec.scala): a short word for
//! some, for others the node's name in lower case. Classes are Spark's own; a plan node's name is that of its class
//! without `Exec` (`TreeNode.nodeName`), so that is what its iterators and readers are called here, too.

use super::Operator;
use super::nodes::node;

/// How much a class says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is of one operator.
    Own,
    /// It is a tool of several: it says something where no frame above it does.
    Shared,
    /// As [`Self::Own`], but as the tool of this operator.
    Unless(&'static str),
    /// It is of none, and does Spark's own work.
    Around,
    /// As [`Self::Around`], where no frame above it says anything.
    Ground,
    /// As [`Self::Around`], but for operators that send rows to Python workers: it is theirs where one stands above it.
    Python,
    /// It says nothing, though its package does.
    Silent,
}

use Claim::{Around, Ground, Own, Python, Shared, Silent, Unless};

/// Writing for an exchange, and reading.
const WRITE: &str = "Exchange (write)";
const READ: &str = "Exchange (read)";
const CODE: &str = "(code generation)";
const TASK: &str = "(task)";
/// Packing a stage's rows for the driver, which collects them (`SparkPlan.getByteArrayRdd`): for the user, or for a broadcast.
pub(super) const RESULT: &str = "(result)";

/// Engines that run a part of the plan in their own library: which of their operators it is, frames of Java do not tell.
const COMET: &str = "(Comet)";
const GLUTEN: &str = "(Gluten)";
const RAPIDS: &str = "(RAPIDS)";

/// Packages of these engines.
pub(super) const ENGINES: &[(&str, &str)] = &[
    ("com.nvidia.spark.rapids.", RAPIDS),
    ("io.glutenproject.", GLUTEN),
    ("org.apache.comet.", COMET),
    ("org.apache.gluten.", GLUTEN),
];

/// How the names of their libraries' files begin. Comet unpacks its own as `libcomet-NUMBER.so` (org.apache.comet.NativeBase).
pub(super) const LIBRARIES: &[(&str, &str)] =
    &[("libcomet", COMET), ("libcudf", RAPIDS), ("libgluten", GLUTEN), ("libvelox", GLUTEN)];

/// The engine whose library a module is.
pub fn of_library(module: &str) -> Option<&'static str> {
    let file = module.rsplit('/').next().unwrap_or_default();
    LIBRARIES.iter().find(|(begins, _)| file.starts_with(begins)).map(|(_, engine)| *engine)
}

/// By the prefix of a generated method, up to its first `_`; sorted.
pub(super) const PREFIXES: &[(&str, &str)] = &[
    // Of older versions.
    ("agg", "HashAggregate"),
    ("appendcolumns", "AppendColumns"),
    ("bhj", "BroadcastHashJoin"),
    ("bnlj", "BroadcastNestedLoopJoin"),
    ("coalesce", "Coalesce"),
    ("columnartorow", "ColumnarToRow"),
    ("deserializetoobject", "DeserializeToObject"),
    ("expand", "Expand"),
    ("filter", "Filter"),
    ("generate", "Generate"),
    ("globallimit", "GlobalLimit"),
    ("hashAgg", "HashAggregate"),
    ("locallimit", "LocalLimit"),
    ("localtablescan", "LocalTableScan"),
    ("mapelements", "MapElements"),
    ("memoryScan", "InMemoryTableScan"),
    ("project", "Project"),
    ("range", "Range"),
    ("rdd", "Scan ExistingRDD"),
    ("sample", "Sample"),
    ("scan", "Scan"),
    ("serializefromobject", "SerializeFromObject"),
    ("shj", "ShuffledHashJoin"),
    ("smj", "SortMergeJoin"),
    ("sort", "Sort"),
    ("sortAgg", "SortAggregate"),
    ("union", "Union"),
];

/// Methods that one operator alone makes, whatever their prefix: it is the stage's where the operator is its first.
pub(super) const WORDS: &[(&str, &str)] =
    &[("consumeFullOuterJoinRow", "SortMergeJoin"), ("findNextJoinRows", "SortMergeJoin")];

/// Of `hashAgg_doAggregateWithKeys_0$` (Janino's name of a private method has a `$` behind it).
pub fn of_method(name: &str) -> Option<&'static str> {
    let (prefix, rest) = name.split_once('_')?;
    if let Ok(at) = PREFIXES.binary_search_by_key(&prefix, |(prefix, _)| prefix) {
        return PREFIXES.get(at).map(|(_, operator)| *operator);
    }
    let word = rest.split('_').next()?;
    WORDS.iter().find(|(known, _)| *known == word).map(|(_, operator)| *operator)
}

/// Classes below `org.apache.spark.`, without that, and packages (with a dot at the end); sorted. The longest holds.
pub(super) const CLASSES: &[(&str, &str, Claim)] = &[
    // Looks through rows for the bounds of an exchange that sorts, in a job of its own, and says where each row goes.
    ("RangePartitioner", WRITE, Own),
    ("api.python.BasePythonRunner", Operator::PYTHON, Python),
    ("executor.Executor", TASK, Ground),
    ("executor.Executor$TaskRunner", "", Silent),
    ("executor.TaskMetrics", TASK, Ground),
    ("internal.io.FileCommitProtocol", "WriteFiles", Own),
    ("internal.io.HadoopMapReduceCommitProtocol", "WriteFiles", Own),
    ("serializer.JavaDeserializationStream", TASK, Ground),
    ("serializer.JavaSerializationStream", TASK, Ground),
    ("shuffle.BlockStoreShuffleReader", READ, Own),
    ("shuffle.IndexShuffleBlockResolver", WRITE, Own),
    ("shuffle.ShuffleWriteProcessor", WRITE, Own),
    ("shuffle.sort.", WRITE, Own),
    ("shuffle.sort.SortShuffleManager", "", Silent),
    ("sql.avro.", "Scan avro", Own),
    ("sql.avro.AvroOutputWriter", "WriteFiles", Own),
    ("sql.avro.AvroSerializer", "WriteFiles", Own),
    ("sql.catalyst.expressions.CodeGeneratorWithInterpretedFallback", CODE, Around),
    ("sql.catalyst.expressions.GeneratedClass$SpecificColumnarIterator", "InMemoryTableScan", Own),
    ("sql.catalyst.expressions.codegen.CodeGenerator", CODE, Around),
    ("sql.comet.", COMET, Around),
    ("sql.comet.execution.arrow.", COMET, Around),
    ("sql.comet.execution.shuffle.", COMET, Around),
    ("sql.execution.ExternalAppendOnlyUnsafeRowArray", "SortMergeJoin", Shared),
    // Rows that are read one by one are copied (`doExecute`, DataSourceScanExec.scala).
    ("sql.execution.FileSourceScanExec", "Scan", Own),
    ("sql.execution.FilterEvaluatorFactory", "Filter", Own),
    ("sql.execution.ProjectEvaluatorFactory", "Project", Own),
    ("sql.execution.RowDataSourceScanExec", "Scan", Own),
    ("sql.execution.ShuffledRowRDD", READ, Own),
    ("sql.execution.UnsafeExternalRowSorter", "Sort", Unless(WRITE)),
    ("sql.execution.UnsafeFixedWidthAggregationMap", "HashAggregate", Shared),
    ("sql.execution.UnsafeKVExternalSorter", "HashAggregate", Shared),
    ("sql.execution.UnsafeRowSerializerInstance$$anon$1", WRITE, Own),
    ("sql.execution.UnsafeRowSerializerInstance$$anon$2", READ, Own),
    ("sql.execution.aggregate.ObjectAggregationIterator", "ObjectHashAggregate", Own),
    ("sql.execution.aggregate.ObjectAggregationMap", "ObjectHashAggregate", Own),
    ("sql.execution.aggregate.SortBasedAggregationIterator", "SortAggregate", Own),
    ("sql.execution.aggregate.TungstenAggregationIterator", "HashAggregate", Own),
    ("sql.execution.columnar.", "InMemoryTableScan", Own),
    ("sql.execution.datasources.BaseDynamicPartitionDataWriter", "WriteFiles", Own),
    ("sql.execution.datasources.BasicWriteTaskStatsTracker", "WriteFiles", Own),
    ("sql.execution.datasources.DynamicPartitionDataConcurrentWriter", "WriteFiles", Own),
    ("sql.execution.datasources.DynamicPartitionDataSingleWriter", "WriteFiles", Own),
    ("sql.execution.datasources.EmptyDirectoryDataWriter", "WriteFiles", Own),
    ("sql.execution.datasources.FileFormatDataWriter", "WriteFiles", Own),
    ("sql.execution.datasources.FileFormatWriter", "WriteFiles", Own),
    ("sql.execution.datasources.FileScanRDD", "Scan", Own),
    ("sql.execution.datasources.SQLHadoopMapReduceCommitProtocol", "WriteFiles", Own),
    ("sql.execution.datasources.SingleDirectoryDataWriter", "WriteFiles", Own),
    ("sql.execution.datasources.csv.", "Scan csv", Own),
    ("sql.execution.datasources.csv.CsvOutputWriter", "WriteFiles", Own),
    ("sql.execution.datasources.jdbc.JDBCRDD", "Scan jdbc", Own),
    ("sql.execution.datasources.json.", "Scan json", Own),
    ("sql.execution.datasources.json.JsonOutputWriter", "WriteFiles", Own),
    ("sql.execution.datasources.orc.", "Scan orc", Own),
    ("sql.execution.datasources.orc.OrcOutputWriter", "WriteFiles", Own),
    ("sql.execution.datasources.orc.OrcSerializer", "WriteFiles", Own),
    ("sql.execution.datasources.parquet.", "Scan parquet", Own),
    ("sql.execution.datasources.parquet.ParquetOutputWriter", "WriteFiles", Own),
    ("sql.execution.datasources.parquet.ParquetWriteSupport", "WriteFiles", Own),
    ("sql.execution.datasources.text.", "Scan text", Own),
    ("sql.execution.datasources.text.TextOutputWriter", "WriteFiles", Own),
    ("sql.execution.datasources.v2.", "BatchScan", Own),
    ("sql.execution.datasources.v2.DataWritingSparkTask", "WriteToDataSourceV2", Own),
    ("sql.execution.datasources.v2.V2TableWriteExec", "WriteToDataSourceV2", Own),
    ("sql.execution.datasources.v2.WriteToDataSourceV2Exec", "WriteToDataSourceV2", Own),
    ("sql.execution.datasources.v2.WritingSparkTask", "WriteToDataSourceV2", Own),
    ("sql.execution.exchange.BroadcastExchangeExec", "BroadcastExchange", Own),
    ("sql.execution.exchange.ShuffleExchangeExec", WRITE, Own),
    ("sql.execution.joins.FullOuterIterator", "SortMergeJoin", Own),
    ("sql.execution.joins.HashedRelation", "HashJoin", Shared),
    ("sql.execution.joins.LeftOuterIterator", "SortMergeJoin", Own),
    ("sql.execution.joins.LongHashedRelation", "HashJoin", Shared),
    ("sql.execution.joins.LongToUnsafeRowMap", "HashJoin", Shared),
    ("sql.execution.joins.OneSideOuterIterator", "SortMergeJoin", Own),
    ("sql.execution.joins.RightOuterIterator", "SortMergeJoin", Own),
    ("sql.execution.joins.SortMergeAsOfJoinScanner", "SortMergeAsOfJoin", Own),
    ("sql.execution.joins.SortMergeFullOuterJoinScanner", "SortMergeJoin", Own),
    ("sql.execution.joins.SortMergeJoinEvaluatorFactory", "SortMergeJoin", Own),
    ("sql.execution.joins.SortMergeJoinScanner", "SortMergeJoin", Own),
    ("sql.execution.joins.UnsafeCartesianRDD", "CartesianProduct", Own),
    ("sql.execution.joins.UnsafeHashedRelation", "HashJoin", Shared),
    ("sql.execution.python.", Operator::PYTHON, Python),
    ("sql.execution.python.ArrowEvalPythonEvaluatorFactory", "ArrowEvalPython", Own),
    ("sql.execution.python.ArrowWindowPythonEvaluatorFactory", "ArrowWindowPython", Own),
    ("sql.execution.python.BatchEvalPythonEvaluatorFactory", "BatchEvalPython", Own),
    ("sql.execution.python.PythonUDFRunner", "BatchEvalPython", Own),
    // Its companion's methods serve the runners of Arrow, too.
    ("sql.execution.python.PythonUDFRunner$", Operator::PYTHON, Python),
    ("sql.execution.python.PythonUDFRunner$$anon", "BatchEvalPython", Own),
    ("sql.execution.python.WindowInPandasEvaluatorFactory", "WindowInPandas", Own),
    ("sql.execution.window.", "Window", Own),
    ("sql.execution.window.BaseLimitIterator", "WindowGroupLimit", Own),
    ("sql.execution.window.GroupedLimitIterator", "WindowGroupLimit", Own),
    ("sql.execution.window.RankLimitIterator", "WindowGroupLimit", Own),
    ("sql.execution.window.SimpleLimitIterator", "WindowGroupLimit", Own),
    ("sql.execution.window.WindowGroupLimitEvaluatorFactory", "WindowGroupLimit", Own),
    ("storage.BufferReleasingInputStream", READ, Own),
    ("storage.ShuffleBlockFetcherIterator", READ, Own),
    ("util.collection.unsafe.sort.", "Sort", Shared),
];

/// Methods whose class does other things, too, on the driver: how they begin, below `org.apache.spark.`.
pub(super) const BEGINNINGS: &[(&str, &str, Claim)] = &[
    ("broadcast.TorrentBroadcast.readBroadcastBlock", TASK, Ground),
    ("sql.execution.SparkPlan.$anonfun$getByteArrayRdd$", RESULT, Ground),
];

/// What a method says whose class says nothing.
pub fn of_beginning(name: &str) -> Option<(&'static str, Claim)> {
    let below = name.strip_prefix("org.apache.spark.")?;
    let found = BEGINNINGS.iter().find(|(begins, ..)| below.starts_with(begins));
    found.map(|(_, operator, claim)| (*operator, *claim))
}

/// What a class says: the class itself, then the one that it stands in, then its package.
pub fn of_class(class: &str) -> Option<(&'static str, Claim)> {
    let Some(below) = class.strip_prefix("org.apache.spark.") else {
        let engine = ENGINES.iter().find(|(package, _)| class.starts_with(package));
        return engine.map(|(_, name)| (*name, Around));
    };
    let found = listed(below).or_else(|| node(class).map(|name| (name, Own))).or_else(|| {
        let package = below.get(..=below.rfind('.')?)?;
        exactly(package).or_else(|| {
            let shorter = package.get(..=package.get(..package.len() - 1)?.rfind('.')?)?;
            exactly(shorter)
        })
    });
    found.filter(|(_, claim)| *claim != Silent)
}

fn exactly(name: &str) -> Option<(&'static str, Claim)> {
    let at = CLASSES.binary_search_by_key(&name, |(known, ..)| known).ok()?;
    CLASSES.get(at).map(|(_, operator, claim)| (*operator, *claim))
}

/// The class, else one that it stands in: `SortExec$$anon$1` in `SortExec`.
fn listed(class: &str) -> Option<(&'static str, Claim)> {
    let mut outer = class;
    loop {
        if let Some(found) = exactly(outer) {
            return Some(found);
        }
        outer = outer.get(..outer.rfind('$')?)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_for_the_search() {
        assert!(PREFIXES.is_sorted_by(|a, b| a.0 < b.0));
        let wrong = CLASSES.windows(2).find(|pair| pair[0].0 >= pair[1].0);
        assert_eq!(wrong, None);
    }
}
