//! The TCP sockets of a process, in its own network namespace: where it listens, and its connections.
//!
//! In: /proc/PID/net/tcp and tcp6 (listening sockets come first there, net/ipv4/tcp_ipv4.c) and the
//! socket inodes of /proc/PID/fd. Out, of those that listen: addresses and ports that this process, and no other, listens on, with
//! sockets that its own user made (or root, which hands them on at start). Where a socket of another process
//! could answer in its place, at the same port of an address that is asked, the address is left out.

use crate::procfs::ProcRoot;
use emberscope_model::Pid;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes read of each table: some 1,700 to 7,000 sockets, of which the listening ones stand first.
pub const MAX_TABLE: usize = 1 << 20;
/// Listening sockets kept of one process; a local-cluster driver has about ten.
pub const MAX_LISTENING: usize = 256;

/// State of a listening socket in the tables (TCP_LISTEN, include/net/tcp_states.h).
const LISTEN: &str = "0A";
/// State of a connection (TCP_ESTABLISHED).
const ESTABLISHED: &str = "01";

/// A connection, as the network namespace of one of its ends has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the other.
    pub remote: SocketAddr,
    /// This end's socket; 0 while nobody has accepted it.
    pub inode: u64,
}

/// The connections of the network namespace of a process, as far as [`MAX_TABLE`] bytes reach.
pub fn connections(root: &ProcRoot, pid: Pid) -> Vec<Connection> {
    let of_table = |table: String| table.lines().skip(1).filter_map(connection).collect::<Vec<_>>();
    tables(root, pid).flat_map(of_table).collect()
}

/// The two tables of a process's network namespace.
fn tables(root: &ProcRoot, pid: Pid) -> impl Iterator<Item = String> {
    let table = move |name| root.read(pid, name, MAX_TABLE).unwrap_or_default();
    ["net/tcp", "net/tcp6"].into_iter().map(move |name| String::from_utf8_lossy(&table(name)).into_owned())
}

/// A listening socket, of one line of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    at: SocketAddr,
    uid: u32,
    inode: u64,
}

/// Where a process of this user listens.
pub fn listening(root: &ProcRoot, pid: Pid, uid: u32) -> Vec<SocketAddr> {
    let Ok(inodes) = root.socket_inodes(pid) else { return Vec::new() };
    let own: HashSet<u64> = inodes.into_iter().collect();
    let mut all = Vec::new();
    for table in tables(root, pid) {
        all.extend(table.lines().skip(1).map_while(listening_line).flatten());
    }
    let mine = |l: &&Listener| own.contains(&l.inode) && (l.uid == uid || l.uid == 0);
    // A more specific address goes before a wildcard: who asks at the one may meet another process.
    let strange = |l: &Listener| all.iter().any(|o| !own.contains(&o.inode) && may_answer_for(o.at, l.at));
    let found = all.iter().filter(mine).filter(|l| !strange(l)).map(|l| l.at);
    found.take(MAX_LISTENING).collect()
}

/// Whether a connection that is meant for `meant` may reach a socket at `other`.
fn may_answer_for(other: SocketAddr, meant: SocketAddr) -> bool {
    let reached = other.ip() == meant.ip()
        || meant.ip().is_unspecified() && (other.ip().is_loopback() || other.ip().is_unspecified());
    other.port() == meant.port() && reached
}

/// A line's socket; the listening ones come first, so that the first other one ends them.
fn listening_line(line: &str) -> Option<Option<Listener>> {
    match line.split_ascii_whitespace().nth(3) {
        Some(state) if state != LISTEN => None,
        _ => Some(listener(line)),
    }
}

/// A line, if it is a listening socket's.
fn listener(line: &str) -> Option<Listener> {
    let line = Line::of(line).filter(|line| line.state == LISTEN)?;
    Some(Listener { at: address(line.local)?, uid: line.uid, inode: line.inode })
}

/// A line, if it is a connection's.
fn connection(line: &str) -> Option<Connection> {
    let line = Line::of(line).filter(|line| line.state == ESTABLISHED)?;
    Some(Connection { local: address(line.local)?, remote: address(line.remote)?, inode: line.inode })
}

