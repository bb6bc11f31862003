//! What Spark says of its applications, as it is kept with the windows: the newest of each fact.
//!
//! In: facts, from whoever asks Spark, from a journal or a block. Out: those that are kept, by application. A driver is
//! any program, and so is what wrote a journal or a block: a fact that is longer than it may be is refused, and so is one
//! for which there is no room ([`Room`]). What is refused is counted.

use emberscope_model::{SparkFact, SparkFactKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Applications.
    apps: usize,
    /// Bytes of one application's facts, without plans.
    of_app: usize,
    /// Bytes of one application's plans.
    plans: usize,
    /// Bytes of all facts.
    all: usize,
}

impl Room {
    /// Of an open part: Spark keeps 1,000 stages, jobs and executions, which are some 900 KB when they are read at once;
    /// plans are read as many at once as half of that is.
    pub const PART: Self = Self { apps: 64, of_app: 1 << 20, plans: 512 << 10, all: 4 << 20 };
    /// Of a block that is made of others, of one that is read, and of an answer.
    pub const BLOCK: Self = Self { apps: 1024, of_app: 4 << 20, plans: 2 << 20, all: 8 << 20 };
}

/// The facts of one application.
#[derive(Debug, Default)]
struct App {
    facts: BTreeMap<(SparkFactKind, Arc<str>, u32), SparkFact>,
    /// Of facts without plans, and of plans.
    bytes: [usize; 2],
}

/// Facts that are kept.
#[derive(Debug, Default)]
pub(super) struct SparkWords {
    apps: BTreeMap<Arc<str>, App>,
    bytes: usize,
    taken: u64,
    refused: u64,
}

impl SparkWords {
    /// Takes a fact. False: the same is known already, or something newer, or there is no room.
    pub fn take(&mut self, fact: &SparkFact, room: Room) -> bool {
        let key = (fact.kind, fact.id.clone(), fact.attempt);
        let app = self.apps.get(&fact.app);
        let known = app.and_then(|app| app.facts.get(&key));
        if known.is_some_and(|known| known.fetched > fact.fetched || known.says_what(fact)) {
            return false;
        }
        let (new, old) = (fact.bytes(), known.map_or(0, SparkFact::bytes));
        // So plans take nothing from what all else rests on.
        let is_plan = fact.kind == SparkFactKind::Plan;
        let of_kind = |app: &App| app.bytes[usize::from(is_plan)];
        let fits = fact.is_bounded()
            && (app.is_some() || self.apps.len() < room.apps)
            && app.map_or(0, of_kind) + new - old.min(new) <= if is_plan { room.plans } else { room.of_app }
            && self.bytes + new - old.min(new) <= room.all;
        if !fits {
            self.refused += 1;
            return false;
        }
        let app = self.apps.entry(fact.app.clone()).or_default();
        app.facts.insert(key, fact.clone());
        let bytes = &mut app.bytes[usize::from(is_plan)];
        *bytes = *bytes + new - old;
        self.bytes = self.bytes + new - old;
        self.taken += 1;
        true
    }

    /// All facts, by application, kind, id and attempt.
    pub fn iter(&self) -> impl Iterator<Item = &SparkFact> {
        self.apps.values().flat_map(|app| app.facts.values())
    }

    /// The facts of an application.
    pub fn of_app(&self, app: &str) -> impl Iterator<Item = &SparkFact> {
        self.apps.get(app).into_iter().flat_map(|app| app.facts.values())
    }

    /// Bytes of memory that the facts take, estimated.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Facts that were taken, one that says something new again too.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Facts that were longer than they may be, or for which there was no room.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use emberscope_model::WallTime;

