//! Which process listens where an executor's `--driver-url` points.
//!
//! Port and address must both agree: on a node of a cluster many drivers elsewhere use a port number that
//! some process here uses too.

use super::Candidate;
use crate::identity::DriverAddress;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

/// Names kept with their addresses.
const MAX_NAMES: usize = 256;
/// How long an answer of the resolver holds.
const NAMES_HOLD: Duration = Duration::from_secs(300);

/// Addresses of host names, so that one is not asked of the resolver for each executor. Blocks, like
/// the resolver: it lives on the discovery thread.
#[derive(Debug, Default)]
pub struct Resolver {
    names: HashMap<String, (Instant, Vec<IpAddr>)>,
}

impl Resolver {
    /// The addresses of a host; an address is its own.
    pub fn addresses(&mut self, host: &str) -> Vec<IpAddr> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return vec![ip.to_canonical()];
        }
        if let Some((at, ips)) = self.names.get(host)
            && at.elapsed() < NAMES_HOLD
        {
            return ips.clone();
        }
        let ips: Vec<IpAddr> = (host, 0u16)
            .to_socket_addrs()
            .map(|all| all.take(16).map(|a| a.ip().to_canonical()).collect())
            .unwrap_or_default();
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        self.names.insert(host.to_owned(), (Instant::now(), ips.clone()));
        ips
    }
}

/// The asker: an executor, and which network it is on.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// Where the executor says that its driver listens.
    pub at: &'a DriverAddress,
    /// The executor's network namespace.
    pub netns: &'a str,
}

/// Whether `listening` sockets of a candidate are the place. `own_netns` is the daemon's.
pub fn listens_there(
    asker: Asker<'_>,
    hosts: &[IpAddr],
    candidate: &Candidate,
    listening: &[SocketAddr],
    own_netns: &str,
) -> bool {
    let same_net = candidate.netns == asker.netns;
    listening.iter().filter(|s| s.port() == asker.at.port).any(|socket| {
        if socket.ip().is_unspecified() {
            // Any address of its network: only for our own can we tell which these are.
            same_net && hosts.iter().any(|ip| ip.is_loopback() || candidate.netns == own_netns && is_own(*ip))
        } else if socket.ip().is_loopback() {
            same_net && hosts.iter().any(IpAddr::is_loopback)
        } else {
            // An address is one host's, whatever namespace it lies in.
            hosts.contains(&socket.ip())
        }
    })
}

/// Whether an address is one of this host's: only then can a socket be bound to it.
fn is_own(ip: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::ProcessKey;

    fn there(host: &str, hosts: &[&str], listening: &str, netns: &str) -> bool {
        let at = DriverAddress { host: host.into(), port: 7078 };
        let hosts: Vec<IpAddr> = hosts.iter().map(|h| h.parse().unwrap()).collect();
        let candidate = Candidate { key: ProcessKey { pid: 5, start_ticks: 1 }, netns: netns.into(), uid: 0 };
        let asker = Asker { at: &at, netns: "net:[1]" };
        listens_there(asker, &hosts, &candidate, &[listening.parse().unwrap()], "net:[1]")
    }

    #[test]
    fn port_and_address_must_agree() {
        assert!(there("localhost", &["127.0.0.1"], "127.0.0.1:7078", "net:[1]"));
        assert!(!there("localhost", &["127.0.0.1"], "127.0.0.1:7079", "net:[1]"));
        assert!(there("edge-1", &["10.0.0.7"], "10.0.0.7:7078", "net:[1]"));
        assert!(!there("edge-1", &["10.0.0.8"], "10.0.0.7:7078", "net:[1]"), "a driver elsewhere");
        assert!(!there("nowhere", &[], "0.0.0.0:7078", "net:[1]"));
    }

    #[test]
    fn namespaces_keep_loopback_apart() {
        assert!(!there("localhost", &["127.0.0.1"], "127.0.0.1:7078", "net:[2]"));
        assert!(there("10.244.1.8", &["10.244.1.8"], "10.244.1.8:7078", "net:[2]"));
        assert!(!there("10.244.1.8", &["10.244.1.8"], "0.0.0.0:7078", "net:[2]"));
    }

    #[test]
    fn a_wildcard_is_asked_whether_the_address_is_ours() {
        assert!(there("localhost", &["127.0.0.1"], "[::]:7078", "net:[1]"));
        assert!(!there("far", &["192.0.2.1"], "[::]:7078", "net:[1]"), "TEST-NET-1 is nobody's");
    }

    #[test]
    fn names_resolve() {
        let mut resolver = Resolver::default();
        assert_eq!(resolver.addresses("10.1.2.3"), ["10.1.2.3".parse::<IpAddr>().unwrap()]);
        assert_eq!(resolver.addresses("::ffff:10.1.2.3"), ["10.1.2.3".parse::<IpAddr>().unwrap()]);
        assert!(resolver.addresses("localhost").iter().any(IpAddr::is_loopback));
    }
}
