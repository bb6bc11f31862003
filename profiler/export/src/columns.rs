//! The tree as columns of numbers: what the page draws from.
//!
//! ```json
//! {"range": ..., "windows": 30, "unit": "ns", "total": 1234, "quality": {...},
//!  "frames": [{"name": "total", "kind": "label"}, {"name": "java.lang.Thread.run", "kind": "java"}],
//!  "columns": {"parent": [0, 0], "frame": [0, 1], "self": [0, 1234], "total": [1234, 1234],
//!              "self_samples": [0, 1], "total_samples": [1, 1]}}
//! ```
//!
//! The same nodes in the same order as JSON's, a caller before its callees; each frame is written once. A tree of
//! 50,000 nodes is a fifth of the bytes, and a reader fills arrays instead of making objects. The root is its own
//! parent.

use super::json::frame_json;
use super::{Bounded, ExportError, Format, Unit};
use emberscope_api::{Columns, TreeColumns};
use emberscope_model::{Answer, Frame, Node};
use serde::Serialize;
use serde::ser::Serializer;
use std::collections::HashMap;
use std::io::Write;

/// A number of every node.
struct Column<'a>(&'a [Node], Box<dyn Fn(&Node) -> u64>);

impl<'a> Column<'a> {
    fn new(nodes: &'a [Node], number: impl Fn(&Node) -> u64 + 'static) -> Self {
        Self(nodes, Box::new(number))
    }
}

impl Serialize for Column<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(&self.1))
    }
}

/// Writes an answer as columns.
///
/// # Errors
/// [`ExportError::TooLarge`] over [`super::MAX_BYTES`]; [`ExportError::Write`] for what the writer says.
pub fn write(answer: &Answer, unit: Unit, out: &mut impl Write) -> Result<(), ExportError> {
    let nodes = &answer.tree.nodes;
    let mut places: HashMap<&Frame, u32, foldhash::fast::FixedState> = HashMap::default();
    let mut frames = Vec::new();
    let mut frame = Vec::with_capacity(nodes.len());
    for node in nodes {
        frame.push(*places.entry(&node.frame).or_insert_with(|| {
            frames.push(frame_json(&node.frame));
            (frames.len() - 1) as u32
        }));
    }
    let json = TreeColumns {
        range: answer.range.into(),
        windows: answer.windows as u64,
        kind: answer.quality.kind.slug().into(),
        unit: unit.slug(answer.quality.kind).into(),
        total: nodes.first().map_or(0, |root| unit.total(root)),
        quality: (&answer.quality).into(),
        columns: Columns {
            parent: Column::new(nodes, |node| node.parent.into()),
            frame,
            own: Column::new(nodes, move |node| unit.own(node)),
            total: Column::new(nodes, move |node| unit.total(node)),
            self_samples: Column::new(nodes, |node| node.self_count),
            total_samples: Column::new(nodes, |node| node.total_count),
        },
        frames,
    };
    let mut out = Bounded::new(out);
    let written = serde_json::to_writer(&mut out, &json).map_err(Into::into);
    out.end(Format::Json, written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{answer, tree};
    use crate::{ExportOptions, Format};
    use emberscope_model::FrameKind::{JavaCompiled as J, Kernel as K};
    use serde_json::Value;

    #[test]
    fn generated_code_says_its_operator() {
        let class =
            "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage2";
        let [next, agg] =
            ["processNext", "hashAgg_doAggregateWithKeys_0$"].map(|name| format!("{class}.{name}"));
        let answer = answer(tree(&[(&[(J, "a.Job.run"), (J, &next), (J, &agg)], 3)]));
        let mut text = Vec::new();
        write(&answer, Unit::Samples, &mut text).unwrap();
        let json: Value = serde_json::from_slice(&text).unwrap();
        let operators: Vec<&Value> =
            json["frames"].as_array().unwrap().iter().map(|f| &f["operator"]).collect();
        assert_eq!(
            operators,
            [&Value::Null, &Value::Null, &"WholeStageCodegen (2)".into(), &"HashAggregate".into()]
        );
    }

    #[test]
    fn columns_and_nodes_say_the_same() {
        let run = (J, "java.lang.Thread.run");
        let answer = answer(tree(&[
            (&[run, (J, "<img src=x onerror=a()>\n\u{202e}")], 3),
            (&[run, (K, "futex")], 2),
            (&[run, run], 1),
        ]));
        let mut columns = Vec::new();
        write(&answer, Unit::Weight, &mut columns).unwrap();
        let columns: Value = serde_json::from_slice(&columns).unwrap();
        let options = ExportOptions { unit: Unit::Weight, ..ExportOptions::default() };
        let nodes = crate::render(Format::Json, &answer, &options).unwrap();
        let nodes: Value = serde_json::from_slice(&nodes).unwrap();
        for key in ["range", "windows", "unit", "total", "quality"] {
            assert_eq!(columns[key], nodes[key], "{key}");
        }
        let list = nodes["nodes"].as_array().unwrap();
        assert_eq!(columns["columns"]["frame"].as_array().unwrap().len(), list.len());
        assert_eq!(columns["frames"].as_array().unwrap().len(), 4, "Thread.run is written once");
        for (at, node) in list.iter().enumerate() {
            let column = |name: &str| &columns["columns"][name][at];
            let frame = &columns["frames"][column("frame").as_u64().unwrap() as usize];
            assert_eq!((&frame["name"], &frame["kind"]), (&node["name"], &node["kind"]));
            assert_eq!((column("self"), column("total")), (&node["self"], &node["total"]));
            let parent = node["parent"].as_u64().unwrap_or(0);
            assert_eq!(column("parent"), parent);
        }
        assert_eq!(columns["columns"]["total_samples"][0], 6);
        assert_eq!(
            columns["columns"]["self_samples"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_u64)
                .sum::<u64>(),
            6
        );
    }
}