    /// A fact of an application that was read at a time.
    pub fn fact(app: &str, kind: SparkFactKind, id: &str, fetched: u64) -> SparkFact {
        SparkFact {
            app: app.into(),
            kind,
            id: id.into(),
            attempt: 0,
            name: format!("{} {id} of <{app}>", kind.slug()).into(),
            description: Some("the day's rows".into()),
            status: "COMPLETE".into(),
            refs: [1, 2].into(),
            count: 4,
            executor_cpu_ns: 10,
            deserialize_cpu_ns: 20,
            run_time_ms: 30,
            begun: Some(WallTime(1_000)),
            ended: None,
            source: "http://driver:4040".into(),
            fetched: WallTime(fetched),
        }
    }

    #[test]
    fn the_newest_of_a_fact_is_kept() {
        let mut words = SparkWords::default();
        let stage = |fetched| fact("app-1", SparkFactKind::Stage, "3", fetched);
        assert!(words.take(&stage(5), Room::PART));
        assert!(!words.take(&stage(6), Room::PART), "it says the same");
        let ended = SparkFact { ended: Some(WallTime(9)), ..stage(7) };
        assert!(words.take(&ended, Room::PART));
        assert!(!words.take(&stage(6), Room::PART), "it is older");
        assert_eq!(words.of_app("app-1").collect::<Vec<_>>(), [&ended]);
        assert_eq!(words.of_app("app-2").count(), 0);
        assert_eq!((words.iter().count(), words.bytes()), (1, ended.bytes()));
        assert_eq!((words.taken(), words.refused()), (2, 0));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_counted() {
        let room = Room { apps: 2, of_app: 2000, plans: 0, all: 3000 };
        let mut words = SparkWords::default();
        for app in ["a", "b", "c"] {
            for id in 0..1000 {
                words.take(&fact(app, SparkFactKind::Job, &id.to_string(), 1), room);
            }
        }
        assert!(words.bytes() <= 3000 && words.of_app("a").count() > 1, "{}", words.bytes());
        assert!(words.of_app("b").count() > 0 && words.of_app("c").count() == 0);
        assert_eq!(words.refused() as usize, 3000 - words.iter().count());
        let long = SparkFact { name: "x".repeat(1000).into(), ..fact("a", SparkFactKind::Stage, "1", 1) };
        let mut words = SparkWords::default();
        assert!(!words.take(&long, Room::BLOCK));
        assert_eq!(words.refused(), 1);
    }

    #[test]
    fn plans_have_a_room_of_their_own() {
        let room = Room { apps: 2, of_app: 2000, plans: 1000, all: 9000 };
        let mut words = SparkWords::default();
        for id in 0..1000 {
            for kind in [SparkFactKind::Plan, SparkFactKind::Job] {
                words.take(&fact("a", kind, &id.to_string(), 1), room);
            }
        }
        let bytes = |is_plan: bool| -> usize {
            let facts = words.iter().filter(|fact| (fact.kind == SparkFactKind::Plan) == is_plan);
            facts.map(SparkFact::bytes).sum()
        };
        assert!(bytes(true) > 500 && bytes(true) <= 1000 && bytes(false) > 1500 && bytes(false) <= 2000);
        assert_eq!((words.bytes(), words.refused()), (bytes(true) + bytes(false), 2000 - words.taken()));
    }

    #[test]
    fn a_fact_may_grow_only_within_the_room() {
        let small = SparkFact { description: None, ..fact("a", SparkFactKind::Job, "1", 1) };
        let room = Room { apps: 1, of_app: small.bytes() + 10, plans: 0, all: small.bytes() + 10 };
        let mut words = SparkWords::default();
        assert!(words.take(&small, room));
        let large =
            SparkFact { description: Some("x".repeat(11).into()), fetched: WallTime(2), ..small.clone() };
        assert!(!words.take(&large, room));
        assert_eq!(words.iter().collect::<Vec<_>>(), [&small]);
        let fits = SparkFact { description: Some("x".repeat(10).into()), fetched: WallTime(2), ..small };
        assert!(words.take(&fits, room));
        assert_eq!((words.iter().count(), words.bytes()), (1, fits.bytes()));
    }
}
