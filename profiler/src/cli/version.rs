//! What `emberscope --version` prints: the version and the build id, by which the debug info of exactly this program is
//! found. The linker makes the id of what it linked, so the program can only read it from its own file.

use emberscope_target::elf::Headers;
use emberscope_target::text::hex;
use std::fs::File;

/// As the manifest has it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `0.2.0 (build id 5f0c...)`; the version alone where the linker wrote no id or /proc is not mounted.
pub(super) fn text() -> String {
    match build_id() {
        Some(id) => format!("{VERSION} (build id {id})"),
        None => VERSION.to_owned(),
    }
}

fn build_id() -> Option<String> {
    let file = File::open("/proc/self/exe").ok()?;
    let size = file.metadata().ok()?.len();
    Headers::read(&file, size).ok()?.build_id(&file).map(|id| hex(&id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_first() {
        assert_eq!(text().split(' ').next(), Some(VERSION));
        let known = text().ends_with(&format!("(build id {})", build_id().unwrap_or_default()));
        assert!(known || build_id().is_none() && text() == VERSION, "{}", text());
    }
}
