//! What every answer says beside its content: which windows it holds and what it rests on.
//!
//! In: a [`Summary`]. Out: the head of a JSON answer, or `X-Emberscope-*` headers with the same. Sampling
//! error: each of n samples is one of a Poisson process, so a time of n samples has the relative standard
//! error 1/sqrt(n), and a share p of n samples the absolute standard error sqrt(p(1-p)/n). Skew from a
//! program that runs in step with the sampling clock is not in it.

use super::error::ApiError;
use super::run::Rendered;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use emberscope_api as api;
use emberscope_model::{Answer, LabelKey, Summary, TimeRange};
use emberscope_store::Store;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The part of an answer that is no tree.
pub fn summary_of(answer: &Answer) -> Summary {
    Summary { range: answer.range, windows: answer.windows, quality: answer.quality.clone() }
}

/// Absolute standard error of the share `part / whole`; None of nothing.
pub fn share_error(part: u64, whole: u64) -> Option<f64> {
    let p = share(part, whole)?;
    Some((p * (1.0 - p) / whole as f64).sqrt())
}

/// `part / whole`; None of nothing.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The head of a JSON answer.
pub fn head(summary: &Summary, store: &dyn Store) -> api::Head {
    let basis = api::Basis {
        range: summary.range.into(),
        windows: summary.windows as u64,
        kind: summary.quality.kind.slug().into(),
        quality: (&summary.quality).into(),
    };
    let (held, note) = surroundings(summary, store);
    api::Head { basis, held, note }
}

/// What every JSON answer has and no export knows: which windows there are, and a note when it holds none.
fn surroundings(summary: &Summary, store: &dyn Store) -> (api::Held, Option<String>) {
    let span = store.span();
    let note = (summary.windows == 0).then(|| note(summary, span));
    (api::Held { window_seconds: store.window_length().as_secs_f64(), span: span.map(Into::into) }, note)
}

/// What stands in front of an exported tree, a JSON object of some megabytes, in place of its brace: the surroundings of
/// the answer, and `cut_nodes`.
pub fn head_of_tree(store: &dyn Store, summary: &Summary, cut_nodes: usize) -> String {
    let (held, note) = surroundings(summary, store);
    let mut head = json!(api::TreeHead { held, note, cut_nodes: cut_nodes as u64 }).to_string();
    head.pop();
    head.push(',');
    head
}

/// Why this answer holds no window.
fn note(summary: &Summary, held: Option<TimeRange>) -> String {
    match summary.quality.missing.count {
        0 => nothing(held),
        n => {
            format!("{} Stored parts of it that cannot be read: {n} (quality.missing_parts).", nothing(held))
        }
    }
}

/// Why an answer holds no window.
pub fn nothing(held: Option<TimeRange>) -> String {
    match held {
        Some(held) => format!(
            "No closed window lies in this range; there are windows from {} until {}.",
            held.from, held.until
        ),
        None => "No window has closed yet.".to_owned(),
    }
}

/// The head as headers, for answers that are not JSON (they are on those that are, too).
pub fn headers(summary: &Summary, store: &dyn Store) -> HeaderMap {
    let quality = &summary.quality;
    let mut out = HeaderMap::new();
    let mut put = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            out.insert(HeaderName::from_static(name), value);
        }
    };
    put("x-emberscope-from", summary.range.from.to_string());
    put("x-emberscope-until", summary.range.until.to_string());
    put("x-emberscope-windows", summary.windows.to_string());
    if let Some(held) = store.span() {
        put("x-emberscope-span", format!("{}/{}", held.from, held.until));
    }
    if summary.windows == 0 {
        put("x-emberscope-note", note(summary, store.span()));
    }
    put("x-emberscope-type", quality.kind.slug().to_owned());
    put("x-emberscope-samples", quality.samples.to_string());
    put("x-emberscope-lost", quality.lost.samples().to_string());
    put("x-emberscope-truncated", quality.truncated.to_string());
    put("x-emberscope-unnamed-frames", quality.unnamed_frames.to_string());
    put("x-emberscope-frames", quality.frames.to_string());
    let missing = &quality.missing;
    if missing.count > 0 {
        let names: Vec<String> = missing.parts.iter().map(|part| header_text(&part.name)).collect();
        put("x-emberscope-missing", missing.count.to_string());
        put("x-emberscope-missing-parts", names.join(", "));
    }
    if let Some(error) = quality.sampling_error() {
        put("x-emberscope-sampling-error", format!("{error:.4}"));
    }
    out
}

/// A name as headers can have it: a file's may be anything.
fn header_text(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_graphic() && c != ',' { c } else { '?' }).collect()
}

/// A JSON answer.
pub fn json(mut headers: HeaderMap, body: &Value) -> Rendered {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Rendered { headers, body: body.to_string().into() }
}

/// Metrics, in Prometheus's text format.
///
/// # Errors
/// They could not be written.
pub fn metrics(text: prometheus::Result<String>) -> Result<Rendered, ApiError> {
    let text = text.map_err(|error| ApiError::internal(format!("The metrics cannot be written: {error}")))?;
    let mut headers = HeaderMap::new();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    Ok(Rendered { headers, body: text.into() })
}

/// A JSON answer about samples.
pub fn table(summary: &Summary, store: &dyn Store, content: impl Serialize) -> Rendered {
    json(headers(summary, store), &Value::Object(whole(head(summary, store), content)))
}

/// The same as an object, before it is text.
pub fn whole(head: api::Head, content: impl Serialize) -> Map<String, Value> {
    match json!(api::Answer { head, content }) {
        Value::Object(whole) => whole,
        _ => Map::new(),
    }
}

/// Values by the names of their labels.
pub fn labels<V: AsRef<str>>(
    pairs: impl IntoIterator<Item = (LabelKey, V)>,
) -> BTreeMap<Cow<'static, str>, String> {
    pairs.into_iter().map(|(key, value)| (key.name().into(), value.as_ref().to_owned())).collect()
}

/// What is not known is null.
pub fn text(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::sampling_error;

    #[test]
    fn errors_of_sampling() {
        assert_eq!(sampling_error(0), None);
        assert_eq!(sampling_error(400), Some(0.05));
        assert_eq!(share_error(50, 100), Some(0.05));
        assert_eq!(share_error(100, 100), Some(0.0));
        assert_eq!(share_error(0, 0), None);
    }
}
