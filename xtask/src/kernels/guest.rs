//! Boots a kernel in qemu, lets it run the check, and fetches what that left.
//!
//! In: an unpacked kernel and the system. Out: an [`Outcome`]. The guest has two CPUs, no network, a disk that it only
//! reads, and one that it writes a tar archive to. By emulation (TCG) unless told: where a virtual machine offers
//! /dev/kvm, guests may start and fail in it. Whatever happens, qemu ends with us: by time-out, when this is dropped,
//! or when we die.

use super::outcome::Outcome;
use super::packages::Kernel;
use super::system::System;
use super::{Mode, initramfs};
use crate::arch::Arch;
use crate::launch::Running;
use crate::{places, root, step};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Memory of the guest, MB: JVMs with small heaps, or Spark's driver, and the daemon while it reads symbols.
const MEMORY: &str = "3072";
/// Room for what comes back: answers and logs, most of it an application's stacks.
const OUT_BYTES: u64 = 256 << 20;
/// An emulated CPU is some thirty times slower, and this machine may be busy: five minutes are usual.
const FULL: Duration = Duration::from_secs(900);
const QUICK: Duration = Duration::from_secs(240);

/// A panic ends qemu, as there is no reboot. On a busy machine an emulated timer ticks too late for the kernel's check of
/// it, which would be such a panic.
const BOOT: &str = "loglevel=5 panic=-1 no_timer_check mitigations=off";

/// The machine that is emulated.
struct Machine {
    /// The program, and Debian's package of it.
    qemu: (&'static str, &'static str),
    /// What board it is, and the CPU.
    board: &'static [&'static str],
    /// The serial port, as the kernel calls it.
    console: &'static str,
}

impl Machine {
    const fn of(arch: Arch) -> Self {
        match arch {
            Arch::X86_64 => Self {
                qemu: ("qemu-system-x86_64", "qemu-system-x86"),
                board: &["-cpu", "max"],
                console: "ttyS0",
            },
            // Signatures of pointers as the CPU likes: those of the architecture's own cipher take longer than all else.
            Arch::Arm64 => Self {
                qemu: ("qemu-system-aarch64", "qemu-system-arm"),
                board: &["-M", "virt", "-cpu", "max,pauth-impdef=on"],
                console: "ttyAMA0",
            },
        }
    }
}

/// qemu for an architecture, installed where there is none.
pub fn ensure(arch: Arch) -> Result<PathBuf> {
    let (qemu, package) = Machine::of(arch).qemu;
    if places::on_path(qemu).is_none() {
        root::apt_install(&[package], "qemu")?;
    }
    places::on_path(qemu).with_context(|| format!("{package} is installed, yet there is no {qemu}"))
}

/// Runs the check on a kernel; its files are in `dir`.
pub fn run(
    qemu: &Path,
    kernel: &Kernel,
    system: &System,
    dir: &Path,
    (mode, kvm): (Mode, bool),
) -> Result<Outcome> {
    let _ = std::fs::remove_dir_all(dir);
    let out = dir.join("out");
    std::fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let initrd = dir.join("initramfs");
    let archive = initramfs::make(kernel, &system.busybox)?;
    std::fs::write(&initrd, archive).with_context(|| format!("writing {}", initrd.display()))?;
    let disk = dir.join("out.tar");
    let file = std::fs::File::create(&disk).with_context(|| format!("creating {}", disk.display()))?;
    file.set_len(OUT_BYTES).with_context(|| format!("making room in {}", disk.display()))?;

    let drive = |path: &Path, more: &str| format!("file={},if=virtio,format=raw{more}", path.display());
    let mut command = Command::new(qemu);
    let accel = if kvm { "kvm" } else { "tcg,thread=multi" };
    let machine = Machine::of(system.arch);
    command.args(machine.board).args(["-accel", accel, "-smp", "2", "-m", MEMORY]);
    command.args(["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"]);
    command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(&initrd);
    command.args(["-append", &format!("console={} {BOOT} MODE={}", machine.console, mode.word())]);
    command.args(["-drive", &drive(&system.image, ",readonly=on"), "-drive", &drive(&disk, "")]);
    let log = dir.join("console.log");
    let mut guest = Running::start("the guest", &mut command, &log)?;
    let limit = if mode == Mode::Quick { QUICK } else { FULL };
    let ended = guest.wait(limit);
    drop(guest);
    unpack(&disk, &out)?;
    let outcome = Outcome::read(dir);
    if let Err(error) = ended {
        bail!("{error:#}\nall that it wrote is in {}", dir.display());
    }
    if outcome.fact("up").is_none() {
        bail!("the kernel did not come up; its console's end:\n{}", step::tail(&log, 20));
    }
    Ok(outcome)
}

/// An archive that was never written is all zeros, and empty to tar.
fn unpack(disk: &Path, out: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(out).arg("-xf").arg(disk);
    step::run("reading what the guest left", &mut tar, "look at the guest's console.log").map(drop)?;
    std::fs::remove_file(disk).with_context(|| format!("removing {}", disk.display()))
}
