//! Protobuf's JSON spelling, as serde attributes.
//!
//! Reading: 64-bit integers and doubles as number or string, enums by name or number, `null` as the
//! default value (protobuf.dev, "ProtoJSON Format"). Writing: 64-bit integers as strings. Names of
//! fields are the structs' concern.

pub use emberscope_export::pprof::numbers::{as_text, as_texts};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde::ser::Serializer;

/// The default value: left out when writing.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a value, or `null` for its default.
///
/// # Errors
/// What the value's own reading fails with.
pub fn or_null<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Int(i64),
    Float(f64),
    Text(String),
}

fn integer<E: Error>(scalar: Scalar) -> Result<i64, E> {
    // Up to 2^53 a double says which integer is meant; beyond that it does not.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |f: f64| (f.fract() == 0.0 && f.abs() <= EXACT).then_some(f as i64);
    match scalar {
        Scalar::Int(i) => Ok(i),
        Scalar::Float(f) => whole(f).ok_or_else(|| E::custom(format!("{f} is not a 64-bit integer"))),
        Scalar::Text(t) => t
            .parse()
            .ok()
            .or_else(|| whole(t.parse().ok()?))
            .ok_or_else(|| E::custom(format!("{t:?} is not a 64-bit integer"))),
    }
}

/// Reads an `int64`.
///
/// # Errors
/// It is neither a whole number of 64 bits, as number or string, nor `null`.
pub fn int64<'de, D: Deserializer<'de>>(d: D) -> Result<i64, D::Error> {
    Option::<Scalar>::deserialize(d)?.map_or(Ok(0), integer)
}

/// Reads an `optional int64`.
///
/// # Errors
/// As [`int64`].
pub fn opt_int64<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i64>, D::Error> {
    Option::<Scalar>::deserialize(d)?.map(integer).transpose()
}

/// Reads a `double`.
///
/// # Errors
/// It is neither a number, as number or string, nor `null`.
pub fn double<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    match Option::<Scalar>::deserialize(d)? {
        None => Ok(0.0),
        Some(Scalar::Int(i)) => Ok(i as f64),
        Some(Scalar::Float(f)) => Ok(f),
        Some(Scalar::Text(t)) => t.parse().map_err(|_| D::Error::custom(format!("{t:?} is not a number"))),
    }
}

/// An enum: `names[number]` are its values' names.
fn enumeration<'de, D: Deserializer<'de>>(d: D, names: &[&str]) -> Result<i32, D::Error> {
    match Option::<Scalar>::deserialize(d)? {
        None => Ok(0),
        Some(Scalar::Text(t)) => match names.iter().position(|n| *n == t) {
            Some(number) => Ok(number as i32),
            None => Err(D::Error::custom(format!("{t:?} is none of {}", names.join(", ")))),
        },
        Some(number) => i32::try_from(integer::<D::Error>(number)?).map_err(D::Error::custom),
    }
}

/// Reads a querier.v1.ProfileFormat.
///
/// # Errors
/// It is no name of the enum's, no number and not `null`.
pub fn profile_format<'de, D: Deserializer<'de>>(d: D) -> Result<i32, D::Error> {
    enumeration(
        d,
        &[
            "PROFILE_FORMAT_UNSPECIFIED",
            "PROFILE_FORMAT_FLAMEGRAPH",
            "PROFILE_FORMAT_TREE",
            "PROFILE_FORMAT_DOT",
            "PROFILE_FORMAT_PPROF",
        ],
    )
}

/// Reads an optional types.v1.TimeSeriesAggregationType.
///
/// # Errors
/// As [`profile_format`].
pub fn aggregation<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i32>, D::Error> {
    enumeration(d, &["TIME_SERIES_AGGREGATION_TYPE_SUM", "TIME_SERIES_AGGREGATION_TYPE_AVERAGE"]).map(Some)
}

/// Reads a querier.v1.AsyncQueryType.
///
/// # Errors
/// As [`profile_format`].
pub fn async_type<'de, D: Deserializer<'de>>(d: D) -> Result<i32, D::Error> {
    enumeration(d, &["ASYNC_QUERY_TYPE_DISABLED", "ASYNC_QUERY_TYPE_FORCE"])
}

/// Writes `bytes`: base64 with padding (RFC 4648 §4).
///
/// # Errors
/// What the serializer fails with.
pub fn as_base64<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = (bits >> (18 - 6 * place) & 63) as usize;
            out.push(if place <= three.len() { char::from(DIGITS[digit]) } else { '=' });
        }
    }
    s.serialize_str(&out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;

    #[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
    #[serde(default)]
    struct Probe {
        #[serde(deserialize_with = "int64", serialize_with = "as_text")]
        whole: i64,
        #[serde(deserialize_with = "double")]
        step: f64,
        #[serde(deserialize_with = "profile_format")]
        format: i32,
        #[serde(deserialize_with = "or_null", serialize_with = "as_texts")]
        list: Vec<i64>,
    }

    fn read(text: &str) -> Result<Probe, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn numbers_are_read_in_every_spelling() {
        for text in [r#"{"whole":1000}"#, r#"{"whole":"1000"}"#, r#"{"whole":1e3}"#, r#"{"whole":"1e3"}"#] {
            assert_eq!(read(text).expect(text).whole, 1000, "{text}");
        }
        assert_eq!(read(r#"{"whole":"9223372036854775807"}"#).expect("max").whole, i64::MAX);
        assert_eq!(
            read(r#"{"whole":null,"step":"0.5","extra":[1]}"#).expect("null"),
            Probe { step: 0.5, ..Probe::default() }
        );
        for text in [r#"{"whole":1.5}"#, r#"{"whole":"x"}"#, r#"{"whole":1e300}"#, r#"{"whole":true}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn enums_are_read_by_name_and_number() {
        assert_eq!(read(r#"{"format":"PROFILE_FORMAT_PPROF"}"#).expect("name").format, 4);
        assert_eq!(read(r#"{"format":4}"#).expect("number").format, 4);
        assert!(read(r#"{"format":"PROFILE_FORMAT_SVG"}"#).is_err());
    }

    #[test]
    fn bytes_are_written_as_base64() {
        #[derive(Serialize)]
        struct Bytes(#[serde(serialize_with = "as_base64")] Vec<u8>);
        // RFC 4648 §10, and all bits set.
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(serde_json::to_string(&Bytes(bytes.into())).expect("json"), format!("{text:?}"));
        }
        assert_eq!(serde_json::to_string(&Bytes(vec![0xff; 4])).expect("json"), r#""/////w==""#);
    }

    #[test]
    fn long_integers_are_written_as_text() {
        let probe = Probe { whole: i64::MAX, list: vec![0, -1], ..Probe::default() };
        let text = serde_json::to_string(&probe).expect("json");
        assert_eq!(text, r#"{"whole":"9223372036854775807","step":0.0,"format":0,"list":["0","-1"]}"#);
    }
}
