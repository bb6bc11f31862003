//! What Spark calls a thread that runs its tasks.
//!
//! In: a thread's name, as bytes of anything (user code may set any name). Out: [`TaskName`]. Formats
//! (Executor.scala; TaskSetManager.scala for the part behind `for`):
//!   `Executor task launch worker for task TID`                               2.4, 3.0
//!   `Executor task launch worker for task I.A in stage S.B (TID T)`          3.1 on
//!   `Executor task launch worker-N`          a fresh thread of the pool, for some milliseconds, all versions
//!   `Executor task idle worker#J`            after a task, 4.2 on (SPARK-54861); J is Java's thread number
//! Barrier tasks, speculative copies, retries and local mode are named alike: a copy or retry has another
//! attempt. Strict: a name that begins like Spark's and does not end like it is `Unrecognised`, not a task.

/// How every name of a thread that runs tasks begins.
const WORKER: &str = "Executor task launch worker";
/// See [`WORKER`].
const LAUNCH: &[u8] = WORKER.as_bytes();
/// How the name begins that it takes between tasks.
const IDLE: &[u8] = b"Executor task idle worker";
/// A thread's comm is cut at this many bytes: TASK_COMM_LEN less the zero (linux/sched.h).
pub(super) const COMM: usize = 15;

/// A task, as far as a thread's name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// Stage; None where the name has only `tid` (up to Spark 3.0). The next three are 0 then.
    pub stage: Option<u32>,
    /// Attempt of the stage.
    pub stage_attempt: u32,
    /// Place in the task set; not the partition where only some partitions run.
    pub index: u32,
    /// Attempt of this index: retries and speculative copies count up.
    pub attempt: u32,
    /// Spark's TID, unique in an application.
    pub tid: u64,
}

/// What a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskName {
    /// The thread runs this task.
    Running(TaskId),
    /// The thread ran a task and waits for the next.
    Idle,
    /// The thread belongs to the pool and has not run a task yet.
    Pool,
    /// The name begins like Spark's names, and no format that is known goes on so.
    Unrecognised,
    /// The name is another thread's.
    NotATask,
}

/// Reads a whole name. For names cut at 15 bytes there is [`parse_comm`].
pub fn parse(name: &[u8]) -> TaskName {
    if let Some(rest) = name.strip_prefix(LAUNCH) {
        let known = match rest.strip_prefix(b" for task ") {
            Some(task) => task_id(task).map(TaskName::Running),
            None => numbered(rest, b"-").then_some(TaskName::Pool),
        };
        return known.unwrap_or(TaskName::Unrecognised);
    }
    match name.strip_prefix(IDLE) {
        Some(rest) if numbered(rest, b"#") => TaskName::Idle,
        Some(_) => TaskName::Unrecognised,
        None => TaskName::NotATask,
    }
}

/// A thread's name as who did something for others: all threads of the pool that runs tasks have one, whatever task they run by the
/// time that the name is read, or none.
pub fn thread_or_pool(name: &str) -> &str {
    let of_pool = [LAUNCH, IDLE].iter().any(|pool| name.as_bytes().starts_with(pool));
    if of_pool { WORKER } else { name }
}

/// Reads a thread's comm, in which there is no number. `Executor task l` may run a task, or have run one
/// or none: Unrecognised. The idle name is told apart.
pub fn parse_comm(comm: &[u8]) -> TaskName {
    match comm {
        _ if Some(comm) == LAUNCH.get(..COMM) => TaskName::Unrecognised,
        _ if Some(comm) == IDLE.get(..COMM) => TaskName::Idle,
        _ => TaskName::NotATask,
    }
}

/// `sign` and a number, and nothing else.
fn numbered(rest: &[u8], sign: &[u8]) -> bool {
    rest.strip_prefix(sign).and_then(|digits| number(digits, i64::MAX as u64)).is_some()
}

/// `TID`, or `I.A in stage S.B (TID T)`.
fn task_id(text: &[u8]) -> Option<TaskId> {
    if let Some(tid) = number(text, i64::MAX as u64) {
        return Some(TaskId { stage: None, stage_attempt: 0, index: 0, attempt: 0, tid });
    }
    let (task, rest) = split(text, b" in stage ")?;
    let (stage, rest) = split(rest, b" (TID ")?;
    let (index, attempt) = pair(task)?;
    let (stage, stage_attempt) = pair(stage)?;
    let tid = number(rest.strip_suffix(b")")?, i64::MAX as u64)?;
    Some(TaskId { stage: Some(stage), stage_attempt, index, attempt, tid })
}

fn split<'a>(text: &'a [u8], by: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(by.len()).position(|w| w == by)?;
    Some((text.get(..at)?, text.get(at + by.len()..)?))
}

fn pair(text: &[u8]) -> Option<(u32, u32)> {
    let (a, b) = split(text, b".")?;
    // Scala's Int.
    let int = |digits| number(digits, i32::MAX as u64).map(|n| n as u32);
    Some((int(a)?, int(b)?))
}

