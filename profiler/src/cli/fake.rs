//! A daemon for tests: answers one request with what it was told, and remembers the request.

use super::client::Client;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

/// One request.
#[derive(Debug)]
pub struct Request {
    /// Path and query, as sent.
    pub target: String,
    /// Header lines.
    pub headers: Vec<String>,
}

pub struct Fake {
    url: String,
    thread: JoinHandle<Request>,
}

impl Fake {
    pub fn answering(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        Self::sending(format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}"))
    }

    /// Sends these bytes, whatever they are.
    pub fn sending(bytes: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (url, bytes) = (format!("http://{}", listener.local_addr().unwrap()), bytes.into());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            let first = lines.next().unwrap_or_default();
            let headers = lines.take_while(|line| !line.is_empty()).collect();
            stream.write_all(&bytes).unwrap();
            Request { target: first.split(' ').nth(1).unwrap_or_default().to_owned(), headers }
        });
        Self { url, thread }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn client(&self, token: Option<&str>) -> Client {
        Client::new(&self.url, token.map(str::to_owned)).unwrap()
    }

    pub fn request(self) -> Request {
        self.thread.join().unwrap()
    }
}
