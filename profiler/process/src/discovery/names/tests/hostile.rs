//! Servers that mean no good.

use super::*;

/// What a question about stages comes to when the stages are `answer`ed.
fn error_of(answer: impl Fn(&mut TcpStream) + Send + 'static) -> AskError {
    let hostile = server(move |path, stream| match path.ends_with(APP) {
        true => reply(stream, 200, &app(APP, false)),
        false => answer(stream),
    });
    let client = Client::new(Duration::from_millis(700), Duration::from_secs(3));
    fetch::stages(&client, &hostile.url, APP, None).unwrap_err()
}

#[test]
fn bodies_that_are_not_spark_s_are_refused() {
    let deep = "[".repeat(1 << 20);
    let wrong = r#"[{"stageId": "<script>", "attemptId": 0, "status": "x"}]"#;
    for body in ["", "<html>", "{}", "[{}]", "[[", "null", "[1", wrong, &deep, "[] []"] {
        let owned = body.to_owned();
        let error = error_of(move |stream| reply(stream, 200, &owned));
        let shown = error.to_string();
        assert!(matches!(error, AskError::NotSpark(_)) && shown.len() < 250, "{shown}");
        assert!(!shown.contains('\n'), "{shown}");
    }
    assert_eq!(error_of(|s| reply(s, 401, "")), AskError::Login(401));
    assert_eq!(error_of(|s| reply(s, 503, "")), AskError::Status(503));
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = server(|_, stream| reply(stream, 200, "[]"));
    let location = elsewhere.url.clone();
    let error = error_of(move |stream| {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}/x\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
    });
    assert_eq!(error, AskError::Redirect(302));
    assert_eq!(elsewhere.requests.load(Ordering::SeqCst), 0);
}

#[test]
fn endless_slow_and_broken_answers_end() {
    let endless = error_of(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n[");
        while stream.write_all(&[b' '; 65536]).is_ok() {}
    });
    assert!(matches!(endless, AskError::TooLarge | AskError::TimedOut(_)), "{endless}");
    let text = error_of(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n[{\"name\": \"");
        while stream.write_all(&[b'x'; 65536]).is_ok() {}
    });
    assert_eq!(text, AskError::LongText);
    let start = Instant::now();
    let drip = error_of(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n[");
        while stream.write_all(b" ").is_ok() && stream.flush().is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    assert!(matches!(drip, AskError::TimedOut(_)), "{drip}");
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    let early = error_of(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[{\"stageId\": 1");
    });
    assert!(matches!(early, AskError::Connection(_) | AskError::NotSpark(_)), "{early}");
    let silent = error_of(|_| thread::sleep(Duration::from_secs(2)));
    assert!(matches!(silent, AskError::TimedOut(_)), "{silent}");
}

#[test]
fn a_conversation_has_an_end_too() {
    let slow = server(|path, stream| match path {
        path if path.ends_with(APP) => reply(stream, 200, &app(APP, false)),
        // Full pages without end, each in time.
        _ => {
            thread::sleep(Duration::from_millis(300));
            let page: Vec<Json> = (0..1000).map(|i| json!({"taskId": i, "index": 0})).collect();
            reply(stream, 200, &json!(page).to_string());
        }
    });
    let client = Client::new(Duration::from_secs(1), Duration::from_secs(1));
    let start = Instant::now();
    let error = fetch::tasks(&client, &slow.url, APP, 0, 0).unwrap_err();
    assert!(matches!(error, AskError::TimedOut(_)), "{error}");
    assert!(start.elapsed() < Duration::from_secs(3));
}
