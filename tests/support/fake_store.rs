//! A store of a few known rows, for tests of what stands before it.
//!
//! Windows are 10 s. Answers are worked out row by row, in the plainest way.

use emberscope_model::{
    Answer, Frame, FrameKind, LabelKey, LabelSet, LabelSetBuilder, LabelTotal, LedgerTotal, Node,
    ProcessRecord, Quality, Query, SampleKind, Selection, SeriesPoint, TimeRange, Tree, WallTime, Window,
};
use emberscope_store::{LabelledSeries, Store, StoreError, StoreUsage};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Length of its windows.
pub const WINDOW: Duration = Duration::from_secs(10);

type Labels = Vec<(LabelKey, Arc<str>)>;

struct Row {
    window: TimeRange,
    labels: Arc<LabelSet>,
    stack: Vec<&'static str>,
    count: u64,
    weight: u64,
}

/// The store.
#[derive(Default)]
pub struct FakeStore {
    rows: Vec<Row>,
}

impl FakeStore {
    /// Adds samples of 10 ms: second of the window's start, labels, `root;..;leaf`, how many.
    pub fn add(&mut self, second: u64, labels: &[(LabelKey, &str)], stack: &'static str, count: u64) {
        let from = WallTime::from_millis(second * 1000).floor(WINDOW);
        let set = labels.iter().fold(LabelSetBuilder::new(), |b, (k, v)| b.set(*k, *v)).build();
        self.rows.push(Row {
            window: TimeRange { from, until: from.plus(WINDOW) },
            labels: Arc::new(set),
            stack: stack.split(';').collect(),
            count,
            weight: count * 10_000_000,
        });
    }

    fn selected<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = &'a Row> {
        // All are of CPU time.
        let rows = self.rows.iter().filter(|_| query.kind == SampleKind::Cpu);
        rows.filter(|r| r.window.overlaps(&query.range) && query.selection.matches(&r.labels))
    }
}

impl Store for FakeStore {
    fn append(&self, _: Window) {}

    fn span(&self) -> Option<TimeRange> {
        let from = self.rows.iter().map(|r| r.window.from).min()?;
        let until = self.rows.iter().map(|r| r.window.until).max()?;
        Some(TimeRange { from, until })
    }

    fn window_length(&self) -> Duration {
        WINDOW
    }

    fn merge(&self, query: &Query) -> Result<Answer, StoreError> {
        let root = Arc::new(Frame::new(FrameKind::Native, "total", ""));
        let empty = |frame, parent| Node::below(parent, frame);
        let mut nodes = vec![empty(root, 0)];
        let mut known: BTreeMap<(u32, &str), u32> = BTreeMap::new();
        for row in self.selected(query) {
            let mut at = 0;
            for name in &row.stack {
                at = *known.entry((at, name)).or_insert_with(|| {
                    let frame = Arc::new(Frame::new(FrameKind::JavaCompiled, *name, "code cache"));
                    nodes.push(empty(frame, at));
                    nodes.len() as u32 - 1
                });
            }
            nodes[at as usize].self_count += row.count;
            nodes[at as usize].self_weight += row.weight;
        }
        for i in (0..nodes.len()).rev() {
            nodes[i].total_count += nodes[i].self_count;
            nodes[i].total_weight += nodes[i].self_weight;
            if i > 0 {
                let (parent, count, weight) =
                    (nodes[i].parent as usize, nodes[i].total_count, nodes[i].total_weight);
                nodes[parent].total_count += count;
                nodes[parent].total_weight += weight;
            }
        }
        let range = TimeRange { from: query.range.from.floor(WINDOW), until: query.range.until.ceil(WINDOW) };
        let quality = Quality { samples: nodes[0].total_count, ..Quality::default() };
        Ok(Answer { tree: Tree { nodes }, range, windows: 0, quality })
    }

    fn totals(&self, query: &Query) -> Result<Vec<LabelTotal>, StoreError> {
        if query.selection.matchers.iter().any(|m| m.key == LabelKey::Container) {
            return Err(StoreError::TooLarge { what: "label sets", limit: 1 });
        }
        Ok(self
            .selected(query)
            .map(|r| LabelTotal {
                labels: r.labels.clone(),
                count: r.count,
                weight: r.weight,
                seen: r.window,
            })
            .collect())
    }

    fn series(
        &self,
        query: &Query,
        step: Duration,
        by: &[LabelKey],
    ) -> Result<Vec<LabelledSeries>, StoreError> {
        let mut series: BTreeMap<Labels, BTreeMap<u64, SeriesPoint>> = BTreeMap::new();
        for row in self.selected(query) {
            let labels = by.iter().map(|k| (*k, row.labels.get(*k).into())).collect();
            let time_ms = row.window.from.floor(step).as_millis();
            let point = series.entry(labels).or_default().entry(time_ms);
            let point = point.or_insert(SeriesPoint { time_ms, count: 0, weight: 0 });
            point.count += row.count;
            point.weight += row.weight;
        }
        Ok(series.into_iter().map(|(labels, points)| (labels, points.into_values().collect())).collect())
    }

    fn processes(&self, _: TimeRange, _: &Selection) -> Vec<Arc<ProcessRecord>> {
        Vec::new()
    }

    fn ledger(&self, _: TimeRange, _: &Selection, _: &[LabelKey]) -> Result<Vec<LedgerTotal>, StoreError> {
        Ok(Vec::new())
    }
    fn relabel(&self, _: &LabelSet, _: &Arc<LabelSet>) {}
    fn forget(&self, _labels: &LabelSet) {}

    fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }
}
