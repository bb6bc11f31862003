//! Tells both halves of the crate which architecture they are for: `cfg(emberscope_arch = "...")`.
//!
//! A BPF target does not say whose registers its programs read. aya-ebpf asks `cfg(bpf_target_arch)`, then the variable
//! `AYA_BPF_TARGET_ARCH`, then which host builds it (aya-build, `emit_bpf_target_arch_cfg`), and so does this.

use std::env;

/// What has a module in src/arch.
const KNOWN: [&str; 2] = ["x86_64", "aarch64"];
/// Cargo's word for `--cfg bpf_target_arch="..."`.
const FLAG: &str = "CARGO_CFG_BPF_TARGET_ARCH";
const VARIABLE: &str = "AYA_BPF_TARGET_ARCH";

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let set = |name: &str| env::var(name).map_err(|_| format!("cargo sets {name}"));
    let mut arch = set("CARGO_CFG_TARGET_ARCH")?;
    if arch == "bpf" {
        let told = env::var(FLAG).or_else(|_| env::var(VARIABLE)).ok();
        let host = || Ok::<_, String>(set("HOST")?.split('-').next().unwrap_or_default().to_owned());
        arch = told.map_or_else(host, Ok)?;
    }
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
