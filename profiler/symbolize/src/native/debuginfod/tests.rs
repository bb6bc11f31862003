//! A fetcher before small servers: what is kept, refused, and goes for room.

use super::*;
use std::io::Write;
use std::net::TcpListener;

/// A server that answers every request for a file so.
fn server(answers: &'static [(&'static str, &'static [u8])]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut answers = answers.iter().cycle();
        for stream in listener.incoming() {
            let (mut stream, mut request) = (stream.unwrap(), [0; 4096]);
            let len = stream.read(&mut request).unwrap();
            if request[0] == 0x16 {
                // The beginning of TLS.
                let _ = stream.write_all(b"HTTP/1.1 400 X\r\n\r\n");
                continue;
            }
            assert!(request[..len].starts_with(b"GET /buildid/0102030405060708/debuginfo "));
            let (status, body) = answers.next().unwrap();
            let head =
                format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    url
}

fn fetcher(servers: Vec<String>, dir: &Path) -> Fetcher {
    let (done, _) = channel();
    let again = VecDeque::new();
    Fetcher { agent: agent(), servers, dir: dir.to_owned(), done, counts: Arc::default(), again }
}

#[test]
fn what_is_no_such_file_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let id = [1, 2, 3, 4, 5, 6, 7, 8];
    let fetch = |servers: &[&str]| {
        fetcher(servers.iter().map(|url| (*url).to_owned()).collect(), dir.path()).fetch(&id)
    };
    let (absent, broken) =
        (server(&[("404", b"")]), server(&[("503", b"busy"), ("200", b"\x7fELF and not more")]));
    let closed = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    assert_eq!(fetch(&[&absent]), Outcome::Absent);
    assert_eq!(fetch(&[&broken]), Outcome::Failed, "a status");
    assert_eq!(fetch(&[&broken]), Outcome::Failed, "a file that is none");
    assert_eq!(fetch(&[&closed, &absent]), Outcome::Failed, "one that is not there may have it");
    let odd = server(&[("404", b"")]).replace("http://", "https://");
    assert_eq!(fetch(&[&odd]), Outcome::Failed, "a server that speaks no TLS");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn who_asks_does_not_wait_and_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut asks = Debuginfod::start(vec![server(&[("404", b"")])], dir.path()).unwrap();
    let id = [1, 2, 3, 4, 5, 6, 7, 8];
    asks.ask(&id);
    asks.ask(&id);
    asks.ask(&[1; 7]);
    asks.ask(&[1; 65]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while asks.counters().absent == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(asks.counters(), DebuginfodCounters { absent: 1, ..Default::default() });
    assert_eq!(asks.came().count(), 0);
}

#[test]
fn the_oldest_files_go_when_there_is_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let fetcher = fetcher(Vec::new(), dir.path());
    for (name, age) in [("new.debug", 1), ("old.debug", 1000), ("other", 2000)] {
        let file = File::create(dir.path().join(name)).unwrap();
        // A hole: no bytes on the disk.
        file.set_len(MAX_BYTES / 2).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    fetcher.make_room(1);
    let mut left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["new.debug", "other"]);
}
