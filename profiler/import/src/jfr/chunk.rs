//! The header of a chunk: 68 bytes, big-endian.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | `FLR\0` |
//! | 4 | 2, 2 | version, major and minor |
//! | 8 | 8 | bytes of the chunk, the header too |
//! | 16 | 8, 8 | offsets of the last pools and of the metadata |
//! | 32 | 8, 8 | start and length, nanoseconds |
//! | 48 | 8, 8 | ticks at the start, ticks a second |
//! | 64 | 4 | the lowest bit of the last byte: integers are compressed |

use super::super::limits;
use super::bytes::Bad;
use emberscope_model::WallTime;

/// Bytes of a header.
pub const HEADER: usize = 68;

/// What a chunk's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the chunk, the header too.
    pub size: u64,
    /// Offset of the metadata in the chunk.
    pub metadata: usize,
    start_ns: u64,
    start_ticks: i64,
    ticks_per_second: i64,
    /// Whether integers are LEB128, and not big-endian.
    pub compressed: bool,
}

impl Header {
    /// The header at a chunk's first bytes.
    ///
    /// # Errors
    /// [`Bad`] with the place: no `FLR`, cut short, a version other than 2, a chunk that is still being written or
    /// larger than [`limits::CHUNK`], metadata outside of the chunk, or no time.
    pub fn read(bytes: &[u8]) -> Result<Self, Bad> {
        let bad = |at, says: String| Err(Bad { at, says });
        if !bytes.starts_with(super::MAGIC) {
            return bad(0, "is no beginning of a chunk (FLR)".to_owned());
        }
        if bytes.len() < HEADER {
            return bad(0, "begins a chunk whose header was cut".to_owned());
        }
        let long = |at: usize| {
            let mut all = [0; 8];
            all.copy_from_slice(bytes.get(at..at + 8).unwrap_or(&[0; 8]));
            i64::from_be_bytes(all)
        };
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (major, minor) = (short(4), short(6));
        if major != 2 {
            return bad(4, format!("is of version {major}.{minor}: 2 is read, of JDK 8u262 and newer"));
        }
        let size = long(8).cast_unsigned();
        if size == 0 {
            let says =
                "begins a chunk that is still being written: end it by `jcmd PID JFR.stop` or `JFR.dump`";
            return bad(8, says.to_owned());
        }
        if size < HEADER as u64 || size > limits::CHUNK {
            return bad(8, format!("begins a chunk of {size} bytes; at most {} are read", limits::CHUNK));
        }
        let metadata = long(24).cast_unsigned();
        if metadata < HEADER as u64 || metadata >= size {
            return bad(24, format!("has metadata at {metadata}, outside of the chunk"));
        }
        let (start, ticks_per_second) = (long(32), long(56));
        if start <= 0 || ticks_per_second <= 0 {
            return bad(32, "has no time".to_owned());
        }
        Ok(Self {
            size,
            metadata: metadata as usize,
            start_ns: start.cast_unsigned(),
            start_ticks: long(48),
            ticks_per_second,
            compressed: bytes[67] & 1 == 1,
        })
    }

    /// The instant at which the clock of ticks had this count.
    pub fn time(&self, ticks: i64) -> WallTime {
        let since = i128::from(ticks) - i128::from(self.start_ticks);
        let at = i128::from(self.start_ns) + since * 1_000_000_000 / i128::from(self.ticks_per_second);
        WallTime(u64::try_from(at).unwrap_or_default())
    }

    /// How long some ticks are, nanoseconds.
    pub fn length(&self, ticks: i64) -> u64 {
        let ns = i128::from(ticks) * 1_000_000_000 / i128::from(self.ticks_per_second);
        u64::try_from(ns).unwrap_or_default()
    }
}
