//! Names of objects: what is where in an archive. docs/archive.md is the reference.
//!
//! ```text
//! v1/nodes/HOST/blocks/NAME/FILE       a block as it is on the node's disk
//! v1/index/HOUR/HOST/NAME.CRC          its manifest; put when the files are there
//! v1/open/HOST/NAME/FROM-UNTIL-CRC     records of the journal that will be this block
//! v1/heartbeats/HOST/NOW-WAITING-OLDEST  that the node lives, its clock, what waits there
//! v1/apps/APP/HOUR/COUNT-CRC/FILE      an application's hour of all nodes, as one block
//! v1/gathered/APP/HOUR.COUNT-CRC       its manifest, and the blocks that it covers; put when the files are there
//! ```
//!
//! HOST and APP come from outside: what is not plain in them is escaped.

/// The first part of all names of this version.
pub const ROOT: &str = "v1";

/// A text as one part of a name: letters, digits, `-`, `_` and inner dots stay, all else is `=` and two digits.
pub fn part(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => out.push(byte as char),
            b'.' if place > 0 => out.push('.'),
            _ => out.push_str(&format!("={byte:02x}")),
        }
    }
    if out.is_empty() { "=".to_owned() } else { out }
}

/// The hour in which a block begins, by its name: `20261122T08`.
pub fn hour(block: &str) -> &str {
    block.get(..11).unwrap_or(block)
}

/// The number of a block's part, by its name.
pub fn part_number(block: &str) -> Option<u64> {
    block.rsplit_once('-')?.1.parse().ok()
}

/// What all objects of a node's blocks begin with.
pub fn blocks(host: &str) -> String {
    format!("{ROOT}/nodes/{host}/blocks")
}

/// The object of a block's file.
pub fn block_file(host: &str, block: &str, file: &str) -> String {
    format!("{}/{block}/{file}", blocks(host))
}

/// What tells that a block is there, with this manifest.
pub fn index(host: &str, block: &str, crc32: u32) -> String {
    format!("{}/{host}/{block}.{crc32:08x}", index_hour(hour(block)))
}

/// What all objects begin with that tell of an hour's blocks.
pub fn index_hour(hour: &str) -> String {
    format!("{ROOT}/index/{hour}")
}

/// What all objects of a node's open parts begin with.
pub fn open(host: &str) -> String {
    format!("{ROOT}/open/{host}")
}

/// What all heartbeats of a node begin with.
pub fn heartbeats(host: &str) -> String {
    format!("{ROOT}/heartbeats/{host}")
}

/// The text that a part of a name stands for ([`part`]).
pub fn unescaped(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((plain, escape)) = rest.split_once('=') {
        bytes.extend_from_slice(plain.as_bytes());
        match escape.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = escape.get(2..).unwrap_or_default();
            }
            None => rest = escape,
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A block of an application's hour: where its files are.
pub fn gathered_files(app: &str, hour: &str, generation: &str) -> String {
    format!("{ROOT}/apps/{app}/{hour}/{generation}")
}

/// What tells of all such blocks of an application.
pub fn gathered_of(app: &str) -> String {
    format!("{ROOT}/gathered/{app}")
}

/// What tells that one such block is there.
pub fn gathered(app: &str, hour: &str, generation: &str) -> String {
    format!("{}/{hour}.{generation}", gathered_of(app))
}

/// Hour and generation of such an object's name.
pub fn gathered_name(object: &str) -> Option<(String, String)> {
    let mut parts = object.strip_prefix(ROOT)?.strip_prefix("/gathered/")?.split('/');
    let (_app, name) = (parts.next()?, parts.next().filter(|name| is_plain(name))?);
    let (hour, generation) = name.split_once('.')?;
    parts.next().is_none().then(|| (hour.to_owned(), generation.to_owned()))
}

/// Whether a text may be a part of a path here.
pub fn is_plain(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'=');
    !part.is_empty() && !part.starts_with('.') && part.len() <= 512 && part.bytes().all(plain)
}

/// A block as the index names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockName {
    /// The node's name, escaped by [`part`].
    pub host: String,
    /// The block's name: its first instant and its part's number, `20261122T080000Z-000000000007`.
    pub block: String,
    /// CRC-32 of the block's manifest.
    pub crc32: u32,
}