/// A number as the JVM prints it: no sign, no leading zero, at most `max`.
fn number(digits: &[u8], max: u64) -> Option<u64> {
    let canonical = matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && digits.len() <= 19;
    if !canonical || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let n = digits.iter().fold(0u64, |n, d| n.saturating_mul(10).saturating_add(u64::from(d - b'0')));
    (n <= max).then_some(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(stage: u32, stage_attempt: u32, index: u32, attempt: u32, tid: u64) -> TaskName {
        TaskName::Running(TaskId { stage: Some(stage), stage_attempt, index, attempt, tid })
    }
    fn spelled(t: &TaskId) -> String {
        let TaskId { stage, stage_attempt, index, attempt, tid } = t;
        match stage {
            Some(stage) => format!(
                "Executor task launch worker for task {index}.{attempt} in stage {stage}.{stage_attempt} (TID {tid})"
            ),
            None => format!("Executor task launch worker for task {tid}"),
        }
    }

    #[test]
    fn every_format() {
        let running = |rest: &str| parse(format!("Executor task launch worker for task {rest}").as_bytes());
        assert_eq!(running("2.0 in stage 0.0 (TID 2)"), task(0, 0, 2, 0, 2));
        assert_eq!(running("17.3 in stage 12.1 (TID 4711)"), task(12, 1, 17, 3, 4711));
        assert_eq!(
            running("2147483647.0 in stage 2147483647.0 (TID 9223372036854775807)"),
            task(i32::MAX as u32, 0, i32::MAX as u32, 0, i64::MAX as u64)
        );
        assert_eq!(
            running("4711"),
            TaskName::Running(TaskId { stage: None, stage_attempt: 0, index: 0, attempt: 0, tid: 4711 })
        );
        assert_eq!(parse(b"Executor task launch worker-0"), TaskName::Pool);
        assert_eq!(parse(b"Executor task launch worker-31"), TaskName::Pool);
        assert_eq!(parse(b"Executor task idle worker#57"), TaskName::Idle);
    }

    #[test]
    fn look_alikes_are_no_tasks() {
        for rest in [
            "",
            " ",
            " for task ",
            " for task evil",
            " for task 1.0",
            " for task 1.0 in stage 2.0",
            " for task 1.0 in stage 2.0 (TID 3",
            " for task 1.0 in stage 2.0 (TID 3) ",
            " for task 1.0 in stage 2.0 (TID 3)\n",
            " for task 1.0 in stage 2.0 (TID 3)x",
            " for task 1.0 in stage 2.0 (TID -3)",
            " for task 1.0 in stage 2.0 (TID +3)",
            " for task 1.0 in stage 2.0 (TID 03)",
            " for task 1.0 in stage 2.0 (TID 3.0)",
            " for task 1.0 in stage 2.0 in stage 2.0 (TID 3)",
            " for task 1 in stage 2.0 (TID 3)",
            " for task 1.0.0 in stage 2.0 (TID 3)",
            " for task 01.0 in stage 2.0 (TID 3)",
            " for task 1.0 in stage 2147483648.0 (TID 3)",
            " for task 1.0 in stage 4294967296.0 (TID 3)",
            " for task 1.0 in stage 2.0 (TID 9223372036854775808)",
            " for task 99999999999999999999999999999999",
            " for task 1.0  in stage 2.0 (TID 3)",
            " for  task 3",
            " for task ٣",
            "-",
            "-x",
            "-1x",
            "#1",
        ] {
            let name = format!("Executor task launch worker{rest}");
            assert_eq!(parse(name.as_bytes()), TaskName::Unrecognised, "{name:?}");
        }
        for name in ["Executor task idle worker", "Executor task idle worker#", "Executor task idle worker-1"]
        {
            assert_eq!(parse(name.as_bytes()), TaskName::Unrecognised, "{name:?}");
        }
        assert_eq!(parse(b"Executor task launch worker for task 3\0"), TaskName::Unrecognised);
        assert_eq!(parse(b"Executor task launch worker for task \xff\xfe"), TaskName::Unrecognised);
        assert_eq!(parse(&[LAUNCH, &[b'9'; 10_000]].concat()), TaskName::Unrecognised);
    }

    #[test]
    fn others_are_others() {
        for name in
            ["", "main", "Task reaper-7", "Executor task", " Executor task launch worker-1", "GC Thread#0"]
        {
            assert_eq!(parse(name.as_bytes()), TaskName::NotATask, "{name:?}");
        }
        assert_eq!(parse(b"executor task launch worker-1"), TaskName::NotATask);
    }

    #[test]
    fn comms_tell_idle_from_the_rest() {
        assert_eq!(parse_comm(b"Executor task l"), TaskName::Unrecognised);
        assert_eq!(parse_comm(b"Executor task i"), TaskName::Idle);
        for comm in ["", "Executor task", "Executor task x", "java"] {
            assert_eq!(parse_comm(comm.as_bytes()), TaskName::NotATask, "{comm}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_spark_writes(
            stage in proptest::option::of(0..=i32::MAX as u32),
            [stage_attempt, index, attempt] in [0..=i32::MAX as u32, 0..=i32::MAX as u32, 0..=i32::MAX as u32],
            tid in 0..=i64::MAX as u64,
        ) {
            let known = stage.is_some();
            let of = |n| if known { n } else { 0 };
            let id = TaskId {
                stage, stage_attempt: of(stage_attempt), index: of(index), attempt: of(attempt), tid,
            };
            prop_assert_eq!(parse(spelled(&id).as_bytes()), TaskName::Running(id));
        }
        /// What is taken for a task is spelled exactly as Spark spells it.
        #[test]
        fn takes_nothing_else(rest in "[ -]?(for task )?[0-9x.]{0,6}( in stage )?[0-9.]{0,6}( \\(TID )?[0-9]{0,4}[)\n ]?") {
            let name = format!("Executor task launch worker{rest}");
            if let TaskName::Running(id) = parse(name.as_bytes()) {
                prop_assert_eq!(spelled(&id), name);
            }
        }
        #[test]
        fn takes_any_bytes(mut name in proptest::collection::vec(any::<u8>(), 0..300), like_spark: bool) {
            if like_spark {
                name.splice(0..0, b"Executor task launch worker for task ".iter().copied());
            }
            if let TaskName::Running(id) = parse(&name) {
                let again = spelled(&id).into_bytes();
                prop_assert_eq!(&again, &name);
            }
            parse_comm(&name);
        }
    }
}
