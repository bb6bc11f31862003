//! Which kernels there are, and which package a name stands for.
//!
//! In: `apt-cache search`'s lines. Out: for each series (5.10, 6.1, ...) its newest release. A release's packages are
//! its image and, where Debian has split it, its binary and modules.

use std::collections::BTreeMap;

/// The newest release of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// First two numbers: `6.1`.
    pub series: String,
    /// As `uname -r` says: `6.1.0-50-cloud-amd64`.
    pub release: String,
    /// Packages that hold it.
    pub packages: Vec<String>,
}

/// Parts that a kernel's packages are named by.
const PARTS: [&str; 3] = ["linux-image-", "linux-binary-", "linux-modules-"];

/// The newest of each series, the oldest series first; `debian` is Debian's name for the architecture.
pub fn newest(search: &str, debian: &str) -> Vec<Release> {
    let flavour = format!("-cloud-{debian}");
    let mut found: BTreeMap<(u64, u64), (Vec<u64>, Release)> = BTreeMap::new();
    let names = search.lines().filter_map(|line| line.split(" - ").next()).map(str::trim);
    for name in names {
        let Some((release, order)) = parse(name, &flavour) else { continue };
        let [major, minor, ..] = order[..] else { continue };
        let new =
            Release { series: format!("{major}.{minor}"), release: release.to_owned(), packages: vec![] };
        let entry = found.entry((major, minor)).or_insert_with(|| (order.clone(), new.clone()));
        if order > entry.0 {
            *entry = (order, new);
        }
        if entry.1.release == release && !entry.1.packages.iter().any(|package| package == name) {
            entry.1.packages.push(name.to_owned());
        }
    }
    // Binary and modules alone are no kernel.
    let whole = |release: &Release| release.packages.iter().any(|package| package.starts_with(PARTS[0]));
    found.into_values().map(|(_, release)| release).filter(whole).collect()
}

/// A package's release and the numbers in it; None for what is no kernel or stands for the newest of them.
fn parse<'a>(package: &'a str, flavour: &str) -> Option<(&'a str, Vec<u64>)> {
    let release = PARTS.iter().find_map(|part| package.strip_prefix(part))?;
    let version = release.strip_suffix(flavour)?;
    let numbers = version.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    let numbers = numbers.map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
    (numbers.len() > 2 && version.starts_with(|c: char| c.is_ascii_digit())).then_some((release, numbers))
}

/// Those named, or the `usual` series and the newest there is; `Err` names the one that is not among them.
pub fn chosen(there: &[Release], names: &[String], usual: &[&str]) -> Result<Vec<Release>, String> {
    let of = |name: &str| there.iter().find(|release| release.series == name || release.release == name);
    if names.is_empty() {
        let usual = usual.iter().filter_map(|name| of(name));
        let mut all: Vec<Release> = usual.chain(there.last()).cloned().collect();
        all.dedup();
        return Ok(all);
    }
    names.iter().map(|name| of(name).cloned().ok_or_else(|| name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // apt-cache search --names-only, November 2026, in part.
    const SEARCH: &str = "\
linux-image-5.10.0-32-cloud-amd64 - Linux 5.10 for x86-64 cloud (signed)
linux-image-cloud-amd64 - Linux for x86-64 cloud (meta-package)
linux-image-6.1-cloud-amd64 - Linux for x86-64 cloud (meta-package)
linux-image-6.1.0-0.deb11.52-cloud-amd64 - Linux 6.1 for x86-64 cloud (signed)
linux-image-5.10.0-46-cloud-amd64 - Linux 5.10 for x86-64 cloud (signed)
linux-image-5.10.0-5-cloud-amd64 - Linux 5.10 for x86-64 cloud (signed)
linux-image-6.1.0-50-cloud-amd64 - Linux 6.1 for x86-64 cloud (signed)
linux-image-6.12.107+deb13-cloud-amd64 - Linux 6.12 for x86-64 cloud (signed)
linux-image-6.12.94+deb13-cloud-amd64 - Linux 6.12 for x86-64 cloud (signed)
linux-image-6.12.107+deb13-cloud-amd64-unsigned - Linux 6.12 for x86-64 cloud
linux-modules-7.3.4+deb13-cloud-amd64 - Linux 7.3.4 for x86-64 cloud (modules)
linux-image-7.3.4+deb13-cloud-amd64 - Linux 7.3.4 for x86-64 cloud
linux-binary-7.3.4+deb13-cloud-amd64 - Linux 7.3.4 for x86-64 cloud (kernel image)
linux-modules-7.4.1+deb13-cloud-amd64 - Linux 7.4.1 for x86-64 cloud (modules)
";

    #[test]
    fn the_newest_release_of_each_series_is_found() {
        let all = newest(SEARCH, "amd64");
        let releases: Vec<&str> = all.iter().map(|release| release.release.as_str()).collect();
        assert_eq!(
            releases,
            [
                "5.10.0-46-cloud-amd64",
                "6.1.0-50-cloud-amd64",
                "6.12.107+deb13-cloud-amd64",
                "7.3.4+deb13-cloud-amd64"
            ]
        );
        assert_eq!(all[0].packages, ["linux-image-5.10.0-46-cloud-amd64"]);
        assert_eq!(all[3].packages.len(), 3);
    }

    #[test]
    fn names_are_series_or_releases() {
        let all = newest(SEARCH, "amd64");
        let series = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&all, &names, &["5.10", "6.1", "6.12"])
                .map(|found| found.into_iter().map(|release| release.series).collect::<Vec<_>>())
        };
        assert_eq!(series(&[]).unwrap(), ["5.10", "6.1", "6.12", "7.3"]);
        assert_eq!(series(&["7.3", "6.1.0-50-cloud-amd64"]).unwrap(), ["7.3", "6.1"]);
        assert_eq!(series(&["6.1", "4.19"]), Err("4.19".to_owned()));
        assert!(chosen(&[], &[], &["6.1"]).unwrap().is_empty());
        assert!(newest(SEARCH, "arm64").is_empty());
    }
}
