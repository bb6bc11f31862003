//! Reads what Spark said of a block's applications: a table that blocks of earlier versions do not have.
//!
//! Limits: [`SPARK_ROOM`], and those of [`SparkWords`]; facts of a kind that is not known are passed over.

use super::super::super::spark::{Room as WordRoom, SparkWords};
use super::super::table::Room;
use super::super::*;
use super::tables::Texts;
use super::{Block, guarded, lock};
use emberscope_model::{SparkFact, SparkFactKind, WallTime};
use std::sync::Arc;

/// Memory for the rows of the table: 100,000 facts.
const SPARK_ROOM: u64 = 32 << 20;

impl Block {
    /// What Spark said, kept once it was read.
    ///
    /// # Errors
    /// The table cannot be brought or read.
    pub(super) fn spark(&self) -> Result<Arc<SparkWords>, BlockProblem> {
        if let Some(words) = lock(&self.kept).spark.clone() {
            return Ok(words);
        }
        let words = if self.has(SPARK) { guarded(|| words(self))? } else { SparkWords::default() };
        let words = Arc::new(words);
        lock(&self.kept).spark = Some(words.clone());
        Ok(words)
    }
}

fn words(block: &Block) -> Result<SparkWords, BlockProblem> {
    let table = block.table(SPARK, &Room::new(SPARK_ROOM))?;
    let mut shared = Texts::default();
    let mut text = |column| {
        let mut all: Vec<Option<Arc<str>>> = Vec::new();
        table.all_texts(column, |text| all.push(text.map(|text| shared.shared(text))))?;
        Ok::<_, BlockProblem>(all.into_iter())
    };
    let (apps, mut kinds, mut ids, mut names) = (text("app")?, text("kind")?, text("id")?, text("name")?);
    let (mut descriptions, mut statuses) = (text("description")?, text("status")?);
    let (mut refs, mut sources) = (text("refs")?, text("source")?);
    let number = |column| Ok::<_, BlockProblem>(table.all_longs(column)?.into_iter());
    let (mut attempts, mut counts) = (number("attempt")?, number("count")?);
    let (mut executor, mut deserialize) = (number("executor_cpu_ns")?, number("deserialize_cpu_ns")?);
    let (mut run_times, mut fetched) = (number("run_time_ms")?, number("fetched_ns")?);
    let (mut begun, mut ended) = (number("begun_ns")?, number("ended_ns")?);
    let mut words = SparkWords::default();
    // Columns of one table have as many rows each.
    for app in apps {
        let next = |all: &mut std::vec::IntoIter<Option<Arc<str>>>| all.next().flatten();
        let kind = next(&mut kinds).and_then(|slug| SparkFactKind::from_slug(&slug));
        let time = |time: Option<u64>| time.filter(|ns| *ns > 0).map(WallTime);
        let refs = next(&mut refs).unwrap_or_default();
        let fact = SparkFact {
            app: app.unwrap_or_default(),
            kind: kind.unwrap_or(SparkFactKind::Stage),
            id: next(&mut ids).unwrap_or_default(),
            attempt: attempts.next().and_then(|attempt| u32::try_from(attempt).ok()).unwrap_or_default(),
            name: next(&mut names).unwrap_or_default(),
            description: next(&mut descriptions),
            status: next(&mut statuses).unwrap_or_default(),
            refs: refs.split(' ').filter_map(|id| id.parse().ok()).collect(),
            count: counts.next().unwrap_or_default(),
            executor_cpu_ns: executor.next().unwrap_or_default(),
            deserialize_cpu_ns: deserialize.next().unwrap_or_default(),
            run_time_ms: run_times.next().unwrap_or_default(),
            begun: time(begun.next()),
            ended: time(ended.next()),
            source: next(&mut sources).unwrap_or_default(),
            fetched: WallTime(fetched.next().unwrap_or_default()),
        };
        if kind.is_some() {
            words.take(&fact, WordRoom::BLOCK);
        }
    }
    Ok(words)
}
