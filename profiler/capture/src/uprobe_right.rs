//! Whether the kernel lets this process attach uprobes.
//!
//! CAP_PERFMON was enough from Linux 5.8 on; 6.16 asks for CAP_SYS_ADMIN again, and so do later releases of the stable
//! series before it (`perf_uprobe_event_init`, kernel/events/core.c): no version tells, so it is tried. In: nothing. Out: whether
//! an event that names no file is refused for lack of the right (EACCES), or for the file (EINVAL), which is looked at after it.

use super::perf_ring::open_event;
use perf_event_open_sys::bindings::perf_event_attr;
use std::io::ErrorKind;

/// The kind of perf events that uprobes are; its number is in the file.
const PMU: &str = "/sys/bus/event_source/devices/uprobe/type";

/// Looks whether this process may attach uprobes.
///
/// # Errors
/// The kernel has none, or wants more capabilities.
pub fn held() -> Result<(), String> {
    let number = std::fs::read_to_string(PMU).map_err(|error| format!("{PMU}: {error}"))?;
    let type_ = number.trim().parse().map_err(|error| format!("{PMU}: {error}"))?;
    let mut attr = perf_event_attr { type_, size: size_of::<perf_event_attr>() as u32, ..Default::default() };
    // It names no file, so that no event comes of it.
    match open_event(&mut attr, 0) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let why = "this kernel wants CAP_SYS_ADMIN for uprobes, as Linux 6.16 and later stable releases of older ones do";
            Err(why.to_owned())
        }
        _ => Ok(()),
    }
}
