//! The architectures that the daemon is built for, by the names that each tool has for them.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Arch {
    /// 64-bit x86
    #[value(name = "x86-64", aliases = ["x86_64", "amd64"])]
    X86_64,
    /// 64-bit Arm
    #[value(name = "arm64", alias = "aarch64")]
    Arm64,
}

impl Arch {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Arm64];

    /// This machine's; None: the daemon runs on no such machine.
    pub fn own() -> Option<Self> {
        Self::ALL.into_iter().find(|arch| arch.rust() == std::env::consts::ARCH)
    }

    /// A name for what this machine has without its architecture's and others with it: `kernels`, `kernels-arm64`.
    pub fn own_or_named(self, name: &str) -> String {
        if Self::own() == Some(self) { name.to_owned() } else { format!("{name}-{}", self.debian()) }
    }

    /// As Rust calls it, and aya after it.
    pub const fn rust(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// Rust's target.
    pub const fn target(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// As Debian calls it.
    pub const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The prefix of GNU's tools for it, as commands and in packages' names.
    pub const fn gnu(self) -> (&'static str, &'static str) {
        match self {
            Self::X86_64 => ("x86_64-linux-gnu", "x86-64-linux-gnu"),
            Self::Arm64 => ("aarch64-linux-gnu", "aarch64-linux-gnu"),
        }
    }
}
