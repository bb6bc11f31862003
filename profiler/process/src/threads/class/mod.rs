//! What a thread of a JVM is for, by its name.
//!
//! In: a name (whole, or the 15 bytes of it that /proc/PID/task/TID/comm has) and the role of its
//! process. Out: one class of the closed list. The table is in `rules`; what it does not know is `other`.
//! Names are the process's word for it: user code may call its threads as it likes.

mod rules;

use super::name::{COMM, TaskName, parse, parse_comm};
use emberscope_model::{Role, ThreadClass};
use rules::{EVERYWHERE, Pattern};

/// The class of a thread with this name.
///
/// `main`, and `java`, which is the comm of threads that never get a name (the JVM's first thread, `main`
/// itself, native threads), by role: on a driver it runs the user's program, so `driver`; on an executor
/// it starts the process and then only waits for the end, so `vm`; on Spark's daemons `server`. Threads
/// with names that Java or a pool made up (`Thread-3`, `pool-1-thread-2`) are a driver's `driver` (py4j
/// and the user's), elsewhere `other`.
pub fn class_of(name: &str, role: Role) -> ThreadClass {
    let of_tasks = [parse(name.as_bytes()), parse_comm(name.as_bytes())];
    if of_tasks.iter().any(|n| *n != TaskName::NotATask) {
        return ThreadClass::Task;
    }
    if let Some(rule) = EVERYWHERE.iter().find(|rule| rule.pattern.matches(name)) {
        return rule.class;
    }
    if rules::MAIN.iter().any(|p| p.matches(name)) {
        return match role {
            Role::Driver => ThreadClass::Driver,
            Role::Executor => ThreadClass::Vm,
            Role::Master | Role::Worker | Role::HistoryServer | Role::ShuffleService | Role::NodeManager => {
                ThreadClass::Server
            }
            Role::AppMaster => ThreadClass::Driver,
            Role::Python | Role::Other => ThreadClass::Other,
        };
    }
    let unnamed = rules::UNNAMED.iter().any(|p| p.matches(name));
    match role {
        Role::Driver if unnamed => ThreadClass::Driver,
        _ => ThreadClass::Other,
    }
}

impl Pattern {
    /// Whether a name, or the comm of a thread that has it, fits.
    fn matches(&self, name: &str) -> bool {
        match *self {
            Self::Exact(whole) => name == whole || is_cut(name, whole),
            Self::Prefix(prefix) => name.starts_with(prefix) || is_cut(name, prefix),
            Self::Numbered(prefix) => name
                .strip_prefix(prefix)
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())),
        }
    }
}

/// Whether `name` is the comm of a thread whose name begins with `longer`.
fn is_cut(name: &str, longer: &str) -> bool {
    name.len() == COMM && longer.starts_with(name)
}

#[cfg(test)]
mod tests;
