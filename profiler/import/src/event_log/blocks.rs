//! The formats of blocks in which Spark packs event logs besides zstd.
//!
//! In: bytes of a file that begins with [`LZ4`] or [`SNAPPY`]. Out: those bytes unpacked, block by block, each of at most
//! [`MAX_BLOCK`] bytes, which Spark's writers allow at most (`spark.io.compression.*.blockSize` is 32 KiB unless told).
//! Sums of blocks are not checked: a line that makes no sense is passed over and counted anyway.

use std::io::{self, BufRead, Read};

/// How each block of lz4-java's `LZ4BlockOutputStream` begins (1.4 to 1.8; Spark 2.4 to 4.x).
pub const LZ4: [u8; 8] = *b"LZ4Block";
/// How a stream of snappy-java's `SnappyOutputStream` begins (1.1; Spark 2.4 to 4.x).
pub const SNAPPY: [u8; 8] = *b"\x82SNAPPY\0";
/// Bytes of a block, unpacked.
const MAX_BLOCK: usize = 32 << 20;

/// How blocks are packed.
#[derive(Clone, Copy, Debug)]
pub enum Codec {
    /// A head of 21 bytes and lz4's block format.
    Lz4,
    /// A length of 4 bytes and snappy's raw format, behind a head of 16 bytes.
    Snappy,
}

/// A file, unpacked.
pub struct Blocks<R> {
    file: R,
    codec: Codec,
    block: Vec<u8>,
    read: usize,
}

impl<R: BufRead> Blocks<R> {
    /// The unpacked bytes of a file that is packed so.
    pub fn new(file: R, codec: Codec) -> Self {
        Self { file, codec, block: Vec::new(), read: 0 }
    }

    /// Unpacks the next block; false: there is none.
    fn next(&mut self) -> io::Result<bool> {
        self.read = 0;
        self.block.clear();
        if self.file.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.codec {
            Codec::Lz4 => self.lz4()?,
            Codec::Snappy => self.snappy()?,
        }
        Ok(true)
    }

    /// `LZ4Block`, how it is packed and the block's size in a byte, then packed length, length and sum, little-endian. A block
    /// without bytes ends a stream; another may follow.
    fn lz4(&mut self) -> io::Result<()> {
        let mut head = [0; 21];
        self.file.read_exact(&mut head)?;
        let number = |at: usize| {
            let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
            u32::from_le_bytes(bytes) as usize
        };
        let (packed, len) = (number(9), number(13));
        if head.get(..8) != Some(&LZ4[..]) || packed.max(len) > MAX_BLOCK {
            return Err(wrong("its next block has no head of lz4's"));
        }
        let packed = self.take(packed)?;
        match head.get(8).map(|how| how & 0xf0) {
            Some(0x10) if packed.len() == len => self.block = packed,
            Some(0x20) => {
                self.block.resize(len, 0);
                match lz4_flex::block::decompress_into(&packed, &mut self.block) {
                    Ok(unpacked) if unpacked == len => {}
                    _ => return Err(wrong("its next block is not lz4's")),
                }
            }
            _ => return Err(wrong("its next block is packed in an unknown way")),
        }
        Ok(())
    }

    /// The packed length, big-endian; where a stream begins, its head of 16 bytes instead.
    fn snappy(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        self.file.read_exact(&mut length)?;
        if SNAPPY.starts_with(&length) {
            return self.file.read_exact(&mut [0; 12]);
        }
        let packed = u32::from_be_bytes(length) as usize;
        if packed > MAX_BLOCK {
            return Err(wrong("its next block is longer than a block may be"));
        }
        let packed = self.take(packed)?;
        let len = snap::raw::decompress_len(&packed).map_err(io::Error::other)?;
        if len > MAX_BLOCK {
            return Err(wrong("its next block is longer than a block may be"));
        }
        self.block.resize(len, 0);
        let unpacked = snap::raw::Decoder::new().decompress(&packed, &mut self.block);
        self.block.truncate(unpacked.map_err(io::Error::other)?);
        Ok(())
    }

