//! Against a small server in this process.

mod otlp;

use super::wire::PushRequest;
use super::*;
use emberscope_export::pprof::Profile;
use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSetBuilder, LostCounts, Row, SampleKind, Stack, StackEnd, WallTime,
};
use flate2::read::GzDecoder;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// Answers requests with these statuses in turn (200 after them) and hands the bodies of all over.
fn server(statuses: &'static [u16]) -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut statuses = statuses.iter();
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut head, mut line) = (String::new(), String::new());
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                head.push_str(&line.to_lowercase());
                line.clear();
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let status = statuses.next().unwrap_or(&200);
            let answer = r#"{"code":"invalid_argument","message":"no"}"#;
            let head_back = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            );
            reader.get_mut().write_all(head_back.as_bytes()).unwrap();
            if sender.send((head, body)).is_err() {
                return;
            }
        }
    });
    (url, receiver)
}

/// A window that has just closed: two tasks of a stage, one of another, and a shell.
fn window(ago: Duration) -> Window {
    let until = WallTime::now().minus(ago);
    let range = TimeRange { from: until.minus(Duration::from_secs(10)), until };
    let row = |stage: &str, task: &str, leaf: &str, count: u64| {
        let frames = ["main", leaf].map(|name| Arc::new(Frame::new(FrameKind::JavaCompiled, name, "")));
        let labels = [
            (LabelKey::ServiceName, "etl"),
            (LabelKey::App, "app-1"),
            (LabelKey::Executor, "1"),
            (LabelKey::Stage, stage),
            (LabelKey::Task, task),
            (LabelKey::Pid, "77"),
        ];
        let labels = labels.iter().fold(LabelSetBuilder::new(), |set, (key, value)| set.set(*key, *value));
        Row {
            labels: Arc::new(labels.build()),
            stack: Arc::new(Stack { frames: frames.into(), end: StackEnd::Root }),
            kind: SampleKind::Cpu,
            count,
            weight: count * 10_000_000,
        }
    };
    let mut shell = row("", "", "sh", 1);
    shell.labels = Arc::new(LabelSetBuilder::new().set(LabelKey::Process, "bash").build());
    let rows = vec![row("3", "7", "sort", 4), row("3", "8", "sort", 2), row("4", "9", "hash", 5), shell];
    Window {
        range,
        rows,
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    }
}

fn pusher(url: &str) -> Pusher {
    pusher_with(url, None)
}

fn pusher_with(url: &str, keep: Option<Keep>) -> Pusher {
    let protocol = Protocol::Pyroscope;
    let config = PushConfig { protocol, url: url.to_owned(), tenant: Some("team".to_owned()) };
    Pusher::with_pauses(config, keep, (Duration::from_millis(10), Duration::from_millis(40))).unwrap()
}

