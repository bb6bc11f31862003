//! Plans as Spark 3.5.9 and 4.3.0 told them of tests/jobs/sql_operators.py, a line a node: number, codegen stage, name.

use super::*;

/// A plan of lines and edges.
fn plan(nodes: &str, edges: &[(u32, u32)]) -> SparkPlan {
    let node = |line: &str| {
        let mut words = line.trim().splitn(3, ' ');
        PlanNode {
            id: words.next()?.parse().ok()?,
            codegen: words.next()?.parse().ok(),
            name: words.next()?.into(),
        }
        .into()
    };
    SparkPlan::new(nodes.lines().filter_map(node).collect(), edges.to_vec()).expect("a plan")
}

fn broadcast_hash_join() -> SparkPlan {
    plan(
        "15 1 Range\n14 1 Project\n12 - BroadcastExchange\n11 2 Range\n10 2 Filter\n9 2 Project
         8 2 BroadcastHashJoin\n7 2 Project\n6 2 HashAggregate\n4 - Exchange\n3 3 HashAggregate
         1 - AdaptiveSparkPlan\n0 - OverwriteByExpression noop-table",
        &[
            (1, 0),
            (3, 1),
            (4, 3),
            (6, 4),
            (7, 6),
            (8, 7),
            (9, 8),
            (10, 9),
            (11, 10),
            (12, 8),
            (14, 12),
            (15, 14),
        ],
    )
}

/// What a stage's loop is put to.
fn in_loop(plan: &SparkPlan, stage: u32) -> (PlacedAs, String, Vec<u32>) {
    let Placed { of, name, nodes } =
        PlanOperators::new(plan).place(Operator::Codegen(stage), Some(stage), None);
    (of, name, nodes)
}

#[test]
fn rows_that_are_collected_for_a_broadcast_are_its() {
    let join = broadcast_hash_join();
    let operators = PlanOperators::new(&join);
    let packed = |stage: u32| {
        let part = operators.part(&BTreeSet::from([stage]));
        let Placed { of, name, nodes } = operators.place(Operator::Around("(result)"), Some(stage), part);
        (of, name, nodes)
    };
    assert_eq!(packed(1), (PlacedAs::Operator, "BroadcastExchange".into(), vec![12]));
    assert_eq!(packed(2), (PlacedAs::Around, "(result)".into(), vec![]), "these are written");
    assert_eq!(
        operators.place(Operator::Around("(task)"), Some(1), operators.part(&BTreeSet::from([1]))).of,
        PlacedAs::Around
    );
}

#[test]
fn a_loop_ends_at_who_takes_in_all_rows() {
    let join = broadcast_hash_join();
    assert_eq!(in_loop(&join, 1), (PlacedAs::Fused, "Range+Project (codegen 1)".into(), vec![15, 14]));
    // What is below the aggregate is in its method.
    assert_eq!(in_loop(&join, 2), (PlacedAs::Operator, "HashAggregate".into(), vec![6]));
    assert_eq!(in_loop(&join, 3), (PlacedAs::Operator, "HashAggregate".into(), vec![3]));
    let none = (PlacedAs::Codegen, "WholeStageCodegen (4)".to_owned(), vec![]);
    assert_eq!(in_loop(&join, 4), none);
    let operators = PlanOperators::new(&join);
    assert_eq!([8, 11, 6, 14, 12].map(|id| operators.method_of(id)), [Some(6), Some(6), None, None, None]);
    let sort = plan("4 1 Range\n3 1 Project\n2 1 Sort\n0 - OverwriteByExpression", &[(2, 0), (3, 2), (4, 3)]);
    assert_eq!(in_loop(&sort, 1), (PlacedAs::Operator, "Sort".into(), vec![2]));
    let scan = plan(
        "3 - Scan parquet db.sales\n2 1 ColumnarToRow\n0 - OverwriteByExpression noop-table",
        &[(2, 0), (3, 2)],
    );
    assert_eq!(in_loop(&scan, 1), (PlacedAs::Operator, "ColumnarToRow".into(), vec![2]));
    let csv = plan("3 1 Scan csv db.sales\n2 1 Filter", &[(3, 2)]);
    assert_eq!(in_loop(&csv, 1).1, "Scan csv+Filter (codegen 1)");
    let generate = plan("4 1 Range\n3 1 Project\n2 1 Generate\n0 - X", &[(2, 0), (3, 2), (4, 3)]);
    assert_eq!(in_loop(&generate, 1).1, "Range+Project+Generate (codegen 1)");
}

/// Without whole-stage code: `generate with` of tests/jobs/queries.py, and an exchange.
#[test]
fn iterators_are_of_the_operators_that_are_such() {
    let iterators = |plan: &SparkPlan, part: Option<u32>| {
        let Placed { of, name, nodes } =
            PlanOperators::new(plan).place(Operator::Around("(iterators)"), None, part);
        (of, name, nodes)
    };
    let generate = plan(
        "5 - Range\n4 - Filter\n3 - Project\n2 - Generate\n1 - Filter\n0 - OverwriteByExpression noop-table",
        &[(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)],
    );
    let fused = (PlacedAs::Fused, "Filter+Project+Generate (iterators)".to_owned(), vec![4, 3, 2, 1]);
    assert_eq!(iterators(&generate, None), fused);
    let exchange = plan("3 - Range\n2 - Exchange\n1 - AdaptiveSparkPlan\n0 - X", &[(1, 0), (2, 1), (3, 2)]);
    let alone = (PlacedAs::Operator, "Exchange".to_owned(), vec![2]);
    assert_eq!(iterators(&exchange, None), alone);
    let scan = plan("2 - Scan parquet db.sales\n1 - ColumnarToRow\n0 - X", &[(1, 0), (2, 1)]);
    assert_eq!(iterators(&scan, None), (PlacedAs::Operator, "ColumnarToRow".into(), vec![1]));
    // Those that are compiled have methods of their own, and a part has its own.
    let mixed = plan(
        "5 1 Range\n4 1 Filter\n3 - Exchange\n2 - Filter\n1 - Exchange\n0 - Project",
        &[(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)],
    );
    let part = PlanOperators::new(&mixed).part(&BTreeSet::from([1]));
    assert_eq!(iterators(&mixed, part), (PlacedAs::Operator, "Exchange".into(), vec![3]));
    let part = PlanOperators::new(&mixed).parts.get(&2).copied();
    assert_eq!(iterators(&mixed, part).1, "Exchange+Filter (iterators)");
    let none = plan("1 1 Range\n0 - OverwriteByExpression noop-table", &[(1, 0)]);
    assert_eq!(iterators(&none, None), (PlacedAs::Around, "(iterators)".into(), vec![]));
}

