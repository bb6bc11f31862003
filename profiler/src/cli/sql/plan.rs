//! The physical plan of a query as a tree: who gives the result first, whose rows it takes below it.
//!
//! In: the nodes and edges of an answer. Out: a row an operator, with what it costs. An operator whose rows several take is
//! drawn once, and then named where it is taken again: so a plan of any server has no more lines than nodes and edges.

use super::super::answer::{Basis, amount, counted};
use super::super::ask::Rows;
use super::super::figures::known;
use super::super::table::{Align, Table};
use super::super::text::{percent, time};
use emberscope_api::route::{self, Route};
use emberscope_api::{Sql, SqlPlan, SqlPlanNode};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The answer of one query, with its plan.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Plan(Sql);

/// The operators as they are drawn: how deep, and whether it was drawn above.
fn drawn(plan: &SqlPlan) -> Vec<(usize, &SqlPlanNode, bool)> {
    let nodes: BTreeMap<u32, &SqlPlanNode> = plan.nodes.iter().map(|node| (node.id, node)).collect();
    let mut below: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    plan.edges.iter().for_each(|edge| _ = below.entry(edge.to).or_default().insert(edge.from));
    let taken: BTreeSet<u32> = plan.edges.iter().map(|edge| edge.from).collect();
    let tops = nodes.keys().rev().filter(|id| !taken.contains(id));
    let mut todo: Vec<(usize, u32)> = tops.map(|id| (0, *id)).collect();
    let (mut rows, mut seen) = (Vec::new(), BTreeSet::new());
    while let Some((depth, id)) = todo.pop() {
        let Some(node) = nodes.get(&id) else { continue };
        let is_new = seen.insert(id);
        rows.push((depth, *node, !is_new));
        if is_new {
            todo.extend(below.get(&id).into_iter().flatten().rev().map(|child| (depth + 1, *child)));
        }
    }
    rows
}

/// `*(2) Project (in HashAggregate's code)`, as deep as it stands.
fn label(plan: &SqlPlan, depth: usize, node: &SqlPlanNode, again: bool) -> String {
    let codegen = node.codegen.map_or_else(String::new, |stage| format!("*({stage}) "));
    let method = plan.nodes.iter().find(|other| Some(other.id) == node.in_method_of);
    let note = match (again, method) {
        (true, _) => " (as above)".to_owned(),
        (false, Some(other)) => format!(" (in {}'s code)", other.name),
        (false, None) => String::new(),
    };
    format!("{}{codegen}{}{note}", "  ".repeat(depth), node.name)
}

