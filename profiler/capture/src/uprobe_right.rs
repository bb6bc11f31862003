//! Whether the kernel lets this process attach uprobes.
//!
//! CAP_PERFMON was enough from Linux 5.8 on; 6.16 asks for CAP_SYS_ADMIN again, and so do later releases of the stable
//! series before it (`perf_uprobe_event_init`, kernel/events/core.c): no version tells, so it is tried. In: nothing. Out: whether
//! an event that names no file is refused for lack of the right (EACCES), or for the file (EINVAL), which is looked at after it.
#![allow(unsafe_code)]

use perf_event_open_sys::{bindings as perf, perf_event_open};
use std::io::ErrorKind;

/// The kind of perf events that uprobes are; its number is in the file.
pub const PMU: &str = "/sys/bus/event_source/devices/uprobe/type";

/// Why uprobes cannot be attached by this process.
///
/// # Errors
/// The kernel has none, or wants more capabilities.
pub fn held() -> Result<(), String> {
    let number = std::fs::read_to_string(PMU).map_err(|error| format!("{PMU}: {error}"))?;
    let type_ = number.trim().parse().map_err(|error| format!("{PMU}: {error}"))?;
    let mut attr = perf::perf_event_attr {
        type_,
        size: size_of::<perf::perf_event_attr>() as u32,
        ..Default::default()
    };
    // SAFETY: `attr` is valid and says its size; the kernel copies it. It names no file, so that no event comes of it.
    let fd = unsafe { perf_event_open(&mut attr, -1, 0, -1, u64::from(perf::PERF_FLAG_FD_CLOEXEC) as _) };
    if fd >= 0 {
        // SAFETY: just opened, and nobody else has it.
        drop(unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd) });
        return Ok(());
    }
    match std::io::Error::last_os_error().kind() {
        ErrorKind::PermissionDenied => {
            Err("this kernel wants CAP_SYS_ADMIN for uprobes, as Linux 6.16 and later stable releases of older ones do".to_owned())
        }
        _ => Ok(()),
    }
}
