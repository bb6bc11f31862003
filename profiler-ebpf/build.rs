//! Tells both halves of the crate which architecture they are for: `cfg(emberscope_arch = "...")`.
//!
//! A BPF target does not say whose registers its programs read; aya-ebpf takes them from `AYA_BPF_TARGET_ARCH`, or from
//! the build's host, and so does this.

use std::env;

/// What has a module in src/arch.
const KNOWN: [&str; 2] = ["x86_64", "aarch64"];
const OF_BPF: &str = "AYA_BPF_TARGET_ARCH";

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={OF_BPF}");
    let set = |name: &str| env::var(name).map_err(|_| format!("cargo sets {name}"));
    let target = set("CARGO_CFG_TARGET_ARCH")?;
    let arch = match (target.as_str(), env::var(OF_BPF)) {
        ("bpf", Ok(arch)) => arch,
        ("bpf", Err(_)) => set("HOST")?.split('-').next().unwrap_or_default().to_owned(),
        _ => target,
    };
    if !KNOWN.contains(&arch.as_str()) {
        return Err(format!(
            "there is no architecture {arch} in profiler-ebpf/src/arch: {}",
            KNOWN.join(", ")
        ));
    }
    println!("cargo::rustc-check-cfg=cfg(emberscope_arch, values(\"{}\"))", KNOWN.join("\", \""));
    println!("cargo::rustc-cfg=emberscope_arch=\"{arch}\"");
    Ok(())
}