#[test]
fn what_is_large_or_has_a_number_twice_stays_the_codegen_stage_s() {
    let five = plan("5 1 A\n4 1 B\n3 1 C\n2 1 D\n1 1 E", &[(5, 4), (4, 3), (3, 2), (2, 1)]);
    assert_eq!(in_loop(&five, 1).0, PlacedAs::Codegen);
    // A subquery counts anew.
    let twice = |other: &str| {
        plan(
            &format!("5 1 Range\n4 1 Filter\n3 - Exchange\n2 1 {other}\n1 - Subquery"),
            &[(5, 4), (4, 3), (2, 1)],
        )
    };
    let plans = twice("Project");
    assert_eq!(in_loop(&plans, 1).0, PlacedAs::Codegen);
    // The part that a Spark stage runs tells which of them it is.
    let operators = PlanOperators::new(&plans);
    let part = operators.parts.get(&2).copied();
    assert_eq!(operators.place(Operator::Codegen(1), Some(1), part).name, "Project");
    let same = plan("5 1 Range\n3 - Exchange\n2 1 Range\n1 - Subquery", &[(5, 3), (2, 1)]);
    assert_eq!(in_loop(&same, 1), (PlacedAs::Operator, "Range".into(), vec![2, 5]));
}

#[test]
fn names_are_of_nodes_as_far_as_stage_and_part_tell() {
    let join = broadcast_hash_join();
    let operators = PlanOperators::new(&join);
    let of = |name, codegen, stages: &[u32]| {
        let part = operators.part(&stages.iter().copied().collect());
        operators.place(Operator::Named(name), codegen, part).nodes
    };
    assert_eq!(of("HashAggregate", None, &[]), [3, 6]);
    assert_eq!(of("HashAggregate", Some(2), &[]), [6]);
    assert_eq!(of("HashAggregate", None, &[3]), [3]);
    assert_eq!(of("HashAggregate", None, &[2, 3]), [3, 6], "of two parts");
    assert_eq!(of("Exchange (write)", None, &[2]), [4]);
    assert_eq!(of("HashJoin", Some(2), &[2]), [8]);
    assert_eq!(of("WriteToDataSourceV2", None, &[3]), [0]);
    assert_eq!(of("Window", None, &[2]), [0; 0]);
    // Frames tell the kind alone; the plan has one of it, or two that differ.
    let name = |operators: &PlanOperators<'_>, name| operators.place(Operator::Named(name), None, None).name;
    assert_eq!(
        ["HashJoin", "Exchange (write)"].map(|kind| name(&operators, kind)),
        ["BroadcastHashJoin", "Exchange (write)"]
    );
    let scans = |other: &str| {
        plan(&format!("3 1 Scan parquet db.a\n2 2 Scan {other} db.b\n1 - Union"), &[(3, 1), (2, 1)])
    };
    let named = ["parquet", "orc"].map(|other| name(&PlanOperators::new(&scans(other)), "Scan"));
    assert_eq!(named, ["Scan parquet", "Scan"]);
    // Two exchanges in a row: who reads the one writes the other.
    let chain = plan(
        "5 1 Range\n4 - Exchange\n3 - AQEShuffleRead\n2 2 Project\n1 - Exchange\n0 3 Project",
        &[(5, 4), (4, 3), (3, 2), (2, 1), (1, 0)],
    );
    let operators = PlanOperators::new(&chain);
    let part = operators.part(&[2].into());
    let node = |name| operators.place(Operator::Named(name), Some(2), part).nodes;
    assert_eq!((node("Exchange (read)"), node("Exchange (write)")), (vec![4], vec![1]));
}

#[test]
fn what_is_of_no_operator_stays_so() {
    let join = broadcast_hash_join();
    let operators = PlanOperators::new(&join);
    for (operator, of) in [(Operator::Unknown, "unknown"), (Operator::Around("(task)"), "around")] {
        let placed = operators.place(operator, Some(1), None);
        assert_eq!((placed.of.slug(), placed.nodes.len()), (of, 0));
        assert_eq!(placed, Placed::by_frames(operator));
    }
}

#[test]
fn a_python_operator_that_is_alone_is_known() {
    let two = plan("3 - BatchEvalPython\n2 - Exchange\n1 - MapInPandas", &[(3, 2), (2, 1)]);
    let operators = PlanOperators::new(&two);
    let part = |id| operators.parts.get(&id).copied();
    assert_eq!(
        [None, part(3), part(1)].map(|part| operators.python(part)),
        [None, Some("BatchEvalPython"), Some("MapInPandas")]
    );
    assert_eq!(PlanOperators::new(&broadcast_hash_join()).python(None), None);
}