    /// So many bytes of the file. No more room is taken than there are bytes.
    fn take(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.file.by_ref().take(len as u64).read_to_end(&mut bytes)?;
        if read < len { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
    }
}

impl<R: BufRead> Read for Blocks<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.read == self.block.len() {
            if into.is_empty() || !self.next()? {
                return Ok(0);
            }
        }
        let rest = self.block.get(self.read..).unwrap_or_default();
        let len = rest.len().min(into.len());
        for (into, byte) in into.iter_mut().zip(rest) {
            *into = *byte;
        }
        self.read += len;
        Ok(len)
    }
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(packed: &[u8], codec: Codec) -> io::Result<Vec<u8>> {
        let mut unpacked = Vec::new();
        Blocks::new(packed, codec).read_to_end(&mut unpacked).map(|_| unpacked)
    }

    fn lz4(how: u8, packed: &[u8], len: usize) -> Vec<u8> {
        let numbers = [packed.len() as u32, len as u32, 0].map(u32::to_le_bytes).concat();
        [&LZ4[..], &[how | 5], &numbers, packed].concat()
    }

    fn snappy(packed: &[u8]) -> Vec<u8> {
        [&(packed.len() as u32).to_be_bytes()[..], packed].concat()
    }

    /// `aaaaaaaaaaaaaaaaaaaab`: a literal, a copy of 19 bytes from one before, and the last literals (lz4_Block_format.md).
    const PACKED: &[u8] = &[0x1f, b'a', 1, 0, 0, 0x50, b'b', b'b', b'b', b'b', b'b'];

    #[test]
    fn blocks_of_lz4_are_unpacked() {
        let text = b"aaaaaaaaaaaaaaaaaaaabbbbb";
        let end = lz4(0x10, b"", 0);
        let log =
            [lz4(0x20, PACKED, 25), lz4(0x10, b"plain", 5), end.clone(), lz4(0x20, PACKED, 25), end].concat();
        assert_eq!(read(&log, Codec::Lz4).unwrap(), [&text[..], b"plain", text].concat());
        // Cut anywhere it is an error, but at the end of a block; what came before was read.
        for cut in 1..log.len() {
            let whole = [21 + PACKED.len(), 47 + PACKED.len(), 68 + PACKED.len(), 89 + 2 * PACKED.len()]
                .contains(&cut);
            assert_eq!(read(&log[..cut], Codec::Lz4).is_ok(), whole, "{cut}");
        }
        for bad in [lz4(0x20, PACKED, 26), lz4(0x10, b"x", 2), lz4(0x30, b"x", 1), lz4(0x20, b"\xff\xff", 9)]
        {
            assert!(read(&bad, Codec::Lz4).is_err());
        }
        // Four gigabytes are told, and no room is made for them.
        let huge = [&LZ4[..], &[0x25], &[0xff; 12]].concat();
        assert!(read(&huge, Codec::Lz4).unwrap_err().to_string().contains("no head"));
    }

    #[test]
    fn blocks_of_snappy_are_unpacked() {
        let pack = |text: &[u8]| snappy(&snap::raw::Encoder::new().compress_vec(text).unwrap());
        let head = [&SNAPPY[..], &[0, 0, 0, 1, 0, 0, 0, 1]].concat();
        let log = [&head[..], &pack(b"one"), &pack(&[b'2'; 70_000]), &head, &pack(b"three")].concat();
        assert_eq!(read(&log, Codec::Snappy).unwrap(), [&b"one"[..], &[b'2'; 70_000], b"three"].concat());
        assert!(read(&log[..log.len() - 1], Codec::Snappy).is_err());
        assert!(read(&[&head[..], &[0xff; 8]].concat(), Codec::Snappy).is_err(), "a block of four gigabytes");
        // One that says that it unpacks to so much.
        assert!(
            read(&[&head[..], &snappy(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0])].concat(), Codec::Snappy).is_err()
        );
    }
}
