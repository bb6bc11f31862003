//! Profile types: what Pyroscope calls the kinds of samples, as
//! `name:sample_type:sample_unit:period_type:period_unit`.
//!
//! Each sample kind is offered as its weight and as its count. The parts are also labels of every
//! series (`__type__`, `__unit__`, ...), as Pyroscope's ingestion adds them (pkg/phlare model,
//! `labels.go`); their names begin with `__`, which Grafana hides.

use super::error::CallError;
use super::response::ProfileType;
use crate::model::SampleKind;

/// Which of a row's two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The weights' sum.
    Weight,
    /// How many samples.
    Count,
}

impl Value {
    /// Of the two, the one that is meant; protobuf's integers are signed.
    pub fn of(self, count: u64, weight: u64) -> i64 {
        let value = match self {
            Self::Weight => weight,
            Self::Count => count,
        };
        i64::try_from(value).unwrap_or(i64::MAX)
    }
}

/// A profile type.
#[derive(Debug, PartialEq, Eq)]
pub struct Type {
    /// The samples it is about.
    pub kind: SampleKind,
    /// Which of their numbers.
    pub value: Value,
    /// Its five parts: name, sample type, sample unit, period type, period unit.
    pub parts: [&'static str; 5],
}

/// All types.
pub const ALL: &[Type] = &[
    Type {
        kind: SampleKind::Cpu,
        value: Value::Weight,
        parts: ["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"],
    },
    Type {
        kind: SampleKind::Cpu,
        value: Value::Count,
        parts: ["process_cpu", "samples", "count", "cpu", "nanoseconds"],
    },
];

/// The labels that a type adds to each series, in order of their names.
pub const LABELS: [&str; 6] =
    ["__name__", "__period_type__", "__period_unit__", "__profile_type__", "__type__", "__unit__"];

impl Type {
    /// `name:sample_type:sample_unit:period_type:period_unit`.
    pub fn id(&self) -> String {
        self.parts.join(":")
    }
    /// One of [`LABELS`].
    pub fn label(&self, name: &str) -> Option<String> {
        let [of, sample_type, sample_unit, period_type, period_unit] = self.parts;
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
    /// As a message.
    pub fn message(&self) -> ProfileType {
        let [name, sample_type, sample_unit, period_type, period_unit] = self.parts.map(str::to_owned);
        ProfileType { id: self.id(), name, sample_type, sample_unit, period_type, period_unit }
    }
    /// By id. None when it is well formed and there is no such type: a query for it finds nothing.
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
        for t in ALL {
            assert_eq!(Type::find(&t.id()).expect("well formed"), Some(t));
            assert!(LABELS.iter().all(|name| t.label(name).is_some()));
        }
        assert_eq!(ALL[0].id(), "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        assert_eq!(ALL[1].id(), "process_cpu:samples:count:cpu:nanoseconds");
        assert!(LABELS.is_sorted());
    }

    #[test]
    fn every_kind_of_samples_is_offered_as_weight_and_as_count() {
        for kind in SampleKind::ALL {
            for value in [Value::Weight, Value::Count] {
                let offered = ALL.iter().filter(|t| t.kind == *kind && t.value == value).count();
                assert_eq!(offered, 1, "{kind:?} {value:?}");
            }
        }
    }

    #[test]
    fn a_type_that_is_not_there_finds_nothing_and_rubbish_is_an_error() {
        assert_eq!(Type::find("memory:alloc_space:bytes:space:bytes").expect("well formed"), None);
        assert!(Type::find("cpu").is_err());
        assert!(Type::find("").is_err());
    }
}
