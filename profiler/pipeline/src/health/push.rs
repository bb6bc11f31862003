//! What is counted and shown of profiles that go to other servers.

use crate::pushers::Pushers;
use emberscope_push::{Protocol, PushDrop, PushState};
use emberscope_serve::{Pushing, raise_to};
use serde_json::{Map, Value, json};

/// The state of each pusher.
pub fn states(pushers: &Pushers) -> Vec<(Protocol, PushState)> {
    pushers.iter().map(|(protocol, pusher)| (*protocol, pusher.state())).collect()
}

/// Sets the metrics: sums over the servers.
pub fn count(m: &Pushing, states: &[(Protocol, PushState)]) {
    let sum = |of: fn(&PushState) -> u64| states.iter().map(|(_, state)| of(state)).sum();
    raise_to(&m.sent, sum(|state| state.sent_profiles));
    raise_to(&m.sent_bytes, sum(|state| state.sent_bytes));
    raise_to(&m.retries, sum(|state| state.retries));
    m.queued_bytes.set(i64::try_from(sum(|state| state.queued_bytes)).unwrap_or(i64::MAX));
    for (place, reason) in PushDrop::ALL.iter().enumerate() {
        let dropped = states.iter().filter_map(|(_, state)| state.dropped.get(place));
        m.dropped(reason.slug(), dropped.sum());
    }
}

/// A pusher's part of the status; null where nothing is pushed so.
pub fn status(states: &[(Protocol, PushState)], protocol: Protocol) -> Value {
    let Some((_, state)) = states.iter().find(|(own, _)| *own == protocol) else { return Value::Null };
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