impl BlockName {
    /// The block that an object below `v1/index` tells of; None: the name is no such object's.
    pub fn of(object: &str) -> Option<Self> {
        let mut parts = object.strip_prefix(ROOT)?.strip_prefix("/index/")?.split('/');
        let (_hour, host, name) = (parts.next()?, parts.next()?, parts.next()?);
        let (block, crc) = name.rsplit_once('.')?;
        let crc32 = u32::from_str_radix(crc, 16).ok().filter(|_| crc.len() == 8 && parts.next().is_none())?;
        if !is_plain(host) || !is_plain(block) {
            return None;
        }
        Some(Self { host: host.to_owned(), block: block.to_owned(), crc32 })
    }
}

/// A run of a journal's records.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Piece {
    /// The node's name, escaped by [`part`].
    pub host: String,
    /// Name of the block that the journal will be.
    pub block: String,
    /// Where in the journal it begins, bytes.
    pub from: u64,
    /// Where in the journal it ends, bytes; that one is not in it.
    pub until: u64,
    /// CRC-32 of the piece's bytes.
    pub crc32: u32,
}

impl Piece {
    /// The piece that an object below `v1/open` is; None: the name is no such object's.
    pub fn of(object: &str) -> Option<Self> {
        let mut parts = object.strip_prefix(ROOT)?.strip_prefix("/open/")?.split('/');
        let (host, block, name) = (parts.next()?, parts.next()?, parts.next()?);
        let mut numbers = name.split('-');
        let (from, until) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let crc32 = u32::from_str_radix(numbers.next()?, 16).ok()?;
        let whole = from < until
            && is_plain(host)
            && is_plain(block)
            && numbers.next().is_none()
            && parts.next().is_none();
        whole.then(|| Self { host: host.to_owned(), block: block.to_owned(), from, until, crc32 })
    }

    /// The name of the piece's object.
    pub fn name(&self) -> String {
        let Self { host, block, from, until, crc32 } = self;
        format!("{}/{block}/{from:012}-{until:012}-{crc32:08x}", open(host))
    }
}

/// The pieces that follow each other from the journal's beginning: of two that begin at the same place the longer.
pub fn chain(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by_key(|piece| (piece.from, std::cmp::Reverse(piece.until)));
    let mut at = 0;
    pieces.retain(|piece| {
        let next = piece.from == at;
        at = if next { piece.until } else { at };
        next
    });
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let piece =
            Piece { host: part("node 1/x"), block: "b-000000000007".into(), from: 0, until: 24, crc32: 7 };
        assert_eq!(piece.host, "node=201=2fx");
        assert_eq!(Piece::of(&piece.name()), Some(piece));
        let name = index("node-1.x", "20261122T080000Z-000000000007", 0xab);
        assert_eq!(name, "v1/index/20261122T08/node-1.x/20261122T080000Z-000000000007.000000ab");
        let known = BlockName::of(&name).unwrap();
        assert_eq!(
            (known.host.as_str(), known.crc32, part_number(&known.block)),
            ("node-1.x", 0xab, Some(7))
        );
        for odd in [
            "v1/index/x",
            "v1/index/h/n/b",
            "v1/index/h/n/b.1",
            "v1/index/h/n/b.zz/1",
            "v2/index/h/n/b.00000001",
        ] {
            assert_eq!(BlockName::of(odd), None, "{odd}");
        }
        for odd in ["v1/open/n/b/5-5-1", "v1/open/n/b/1-2", "v1/open/n/b/1-2-3-4", "v1/open/n/b/1-2-3/4"] {
            assert_eq!(Piece::of(odd), None, "{odd}");
        }
        assert_eq!(part(".."), "=2e.");
        assert_eq!(part(""), "=");
    }

    #[test]
    fn a_chain_has_no_holes_and_nothing_twice() {
        let piece = |from, until| Piece { host: "n".into(), block: "b".into(), from, until, crc32: 0 };
        let of = |pieces: &[(u64, u64)]| {
            let chain = chain(pieces.iter().map(|(from, until)| piece(*from, *until)).collect());
            chain.iter().map(|piece| (piece.from, piece.until)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[(5, 9), (0, 5), (9, 12)]), [(0, 5), (5, 9), (9, 12)]);
        assert_eq!(of(&[(0, 5), (0, 9), (5, 9), (9, 12)]), [(0, 9), (9, 12)]);
        assert_eq!(of(&[(0, 5), (6, 9)]), [(0, 5)]);
        assert_eq!(of(&[(5, 9)]), []);
    }
}
