//! The servers that closed windows also go to, as the settings name them.

use super::settings;
use emberscope_config::DaemonConfig;
use emberscope_push::{Keep, Protocol, PushConfig, Pusher};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The pushers that there are: none, one or both.
pub type Pushers = Vec<(Protocol, Pusher)>;

/// Starts the pushers that the settings name. What waits for a server does so below `dir`, if there is one; what an
/// earlier daemon left there for a server that is not named any more is removed.
///
/// # Errors
/// The kernel starts no thread. Pushers that were started before end.
pub fn start(config: &DaemonConfig, dir: Option<&Path>) -> io::Result<Pushers> {
    let tenant = config.push_tenant.as_ref().map(|tenant| tenant.get().to_owned());
    let keep_free = settings::keep_free(config.keep_free);
    let of = |protocol| match protocol {
        Protocol::Pyroscope => (config.push.as_ref(), tenant.clone(), "push"),
        Protocol::Otlp => (config.push_otlp.as_ref(), None, "push-otlp"),
    };
    let mut pushers = Pushers::new();
    for &protocol in Protocol::ALL {
        let (url, tenant, name) = of(protocol);
        let dir = dir.map(|dir| dir.join(name));
        match url {
            Some(url) => {
                let has_room = Arc::new(move |dir: &Path| keep_free.has_room(dir, 0));
                let keep = dir.map(|dir| Keep { dir, has_room });
                let config = PushConfig { protocol, url: url.get().to_owned(), tenant };
                pushers.push((protocol, Pusher::start(config, keep)?));
            }
            None => dir.iter().for_each(|dir| {
                let _ = std::fs::remove_dir_all(dir);
            }),
        }
    }
    Ok(pushers)
}
