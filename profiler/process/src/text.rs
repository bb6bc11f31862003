//! Text from other processes: bounded, valid UTF-8, on one line.

pub use emberscope_target::text::{clean, cut};

/// The part after the last slash.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_names() {
        assert_eq!(base_name("/usr/bin/java"), "java");
        assert_eq!(base_name("java"), "java");
        assert_eq!(base_name("/"), "");
    }
}
