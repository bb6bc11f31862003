//! What is counted and shown of profiles that go to another server.

use emberscope_push::{PushDrop, PushState};
use emberscope_serve::{Pushing, raise_to};
use serde_json::{Map, Value, json};

/// Sets the metrics.
pub fn count(m: &Pushing, state: &PushState) {
    raise_to(&m.sent, state.sent_profiles);
    raise_to(&m.sent_bytes, state.sent_bytes);
    raise_to(&m.retries, state.retries);
    m.queued_bytes.set(i64::try_from(state.queued_bytes).unwrap_or(i64::MAX));
    for (reason, total) in PushDrop::ALL.iter().zip(state.dropped) {
        m.dropped(reason.slug(), total);
    }
}

/// `push` of the status.
pub fn status(state: &PushState) -> Value {
    let dropped = PushDrop::ALL.iter().zip(state.dropped);
    json!({
        "url": state.url,
        "sent_profiles": state.sent_profiles,
        "sent_bytes": state.sent_bytes,
        "queued_profiles": state.queued_profiles,
        "queued_bytes": state.queued_bytes,
        "retries": state.retries,
        "dropped": dropped.map(|(reason, count)| (reason.slug().to_owned(), count.into())).collect::<Map<_, _>>(),
        "failing": state.failing,
        "refused": state.refused,
    })
}
