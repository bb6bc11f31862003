//! The types of our recordings: names and the order of fields are the JDK's (`metadata.xml` of HotSpot, JDK 17 and 25) and, of
//! `profiler.WallClockSample`, async-profiler's (4.5). What is ours (`samples` of the JDK's, `weight`, labels) stands behind
//! theirs: a reader that goes by the metadata finds it. async-profiler's converter does not, and stops at such an event.

use super::metadata::{Class, Field, Note};
use emberscope_model::SampleKind;

pub const BOOLEAN: u64 = 4;
pub const INT: u64 = 10;
pub const LONG: u64 = 11;
pub const STRING: u64 = 20;
pub const CLASS: u64 = 21;
pub const THREAD: u64 = 22;
pub const LOADER: u64 = 23;
pub const FRAME_TYPE: u64 = 24;
pub const STATE: u64 = 25;
pub const TRACE: u64 = 26;
pub const FRAME: u64 = 27;
pub const METHOD: u64 = 28;
pub const PACKAGE: u64 = 29;
pub const SYMBOL: u64 = 30;
pub const THREAD_GROUP: u64 = 31;
/// The event of the samples, whatever its name.
pub const SAMPLE: u64 = 101;
pub const SETTING: u64 = 102;
pub const RECORDING: u64 = 103;
const LABEL: u64 = 201;
const CATEGORY: u64 = 202;
const TIMESTAMP: u64 = 203;
const TIMESPAN: u64 = 204;
const AMOUNT: u64 = 205;
const DESCRIPTION: u64 = 206;
const CONTENT_TYPE: u64 = 207;

/// States of threads: number and name.
pub const STATES: [(u64, &str); 2] = [(1, "STATE_RUNNABLE"), (2, "STATE_SLEEPING")];

/// How samples of a kind are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The event's name: `jdk.ExecutionSample`.
    pub name: String,
    /// The name of the field that has the sampled thread.
    pub thread: &'static str,
    /// The number of the thread's state, where the event has one.
    pub state: Option<u64>,
}

impl Shape {
    /// The shape of a kind's samples. A kind that neither the JDK nor async-profiler has becomes an event of ours.
    pub fn of(kind: SampleKind) -> Self {
        let (name, thread, state) = match kind {
            SampleKind::Cpu => ("jdk.ExecutionSample".to_owned(), "sampledThread", Some(1)),
            SampleKind::OffCpu => ("profiler.WallClockSample".to_owned(), "sampledThread", Some(2)),
            other => (format!("emberscope.{}", camel(other.slug())), "eventThread", None),
        };
        Self { name, thread, state }
    }
}

/// `page-faults` as `PageFaults`.
fn camel(slug: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect::<String>()
    };
    slug.split('-').map(word).collect()
}

/// All types of a recording of a kind, whose samples have these labels: name, and what readers show.
pub fn all<'a>(kind: SampleKind, shape: &'a Shape, labels: &'a [(String, String)]) -> Vec<Class<'a>> {
    let mut classes = values();
    classes.extend(notes());
    classes.push(sample(kind, shape, labels));
    classes.push(event(
        (SETTING, "jdk.ActiveSetting"),
        "Recording Setting",
        &["Flight Recorder"],
        vec![
            field("id", LONG, "Event Id"),
            field("name", STRING, "Setting Name"),
            field("value", STRING, "Setting Value"),
        ],
    ));
    classes.push(event(
        (RECORDING, "jdk.ActiveRecording"),
        "Flight Recording",
        &["Flight Recorder"],
        vec![field("id", LONG, "Id"), field("name", STRING, "Name")],
    ));
    classes
}

fn sample<'a>(kind: SampleKind, shape: &'a Shape, labels: &'a [(String, String)]) -> Class<'a> {
    let pooled = |name, class, label| Field { pooled: true, ..field(name, class, label) };
    let unit = match kind.facts().weight.unit {
        "nanoseconds" => Some(one(TIMESPAN, "NANOSECONDS")),
        "bytes" => Some(one(AMOUNT, "BYTES")),
        _ => None,
    };
    let mut fields = vec![pooled(shape.thread, THREAD, "Thread"), pooled("stackTrace", TRACE, "Stack Trace")];
    fields.extend(shape.state.map(|_| pooled("state", STATE, "Thread State")));
    fields.push(field("samples", INT, "Samples"));
    let mut weight = field("weight", LONG, "Weight");
    weight.notes.extend(unit);
    weight.notes.push(one(DESCRIPTION, "What the event stands for, in the unit of what was sampled"));
    fields.push(weight);
    fields.extend(labels.iter().map(|(name, label)| field(name, STRING, label)));
    event((SAMPLE, &shape.name), kind.facts().title, &["Java Virtual Machine", "Profiling"], fields)
}

fn event<'a>(
    (id, name): (u64, &'a str),
    label: &'a str,
    category: &[&'a str],
    fields: Vec<Field<'a>>,
) -> Class<'a> {
    let mut start = field("startTime", LONG, "Start Time");
    start.notes.push(one(TIMESTAMP, "TICKS"));
    let category = Note { class: CATEGORY, values: category.to_vec(), list: true };
    Class {
        id,
        name,
        extends: "jdk.jfr.Event",
        notes: vec![category, one(LABEL, label)],
        fields: [vec![start], fields].concat(),
        ..Class::default()
    }
}

