//! Iterators of Scala's, by which operators without whole-stage code call each other.

use super::*;

/// A sort without whole-stage code, whose input's iterator is Scala's (3.5.9 on Scala 2.12, 4.3.0 on 2.13).
#[test]
fn a_projection_that_an_iterator_calls_is_the_projects() {
    let sort = format!("{TASK} {WRITE_V2} E.SortExec.$anonfun$doExecute$1 E.UnsafeExternalRowSorter.sort");
    let projection = "S.sql.catalyst.expressions.GeneratedClass$SpecificUnsafeProjection.apply";
    let concat = "S.unsafe.types.UTF8String.concat";
    all(&[
        (
            &format!("{sort} scala.collection.Iterator$$anon$10.next {projection} {projection} {concat}"),
            "Project",
        ),
        (&format!("{sort} scala.collection.Iterator$$anon$9.next {projection}:47 {concat}"), "Project"),
        // Its own, as an operator's that calls one itself.
        (&format!("{sort} {projection} {concat}"), "Sort"),
        (&format!("{sort} scala.collection.Iterator$$anon$10.next"), "(iterators)"),
        (
            &format!("{sort} scala.collection.Iterator$$anon$10.next scala.Function1.apply {projection}"),
            "(iterators)",
        ),
        (&format!("{sort} scala.collection.Iterator$$anon$10.hasNext {projection}"), "(iterators)"),
        // Whose they are the next operator's frame tells, or nobody knows who calls them.
        (
            &format!("{sort} scala.collection.Iterator$$anon$11.nextCur E.GenerateExec$$Lambda.apply"),
            "Generate",
        ),
        (
            &format!("{sort} scala.collection.Iterator$$anon$12.hasNext E.joins.LongHashedRelation.get"),
            "HashJoin",
        ),
        (&format!("{TASK} scala.collection.Iterator$$anon$10.hasNext"), "unknown"),
        (
            &format!(
                "{TASK} scala.collection.Iterator$$anon$10.next E.joins.HashJoin.$anonfun$join$1 {projection}"
            ),
            "unknown",
        ),
    ]);
}

/// Without whole-stage code (`scan with` of tests/jobs/queries.py).
#[test]
fn a_scan_copies_its_rows_itself() {
    let copies = "scala.collection.Iterator$$anon$9.next E.FileSourceScanExec.$anonfun$doExecute$4 S.sql.catalyst.expressions.GeneratedClass$SpecificUnsafeProjection.apply";
    all(&[(&format!("{TASK} {WRITE_V2} {copies} S.sql.vectorized.ColumnarBatchRow.getInt"), "Scan")]);
}
