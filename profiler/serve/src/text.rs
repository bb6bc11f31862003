//! The text of an answer while it waits for its reader: in pieces, those of a large one compressed.
//!
//! In: bytes, as they are written. Out: the same bytes, piece by piece. A call tree of a hundred thousand nodes is 20 MB as JSON
//! and a tenth of that compressed (zstd, its fastest level: a quarter of a gigabyte a second), so that the daemon holds
//! little for those who do not read. A piece that was taken is freed. A text of one piece is kept as it is.

use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, Write};
use zstd::bulk::Compressor;

/// Bytes of a piece: what is handed to a connection at a time.
pub const PIECE: usize = 64 * 1024;
/// zstd's fastest level but the negative ones.
const LEVEL: i32 = 1;

/// A text in pieces.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pieces: VecDeque<Piece>,
    /// Bytes of what is left, as its reader gets it.
    length: u64,
}

#[derive(Clone, Debug)]
enum Piece {
    Plain(Bytes),
    /// Compressed, of so many bytes.
    Packed(Bytes, usize),
}

impl Text {
    /// Bytes that its reader still gets.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Bytes that it takes in memory.
    pub fn held(&self) -> usize {
        let held = |piece: &Piece| match piece {
            Piece::Plain(bytes) | Piece::Packed(bytes, _) => bytes.len(),
        };
        self.pieces.iter().map(held).sum()
    }

    /// The next [`PIECE`] bytes or fewer; None: there are no more.
    ///
    /// # Errors
    /// What zstd says of a piece that it made.
    pub fn take(&mut self) -> Option<io::Result<Bytes>> {
        let piece = match self.pieces.pop_front()? {
            Piece::Plain(bytes) => Ok(bytes),
            Piece::Packed(bytes, length) => zstd::bulk::decompress(&bytes, length).map(Bytes::from),
        };
        if let Ok(piece) = &piece {
            self.length = self.length.saturating_sub(piece.len() as u64);
        }
        Some(piece)
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= PIECE {
            return Self { length: bytes.len() as u64, pieces: VecDeque::from([Piece::Plain(bytes.into())]) };
        }
        let mut writer = Writer::default();
        // A piece that zstd refuses is kept as it is: nothing can fail.
        bytes.chunks(PIECE).for_each(|piece| writer.add(piece));
        writer.text
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

/// Makes a [`Text`] of what is written.
#[derive(Default)]
pub struct Writer {
    /// What was written since the last piece.
    open: Vec<u8>,
    text: Text,
    compressor: Option<Compressor<'static>>,
    /// Whether the next byte stays out.
    skip: bool,
}

impl Writer {
    /// After a head (less than a piece), which stands in place of the brace of the JSON object that is written.
    pub fn after(head: &str) -> Self {
        Self { open: head.into(), skip: true, ..Self::default() }
    }

    /// What was written.
    pub fn finish(mut self) -> Text {
        if self.text.pieces.is_empty() {
            return self.open.into();
        }
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() {
            self.add(&open);
        }
        self.text
    }

    fn add(&mut self, piece: &[u8]) {
        if self.compressor.is_none() {
            self.compressor = Compressor::new(LEVEL).ok();
        }
        let packed = self.compressor.as_mut().and_then(|compressor| compressor.compress(piece).ok());
        self.text.length += piece.len() as u64;
        self.text.pieces.push_back(match packed {
            Some(packed) if packed.len() < piece.len() => {
                Piece::Packed(Bytes::copy_from_slice(&packed), piece.len())
            }
            _ => Piece::Plain(Bytes::copy_from_slice(piece)),
        });
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.skip && !bytes.is_empty() {
            self.skip = false;
            return Ok(1);
        }
        if self.open.len() >= PIECE {
            let open = std::mem::take(&mut self.open);
            self.add(&open);
            self.open = open;
            self.open.clear();
        }
        let taken = bytes.len().min(PIECE.saturating_sub(self.open.len()));
        self.open.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(mut text: Text) -> Vec<u8> {
        let mut whole = Vec::new();
        while let Some(piece) = text.take() {
            let piece = piece.unwrap();
            assert!(piece.len() <= PIECE);
            whole.extend_from_slice(&piece);
        }
        assert_eq!((text.len(), text.held()), (0, 0));
        whole
    }

    #[test]
    fn what_was_written_comes_out_whatever_its_length() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE, 5 * PIECE + 77] {
            let bytes: Vec<u8> = (0..length).map(|at| (at / 1000) as u8).collect();
            let mut writer = Writer::default();
            // As serializers write: in small parts.
            bytes.chunks(999).for_each(|part| writer.write_all(part).unwrap());
            for text in [writer.finish(), Text::from(bytes.clone())] {
                assert_eq!(text.len(), length as u64);
                assert_eq!(whole(text.clone()), bytes);
                // A clone is read on its own.
                assert_eq!(whole(text), bytes);
            }
        }
    }

    #[test]
    fn a_head_stands_in_place_of_a_brace() {
        let mut writer = Writer::after("{\"held\":1,");
        writer.write_all(b"").unwrap();
        writer.write_all(b"{").unwrap();
        writer.write_all(b"\"nodes\":{}}").unwrap();
        assert_eq!(whole(writer.finish()), b"{\"held\":1,\"nodes\":{}}");
    }

    #[test]
    fn a_large_text_takes_a_fraction_and_a_small_one_is_as_it_is() {
        let tree: String = (0..100_000)
            .map(|id| {
                format!("{{\"id\":{id},\"parent\":{},\"name\":\"org.apache.spark.Task.run\"}},", id / 2)
            })
            .collect();
        let (length, text) = (tree.len(), Text::from(tree));
        assert!(text.held() * 5 < length, "{} of {length}", text.held());
        let small = Text::from("x".repeat(PIECE));
        assert_eq!((small.len(), small.held()), (PIECE as u64, PIECE));
    }

    #[test]
    fn what_cannot_be_compressed_takes_no_more_than_it_is() {
        let mut seed = 7u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        })
        .take(3 * PIECE)
        .collect();
        let text = Text::from(noise.clone());
        assert_eq!((text.held(), whole(text)), (3 * PIECE, noise));
    }
}
