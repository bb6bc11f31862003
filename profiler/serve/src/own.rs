//! What the daemon itself uses: CPU time, memory and start time, from /proc/self.
//!
//! In: nothing. Out: [`OwnUsage`]; None where /proc cannot be read. Reads two small files of our own
//! process, never a target's.

use emberscope_model::WallTime;
use std::fs;

/// What the daemon itself uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnUsage {
    /// CPU time since the start, user and system, seconds.
    pub cpu_seconds: f64,
    /// Resident memory, bytes.
    pub resident_bytes: usize,
    /// Start, Unix time in seconds.
    pub start_unix_seconds: f64,
}

/// Reads what the daemon uses, from /proc; None where that cannot be read.
pub fn usage() -> Option<OwnUsage> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    parse(&stat, ticks, rustix::param::page_size(), WallTime::now().as_secs_f64() - uptime)
}

/// `boot` is the Unix time of the boot. Field numbers are those of proc_pid_stat(5).
fn parse(stat: &str, ticks: f64, page: usize, boot: f64) -> Option<OwnUsage> {
    // The name (field 2) may hold anything: fields are counted from behind its closing bracket.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let field = |number: usize| -> Option<u64> { fields.get(number - 3)?.parse().ok() };
    Some(OwnUsage {
        cpu_seconds: (field(14)? + field(15)?) as f64 / ticks,
        resident_bytes: usize::try_from(field(24)?).ok()?.saturating_mul(page),
        start_unix_seconds: boot + field(22)? as f64 / ticks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_behind_an_odd_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 9 0 1000 5000 300 184467 1 1";
        let got = parse(stat, 100.0, 4096, 1e9).unwrap();
        assert_eq!(got.cpu_seconds, 3.0);
        assert_eq!(got.resident_bytes, 300 * 4096);
        assert_eq!(got.start_unix_seconds, 1e9 + 10.0);
        assert_eq!(parse("7 (a) S 1", 100.0, 4096, 0.0), None);
    }
}
