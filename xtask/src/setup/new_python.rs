//! CPython 3.14, which Debian has in sid, in a [`Chroot`]: static, stripped, with LTO and PGO, its eval loop in two parts.

use super::chroot::Chroot;

/// With the C library of the same suite.
pub const PYTHON_3_14: Chroot = Chroot {
    what: "Python 3.14",
    dir: "pythons/debian-3.14",
    suites: &["sid"],
    packages: &[
        "python3.14-minimal/sid",
        "libpython3.14-minimal/sid",
        "libpython3.14-stdlib/sid",
        "libc6/sid",
        "libexpat1/sid",
        "zlib1g/sid",
        "libzstd1/sid",
        "libssl3t64/sid",
        "libffi8/sid",
        // numpy's.
        "libstdc++6/sid",
        "libgcc-s1/sid",
    ],
    program: "/usr/bin/python3.14",
};
