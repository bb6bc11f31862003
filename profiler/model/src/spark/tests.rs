//! Addresses of Spark, and its rows by number.

use super::*;

#[test]
fn urls_are_plain() {
    for (text, want) in [
        ("http://history:18080", "http://history:18080"),
        (" http://history:18080/ ", "http://history:18080"),
        ("http://10.0.0.1", "http://10.0.0.1"),
        ("http://[::1]:18080/spark", "http://[::1]:18080/spark"),
        ("http://gate/spark/history/", "http://gate/spark/history"),
    ] {
        assert_eq!(text.parse::<SparkUrl>().unwrap().as_str(), want);
    }
    for (text, port) in [("http://h:4040/x", 4040), ("http://[::1]:18080", 18080), ("http://[::1]", 80)] {
        assert_eq!(text.parse::<SparkUrl>().unwrap().port(), port);
    }
    let long = format!("http://{}", "h".repeat(MAX_URL));
    for text in [
        "",
        "history:18080",
        "https://history:18080",
        "file:///etc/passwd",
        "http://",
        "http://:80",
        "http://h:0",
        "http://h:99999",
        "http://h:x",
        "http://u:p@h:80",
        "http://u@h",
        "http://h/?a=b",
        "http://h/#a",
        "http://h/../x",
        "http://h/a b",
        "http://h\r\nX: y",
        "http://[::1",
        "http://[x]:80",
        "http://[::1]80",
        "http://h:80:80",
        &long,
    ] {
        assert!(text.parse::<SparkUrl>().is_err(), "{text:?} was taken");
    }
}

#[test]
fn rows_are_found_by_number() {
    let text: Arc<str> = "x".into();
    let stage = |id, attempt| SparkStage {
        id,
        attempt,
        name: text.clone(),
        description: None,
        job_ids: [].into(),
        sql: None,
        status: text.clone(),
        tasks: 1,
        executor_cpu_ns: 0,
        deserialize_cpu_ns: 0,
        run_time_ms: 0,
        submitted: None,
        completed: None,
    };
    let stages = SparkStages {
        app: "a".into(),
        source: "s".into(),
        pages: "s".into(),
        fetched: WallTime(0),
        completed: false,
        stages: vec![stage(1, 0), stage(2, 0), stage(2, 1)],
        beside: vec![],
        notes: vec![],
    };
    assert_eq!(stages.get(2, 1), Some(&stage(2, 1)));
    assert_eq!(stages.get(2, 2), None);
}

#[test]
fn every_case_says_its_state() {
    let value = Arc::new(1);
    let all = [
        (Joined::Ready(value.clone()), "ready", ""),
        (Joined::Stale(value.clone(), "old".into()), "stale", "old"),
        (Joined::Kept(value, "gone".into()), "kept", "gone"),
        (Joined::Unreachable("why".into()), "unreachable", "why"),
        (Joined::NotAsked("so".into()), "not-asked", "so"),
    ];
    for (joined, state, says) in all {
        assert_eq!((joined.state(), joined.says()), (state, says));
        assert_eq!(joined.value().is_some(), ["ready", "stale", "kept"].contains(&state));
    }
    assert!(Joined::<u8>::Asking.says().contains("ask again"));
}
