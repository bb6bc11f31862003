//! Archives as the kernel unpacks them at its start (Documentation/driver-api/early-userspace/buffer-format.rst): cpio
//! of the "newc" kind.

/// An archive that grows.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Archive {
    /// Adds a directory; the ones above it must be there.
    pub fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, &[]);
    }

    /// Adds a file that may be executed.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    /// The whole of it.
    pub fn finish(mut self) -> Vec<u8> {
        self.inode = 0;
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        let links = if mode == DIRECTORY { 2 } else { 1 };
        // inode, mode, uid, gid, links, time, size, device (major, minor), device it is (the same), name's length, sum.
        let fields =
            [self.inode, mode, 0, 0, links, 0, content.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        self.inode += 1;
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_contents_begin_at_multiples_of_four() {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.file("bin/sh", b"hello");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("07070100000000000041ed"));
        // 110 bytes of head, then the name and its zero: the next begins at 116.
        assert_eq!(&text[110..116], "bin\0\0\0");
        assert_eq!(&text[116..122], "070701");
        // Mode, links and size of the second.
        assert_eq!(&text[130..138], "000081ed");
        assert_eq!(&text[116 + 54..116 + 62], "00000005");
        assert_eq!(&text[226..241], "bin/sh\0\0\0\0hello");
        assert!(text.trim_end_matches('\0').ends_with("TRAILER!!!"));
    }
}
