//! Profile types: what Pyroscope calls the kinds of samples, as
//! `name:sample_type:sample_unit:period_type:period_unit`.
//!
//! Each sample kind is offered as its weight and, unless its samples are another kind's, as its count, named by its
//! [`emberscope_model::KindFacts`]. The parts
//! are also labels of every series (`__type__`, `__unit__`, ...), as Pyroscope's ingestion adds them (pkg/phlare
//! model, `labels.go`); their names begin with `__`, which Grafana hides.

use super::error::CallError;
use super::response::ProfileType;
use emberscope_export::Unit;
use emberscope_model::SampleKind;

/// A profile type: a kind of samples, as weight or as count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// The samples that the type is about.
    pub kind: SampleKind,
    /// Which number of the samples: weight or count.
    pub unit: Unit,
}

/// How many types there are.
const TYPES: usize = {
    let (mut types, mut place) = (0, 0);
    while place < SampleKind::ASKED.len() {
        types += Unit::beside_others(SampleKind::ASKED[place]).len();
        place += 1;
    }
    types
};

/// All types; of each kind the weight comes first.
pub static ALL: [Type; TYPES] = {
    let mut all = [Type { kind: SampleKind::Cpu, unit: Unit::Weight }; TYPES];
    let (mut kind, mut place) = (0, 0);
    while kind < SampleKind::ASKED.len() {
        let units = Unit::beside_others(SampleKind::ASKED[kind]);
        let mut unit = units.len();
        while unit > 0 {
            unit -= 1;
            all[place] = Type { kind: SampleKind::ASKED[kind], unit: units[unit] };
            place += 1;
        }
        kind += 1;
    }
    all
};

/// The labels that a type adds to each series, in order of their names.
pub const LABELS: [&str; 6] =
    ["__name__", "__period_type__", "__period_unit__", "__profile_type__", "__type__", "__unit__"];

impl Type {
    /// The five parts: name, sample type, sample unit, period type, period unit.
    pub const fn parts(&self) -> [&'static str; 5] {
        let (facts, value) = (self.kind.facts(), self.unit.facts(self.kind));
        [facts.profile, value.name, value.unit, facts.period.name, facts.period.unit]
    }
    /// The id: `name:sample_type:sample_unit:period_type:period_unit`.
    pub fn id(&self) -> String {
        self.parts().join(":")
    }
    /// The value of a label, by its name in [`LABELS`].
    pub fn label(&self, name: &str) -> Option<String> {
        let [of, sample_type, sample_unit, period_type, period_unit] = self.parts();
        Some(match name {
            "__name__" => of.to_owned(),
            "__type__" => sample_type.to_owned(),
            "__unit__" => sample_unit.to_owned(),
            "__period_type__" => period_type.to_owned(),
            "__period_unit__" => period_unit.to_owned(),
            "__profile_type__" => self.id(),
            _ => return None,
        })
    }
    /// The type as Pyroscope's message.
    pub fn message(&self) -> ProfileType {
        let [name, sample_type, sample_unit, period_type, period_unit] = self.parts().map(str::to_owned);
        ProfileType { id: self.id(), name, sample_type, sample_unit, period_type, period_unit }
    }
    /// The type with this id. None when the id is well formed and there is no such type: a query for it finds nothing.
    ///
    /// # Errors
    /// `invalid_argument`: the id has not five parts, or six.
    pub fn find(id: &str) -> Result<Option<&'static Self>, CallError> {
        // Pyroscope allows a sixth part, `delta`.
        if !(5..=6).contains(&id.split(':').count()) {
            return Err(CallError::invalid(format!(
                "profile_typeID {id:?} is not name:sample_type:sample_unit:period_type:period_unit; there are {}",
                ALL.iter().map(Self::id).collect::<Vec<_>>().join(" and ")
            )));
        }
        Ok(ALL.iter().find(|t| t.id() == id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_its_id_and_has_every_label() {
        for t in &ALL {
            assert_eq!(Type::find(&t.id()).expect("well formed"), Some(t));
            assert!(LABELS.iter().all(|name| t.label(name).is_some()));
        }
        assert_eq!(ALL[0].id(), "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        assert_eq!(ALL[1].id(), "process_cpu:samples:count:cpu:nanoseconds");
        assert!(LABELS.is_sorted());
    }

    #[test]
    fn every_kind_of_samples_is_offered_as_weight_and_once_as_count() {
        for kind in SampleKind::ASKED {
            for unit in Unit::ALL {
                let offered = ALL.iter().filter(|t| t.kind == *kind && t.unit == unit).count();
                let own = unit == Unit::Weight || kind.facts().made_of.is_none();
                assert_eq!(offered, usize::from(own), "{kind:?} {unit:?}");
            }
        }
    }

    #[test]
    fn a_type_that_is_not_there_finds_nothing_and_rubbish_is_an_error() {
        assert_eq!(Type::find("block:delay:nanoseconds:block:count").expect("well formed"), None);
        for id in [
            "memory:alloc_space:bytes:space:bytes",
            "memory:alloc_objects:count:space:bytes",
            "mutex:delay:nanoseconds:contentions:count",
            "mutex:contentions:count:contentions:count",
        ] {
            assert!(Type::find(id).expect("well formed").is_some(), "{id}");
        }
        assert!(Type::find("cpu").is_err());
        assert!(Type::find("").is_err());
    }
}
