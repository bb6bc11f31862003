//! Operators whose class is their name with `Exec` behind it.
//!
//! Those of Spark 3.5.9 and 4.3.0 that run in tasks; others of these versions are the driver's (`AdaptiveSparkPlanExec`), or hold
//! what others do (`WholeStageCodegenExec`).

/// Operators that send rows to Python workers.
pub const PYTHON: &[&str] = &[
    "AggregateInPandas",
    "ArrowAggregatePython",
    "ArrowEvalPython",
    "ArrowEvalPythonUDTF",
    "ArrowWindowPython",
    "BatchEvalPython",
    "BatchEvalPythonUDTF",
    "FlatMapCoGroupsInArrow",
    "FlatMapCoGroupsInPandas",
    "FlatMapGroupsInArrow",
    "FlatMapGroupsInPandas",
    "FlatMapGroupsInPandasWithState",
    "MapInArrow",
    "MapInPandas",
    "PythonMapInArrow",
    "TransformWithStateInPySpark",
    "WindowInPandas",
];

/// Operators of `org.apache.spark.sql.execution` whose class is their name with `Exec`; sorted.
pub(super) const NODES: &[&str] = &[
    "AggregateInPandas",
    "AppendColumns",
    "ArrowAggregatePython",
    "ArrowEvalPython",
    "ArrowEvalPythonUDTF",
    "ArrowWindowPython",
    "AttachDistributedSequence",
    "BatchEvalPython",
    "BatchEvalPythonUDTF",
    "BroadcastHashJoin",
    "BroadcastNestedLoopJoin",
    "CartesianProduct",
    "CoGroup",
    "Coalesce",
    "CollectLimit",
    "CollectMetrics",
    "CollectTail",
    "ColumnarToRow",
    "DeserializeToObject",
    "EventTimeWatermark",
    "Expand",
    "Filter",
    "FlatMapCoGroupsInArrow",
    "FlatMapCoGroupsInPandas",
    "FlatMapGroupsInArrow",
    "FlatMapGroupsInPandas",
    "FlatMapGroupsInPandasWithState",
    "FlatMapGroupsInR",
    "FlatMapGroupsInRWithArrow",
    "FlatMapGroupsWithState",
    "Generate",
    "GlobalLimit",
    "HashAggregate",
    "InMemoryTableScan",
    "LocalLimit",
    "LocalTableScan",
    "MapElements",
    "MapGroups",
    "MapInArrow",
    "MapInPandas",
    "MapPartitions",
    "MapPartitionsInRWithArrow",
    "MergingSessions",
    "ObjectHashAggregate",
    "Project",
    "PythonMapInArrow",
    "Range",
    "RowToColumnar",
    "Sample",
    "SerializeFromObject",
    "SessionWindowStateStoreRestore",
    "SessionWindowStateStoreSave",
    "ShuffledHashJoin",
    "Sort",
    "SortAggregate",
    "SortMergeAsOfJoin",
    "SortMergeJoin",
    "StateStoreRestore",
    "StateStoreSave",
    "StreamingDeduplicate",
    "StreamingGlobalLimit",
    "StreamingLocalLimit",
    "StreamingSymmetricHashJoin",
    "Subquery",
    "SubqueryBroadcast",
    "TakeOrderedAndProject",
    "TransformWithState",
    "TransformWithStateInPySpark",
    "Union",
    "UpdatingSessions",
    "Window",
    "WindowGroupLimit",
    "WindowInPandas",
    "WriteFiles",
];

const EXECUTION: &str = "org.apache.spark.sql.execution.";

/// The operator of `org.apache.spark.sql.execution.joins.SortMergeJoinExec$$anon$1`.
pub fn node(class: &str) -> Option<&'static str> {
    let outer = class.split('$').next()?.strip_prefix(EXECUTION)?;
    let name = outer.rsplit('.').next()?.strip_suffix("Exec")?;
    let at = NODES.binary_search(&name).ok()?;
    NODES.get(at).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_for_the_search() {
        assert!(NODES.is_sorted_by(|a, b| a < b));
        assert!(PYTHON.iter().all(|name| NODES.contains(name)));
    }
}
