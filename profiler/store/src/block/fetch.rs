//! Blocks whose files come as they are asked for.

use std::io;

/// Brings a file of a block into its directory, where it is not there.
pub trait Fetch: Send + Sync {
    /// Returns once the file is there as the manifest says.
    ///
    /// # Errors
    /// The file cannot be brought, or is not as the manifest says.
    fn fetch(&self, file: &str) -> io::Result<()>;
}
