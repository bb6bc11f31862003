//! Ports for servers that want to be told one.
//!
//! Not one of those that the kernel gives to connections (net.ipv4.ip_local_port_range, 32768 to 60999 by default): between
//! the choice and the server's own bind, any program that connects to anywhere may get it.

use anyhow::{Context as _, Result};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the kernel's own; above what Spark's user interface, HDFS, S3 servers and Grafana have by default.
const PORTS: Range<u16> = 12_000..32_000;

/// A port of `PORTS` that nobody listens on at this moment. A process begins where others that run now most likely do
/// not, and never says one twice before it has been through all.
pub fn free_port() -> Result<u16> {
    static SAID: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    let first = u16::try_from(std::process::id().wrapping_mul(61) % u32::from(count)).unwrap_or(0);
    (0..count)
        .map(|_| PORTS.start + (first + SAID.fetch_add(1, Ordering::Relaxed) % count) % count)
        .find(|port| is_free(*port))
        .with_context(|| format!("no port of {} to {} is free on 127.0.0.1", PORTS.start, PORTS.end))
}

/// Whether `port` is free on loopback.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{PORTS, free_port, is_free};

    #[test]
    fn a_port_is_said_once_and_is_none_that_connections_get() {
        let ports: Vec<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        let apart: std::collections::BTreeSet<u16> = ports.iter().copied().collect();
        assert_eq!(apart.len(), 50, "{ports:?}");
        assert!(ports.iter().all(|port| PORTS.contains(port)), "{ports:?}");
    }

    #[test]
    fn a_port_with_a_listener_is_not_free() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_free(listener.local_addr().unwrap().port()));
    }
}
