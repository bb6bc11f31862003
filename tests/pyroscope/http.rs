//! HTTP as no polite client speaks it.

use super::*;

/// One HTTP/1.1 request as raw bytes: status line and headers, body. `headers` may promise another length.
pub(super) fn raw(port: u16, method: &str, headers: &str, body: &[u8]) -> Result<(String, Vec<u8>)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let length = format!("Content-Length: {}\r\n", body.len());
    let length = if headers.contains("Content-Length") { "" } else { &length };
    write!(stream, "{method} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}{headers}\r\n")?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").context("no header")? + 4;
    Ok((String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase(), answer[end..].to_vec()))
}

#[test]
fn http_beyond_the_polite_client() -> Result<()> {
    let port = serve()?;
    let stacks = "POST /querier.v1.QuerierService/SelectMergeStacktraces";
    let json_type = "Content-Type: application/json; charset=utf-8\r\n";
    let error = |(head, body): (String, Vec<u8>)| -> Result<(String, String)> {
        assert!(head.contains("content-type: application/json"), "{head}");
        let body: Value = serde_json::from_slice(&body)?;
        ensure!(!body["message"].as_str().unwrap_or_default().is_empty(), "no message");
        Ok((
            head.split(' ').nth(1).unwrap_or_default().into(),
            body["code"].as_str().unwrap_or_default().into(),
        ))
    };

    // Names as in the proto file, integers as text, null, and fields that nobody knows.
    let spelling = format!(
        r#"{{"profile_typeID":"{CPU}","label_selector":"{{}}","start":"{START}","end":"{END}","max_nodes":null,"new":{{"a":[1]}}}}"#
    );
    let (head, body) = raw(port, stacks, json_type, spelling.as_bytes())?;
    assert!(head.contains(" 200 ") && head.contains("content-type: application/json\r\n"), "{head}");
    assert_eq!(serde_json::from_slice::<Value>(&body)?["flamegraph"]["total"], "1000000000");
    for line in ["x-emberscope-samples: 100\r\n", "x-emberscope-sampling-error: 0.1000\r\n"] {
        assert!(head.contains(line), "{line}{head}");
    }

    for (name, headers, body, expected) in [
        ("rubbish JSON", json_type, &b"{"[..], ("400", "invalid_argument")),
        ("rubbish protobuf", "Content-Type: application/proto\r\n", &[0xff; 9], ("400", "invalid_argument")),
        (
            "version",
            "Content-Type: application/json\r\nConnect-Protocol-Version: 2\r\n",
            b"{}",
            ("400", "invalid_argument"),
        ),
        (
            "timeout",
            "Content-Type: application/json\r\nConnect-Timeout-Ms: soon\r\n",
            b"{}",
            ("400", "invalid_argument"),
        ),
        (
            "no time left",
            "Content-Type: application/json\r\nConnect-Timeout-Ms: 0\r\n",
            b"{}",
            ("504", "deadline_exceeded"),
        ),
        (
            "brotli",
            "Content-Type: application/json\r\nContent-Encoding: br\r\n",
            b"{}",
            ("501", "unimplemented"),
        ),
        (
            "not gzip",
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
            b"{}",
            ("400", "invalid_argument"),
        ),
    ] {
        let got = error(raw(port, stacks, headers, body)?)?;
        assert_eq!((got.0.as_str(), got.1.as_str()), expected, "{name}");
    }
    // Refused by the promise: not a byte of it is read.
    let promise = format!("{json_type}Content-Length: 2000000\r\n");
    assert_eq!(error(raw(port, stacks, &promise, b"")?)?.1, "resource_exhausted");
    // 4 MB of spaces in 4 KB of gzip.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..4 {
        bomb.write_all(&[b' '; 1 << 20])?;
    }
    let packed = format!("{json_type}Content-Encoding: gzip\r\n");
    assert_eq!(error(raw(port, stacks, &packed, &bomb.finish()?)?)?.1, "resource_exhausted");

    let (head, _) = raw(port, "GET /querier.v1.QuerierService/ProfileTypes", json_type, b"")?;
    assert!(head.contains(" 405 "), "{head}");
    let (head, _) = raw(port, stacks, "Content-Type: application/grpc\r\n", b"")?;
    assert!(
        head.contains(" 415 ") && head.contains("accept-post: application/proto, application/json"),
        "{head}"
    );
    let unknown = raw(port, "POST /querier.v1.QuerierService/Select%3Cb%3E", json_type, b"{}")?;
    assert_eq!(error(unknown)?, ("501".into(), "unimplemented".into()));
    Ok(())
}
