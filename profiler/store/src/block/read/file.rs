//! A file that Parquet's reader reads at offsets, without a position of its own.
//!
//! In: a file and its length. Out: bytes; several may read at once.

use super::io;
use crate::read::was_read;
use bytes::Bytes;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A file that is read at offsets, by several at once.
#[derive(Clone, Debug)]
pub(in super::super) struct Positioned {
    pub file: Arc<File>,
    pub length: u64,
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.length
    }
}

/// Reads a file on from an offset.
pub(in super::super) struct From {
    of: Positioned,
    at: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.of.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        was_read(read);
        Ok(read)
    }
}

impl ChunkReader for Positioned {
    // A page's header has some 30 bytes.
    type T = io::BufReader<From>;
    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(io::BufReader::with_capacity(256, From { of: self.clone(), at: start }))
    }
    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        was_read(length);
        Ok(bytes.into())
    }
}
