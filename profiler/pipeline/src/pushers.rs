//! The servers that closed windows also go to, as the settings name them.

use emberscope_config::DaemonConfig;
use emberscope_push::{Protocol, PushConfig, Pusher};
use std::io;

/// The pushers that there are: none, one or both.
pub type Pushers = Vec<(Protocol, Pusher)>;

/// Starts the pushers that the settings name.
///
/// # Errors
/// The kernel starts no thread. Pushers that were started before end.
pub fn start(config: &DaemonConfig) -> io::Result<Pushers> {
    let tenant = config.push_tenant.as_ref().map(|tenant| tenant.get().to_owned());
    let of = |protocol| match protocol {
        Protocol::Pyroscope => (config.push.as_ref(), tenant.clone()),
        Protocol::Otlp => (config.push_otlp.as_ref(), None),
    };
    let mut pushers = Pushers::new();
    for &protocol in Protocol::ALL {
        let (url, tenant) = of(protocol);
        if let Some(url) = url {
            let config = PushConfig { protocol, url: url.get().to_owned(), tenant };
            pushers.push((protocol, Pusher::start(config)?));
        }
    }
    Ok(pushers)
}
