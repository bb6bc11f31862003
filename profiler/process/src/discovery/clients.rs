//! Whose connections lead to a port of a server: the clients of a Spark Connect server that are processes here.
//!
//! A connection has two ends with the same two addresses the other way round. The server's end is in its own network
//! namespace, a client's in the client's; the same loopback addresses of another namespace are another connection's.

use super::sockets::{Connection, connections};
use super::{Candidate, same_process};
use crate::procfs::ProcRoot;
use emberscope_model::ProcessKey;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

/// Processes looked at for one server.
pub const MAX_CLIENTS: usize = 256;
/// Connections of one server that are looked for.
const MAX_CONNECTIONS: usize = 1024;

/// Those of the candidates that have a connection which `server` accepted at `port`.
pub fn connected(
    root: &ProcRoot,
    server: &Candidate,
    port: u16,
    candidates: &[Candidate],
) -> Vec<ProcessKey> {
    let inodes = |process: &Candidate| -> HashSet<u64> {
        root.socket_inodes(process.key.pid).unwrap_or_default().into_iter().collect()
    };
    let own = inodes(server);
    let accepted = |c: &Connection| c.local.port() == port && own.contains(&c.inode);
    let accepted = connections(root, server.key.pid).into_iter().filter(accepted).take(MAX_CONNECTIONS);
    // As a client's end has them.
    let ends: HashSet<(SocketAddr, SocketAddr)> = accepted.map(|c| (c.remote, c.local)).collect();
    if ends.is_empty() {
        return Vec::new();
    }
    let sockets = |of: &Candidate| -> HashSet<u64> {
        let there = |c: &Connection| of.netns == server.netns || !c.local.ip().is_loopback();
        let all = connections(root, of.key.pid).into_iter();
        all.filter(|c| ends.contains(&(c.local, c.remote)) && there(c)).map(|c| c.inode).collect()
    };
    let mut by_netns: HashMap<&str, HashSet<u64>> = HashMap::new();
    let candidates = candidates.iter().take(MAX_CLIENTS);
    candidates
        .filter(|candidate| {
            let there = by_netns.entry(&candidate.netns).or_insert_with(|| sockets(candidate));
            !there.is_empty() && !there.is_disjoint(&inodes(candidate)) && same_process(root, candidate)
        })
        .map(|candidate| candidate.key)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{FakeProc, ReadFake as _};

    // A server on 15002 (3A9A), one connection on loopback and one of 10.0.0.9, a container on this machine.
    const SERVER: &str = "head
 0: 0000000000000000FFFF000000000000:3A9A 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 50 1
 1: 0000000000000000FFFF00000100007F:3A9A 0000000000000000FFFF00000100007F:C0DE 01 0:0 0:0 0 0 0 51 1
 2: 0000000000000000FFFF00000500000A:3A9A 0000000000000000FFFF00000900000A:C0DF 01 0:0 0:0 0 0 0 52 1
";
    // The clients' ends, on loopback and in the container.
    const CLIENT: &str = "head\n 0: 0100007F:C0DE 0100007F:3A9A 01 0:0 0:0 0 0 0 61 1\n";
    const CONTAINER: &str = "head\n 0: 0900000A:C0DF 0500000A:3A9A 01 0:0 0:0 0 0 0 62 1\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_other_end_of_a_connection_is_a_client() {
        let fake = FakeProc::new();
        let both = format!("{SERVER}{}", &CLIENT[5..]);
        let candidate = |pid, netns: &str, table: &str, socket: u64| {
            let process = fake.process(pid, 1, "python3", 100).file("net/tcp6", table.as_bytes());
            process.link("fd/9", &format!("socket:[{socket}]"));
            let key = ProcessKey { pid, start_ticks: 100 };
            Candidate { key, netns: netns.into(), uid: 1000 }
        };
        let server = candidate(5, "net:[1]", &both, 50);
        for (fd, inode) in [(10, 51), (11, 52)] {
            let link = fake.path().join(format!("5/fd/{fd}"));
            std::os::unix::fs::symlink(format!("socket:[{inode}]"), link).unwrap();
        }
        let others = [
            candidate(6, "net:[1]", &both, 61),
            candidate(7, "net:[1]", &both, 99),
            candidate(8, "net:[2]", CLIENT, 61),
            candidate(9, "net:[3]", CONTAINER, 62),
        ];
        let found: Vec<_> =
            connected(&fake.root(), &server, 15002, &others).iter().map(|key| key.pid).collect();
        assert_eq!(found, [6, 9], "8 has the same addresses of another loopback");
        assert!(connected(&fake.root(), &server, 15003, &others).is_empty(), "another port");
        let reused = Candidate { key: ProcessKey { pid: 6, start_ticks: 99 }, ..others[0].clone() };
        assert!(connected(&fake.root(), &server, 15002, &[reused]).is_empty());
    }
}
