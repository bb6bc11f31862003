//! What an OTLP receiver reads, decoded with the protos' own types.

use super::*;
use crate::send::{Sent, otlp_answer};
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesPartialSuccess, ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value};
use opentelemetry_proto::tonic::profiles::v1development::ProfilesDictionary;
use std::collections::{BTreeMap, BTreeSet};

fn otlp(url: &str) -> Pusher {
    let config = PushConfig { protocol: Protocol::Otlp, url: url.to_owned(), tenant: None };
    Pusher::with_pauses(config, None, (Duration::from_millis(10), Duration::from_millis(40))).unwrap()
}

fn unpacked(body: &[u8]) -> ExportProfilesServiceRequest {
    let mut bytes = Vec::new();
    GzDecoder::new(body).read_to_end(&mut bytes).unwrap();
    ExportProfilesServiceRequest::decode(&*bytes).unwrap()
}

fn said(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => format!("#{number}"),
        other => panic!("{other:?}"),
    }
}

/// Service, attributes, stack from the leaf on, and weight, of every sample.
fn samples(request: &ExportProfilesServiceRequest) -> Vec<(String, BTreeMap<String, String>, String, i64)> {
    let tables: &ProfilesDictionary = request.dictionary.as_ref().unwrap();
    let text = |place: i32| tables.string_table[place as usize].clone();
    let mut out = Vec::new();
    for resource in &request.resource_profiles {
        let of_resource = &resource.resource.as_ref().unwrap().attributes;
        let service = of_resource.iter().find(|pair| pair.key == "service.name").unwrap();
        for profile in resource.scope_profiles.iter().flat_map(|scope| &scope.profiles) {
            let value = profile.sample_type.unwrap();
            assert_eq!(
                (text(value.type_strindex), text(value.unit_strindex)),
                ("cpu".into(), "nanoseconds".into())
            );
            assert_eq!((profile.duration_nano, profile.profile_id.len()), (10_000_000_000, 16));
            for sample in &profile.samples {
                let attribute = |place: &i32| {
                    let entry = &tables.attribute_table[*place as usize];
                    (text(entry.key_strindex), said(entry.value.as_ref()))
                };
                let frame = |place: &i32| {
                    let location = &tables.location_table[*place as usize];
                    assert_eq!(attribute(&location.attribute_indices[0]).1, "jvm");
                    text(tables.function_table[location.lines[0].function_index as usize].name_strindex)
                };
                let stack = &tables.stack_table[sample.stack_index as usize].location_indices;
                out.push((
                    said(service.value.as_ref()),
                    sample.attribute_indices.iter().map(attribute).collect(),
                    stack.iter().map(frame).collect::<Vec<_>>().join(";"),
                    sample.values[0],
                ));
            }
        }
    }
    out
}

#[test]
fn a_resource_for_each_process_with_its_tasks() {
    let (url, requests) = server(&[]);
    let pusher = otlp(&url);
    pusher.offer(&window(Duration::ZERO));
    let (head, body) = requests.recv().unwrap();
    assert!(head.starts_with("post /v1development/profiles "), "{head}");
    assert!(head.contains("content-type: application/x-protobuf") && head.contains("gzip"), "{head}");
    let request = unpacked(&body);
    let pid = |pair: &&opentelemetry_proto::tonic::common::v1::KeyValue| pair.key == "process.pid";
    let attributes =
        request.resource_profiles.iter().flat_map(|one| &one.resource.as_ref().unwrap().attributes);
    assert_eq!(attributes.filter(pid).map(|pair| said(pair.value.as_ref())).collect::<Vec<_>>(), ["#77"]);
    let mut all = samples(&request);
    all.sort();
    let task = |stage: &str, task: &str, leaf: &str, count: i64| {
        let labels = [("executor", "1"), ("stage", stage), ("task", task)];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        ("etl".to_owned(), labels, format!("{leaf};main"), count * 10_000_000)
    };
    let shell = ("bash".to_owned(), BTreeMap::new(), "sh;main".to_owned(), 10_000_000);
    assert_eq!(all, [shell, task("3", "7", "sort", 4), task("3", "8", "sort", 2), task("4", "9", "hash", 5)]);
    let state = wait(&pusher, |state| state.sent_profiles == 2);
    assert_eq!((state.queued_bytes, state.dropped, state.failing), (0, [0; 7], None));
}

#[test]
fn what_otlp_lets_be_repeated_is_and_nothing_else() {
    let (url, requests) = server(&[503, 429, 502, 200, 500]);
    let pusher = otlp(&url);
    pusher.offer(&window(Duration::ZERO));
    let same: BTreeSet<Vec<u8>> = (0..4).map(|_| requests.recv().unwrap().1).collect();
    assert_eq!(same.len(), 1, "the same request, by the same profile ids");
    let state = wait(&pusher, |state| state.sent_profiles == 2);
    assert_eq!((state.retries, state.failing), (3, None));
    pusher.offer(&window(Duration::ZERO));
    let state = wait(&pusher, |state| state.dropped[PushDrop::Refused as usize] == 2);
    assert!(state.refused.unwrap().starts_with("HTTP 500"));
}

#[test]
fn a_part_that_is_refused_is_counted() {
    let answer = |refused, says: &str| {
        let partly =
            ExportProfilesPartialSuccess { rejected_profiles: refused, error_message: says.to_owned() };
        ExportProfilesServiceResponse { partial_success: Some(partly) }.encode_to_vec()
    };
    let Sent::Partly { refused, says } = otlp_answer(&answer(2, "too old\n")) else { panic!("all of it") };
    assert_eq!((refused, says.as_str()), (2, "too old"));
    for whole in [answer(0, "a warning"), answer(-1, ""), Vec::new(), b"{}".to_vec()] {
        assert!(matches!(otlp_answer(&whole), Sent::Taken), "{whole:?}");
    }
    let mut queue = Queue::new("", 1 << 20, None);
    queue.add(crate::otlp::pack(window(Duration::ZERO).range, &window(Duration::ZERO).rows));
    assert!(queue.first().is_some());
    queue.partly(1, "no".to_owned());
    let state = queue.state();
    assert_eq!(
        (state.sent_profiles, state.dropped[PushDrop::Refused as usize], state.queued_bytes),
        (1, 1, 0)
    );
}

#[test]
fn a_large_window_is_several_requests_of_the_same_sum() {
    let mut large = window(Duration::ZERO);
    let (labels, end) = (Arc::clone(&large.rows[0].labels), StackEnd::Root);
    large.rows.clear();
    for number in 0..3_000 {
        let frame =
            |depth| Frame::new(FrameKind::JavaCompiled, format!("{}.{depth}.{number}", "x".repeat(900)), "");
        let stack = Arc::new(Stack { frames: [0, 1].map(|depth| Arc::new(frame(depth))).into(), end });
        large.rows.push(Row {
            labels: Arc::clone(&labels),
            stack,
            kind: SampleKind::Cpu,
            count: 1,
            weight: number,
        });
    }
    let packed = crate::otlp::pack(large.range, &large.rows);
    assert!((3..=4).contains(&packed.batches.len()), "{}", packed.batches.len());
    let all: Vec<i64> =
        packed.batches.iter().flat_map(|batch| samples(&unpacked(&batch.request))).map(|one| one.3).collect();
    assert_eq!((all.len(), all.iter().sum::<i64>()), (3_000, (0..3_000).sum()));
}