fn wait(pusher: &Pusher, what: impl Fn(&PushState) -> bool) -> PushState {
    let begun = Instant::now();
    loop {
        let state = pusher.state();
        if what(&state) {
            return state;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{state:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_series_for_each_stage_with_both_values() {
    let (url, requests) = server(&[]);
    let pusher = pusher(&url);
    pusher.offer(&window(Duration::ZERO));
    let (head, body) = requests.recv().unwrap();
    assert!(head.starts_with("post /push.v1.pusherservice/push "), "{head}");
    assert!(
        head.contains("content-type: application/proto") && head.contains("x-scope-orgid: team"),
        "{head}"
    );
    let request = PushRequest::decode(&*body).unwrap();
    let label = |series: &super::wire::RawProfileSeries, name: &str| {
        series.labels.iter().find(|pair| pair.name == name).map(|pair| pair.value.clone())
    };
    let told: Vec<_> = (request.series.iter())
        .map(|series| {
            let mut bytes = Vec::new();
            let sample = &series.samples[0];
            GzDecoder::new(&*sample.raw_profile).read_to_end(&mut bytes).unwrap();
            let profile = Profile::decode(&*bytes).unwrap();
            let sum = |place: usize| profile.sample.iter().map(|sample| sample.value[place]).sum::<i64>();
            assert!(series.labels.is_sorted_by_key(|pair| pair.name.clone()));
            assert_eq!(label(series, "__name__").as_deref(), Some("process_cpu"));
            assert_eq!(
                (label(series, "task"), label(series, "pid")),
                (None, None),
                "one series for all tasks"
            );
            assert_eq!((sample.id.len(), &sample.id[14..15]), (36, "4"));
            assert_eq!(profile.duration_nanos, 10_000_000_000);
            (label(series, "service_name").unwrap(), label(series, "stage"), sum(0), sum(1))
        })
        .collect();
    let series = |name: &str, stage: Option<&str>, count| {
        (name.to_owned(), stage.map(str::to_owned), count, count * 10_000_000)
    };
    for one in [series("etl", Some("3"), 6), series("etl", Some("4"), 5), series("bash", None, 1)] {
        assert!(told.contains(&one), "{one:?} is not in {told:?}");
    }
    let state = wait(&pusher, |state| state.sent_profiles == 3);
    assert_eq!((state.queued_bytes, state.dropped, state.failing), (0, [0; 7], None));
}

#[test]
fn what_fails_is_tried_again_and_what_is_refused_is_not() {
    let (url, requests) = server(&[503, 429, 200, 400]);
    let pusher = pusher(&url);
    pusher.offer(&window(Duration::ZERO));
    let same: Vec<Vec<u8>> = (0..3).map(|_| requests.recv().unwrap().1).collect();
    assert!(same.iter().all(|body| *body == same[0]));
    let state = wait(&pusher, |state| state.sent_profiles == 3);
    assert_eq!((state.retries, state.failing), (2, None));
    pusher.offer(&window(Duration::ZERO));
    let state = wait(&pusher, |state| state.dropped[PushDrop::Refused as usize] == 3);
    assert!(state.refused.unwrap().starts_with("HTTP 400: {\"code\""));
    pusher.offer(&window(Duration::ZERO));
    wait(&pusher, |state| state.sent_profiles == 6);
}

#[test]
fn nobody_there_costs_nothing_but_the_profiles() {
    let pusher = pusher("http://127.0.0.1:9");
    pusher.offer(&window(Duration::ZERO));
    let state = wait(&pusher, |state| state.retries > 2);
    assert!(state.failing.is_some() && state.queued_profiles == 3 && state.queued_bytes > 0, "{state:?}");
    pusher.offer(&window(Duration::from_secs(7200)));
    wait(&pusher, |state| state.queued_profiles == 6);
    let shared = Arc::clone(&pusher.shared);
    drop(pusher);
    let state = &shared.lock().state;
    assert_eq!((state.queued_profiles, state.dropped[PushDrop::Stopped as usize]), (0, 6));
}

/// The server is away while one daemon ends and the next begins.
#[test]
fn what_waits_is_sent_by_the_next_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let keep = || Keep { dir: dir.path().join("push"), has_room: Arc::new(|_| Ok(())) };
    let files = || std::fs::read_dir(dir.path().join("push")).map_or(0, |entries| entries.count());
    let before = pusher_with("http://127.0.0.1:9", Some(keep()));
    before.offer(&window(Duration::ZERO));
    wait(&before, |state| state.retries > 1);
    assert_eq!(files(), 0, "a window is no reason for a file");
    // Nobody has packed the second when the first daemon ends.
    before.offer(&window(Duration::ZERO));
    let shared = Arc::clone(&before.shared);
    drop(before);
    let state = shared.lock().state.clone();
    assert_eq!((state.queued_profiles, state.dropped, files()), (6, [0; 7], 2));
    let (url, requests) = server(&[]);
    let after = pusher_with(&url, Some(keep()));
    for _ in 0..2 {
        let body = requests.recv().unwrap().1;
        assert_eq!(PushRequest::decode(&*body).unwrap().series.len(), 3);
    }
    let state = wait(&after, |state| state.sent_profiles == 6);
    assert_eq!((state.queued_profiles, state.queued_bytes, state.dropped, files()), (0, 0, [0; 7], 0));
}

#[test]
fn little_of_what_waits_is_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let full = Arc::new(AtomicBool::new(false));
    let says = Arc::clone(&full);
    let has_room = Arc::new(move |_: &std::path::Path| match says.load(Ordering::Relaxed) {
        true => Err(io::Error::other("the disk is full")),
        false => Ok(()),
    });
    let mut queue = Queue::new("", MAX_QUEUED, Some(Keep { dir: dir.path().to_owned(), has_room }));
    let add = |queue: &mut Queue, byte: u8| {
        let request = vec![byte; 400 << 10].into();
        let batch = profiles::Batch { request, profiles: 1, until: WallTime::now() };
        queue.add(Packed { batches: vec![batch], too_large: 0 });
    };
    let files = || std::fs::read_dir(dir.path()).unwrap().count();
    (0..5).for_each(|byte| add(&mut queue, byte));
    assert_eq!((queue.state().queued_profiles, files()), (5, 3), "two are in memory");
    // The disk is full: the oldest of those in memory go, for the newest.
    full.store(true, Ordering::Relaxed);
    (5..7).for_each(|byte| add(&mut queue, byte));
    let state = queue.state();
    assert_eq!((state.queued_profiles, state.dropped[PushDrop::Disk as usize], files()), (5, 2, 3));
    // A file is gone, whoever took it.
    let second = std::fs::read_dir(dir.path()).unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    std::fs::remove_file(
        second.min_by_key(|path| !path.to_string_lossy().contains("/0000000000000001-")).unwrap(),
    )
    .unwrap();
    let mut order = Vec::new();
    while let Some(request) = queue.first() {
        order.push(request[0]);
        queue.taken();
    }
    let state = queue.state();
    assert_eq!((order, state.dropped[PushDrop::Disk as usize], files()), (vec![0, 2, 5, 6], 3, 0));
    assert_eq!((state.queued_profiles, state.queued_bytes, state.sent_profiles), (0, 0, 4));
}

#[test]
fn the_oldest_go_when_too_much_waits() {
    let packed = |ago| profiles::pack(window(ago).range, &window(Duration::ZERO).rows);
    let size = packed(Duration::ZERO).batches[0].request.len() as u64;
    let mut queue = Queue::new("", size * 5 / 2, None);
    for _ in 0..4 {
        queue.add(packed(Duration::ZERO));
    }
    let state = queue.state();
    assert_eq!((state.queued_profiles, state.dropped[PushDrop::QueueFull as usize]), (6, 6));
    queue.end();
    let state = queue.state();
    assert_eq!((state.queued_bytes, state.dropped[PushDrop::Stopped as usize]), (0, 6));
    queue.add(packed(Duration::from_secs(7200)));
    queue.drop_older(MAX_AGE);
    assert_eq!((queue.state().dropped[PushDrop::TooOld as usize], queue.is_empty()), (3, true));
}

/// A server adds up series of one name: samples of bytes and of objects are the same ones.
#[test]
fn samples_that_are_made_of_others_are_not_counted_twice() {
    let Window { range, rows, .. } = window(Duration::ZERO);
    let of = |kind| Row { kind, ..rows[0].clone() };
    let packed = profiles::pack(range, &[of(SampleKind::Alloc), of(SampleKind::AllocObjects)]);
    let request = PushRequest::decode(&*packed.batches[0].request).unwrap();
    let types = |series: &super::wire::RawProfileSeries| {
        let mut bytes = Vec::new();
        GzDecoder::new(&*series.samples[0].raw_profile).read_to_end(&mut bytes).unwrap();
        let profile = Profile::decode(&*bytes).unwrap();
        let texts = profile.sample_type.iter().map(|of| profile.string_table[of.r#type as usize].clone());
        (texts.collect::<Vec<_>>(), profile.sample[0].value.clone())
    };
    let told: Vec<_> = request.series.iter().map(types).collect();
    let all = |names: &[&str], values: &[i64]| {
        (names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), values.to_vec())
    };
    assert_eq!(
        told,
        [all(&["samples", "alloc_space"], &[4, 40_000_000]), all(&["alloc_objects"], &[40_000_000])]
    );
}
