//! Settings that are one of a few words.

use super::units::ByteSize;
use super::values::{Refused, refused};
use std::fmt;
use std::str::FromStr;

/// Types whose values are a word each.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$says:meta])* $value:ident = $word:literal,)+ } else $allowed:literal)+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$says])* $value,)+ }
        impl FromStr for $name {
            type Err = Refused;
            fn from_str(text: &str) -> Result<Self, Refused> {
                match text { $($word => Ok(Self::$value),)+ _ => refused($allowed) }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$value => $word,)+ })
            }
        }
    )+ };
}

words! {
    /// When the journal is flushed.
    FsyncWhen {
        /// After each window.
        Window = "window",
        /// When the kernel does.
        Never = "never",
    } else "window or never"

    /// What happens on a full disk.
    FullDisk {
        /// The oldest block goes.
        Drop = "drop",
        /// Nothing new is written.
        Stop = "stop",
    } else "drop or stop"

    /// How log lines look.
    LogFormat {
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    } else "text or json"
}

/// Space that is left free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeSpace {
    /// By the size of the file system.
    Auto,
    /// So many bytes.
    Bytes(ByteSize),
    /// So many hundredths of it.
    Percent(u8),
}

impl FromStr for FreeSpace {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Self, Refused> {
        let wanted = "auto, a size (2GiB) or a percentage (10%) below 100";
        match text.strip_suffix('%') {
            Some(number) => match number.parse() {
                Ok(percent) if percent < 100 => Ok(Self::Percent(percent)),
                _ => refused(wanted),
            },
            None if text == "auto" => Ok(Self::Auto),
            None => text.parse().map(Self::Bytes).or_else(|_| refused(wanted)),
        }
    }
}

impl fmt::Display for FreeSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}