impl Rows for Plan {
    const WHAT: &'static str = "plan of the query";
    const ROUTE: &'static Route = &route::SQL;
    fn table(&self, basis: &Basis) -> Table {
        let kind = basis.kind();
        let plan = self.0.plan.as_ref();
        let has_waits = plan.is_some_and(|plan| plan.nodes.iter().any(|node| node.waited_seconds.is_some()));
        let mut columns = vec![
            (kind.facts().column, Align::Right),
            ("SHARE", Align::Right),
            ("SHARED", Align::Right),
            ("PLAN", Align::Left),
        ];
        if has_waits {
            columns.insert(3, ("WAITED", Align::Right));
        }
        let mut table = Table::new(&columns);
        table.cut_last();
        for (depth, node, again) in plan.into_iter().flat_map(drawn) {
            let of_some =
                |samples: u64, cell: String| if samples > 0 && !again { cell } else { String::new() };
            let (own, shared) = (&node.cost, &node.shared);
            let mut cells = vec![
                of_some(own.amount.samples, amount(&own.amount.weight, kind)),
                of_some(own.amount.samples, percent(own.share)),
                of_some(shared.amount.samples, percent(shared.share)),
            ];
            if has_waits {
                cells.push(
                    node.waited_seconds
                        .filter(|_| !again)
                        .map_or_else(String::new, |waited| time(Some(waited))),
                );
            }
            cells.push(plan.map_or_else(String::new, |plan| label(plan, depth, node, again)));
            table.row(cells);
        }
        if let Some(plan) = plan.filter(|plan| plan.nodes.is_empty()) {
            table.row([String::new(), String::new(), String::new(), format!("({})", plan.says)]);
        }
        for query in &self.0.queries {
            let name = known(&query.description);
            let samples = counted(query.cost.amount.samples, "sample");
            table.note(format!("query {}: {name}: {samples}", query.execution.unwrap_or_default()));
        }
        let elsewhere = self.0.operators.iter().flatten().filter(|row| row.nodes.is_empty());
        let elsewhere = elsewhere.filter_map(|row| row.cost.share).fold(0.0, |sum, share| sum + share);
        table.note(format!(
            "SHARED is of loops and names that several operators have, and is shown at each of them; {} is of no operator here",
            percent(Some(elsewhere))
        ));
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::ask::tests::ask;
    use super::*;
    use emberscope_api::route::param;

    fn answer(nodes: &str, edges: &str, says: &str) -> String {
        format!(
            r#"{{"range":{{"from":"A","until":"B"}},"windows":2,"quality":{{"samples":8,"lost":0}},"count":1,"queries":[
            {{"execution":12,"description":"nightly","samples":8,"cpu_seconds":0.08,"share":1.0,"share_error":0.0}}],
            "operators":[{{"operator":"unknown","of":"unknown","samples":2,"cpu_seconds":0.02,"share":0.25}}],
            "plan":{{"nodes":[{nodes}],"edges":[{edges}],"says":"{says}"}}}}"#
        )
    }

    fn printed(body: &str) -> String {
        let id = vec![(param::EXECUTION, "12".to_owned())];
        let (_, printed, result) = ask::<Plan>(&[], route::SQL.path, id, 200, body);
        result.unwrap();
        printed
    }

    #[test]
    fn a_plan_is_a_tree_with_what_its_operators_cost() {
        let nodes = r#"
            {"id":0,"name":"SortMergeJoin","codegen":3,"samples":5,"cpu_seconds":0.05,"share":0.625},
            {"id":1,"name":"Sort","codegen":1,"samples":0,"cpu_seconds":0.0,"waited_seconds":1.5},
            {"id":2,"name":"Range","codegen":1,"samples":0,"cpu_seconds":0.0,"in_method_of":1},
            {"id":3,"name":"Project","codegen":2,"samples":0,"cpu_seconds":0.0,
             "shared":{"samples":1,"cpu_seconds":0.01,"share":0.125}},
            {"id":4,"name":"Exchange","samples":0,"cpu_seconds":0.0,"share":0.0}"#;
        let edge = |(from, to): (u32, u32)| format!(r#"{{"from":{from},"to":{to}}}"#);
        let edges = [(1, 0), (2, 1), (3, 0), (4, 3), (4, 2)].map(edge).join(",");
        let printed = printed(&answer(nodes, &edges, ""));
        let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = printed.lines().take(7).map(cells).collect();
        let want = [
            "CPU SHARE SHARED WAITED PLAN",
            "0.05 s 62.50 % - - *(3) SortMergeJoin",
            "- - - 1.50 s *(1) Sort",
            "- - - - *(1) Range (in Sort's code)",
            "- - - - Exchange",
            "- - 12.50 % - *(2) Project",
            "- - - - Exchange (as above)",
        ];
        assert_eq!(lines, want, "{printed}");
        assert!(printed.contains("  *(1) Sort\n") && printed.contains("    *(1) Range"), "{printed}");
        assert!(printed.contains("25.00 % is of no operator here"), "{printed}");
    }

    #[test]
    fn what_goes_in_a_circle_or_is_not_told_ends() {
        let node =
            |id: u32, name: &str| format!(r#"{{"id":{id},"name":"{name}","samples":0,"cpu_seconds":0.0}}"#);
        let nodes = [node(1, "A"), node(2, "B"), node(3, "C")].join(",");
        let edges = r#"{"from":1,"to":3},{"from":2,"to":1},{"from":1,"to":2},{"from":9,"to":3}"#;
        let printed = printed(&answer(&nodes, edges, ""));
        assert!(printed.contains("C") && printed.contains("A (as above)"), "{printed}");
        let none = self::printed(&answer("", "", "The plan is not kept: it is large."));
        assert!(none.contains("(The plan is not kept: it is large.)"), "{none}");
    }
}
