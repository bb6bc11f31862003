//! A window's rows as OTLP profiles (`profiles/v1development` of opentelemetry-proto), with its generated types.
//!
//! In: rows. Out: export requests of about [`MAX_REQUEST`] bytes before they are packed. A resource is a process, as its labels
//! tell it; it has a profile for each kind, whose samples have what is of a thread as attributes: stage, task, class. Values
//! are weights (nanoseconds, faults) of a whole window: a sample has no time of its own.

use super::profiles::{Batch, Packed, grouped};
use emberscope_export::pprof::packed;
use emberscope_model::{Frame, FrameKind, LabelKey, LabelSet, Row, SampleKind, TimeRange};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile, ProfilesDictionary, ResourceProfiles,
    Sample, ScopeProfiles, Stack, ValueType,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Bytes of a request before it is packed, about.
const MAX_REQUEST: usize = 2 << 20;

/// Labels of a process.
type Process = Vec<(LabelKey, Arc<str>)>;

/// Packs the rows of a window.
pub fn pack(range: TimeRange, rows: &[Row]) -> Packed {
    let (mut out, mut request) = (Packed::default(), Request::new());
    for ((process, kind), rows) in grouped(rows, |kind, set| (process(set), kind)) {
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut profile = request.profile(range, kind);
            while let Some(row) = rows.next_if(|_| request.bytes < MAX_REQUEST || profile.samples.is_empty())
            {
                profile.samples.push(request.sample(row));
            }
            request.add(&process, profile);
            if request.bytes >= MAX_REQUEST {
                out.batches.push(std::mem::replace(&mut request, Request::new()).batch(range));
            }
        }
    }
    if request.profiles > 0 {
        out.batches.push(request.batch(range));
    }
    out
}

fn process(set: &LabelSet) -> Process {
    let of_process = |key: LabelKey| !key.is_of_thread() && key != LabelKey::Source;
    set.iter().filter(|(key, _)| of_process(*key)).map(|(key, value)| (key, Arc::clone(value))).collect()
}

/// The name of a process's label: of the semantic conventions where they have one, else ours.
const fn attribute(key: LabelKey) -> &'static str {
    match key {
        LabelKey::ServiceName => "service.name",
        LabelKey::Node => "host.name",
        LabelKey::Process => "process.executable.name",
        LabelKey::Pid => "process.pid",
        LabelKey::User => "process.owner",
        LabelKey::Container => "container.id",
        other => other.name(),
    }
}

/// `profile.frame.type` of the semantic conventions; None where they have none.
const fn frame_type(kind: FrameKind) -> Option<&'static str> {
    match kind {
        FrameKind::Kernel => Some("kernel"),
        FrameKind::Native => Some("native"),
        FrameKind::JavaCompiled | FrameKind::JavaInlined | FrameKind::JavaInterpreted | FrameKind::Stub => {
            Some("jvm")
        }
        FrameKind::Python => Some("cpython"),
        FrameKind::Class | FrameKind::Unknown | FrameKind::Label => None,
    }
}

fn text(text: &str) -> Option<AnyValue> {
    Some(AnyValue { value: Some(Value::StringValue(text.to_owned())) })
}

