//! Servers that are none, refuse, redirect or do not know a route; tokens of files.

use super::super::fake::Fake;
use super::super::selection::Params;
use super::*;

fn error(url: &str) -> CliError {
    Client::new(url, None).and_then(|client| client.get("/", &Params::new())).unwrap_err()
}

#[test]
fn a_daemon_that_is_not_there_is_told_with_the_mend() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [format!("http://{port}"), format!("http://{port}/"), port.to_string()] {
        let error = error(&url);
        let text = error.to_string();
        assert_eq!(error.code(), super::super::code::UNREACHABLE, "{text}");
        assert!(text.starts_with(&format!("no daemon answers at http://{port} (")), "{text}");
        assert!(text.contains("emberscope daemon"), "{text}");
    }
    assert_eq!(error("http://nosuchhost.invalid:4099").code(), super::super::code::UNREACHABLE);
}

#[test]
fn an_address_that_is_none_is_a_mistake_of_the_caller() {
    for url in ["ftp://127.0.0.1:1", "unix:run/x", "unix:", "http://a b"] {
        let error = error(url);
        assert_eq!(error.code(), super::super::code::USAGE, "{url}: {error}");
    }
}

#[test]
fn a_flag_goes_before_the_environment() {
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(address(text("http://a:1"), text("http://b:1")), "http://a:1");
    assert_eq!(address(None, text("http://b:1")), "http://b:1");
    for none in [None, text("")] {
        assert_eq!(address(None, none), "unix:/run/emberscope/emberscope.sock");
    }
}

#[test]
fn parameters_are_escaped() {
    assert_eq!(query(&[]), "");
    let params = [("query", "{a=~\"x|y&z\"}"), ("from", "-5m"), ("n", "ä +")];
    assert_eq!(query(&params), "?query=%7Ba%3D~%22x%7Cy%26z%22%7D&from=-5m&n=%C3%A4%20%2B");
}

#[test]
fn who_is_no_daemon_is_told() {
    for bytes in ["220 mail.example ESMTP\r\n\r\n", "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno"] {
        let fake = Fake::sending(bytes);
        let error = error(fake.url());
        assert_eq!(error.code(), super::super::code::FAILURE);
        assert!(error.to_string().contains("does not answer like an emberscope daemon"), "{error}");
    }
}

#[test]
fn a_route_that_the_daemon_does_not_know_is_not_nothing_found() {
    let body = r#"{"error":{"code":"unknown_route","message":"There is no route /x.","parameter":null}}"#;
    let fake = Fake::answering(404, &[], body);
    let error = fake.client(None).get("/x", &Params::new()).unwrap_err();
    assert_eq!(error.code(), super::super::code::FAILURE);
    assert!(error.to_string().ends_with("There is no route /x (is it of another version?)"), "{error}");
}

#[test]
fn a_redirect_is_not_followed() {
    let fake = Fake::answering(302, &[("location", "http://127.0.0.1:9/")], "");
    let error = fake.client(Some("secret")).get("/", &Params::new()).unwrap_err();
    assert!(error.to_string().contains("302"), "{error}");
}

#[test]
fn a_token_comes_from_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), " t0ken\n").unwrap();
    assert_eq!(read_token(file.path()).unwrap(), "t0ken");
    for bad in ["", "\n", "two words", "a\r\nx: y"] {
        std::fs::write(file.path(), bad).unwrap();
        assert_eq!(read_token(file.path()).unwrap_err().code(), super::super::code::USAGE, "{bad:?}");
    }
    assert!(read_token(Path::new("/nonexistent")).is_err());
}