fn one<'a>(class: u64, value: &'a str) -> Note<'a> {
    Note { class, values: vec![value], list: false }
}

fn field<'a>(name: &'a str, class: u64, label: &'a str) -> Field<'a> {
    let notes = if label.is_empty() { Vec::new() } else { vec![one(LABEL, label)] };
    Field { name, class, pooled: false, list: false, notes }
}

/// Annotations.
fn notes() -> Vec<Class<'static>> {
    let note = |id, name, list| Class {
        id,
        name,
        extends: "java.lang.annotation.Annotation",
        fields: vec![Field { list, ..field("value", STRING, "") }],
        ..Class::default()
    };
    // How a number is shown: readers look for the annotation on the annotation.
    let content = |id, name| Class {
        notes: vec![Note { class: CONTENT_TYPE, values: Vec::new(), list: true }],
        ..note(id, name, false)
    };
    vec![
        note(LABEL, "jdk.jfr.Label", false),
        note(CATEGORY, "jdk.jfr.Category", true),
        note(DESCRIPTION, "jdk.jfr.Description", false),
        content(TIMESTAMP, "jdk.jfr.Timestamp"),
        content(TIMESPAN, "jdk.jfr.Timespan"),
        content(AMOUNT, "jdk.jfr.DataAmount"),
        Class { fields: Vec::new(), ..note(CONTENT_TYPE, "jdk.jfr.ContentType", false) },
    ]
}

/// What events have.
fn values() -> Vec<Class<'static>> {
    let class = |id, name, fields| Class { id, name, fields, ..Class::default() };
    let simple = |id, name, fields| Class { simple: true, ..class(id, name, fields) };
    let own = |name, class| field(name, class, "");
    let pool = |name, class| Field { pooled: true, ..own(name, class) };
    vec![
        class(BOOLEAN, "boolean", vec![]),
        class(INT, "int", vec![]),
        class(LONG, "long", vec![]),
        class(STRING, "java.lang.String", vec![]),
        class(
            CLASS,
            "java.lang.Class",
            vec![
                pool("classLoader", LOADER),
                pool("name", SYMBOL),
                pool("package", PACKAGE),
                own("modifiers", INT),
            ],
        ),
        class(
            THREAD,
            "java.lang.Thread",
            vec![
                own("osName", STRING),
                own("osThreadId", LONG),
                own("javaName", STRING),
                own("javaThreadId", LONG),
                pool("group", THREAD_GROUP),
            ],
        ),
        class(LOADER, "jdk.types.ClassLoader", vec![pool("type", CLASS), pool("name", SYMBOL)]),
        simple(FRAME_TYPE, "jdk.types.FrameType", vec![own("description", STRING)]),
        simple(STATE, "jdk.types.ThreadState", vec![own("name", STRING)]),
        class(
            TRACE,
            "jdk.types.StackTrace",
            vec![own("truncated", BOOLEAN), Field { list: true, ..own("frames", FRAME) }],
        ),
        class(
            FRAME,
            "jdk.types.StackFrame",
            vec![
                pool("method", METHOD),
                own("lineNumber", INT),
                own("bytecodeIndex", INT),
                pool("type", FRAME_TYPE),
            ],
        ),
        class(
            METHOD,
            "jdk.types.Method",
            vec![
                pool("type", CLASS),
                pool("name", SYMBOL),
                pool("descriptor", SYMBOL),
                own("modifiers", INT),
                own("hidden", BOOLEAN),
            ],
        ),
        class(PACKAGE, "jdk.types.Package", vec![pool("name", SYMBOL)]),
        simple(SYMBOL, "jdk.types.Symbol", vec![own("string", STRING)]),
        class(THREAD_GROUP, "jdk.types.ThreadGroup", vec![pool("parent", THREAD_GROUP), own("name", STRING)]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_an_event_of_its_own() {
        let names: std::collections::BTreeSet<String> =
            SampleKind::ALL.iter().map(|kind| Shape::of(*kind).name).collect();
        assert_eq!(names.len(), SampleKind::ALL.len(), "{names:?}");
        assert!(names.contains("emberscope.PageFaults"), "{names:?}");
    }

    #[test]
    fn types_are_told_apart_and_all_there() {
        let shape = Shape::of(SampleKind::Cpu);
        let labels = [("stage".to_owned(), "Stage".to_owned())];
        let classes = all(SampleKind::Cpu, &shape, &labels);
        let ids: std::collections::BTreeSet<u64> = classes.iter().map(|class| class.id).collect();
        assert_eq!(ids.len(), classes.len());
        for class in &classes {
            let used = class.fields.iter().flat_map(|field| {
                std::iter::once(field.class).chain(field.notes.iter().map(|note| note.class))
            });
            for used in used.chain(class.notes.iter().map(|note| note.class)) {
                assert!(ids.contains(&used), "{} uses {used}", class.name);
            }
        }
    }
}
