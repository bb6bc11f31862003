//! Stacks as they were sampled of Spark 3.5.9 and 4.3.0 on JDK 17 (tests/jobs/sql_operators.py), without the frames that
//! say nothing. Packages are shortened: `E` is org.apache.spark.sql.execution, `S` org.apache.spark, `G3` the generated
//! class of codegen stage 3.

use super::*;

mod iterators;
mod python;

fn long(name: &str) -> String {
    let name = name.replacen("E.", "S.sql.execution.", usize::from(name.starts_with("E.")));
    let name = name.replacen("S.", "org.apache.spark.", usize::from(name.starts_with("S.")));
    match name.strip_prefix('G').and_then(|rest| Some((rest.chars().next()?.to_digit(10)?, rest.get(1..)?))) {
        Some((stage, rest)) => format!("{GENERATED}{OF_STAGE}{stage}{rest}"),
        None => name,
    }
}

/// What a stack works for; root first.
fn of(stack: &str) -> String {
    let frame = |name| Frame::new(FrameKind::JavaCompiled, long(name), "");
    let signs = stack.split(' ').filter(|name| !name.is_empty()).map(|name| FrameSign::of(&frame(name)));
    signs.fold(OperatorWalk::default(), OperatorWalk::then).operator().name().into_owned()
}

const TASK: &str = "S.executor.Executor$TaskRunner.run S.scheduler.Task.run";
const WRITE_V2: &str =
    "E.datasources.v2.DataWritingSparkTask$.run E.datasources.v2.WritingSparkTask.$anonfun$run$5";
const NEXT: &str = "E.WholeStageCodegenEvaluatorFactory$WholeStageCodegenPartitionEvaluator$$anon$1.hasNext E.BufferedRowIterator.hasNext";
const SHUFFLE: &str =
    "S.shuffle.ShuffleWriteProcessor.write S.shuffle.sort.BypassMergeSortShuffleWriter.write";

fn all(pairs: &[(&str, &str)]) {
    for (stack, want) in pairs {
        assert_eq!(of(stack), *want, "{stack}");
    }
}

#[test]
fn generated_methods_tell_by_their_prefix() {
    let stage = format!("{TASK} {WRITE_V2} {NEXT} G1.processNext");
    all(&[
        (&format!("{stage} G1.sort_addToSorter_0$"), "Sort"),
        (&format!("{stage} G1.generate_doConsume_0$ update_sd_lb_stats.constprop.0"), "Generate"),
        (&format!("{stage} G1.project_doConsume_0$ S.unsafe.types.UTF8String.fromString"), "Project"),
        (&format!("{stage} G1.columnartorow_nextBatch_0$"), "ColumnarToRow"),
        (
            &format!(
                "{stage} G1.columnartorow_nextBatch_0$ E.FileSourceScanExec$$anon$1.hasNext E.datasources.FileScanRDD$$anon$1.hasNext"
            ),
            "Scan",
        ),
        (&stage, "WholeStageCodegen (1)"),
        (&format!("{stage} E.BufferedRowIterator.append"), "WholeStageCodegen (1)"),
        (&format!("{stage} G1$hashAgg_FastHashMap_0.findOrInsert"), "HashAggregate"),
        (
            &format!("{stage} G1.smj_consumeFullOuterJoinRow_0$ S.sql.catalyst.expressions.UnsafeRow.copy"),
            "SortMergeJoin",
        ),
        // Of 4.3, where the join is the first of its stage.
        (&format!("{stage} G1.wholestagecodegen_findNextJoinRows_0$"), "SortMergeJoin"),
        (&format!("{stage} G1.wholestagecodegen_init_0_0$"), "WholeStageCodegen (1)"),
    ]);
    // A method without a prefix is its caller's.
    all(&[(&format!("{stage} G1.hashAgg_doAggregateWithKeys_0$ G1.append"), "HashAggregate")]);
}

#[test]
fn rows_for_the_driver_are_packed_around_operators() {
    let packs = format!(
        "{TASK} S.scheduler.ResultTask.runTask E.SparkPlan$$Lambda.apply E.SparkPlan.$anonfun$getByteArrayRdd$1"
    );
    all(&[
        (&format!("{packs} net.jpountz.lz4.LZ4BlockOutputStream.write"), "(result)"),
        (&format!("{packs} {NEXT} G1.processNext G1.project_doConsume_0$"), "Project"),
        (&format!("{packs} {NEXT} G1.processNext"), "WholeStageCodegen (1)"),
        (&format!("{TASK} S.broadcast.TorrentBroadcast.readBroadcastBlock"), "(task)"),
        // The driver's: planning, and sending a broadcast.
        ("S.sql.Dataset.collect E.SparkPlan.executeCollect E.SparkPlan.$anonfun$executeQuery$1", "unknown"),
        ("S.SparkContext.broadcast S.broadcast.TorrentBroadcast.writeBlocks", "unknown"),
        (
            &format!("{TASK} {NEXT} G1.bhj_doConsume_0$ S.broadcast.TorrentBroadcast.getValue"),
            "BroadcastHashJoin",
        ),
    ]);
}

