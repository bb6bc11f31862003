//! 64-bit integers as protobuf's JSON writes them: as text, for a double does not hold them all.

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

/// Writes an `int64` or `uint64`.
///
/// # Errors
/// The serializer's own.
pub fn as_text<S: Serializer, T: std::fmt::Display>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}

/// Writes a repeated `int64` or `uint64`.
///
/// # Errors
/// The serializer's own.
pub fn as_texts<S: Serializer, T: std::fmt::Display>(values: &[T], s: S) -> Result<S::Ok, S::Error> {
    struct Text<'a, T>(&'a T);
    impl<T: std::fmt::Display> Serialize for Text<'_, T> {
        fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            s.collect_str(self.0)
        }
    }
    let mut seq = s.serialize_seq(Some(values.len()))?;
    for value in values {
        seq.serialize_element(&Text(value))?;
    }
    seq.end()
}
