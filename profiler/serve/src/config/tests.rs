//! Defaults, whose token is asked for, and what is never printed.

use super::*;
use std::path::Path;

fn config(listen: &str, own_dir: &Path) -> ServeConfig {
    ServeConfig { listen: listen.parse().unwrap(), own_dir: own_dir.to_owned(), ..ServeConfig::default() }
}

#[test]
fn the_default_is_the_documented_one() {
    assert_eq!(ServeConfig::default().listen.to_string(), "127.0.0.1:4099");
}

#[test]
fn only_loopback_goes_by_a_token_of_our_own() {
    let dir = tempfile::tempdir().unwrap();
    for (listen, here) in [
        ("127.0.0.1:1", true),
        ("127.9.9.9:1", true),
        ("[::1]:1", true),
        ("[::ffff:127.0.0.1]:1", true),
        ("0.0.0.0:1", false),
        ("[::]:1", false),
        ("10.0.0.1:1", false),
    ] {
        let config = config(listen, dir.path());
        match config.access(&[config.listen]) {
            Ok(guarded) => {
                let (_, file) = guarded.unwrap_or_else(|| panic!("{listen}: loopback wants a token"));
                assert!(here && file == dir.path().join("token"), "{listen}");
            }
            Err(_) if here => panic!("{listen} is refused"),
            Err(error) => assert!(error.to_string().contains("--token-file"), "{error}"),
        }
        let open = ServeConfig { open_loopback: true, ..config };
        match open.access(&[open.listen]) {
            Ok(guarded) => assert!(here && guarded.is_none(), "{listen}"),
            Err(error) => assert!(!here && error.to_string().contains("--open-loopback"), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let taken = config("127.0.0.1:0", dir.path()).open().await.unwrap();
    let second = config(&taken.address.to_string(), dir.path());
    assert!(matches!(second.open().await, Err(ServeError::InUse { .. })));
}

#[test]
fn a_token_is_not_printed() {
    assert_eq!(format!("{:?}", Access::token("s3cret").unwrap()), "Guarded(..)");
}