#[test]
fn the_frame_nearest_to_the_leaf_holds() {
    let aggregate = format!("{TASK} {SHUFFLE} {NEXT} G2.processNext G2.hashAgg_doAggregateWithoutKey_0$");
    all(&[
        (&aggregate, "HashAggregate"),
        (&format!("{aggregate} G2.bhj_doConsume_0$"), "BroadcastHashJoin"),
        (
            &format!(
                "{aggregate} G2.bhj_doConsume_0$ E.joins.LongHashedRelation.getValue E.joins.LongToUnsafeRowMap.getValue"
            ),
            "BroadcastHashJoin",
        ),
        (&format!("{aggregate} {NEXT} G1.processNext"), "WholeStageCodegen (1)"),
        (&format!("{aggregate} {NEXT} G1.processNext G1.filter_doConsume_0$"), "Filter"),
        (
            &format!(
                "{aggregate} E.UnsafeRowSerializerInstance$$anon$2$$anon$3.next E.UnsafeRowSerializerInstance$$anon$2$$anon$3.readSize"
            ),
            "Exchange (read)",
        ),
        (&format!("{TASK} {SHUFFLE}"), "Exchange (write)"),
        (&format!("{TASK} S.RangePartitioner$.$anonfun$sketch$1"), "Exchange (write)"),
        (&format!("{TASK} {SHUFFLE} E.UnsafeRowSerializerInstance$$anon$1.writeValue"), "Exchange (write)"),
        (
            &format!(
                "{TASK} S.rdd.RDD.iterator E.ShuffledRowRDD.compute S.shuffle.sort.SortShuffleManager.getReader"
            ),
            "Exchange (read)",
        ),
        (
            &format!(
                "{TASK} E.ShuffledRowRDD.compute S.shuffle.BlockStoreShuffleReader.read S.storage.ShuffleBlockFetcherIterator.<init> __GI___pthread_mutex_lock"
            ),
            "Exchange (read)",
        ),
        (&format!("{TASK} {WRITE_V2}"), "WriteToDataSourceV2"),
    ]);
}

#[test]
fn tools_of_several_are_those_of_whom_they_work_for() {
    let sorted =
        "S.util.collection.unsafe.sort.UnsafeInMemorySorter.getSortedIterator S.util.collection.TimSort.sort";
    all(&[
        (&format!("{TASK} {WRITE_V2} {NEXT} G1.processNext E.UnsafeExternalRowSorter.sort {sorted}"), "Sort"),
        (
            &format!(
                "E.window.WindowExec$$anon$1.fetchNextRow {NEXT} G2.processNext G2.sort_addToSorter_0$ E.UnsafeExternalRowSorter.insertRow E.SortExec$$anon$1.computePrefix"
            ),
            "Sort",
        ),
        (
            &format!(
                "{NEXT} G3.processNext E.window.WindowExec$$anon$1.next E.window.SlidingWindowFunctionFrame.write E.window.AggregateProcessor.update"
            ),
            "Window",
        ),
        (
            &format!("G1.hashAgg_doAggregateWithKeys_0$ E.UnsafeKVExternalSorter.<init> {sorted}"),
            "HashAggregate",
        ),
        // Before a round robin its rows are sorted.
        (
            &format!(
                "E.exchange.ShuffleExchangeExec$.$anonfun$prepareShuffleDependency$10 E.UnsafeExternalRowSorter.sort {sorted}"
            ),
            "Exchange (write)",
        ),
        (
            "E.joins.SortMergeJoinScanner.advancedStreamed E.RowIteratorFromScala.advanceNext E.UnsafeExternalRowSorter$1.next",
            "Sort",
        ),
        ("G1.processNext E.joins.LongToUnsafeRowMap.getValue", "HashJoin"),
        ("G1.processNext E.ExternalAppendOnlyUnsafeRowArray.add", "SortMergeJoin"),
        ("E.window.WindowExec$$anon$1.next E.ExternalAppendOnlyUnsafeRowArray.add", "Window"),
    ]);
}