/// A request in the making, and what is in its tables already.
struct Request {
    resources: Vec<ResourceProfiles>,
    dictionary: ProfilesDictionary,
    texts: HashMap<String, i32>,
    mappings: HashMap<Arc<str>, i32>,
    functions: HashMap<(i32, i32), i32>,
    locations: HashMap<Arc<Frame>, i32>,
    stacks: HashMap<Vec<i32>, i32>,
    attributes: HashMap<(&'static str, Arc<str>), i32>,
    ids: RandomState,
    profiles: u64,
    /// Bytes of the request before it is packed, estimated.
    bytes: usize,
}

/// Adds an entry to a table. Its place is below 2^31: a request is small.
fn put<T>(table: &mut Vec<T>, entry: T) -> i32 {
    table.push(entry);
    (table.len() - 1) as i32
}

impl Request {
    /// The first entry of every table stands for nothing.
    fn new() -> Self {
        let dictionary = ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default()],
            function_table: vec![Function::default()],
            link_table: vec![Link::default()],
            string_table: vec![String::new()],
            attribute_table: vec![KeyValueAndUnit::default()],
            stack_table: vec![Stack::default()],
        };
        Self {
            resources: Vec::new(),
            dictionary,
            texts: HashMap::from([(String::new(), 0)]),
            mappings: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
            stacks: HashMap::from([(Vec::new(), 0)]),
            attributes: HashMap::new(),
            ids: RandomState::new(),
            profiles: 0,
            bytes: 0,
        }
    }

    fn profile(&mut self, range: TimeRange, kind: SampleKind) -> Profile {
        let facts = kind.facts();
        let mut value =
            |name, unit| ValueType { type_strindex: self.text(name), unit_strindex: self.text(unit) };
        let sample_type = Some(value(facts.weight.name, facts.weight.unit));
        let period_type = Some(value(facts.period.name, facts.period.unit));
        let half = |half: u8| self.ids.hash_one((self.profiles, range.from.0, half)).to_be_bytes();
        Profile {
            sample_type,
            period_type,
            time_unix_nano: range.from.0,
            duration_nano: range.until.0.saturating_sub(range.from.0),
            profile_id: [half(0), half(1)].concat(),
            ..Profile::default()
        }
    }

    fn sample(&mut self, row: &Row) -> Sample {
        let frames: Vec<i32> = row.stack.frames.iter().rev().map(|frame| self.location(frame)).collect();
        let stack_index = match self.stacks.get(&frames) {
            Some(place) => *place,
            None => {
                self.bytes += 4 + 3 * frames.len();
                let place = put(&mut self.dictionary.stack_table, Stack { location_indices: frames.clone() });
                self.stacks.insert(frames, place);
                place
            }
        };
        let of_sample = |key: LabelKey| key.is_of_thread() || key == LabelKey::Executor;
        let labels: Vec<_> = row.labels.iter().filter(|(key, _)| of_sample(*key)).collect();
        let attribute_indices =
            labels.into_iter().map(|(key, value)| self.attribute(key.name(), value)).collect();
        self.bytes += 40;
        let values = vec![i64::try_from(row.weight).unwrap_or(i64::MAX)];
        Sample { stack_index, attribute_indices, values, ..Sample::default() }
    }

    fn text(&mut self, text: &str) -> i32 {
        if let Some(place) = self.texts.get(text) {
            return *place;
        }
        self.bytes += text.len() + 4;
        let place = put(&mut self.dictionary.string_table, text.to_owned());
        self.texts.insert(text.to_owned(), place);
        place
    }

    fn attribute(&mut self, key: &'static str, value: &Arc<str>) -> i32 {
        if let Some(place) = self.attributes.get(&(key, Arc::clone(value))) {
            return *place;
        }
        self.bytes += value.len() + 12;
        let entry = KeyValueAndUnit { key_strindex: self.text(key), value: text(value), unit_strindex: 0 };
        let place = put(&mut self.dictionary.attribute_table, entry);
        self.attributes.insert((key, Arc::clone(value)), place);
        place
    }

    fn location(&mut self, frame: &Arc<Frame>) -> i32 {
        if let Some(place) = self.locations.get(frame) {
            return *place;
        }
        let name = self.text(&frame.name);
        let system_name = match &frame.signature {
            Some(signature) => self.text(&format!("{}{signature}", frame.name)),
            None => name,
        };
        let function_index = match self.functions.get(&(name, system_name)) {
            Some(place) => *place,
            None => {
                let function = Function {
                    name_strindex: name,
                    system_name_strindex: system_name,
                    ..Function::default()
                };
                let place = put(&mut self.dictionary.function_table, function);
                self.functions.insert((name, system_name), place);
                place
            }
        };
        let mapping_index = self.mapping(&frame.module);
        let kind = frame_type(frame.kind).map(|kind| self.attribute("profile.frame.type", &Arc::from(kind)));
        let lines = vec![Line { function_index, line: i64::from(frame.line), column: 0 }];
        self.bytes += 32;
        let attribute_indices = kind.into_iter().collect();
        let location = Location { mapping_index, address: 0, lines, attribute_indices };
        let place = put(&mut self.dictionary.location_table, location);
        self.locations.insert(Arc::clone(frame), place);
        place
    }

    fn mapping(&mut self, module: &Arc<str>) -> i32 {
        if module.is_empty() {
            return 0;
        }
        if let Some(place) = self.mappings.get(module) {
            return *place;
        }
        let mapping = Mapping { filename_strindex: self.text(module), ..Mapping::default() };
        let place = put(&mut self.dictionary.mapping_table, mapping);
        self.mappings.insert(Arc::clone(module), place);
        place
    }

    fn add(&mut self, process: &Process, profile: Profile) {
        let value = |key: LabelKey, value: &str| match value.parse() {
            Ok(pid) if key == LabelKey::Pid => Some(AnyValue { value: Some(Value::IntValue(pid)) }),
            _ => text(value),
        };
        let pair = |name: &str, value| KeyValue { key: name.to_owned(), value, ..KeyValue::default() };
        let mut attributes: Vec<KeyValue> =
            process.iter().map(|(key, text)| pair(attribute(*key), value(*key, text))).collect();
        if !process.iter().any(|(key, _)| *key == LabelKey::ServiceName) {
            let name = process.iter().find(|(key, _)| *key == LabelKey::Process);
            attributes.push(pair("service.name", text(name.map_or("unknown", |(_, name)| name))));
        }
        self.bytes += 200 + process.iter().map(|(_, value)| value.len() + 24).sum::<usize>();
        self.profiles += 1;
        let scope = InstrumentationScope {
            name: "emberscope".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        self.resources.push(ResourceProfiles {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_profiles: vec![ScopeProfiles {
                scope: Some(scope),
                profiles: vec![profile],
                ..ScopeProfiles::default()
            }],
            ..ResourceProfiles::default()
        });
    }

    fn batch(self, range: TimeRange) -> Batch {
        let request = ExportProfilesServiceRequest {
            resource_profiles: self.resources,
            dictionary: Some(self.dictionary),
        };
        let request = packed(&request.encode_to_vec()).into();
        Batch { request, profiles: self.profiles, until: range.until }
    }
}
