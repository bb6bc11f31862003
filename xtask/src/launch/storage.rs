//! What an archive may lie on: a server of its own on a free port of loopback, over a directory.

use anyhow::Result;

/// Variables of a client's environment.
pub type Environment = Vec<(String, String)>;

/// A server that tests start, stop and start again. Dropped, it ends.
pub trait Storage {
    /// An archive in it.
    fn url(&self, prefix: &str) -> String;

    /// What a client's environment needs.
    fn environment(&self) -> Environment;

    /// The same of a client who is refused, and a word that the mend must have.
    fn refused(&self) -> (Environment, &'static str);

    /// Ends it at once; what is written stays.
    fn end(&mut self);

    /// Goes on where it stopped, on the same port.
    fn begin(&mut self) -> Result<()>;
}

/// Names and values, owned.
pub(super) fn environment<const N: usize>(of: [(&str, String); N]) -> Environment {
    of.map(|(name, value)| (name.to_owned(), value)).to_vec()
}
