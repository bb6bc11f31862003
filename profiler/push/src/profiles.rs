//! A window's rows as profiles: one for each kind and label set, without what tells single tasks and processes apart.
//!
//! In: rows. Out: push requests of at most [`MAX_REQUEST`] bytes. A profile that alone is larger than Pyroscope takes
//! ([`MAX_PROFILE`]) is left out and counted. Labels are those of [`LABELS`], at most 13 of the 30 that a series may have.

use super::wire::{LabelPair, PushRequest, RawProfileSeries, RawSample};
use emberscope_export::pprof::{self, Stacks};
use emberscope_model::{LabelKey, LabelSet, Row, SampleKind, TimeRange, WallTime};
use prost::Message;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Labels that are sent. Each task's own series would be a profile for each task and window.
const LABELS: [LabelKey; 12] = [
    LabelKey::ServiceName,
    LabelKey::Node,
    LabelKey::Deploy,
    LabelKey::App,
    LabelKey::AppName,
    LabelKey::AppRun,
    LabelKey::User,
    LabelKey::Role,
    LabelKey::Executor,
    LabelKey::Stage,
    LabelKey::StageAttempt,
    LabelKey::ThreadClass,
];
/// Bytes of a request, about.
const MAX_REQUEST: usize = 2 << 20;
/// Bytes of a profile before it is packed (`validation.max-profile-size-bytes`).
const MAX_PROFILE: usize = 4 << 20;

/// A request to be sent.
#[derive(Debug)]
pub struct Batch {
    /// The request's body, encoded as its protocol has it.
    pub request: Arc<[u8]>,
    /// Profiles in it.
    pub profiles: u64,
    /// End of the window that its profiles are of.
    pub until: WallTime,
}

/// What a window became.
#[derive(Debug, Default)]
pub struct Packed {
    pub batches: Vec<Batch>,
    /// Profiles that are larger than the server takes.
    pub too_large: u64,
}

/// Labels of a series, in the order of their names.
type SeriesLabels = Vec<(&'static str, Arc<str>)>;

/// The rows of each key, which is made of a kind and labels: once for each set of labels.
pub fn grouped<K: Ord>(rows: &[Row], key: impl Fn(SampleKind, &LabelSet) -> K) -> BTreeMap<K, Vec<&Row>> {
    let mut of_set: HashMap<(SampleKind, usize), usize> = HashMap::new();
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let place = *of_set.entry((row.kind, Arc::as_ptr(&row.labels) as usize)).or_insert_with(|| {
            *places.entry(key(row.kind, &row.labels)).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            })
        });
        if let Some(group) = groups.get_mut(place) {
            group.push(row);
        }
    }
    let mut rows_of = |place: usize| groups.get_mut(place).map(std::mem::take).unwrap_or_default();
    places.into_iter().map(|(key, place)| (key, rows_of(place))).collect()
}

/// Packs the rows of a window.
pub fn pack(range: TimeRange, rows: &[Row]) -> Packed {
    let of_labels = grouped(rows, |kind, set| (kind, labels(kind, set)));
    let mut out = Packed::default();
    let (mut series, mut bytes) = (Vec::new(), 0);
    let ids = RandomState::new();
    for (place, ((kind, labels), group)) in of_labels.into_iter().enumerate() {
        let mut stacks = Stacks::new(range, kind);
        for row in group {
            stacks.add(&row.stack.frames, row.count, row.weight);
        }
        let profile = stacks.finish().encode_to_vec();
        let packed = pprof::packed(&profile);
        if profile.len() > MAX_PROFILE {
            out.too_large += 1;
            continue;
        }
        if !series.is_empty() && bytes + packed.len() > MAX_REQUEST {
            out.batches.push(batch(std::mem::take(&mut series), range));
            bytes = 0;
        }
        bytes += packed.len();
        let pair =
            |(name, value): (&str, Arc<str>)| LabelPair { name: name.to_owned(), value: (*value).to_owned() };
        let id = uuid(&ids, (place, range.from.0));
        let samples = vec![RawSample { raw_profile: packed, id }];
        series.push(RawProfileSeries { labels: labels.into_iter().map(pair).collect(), samples });
    }
    if !series.is_empty() {
        out.batches.push(batch(series, range));
    }
    out
}

fn batch(series: Vec<RawProfileSeries>, range: TimeRange) -> Batch {
    let profiles = series.len() as u64;
    let request = PushRequest { series }.encode_to_vec().into();
    Batch { request, profiles, until: range.until }
}

/// Of a label set; a service's name and the profile's must be there.
fn labels(kind: SampleKind, set: &LabelSet) -> SeriesLabels {
    let values: HashMap<LabelKey, &Arc<str>> = set.iter().collect();
    let mut out: Vec<(&str, Arc<str>)> = LABELS
        .iter()
        .filter_map(|key| Some((key.name(), Arc::clone(values.get(key)?))))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    if !values.contains_key(&LabelKey::ServiceName) {
        out.push((
            LabelKey::ServiceName.name(),
            values.get(&LabelKey::Process).map_or("unknown".into(), |v| Arc::clone(v)),
        ));
    }
    out.push(("__name__", kind.facts().profile.into()));
    out.sort_by_key(|(name, _)| *name);
    out
}

/// A random UUID (RFC 9562, version 4), from the keys that the standard library draws.
fn uuid(keys: &RandomState, of: impl std::hash::Hash) -> String {
    let high = keys.hash_one((&of, 0_u8)) & !0xf000 | 0x4000;
    let low = keys.hash_one((&of, 1_u8)) & (u64::MAX >> 2) | 1 << 63;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}