#[test]
fn files_are_scanned_and_written() {
    let write =
        "E.datasources.FileFormatDataWriter.writeWithMetrics E.datasources.SingleDirectoryDataWriter.write";
    let parquet = "E.datasources.parquet.ParquetOutputWriter.write E.datasources.parquet.ParquetWriteSupport.consumeMessage";
    let scan = "E.FileSourceScanExec$$anon$1.hasNext E.datasources.FileScanRDD$$anon$1.nextIterator";
    all(&[
        (
            &format!(
                "{TASK} E.datasources.WriteFilesExec.$anonfun$doExecuteWrite$1 {write} {parquet} org.apache.parquet.io.api.Binary.hashCode"
            ),
            "WriteFiles",
        ),
        (&format!("{TASK} {write} {NEXT} G1.processNext"), "WholeStageCodegen (1)"),
        ("S.internal.io.HadoopMapReduceCommitProtocol.setupCommitter", "WriteFiles"),
        (
            &format!(
                "{TASK} {NEXT} G1.columnartorow_nextBatch_0$ {scan} E.datasources.parquet.VectorizedParquetRecordReader.nextBatch"
            ),
            "Scan parquet",
        ),
        (&format!("{scan} E.datasources.orc.OrcColumnarBatchReader.nextBatch"), "Scan orc"),
        (
            "S.sql.catalyst.expressions.GeneratedClass$SpecificColumnarIterator.hasNext E.columnar.compression.RunLengthEncoding$Decoder.next",
            "InMemoryTableScan",
        ),
    ]);
}

#[test]
fn what_is_of_no_operator_says_so() {
    let create = "S.sql.catalyst.expressions.CodeGeneratorWithInterpretedFallback.createObject";
    let compile = "S.sql.catalyst.expressions.codegen.CodeGenerator$.doCompile org.codehaus.janino.UnitCompiler.compile";
    all(&[
        (&format!("{TASK} {SHUFFLE} {create} {compile}"), "(code generation)"),
        (
            &format!(
                "{TASK} S.scheduler.ResultTask.runTask S.serializer.JavaDeserializationStream.readObject"
            ),
            "(task)",
        ),
        (
            &format!("{TASK} S.executor.Executor.org$apache$spark$executor$Executor$$computeTotalGcTime"),
            "(task)",
        ),
        (
            &format!("{NEXT} G1.processNext S.serializer.JavaDeserializationStream.readObject"),
            "WholeStageCodegen (1)",
        ),
        (TASK, "unknown"),
        ("java.lang.Thread.run", "unknown"),
        ("", "unknown"),
    ]);
}

#[test]
fn another_engines_work_is_said_as_such() {
    let read = "S.sql.execution.datasources.FileScanRDD$$anon$1.hasNext";
    all(&[
        (&format!("{TASK} org.apache.gluten.vectorized.ColumnarBatchOutIterator.next"), "(Gluten)"),
        (
            &format!("{TASK} org.apache.comet.CometExecIterator.next org.apache.comet.Native.executePlan"),
            "(Comet)",
        ),
        (&format!("{TASK} org.apache.spark.sql.comet.CometExec$$anon$1.next"), "(Comet)"),
        (&format!("{TASK} com.nvidia.spark.rapids.GpuHashAggregateIterator.next"), "(RAPIDS)"),
        // Rows that it takes from Spark are Spark's operators' work.
        (&format!("{TASK} org.apache.comet.CometExecIterator.next {read}"), "Scan"),
        (&format!("{TASK} org.apache.cometary.A.b"), "unknown"),
    ]);
    let native = |module: &str| {
        let frame = Frame::new(FrameKind::Native, "std::sys::memchr", module);
        OperatorWalk::default().then(FrameSign::of(&frame)).operator()
    };
    assert_eq!(native("/tmp/libcomet-1234.so"), Operator::Around("(Comet)"));
    assert_eq!(native("/opt/gluten/libvelox.so"), Operator::Around("(Gluten)"));
    assert_eq!(native("/usr/lib/libc.so.6"), Operator::Unknown);
}

#[test]
fn names_are_anybodys_words() {
    let many = format!("G1{}.processNext", "9".repeat(40));
    for odd in [
        &many,
        ".",
        "G1.",
        "E.",
        "S.",
        "_",
        "S.sql.execution.$",
        "E.Exec.x",
        "E.$$$.x",
        "é.é",
        ":1",
        "E.SortExec",
    ] {
        assert_eq!(of(odd).replace("WholeStageCodegen (1)", "unknown"), "unknown", "{odd}");
    }
    assert_eq!(of("E.SortExec.x:17"), "Sort");
    let sort = Frame::new(FrameKind::Kernel, long("E.SortExec.x"), "");
    assert_eq!(FrameSign::of(&sort), FrameSign(Sign::Nothing));
}
