//! The tables of a block that name things: label sets, stacks, nodes, frames.

use super::super::super::facts::Labels;
use super::super::super::part::Part;
use super::super::order::Order;
use super::super::table::{Column, How};
use super::super::*;
use super::Files;
use emberscope_model::LabelKey;

pub(super) fn label_sets(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    files.table(LABEL_SETS, &label_set_columns(&part.facts.labels, &order.sets))
}

/// The table of some label sets, in that order.
pub(in super::super) fn label_set_columns(labels: &Labels, sets: &[u32]) -> Vec<Column> {
    let sets = || sets.iter().copied();
    let process = |set: u32| labels.sets.get(set as usize).map_or(0, |set| set.process);
    let mut columns = vec![
        Column::int("label_set", How::Delta, 0..sets().len() as u32),
        Column::int("process_number", How::Dictionary, sets().map(process)),
        Column::bool("forgotten", sets().map(|set| labels.forgotten.get(set as usize) == Some(&true))),
    ];
    for key in LabelKey::ALL {
        // Those of which every task has another.
        let how = match key {
            LabelKey::Task | LabelKey::TaskIndex => How::Front,
            _ => How::Dictionary,
        };
        let text = |set: u32| labels.shared(labels.value(set, *key)).map(|text| &**text);
        columns.push(Column::maybe(key.name(), how, sets().map(text)));
    }
    columns
}

pub(super) fn stacks(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    let stacks = &part.stacks;
    let lines = || order.stacks.iter().filter_map(|place| stacks.stacks.get(*place as usize));
    let new = |list: &[u32], old: u32| list.get(old as usize).copied().unwrap_or_default();
    files.table(
        STACKS,
        &[
            Column::int("stack", How::Delta, 0..order.stacks.len() as u32),
            Column::int("node", How::Delta, lines().map(|line| new(&order.node_of, line.node))),
            Column::text("end", How::Dictionary, lines().map(|line| line.end.slug())),
        ],
    )?;
    let nodes = || order.nodes.iter().skip(1).filter_map(|place| stacks.nodes.get(*place as usize));
    files.table(
        NODES,
        &[
            Column::int("node", How::Delta, 1..order.nodes.len() as u32),
            Column::int("up", How::Plain, order.ups.iter().skip(1).copied()),
            Column::int("frame", How::Plain, nodes().map(|node| new(&order.frame_of, node.frame))),
        ],
    )?;
    let frames = || order.frames.iter().filter_map(|place| stacks.frames.get(*place as usize));
    files.table(
        FRAMES,
        &[
            Column::int("frame", How::Delta, 0..order.frames.len() as u32),
            Column::text("kind", How::Dictionary, frames().map(|frame| frame.kind.slug())),
            Column::text("name", How::Front, frames().map(|frame| &*frame.name)),
            Column::text("module", How::Dictionary, frames().map(|frame| &*frame.module)),
            Column::maybe("signature", How::Dictionary, frames().map(|frame| frame.signature.as_deref())),
            Column::int("line", How::Plain, frames().map(|frame| frame.line)),
            Column::bool("approximate", frames().map(|frame| frame.approximate)),
            Column::maybe(
                "unknown",
                How::Dictionary,
                frames().map(|f| f.unknown.map(|reason| reason.slug())),
            ),
        ],
    )
}
