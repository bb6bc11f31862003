//! Who is at the other end of a connection, as the kernel says.
//!
//! In: an accepted socket. Out: a [`Peer`], which goes with each of the connection's requests. A Unix socket's mode
//! lets its owner and its group connect; that is looked at once more here, because a directory or an ACL may have been
//! opened by mistake, or the service manager made it: root, the daemon's own user, and who has the daemon's group, his
//! supplementary groups by /proc/PID/status (`Groups:`; proc(5)), which is read only where user and group alone do not
//! tell. Root's group is none to let in: a program that gave up its user alone has it still.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv6Addr};
use tokio::net::unix::UCred;

/// Bytes that are read of /proc/PID/status: 65,536 groups (NGROUPS_MAX) of up to 11 bytes each.
const STATUS: u64 = 1 << 20;

/// The group that may ask: the daemon's, unless that is root's.
pub fn group() -> Option<u32> {
    Some(rustix::process::getegid().as_raw()).filter(|gid| *gid != 0)
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A client over TCP.
    Tcp {
        /// The client is on this machine.
        loopback: bool,
        /// The connection is under TLS.
        tls: bool,
    },
    /// A client over the Unix socket.
    Unix {
        /// User id of the client, as the kernel has it.
        uid: u32,
        /// Whether that user may ask.
        allowed: bool,
    },
}

impl Peer {
    /// A client of this machine without TLS: what a request is taken for that does not say.
    pub const HERE: Self = Self::Tcp { loopback: true, tls: false };

    /// The peer of a Unix socket, by its credentials.
    pub fn unix(peer: &UCred) -> Self {
        Self::Unix { uid: peer.uid(), allowed: is_allowed(peer) }
    }
}

/// Whose connections are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// All clients of this machine over TCP: any user can have any of the addresses 127.0.0.0/8.
    Loopback,
    /// Another machine, by its address; of IPv6 the first 64 bits: one machine commonly has all addresses below them.
    Machine(IpAddr),
    /// A user, over the Unix socket.
    User(u32),
}

impl Who {
    /// Who is at an address.
    pub fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            ip if ip.is_loopback() => Self::Loopback,
            IpAddr::V6(ip) => Self::Machine(IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64))),
            ip => Self::Machine(ip),
        }
    }
}

fn is_allowed(peer: &UCred) -> bool {
    if peer.uid() == 0 || peer.uid() == rustix::process::geteuid().as_raw() {
        return true;
    }
    let Some(group) = group() else { return false };
    if peer.gid() == group {
        return true;
    }
    let Some(pid) = peer.pid() else { return false };
    let mut status = String::new();
    let read =
        File::open(format!("/proc/{pid}/status")).and_then(|f| f.take(STATUS).read_to_string(&mut status));
    read.is_ok() && has_group(&status, peer.uid(), group)
}

/// Whether a process has a group. It must still be of the user that connected: the pid may be another's by now.
fn has_group(status: &str, uid: u32, group: u32) -> bool {
    let numbers = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().split_ascii_whitespace().filter_map(|word| word.parse::<u32>().ok())
    };
    numbers("Uid:").nth(1) == Some(uid) && numbers("Groups:").any(|g| g == group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supplementary_groups_count_and_others_do_not() {
        let status =
            "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t4 27 998 \n";
        assert!(has_group(status, 1000, 998));
        for (uid, group) in [(1000, 99), (1000, 0), (1001, 998)] {
            assert!(!has_group(status, uid, group), "{uid} {group}");
        }
        assert!(!has_group("", 1000, 998));
    }

    #[test]
    fn addresses_of_one_machine_are_counted_together() {
        let who = |text: &str| Who::at(text.parse().unwrap());
        for here in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(who(here), Who::Loopback, "{here}");
        }
        assert_eq!(who("2001:db8::1"), who("2001:db8::ffff:1"));
        assert_ne!(who("2001:db8::1"), who("2001:db8:0:1::1"));
        assert_eq!(who("::ffff:10.0.0.1"), who("10.0.0.1"));
        assert_ne!(who("10.0.0.2"), who("10.0.0.1"));
    }
}
