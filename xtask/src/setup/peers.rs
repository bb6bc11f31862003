//! What tests run on and talk to beside the kernel and a first Spark: Chromium with its WebDriver and node for the page,
//! npm and Go for servers and panels, elfutils' debuginfod for symbols, debootstrap and what makes packages, other releases
//! of Java, Python and Spark. Needed by `test` only: what cannot be had is said, and the tests that want it skip.

use super::new_python::PYTHON_3_14;
use super::runtime::{MAJORS, Runtime};
use super::{go, jdk, packages, packaging, python};
use crate::{places, root};
use anyhow::Result;

/// Programs and Debian's packages of them.
const PROGRAMS: [(&str, &str); 13] = [
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("curl", "curl"),
    ("debuginfod", "debuginfod"),
    ("unshare", "util-linux"),
    ("systemd-analyze", "systemd"),
    ("debootstrap", "debootstrap"),
    // What brings up the loopback of a system without a network.
    ("ip", "iproute2"),
    // A daemon with another clock.
    ("faketime", "faketime"),
    // The C library of Alpine, and what links programs with it.
    ("musl-gcc", "musl-tools"),
    ("xz", "xz-utils"),
];

/// Finds or installs them.
pub fn ensure() -> Result<()> {
    let gone: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| places::on_path(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if !gone.is_empty() && places::on_path("apt-get").is_some() {
        root::apt_install(&gone, "a browser and servers, to test with")?;
    }
    or_said("what makes packages", packaging::ensure());
    or_said("Go", go::ensure().map(drop));
    for major in MAJORS.into_iter().filter(|major| jdk::all().iter().all(|jdk| jdk.major != *major)) {
        // Java 8 runs in a chroot.
        if major != 8 || root::is_root() {
            or_said(&format!("Java {major}"), Runtime::ensure(major).map(drop));
        }
    }
    if root::is_root() {
        or_said(PYTHON_3_14.what, PYTHON_3_14.ensure().map(drop));
    }
    or_said("the newest Spark", python::ensure_version(python::NEWEST_PYSPARK).map(drop));
    for venv in [python::PYSPARK, python::NEWEST_PYSPARK].into_iter().filter_map(python::installed) {
        or_said("pandas for PySpark", packages::pandas(&venv).map(drop));
        or_said("a Jupyter kernel", packages::notebook(&venv).map(drop));
    }
    or_said("CPython of musl", packages::musl_python().map(drop));
    if let Some(newest) = python::installed(python::NEWEST_PYSPARK) {
        or_said("Spark Connect's client", packages::connect(&newest).map(drop));
    }
    Ok(())
}

fn or_said(what: &str, had: Result<()>) {
    if let Err(error) = had {
        eprintln!("   {what} cannot be had, so the tests that want it are skipped: {error:#}");
    }
}
