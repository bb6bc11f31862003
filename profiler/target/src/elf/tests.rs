//! Real files, lies, and anything at all.

use super::*;
use proptest::prelude::*;
use std::io::Write;

fn own() -> (File, u64) {
    let file = File::open("/proc/self/exe").unwrap();
    let size = file.metadata().unwrap().len();
    (file, size)
}

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

#[test]
fn copies_symbols_and_nothing_else() {
    let (file, size) = own();
    let headers = Headers::read(&file, size).unwrap();
    let image = headers.image(&file, 256 << 20).unwrap();
    assert_eq!(image.file.metadata().unwrap().len(), size);
    assert!(image.bytes > 10_000 && image.bytes < size);
    let mut head = [0u8; 4];
    image.file.read_exact_at(&mut head, 0).unwrap();
    assert_eq!(&head, b"\x7fELF");
    assert!(image.file.set_len(0).is_err(), "sealed");
}

#[test]
fn reads_the_build_id() {
    let path =
        ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6"]
            .into_iter()
            .find(|p| std::path::Path::new(p).exists())
            .unwrap();
    let file = File::open(path).unwrap();
    let headers = Headers::read(&file, file.metadata().unwrap().len()).unwrap();
    assert_eq!(headers.build_id(&file).unwrap().len(), 20);
}

#[test]
fn refuses_lies_and_excess() {
    let (file, size) = own();
    let headers = Headers::read(&file, size).unwrap();
    assert!(matches!(headers.image(&file, 1000), Err(ElfError::TooLarge(_))));
    assert!(matches!(Headers::read(&file_of(b"#!/bin/sh\n"), 10), Err(ElfError::NotElf)));
    let mut head = [0u8; 64];
    file.read_exact_at(&mut head, 0).unwrap();
    let beyond = file_of(&head);
    assert!(matches!(Headers::read(&beyond, 64), Err(ElfError::Malformed)));
}

proptest! {
    #[test]
    fn takes_any_headers(mut bytes in proptest::collection::vec(any::<u8>(), 64..512)) {
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let file = file_of(&bytes);
        if let Ok(headers) = Headers::read(&file, bytes.len() as u64) {
            headers.build_id(&file);
            let _ = headers.segments(&file);
            headers.symbol_tables();
            let _ = headers.image(&file, 1 << 20);
        }
    }
    #[test]
    fn takes_any_notes(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
        build_id_in(&bytes);
    }
}
