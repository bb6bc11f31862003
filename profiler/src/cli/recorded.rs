//! A data directory for tests.

use super::stopped::store_dir;
use std::path::Path;

/// A data directory with the store that the first version wrote. It is copied without a program: a child between fork and
/// exec holds the locks of the tests beside it.
pub fn fixture() -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let to = to.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true => copy(&entry.path(), &to)?,
                false => std::fs::copy(entry.path(), to).map(|_| ())?,
            }
        }
        Ok(())
    }
    let dir = tempfile::tempdir().unwrap();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/store-1");
    copy(Path::new(fixture), &store_dir(dir.path())).unwrap();
    dir
}