/// The fields of a line that are looked at.
struct Line<'a> {
    local: &'a str,
    remote: &'a str,
    state: &'a str,
    uid: u32,
    inode: u64,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (local, remote, state) = (fields.nth(1)?, fields.next()?, fields.next()?);
        // After the state: queues, timer, retransmits, uid, timeout, inode.
        let uid = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Self { local, remote, state, uid, inode })
    }
}

/// `0100007F:0FC8`: the address as native 32-bit words in hexadecimal, the port in its usual order.
/// Mapped IPv4 addresses (a JVM's sockets are IPv6) come out as IPv4.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |range| u32::from_str_radix(ip.get(range)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0..8)?)),
        32 => {
            let mut bytes = [0u8; 16];
            for (i, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(i * 8..i * 8 + 8)?);
            }
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{FakeProc, ReadFake as _};

    // Recorded: a py4j gateway, a driver's RPC port and its UI, on a little-endian machine.
    const TCP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000100007F:A4C9 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31 1 0000000000000000 100 0 0 10 0
   1: 0000000000000000FFFF00000100007F:0FC8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 32 1 0000000000000000 100 0 0 10 0
   2: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 99 1 0000000000000000 100 0 0 10 0
   3: 0000000000000000FFFF00000100007F:AAAF 0000000000000000FFFF00000100007F:C0DE 01 00000000:00000000 00:00000000 00000000  1000        0 33 1 0000000000000000 100 0 0 10 0
";

    #[test]
    #[cfg(target_endian = "little")]
    fn only_own_listening_sockets_count() {
        let fake = FakeProc::new();
        let process = fake.process(5, 1, "java", 100).file("net/tcp6", TCP6.as_bytes());
        process.link("fd/0", "/dev/null").link("fd/261", "socket:[31]").link("fd/279", "socket:[32]");
        process.link("fd/280", "socket:[33]");
        let found = listening(&fake.root(), 5, 1000);
        assert_eq!(
            found,
            ["127.0.0.1:42185".parse().unwrap(), "127.0.0.1:4040".parse::<SocketAddr>().unwrap()]
        );
        assert!(listening(&fake.root(), 6, 1000).is_empty());
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_socket_of_another_user_or_one_that_another_process_shadows_is_not_its_own() {
        let fake = FakeProc::new();
        // Inode 99 listens at every address, 98 at loopback alone: who asks there meets 98.
        let shadow =
            "   4: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 65534 0 98 1\n";
        let process = fake.process(5, 1, "java", 100).file("net/tcp6", TCP6.as_bytes());
        process.link("fd/261", "socket:[31]").link("fd/9", "socket:[99]");
        let all = listening(&fake.root(), 5, 1000);
        assert_eq!(all.iter().map(SocketAddr::port).collect::<Vec<_>>(), [42185, 8080]);
        assert!(listening(&fake.root(), 5, 1001).is_empty(), "they are user 1000's");
        process.file("net/tcp", format!("head\n{shadow}").as_bytes());
        let left = listening(&fake.root(), 5, 1000);
        assert_eq!(left.iter().map(SocketAddr::port).collect::<Vec<_>>(), [42185]);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn connections_have_two_ends() {
        let fake = FakeProc::new();
        fake.process(5, 1, "java", 100).file("net/tcp6", TCP6.as_bytes());
        let (local, remote) = ("127.0.0.1:43695".parse().unwrap(), "127.0.0.1:49374".parse().unwrap());
        assert_eq!(connections(&fake.root(), 5), [Connection { local, remote, inode: 33 }]);
    }

    #[test]
    fn nonsense_lines_are_skipped() {
        for line in [
            "",
            "x",
            "0: zz:zz 00:00 0A",
            "0: 0100007F:0FC8 00000000:0000 0A 0:0 0:0 0 0 0 x",
            "0: 01:1 0:0 0A 0 0 0 0 0 1",
        ] {
            assert_eq!(listener(line), None, "{line}");
        }
    }

    #[test]
    fn a_real_listener_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let found =
            listening(&ProcRoot::new("/proc"), std::process::id(), rustix::process::geteuid().as_raw());
        assert!(found.contains(&listener.local_addr().unwrap()), "{found:?}");
    }
}
