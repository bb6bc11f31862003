//! What Spark says of applications, in a part and in its journal.
//!
//! In the journal it stands in a record of kind [`FORGET`] that forgets nobody, behind its empty list: versions before
//! this read such a record as nothing at all, and go on. Each fact has its length, so that a later version may add to
//! it; facts of a kind that is not known are passed over.

use super::super::spark::Room;
use super::Part;
use super::codec::{Malformed, Reader, put, put_text};
use emberscope_model::{SparkFact, SparkFactKind, WallTime};
use std::sync::Arc;

/// Version of what follows in such a record. Another one is passed over.
const VERSION: u64 = 1;

impl Part {
    /// Takes what Spark says. Out: the record; None where nothing is new.
    pub fn learn(&mut self, facts: &[SparkFact]) -> Option<Vec<u8>> {
        let new: Vec<&SparkFact> = facts.iter().filter(|fact| self.spark.take(fact, Room::PART)).collect();
        if new.is_empty() {
            return None;
        }
        let mut out = self.forget_record(&[]);
        put(&mut out, VERSION);
        put(&mut out, new.len() as u64);
        for fact in new {
            let mut bytes = Vec::new();
            put_fact(&mut bytes, fact);
            put(&mut out, bytes.len() as u64);
            out.extend_from_slice(&bytes);
        }
        Some(out)
    }

    /// Reads what stands behind the list of a record that forgets nobody.
    ///
    /// # Errors
    /// A fact ends early, or a text of it is no UTF-8.
    pub(super) fn read_facts(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        if reader.0.is_empty() || reader.number()? != VERSION {
            return Ok(());
        }
        for _ in 0..reader.count()? {
            let length = reader.count()?;
            if let Some(fact) = read_fact(&mut Reader(reader.bytes(length)?))? {
                self.spark.take(&fact, Room::PART);
            }
        }
        Ok(())
    }
}

fn put_fact(out: &mut Vec<u8>, fact: &SparkFact) {
    put_text(out, fact.kind.slug());
    for text in [&fact.app, &fact.id, &fact.name, &fact.status, &fact.source] {
        put_text(out, text);
    }
    put(out, u64::from(fact.description.is_some()));
    put_text(out, fact.description.as_deref().unwrap_or_default());
    let time = |time: Option<WallTime>| time.map_or(0, |time| time.0);
    for number in [
        u64::from(fact.attempt),
        fact.count,
        fact.executor_cpu_ns,
        fact.deserialize_cpu_ns,
        fact.run_time_ms,
        time(fact.begun),
        time(fact.ended),
        fact.fetched.0,
        fact.refs.len() as u64,
    ] {
        put(out, number);
    }
    fact.refs.iter().for_each(|id| put(out, u64::from(*id)));
}

/// None: it is of a kind that a later version has.
fn read_fact(reader: &mut Reader<'_>) -> Result<Option<SparkFact>, Malformed> {
    let Some(kind) = SparkFactKind::from_slug(reader.text()?) else { return Ok(None) };
    let mut text = || Ok::<Arc<str>, Malformed>(reader.text()?.into());
    let (app, id, name, status, source) = (text()?, text()?, text()?, text()?, text()?);
    let described = reader.number()? != 0;
    let description = Some(reader.text()?.into()).filter(|_| described);
    let (attempt, count) = (reader.small()?, reader.number()?);
    let (executor_cpu_ns, deserialize_cpu_ns) = (reader.number()?, reader.number()?);
    let run_time_ms = reader.number()?;
    let mut time = || Ok::<Option<WallTime>, Malformed>(Some(WallTime(reader.number()?)).filter(|t| t.0 > 0));
    let (begun, ended, fetched) = (time()?, time()?, time()?.unwrap_or(WallTime(0)));
    let refs = (0..reader.count()?).map(|_| reader.small()).collect::<Result<_, _>>()?;
    Ok(Some(SparkFact {
        app,
        kind,
        id,
        attempt,
        name,
        description,
        status,
        refs,
        count,
        executor_cpu_ns,
        deserialize_cpu_ns,
        run_time_ms,
        begun,
        ended,
        source,
        fetched,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::super::spark::tests::fact;
    use super::super::record::FORGET;
    use super::*;

    fn kept(part: &Part) -> Vec<SparkFact> {
        part.spark.iter().cloned().collect()
    }

    #[test]
    fn facts_are_read_as_they_were_written() {
        let all = SparkFactKind::ALL.map(|kind| fact("app-1", kind, "3", 7));
        let bare =
            SparkFact { description: None, refs: [].into(), begun: None, ..fact("é", all[0].kind, "", 8) };
        let facts = [&all[..], &[bare]].concat();
        let (mut part, mut again) = (Part::default(), Part::default());
        let record = part.learn(&facts).expect("they are new");
        again.replay(&record).expect("it is read");
        assert_eq!((kept(&again).len(), kept(&again)), (facts.len(), kept(&part)));
        assert_eq!(part.learn(&facts), None, "nothing is new");
    }

    #[test]
    fn versions_before_this_read_a_record_that_forgets_nobody() {
        let record = Part::default().learn(&[fact("a", SparkFactKind::Job, "1", 1)]).expect("it is new");
        let bare = Part::default().forget_record(&[]);
        assert_eq!((record.first(), record.get(..bare.len())), (Some(&FORGET), Some(&bare[..])));
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let mut record = Part::default().forget_record(&[]);
        let place = record.len();
        record.extend([9, 200, 200]);
        Part::default().replay(&record).expect("another version");
        record.truncate(place);
        put(&mut record, VERSION);
        put(&mut record, 2);
        let mut later = Vec::new();
        put_text(&mut later, "later");
        let mut longer = Vec::new();
        put_fact(&mut longer, &fact("a", SparkFactKind::Job, "1", 1));
        longer.extend([1, 2, 3]);
        for bytes in [later, longer] {
            put(&mut record, bytes.len() as u64);
            record.extend(bytes);
        }
        let mut part = Part::default();
        part.replay(&record).expect("a kind and fields that are not known");
        assert_eq!(kept(&part), [fact("a", SparkFactKind::Job, "1", 1)]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let record = Part::default().learn(&[fact("a", SparkFactKind::Sql, "1", 1)]).expect("it is new");
        let bare = Part::default().forget_record(&[]).len();
        for end in bare + 1..record.len() {
            assert!(Part::default().replay(&record[..end]).is_err(), "cut at {end}");
        }
    }
}
