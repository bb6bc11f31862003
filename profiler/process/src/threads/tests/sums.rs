//! Whatever records are lost: what is booked adds up.

use super::*;

/// What happens to one thread of the pool.
#[derive(Clone, Copy, Debug)]
enum Step {
    Task,
    Idle,
    Other,
    Asked,
}

proptest! {
    /// Whatever records are lost: what is booked adds up to what was used, no task gets more than it used,
    /// and no sample gets a task that its thread did not run.
    #[test]
    fn lines_add_up(steps in proptest::collection::vec(
        (prop_oneof![Just(Step::Task), Just(Step::Idle), Just(Step::Other), Just(Step::Asked)], 0u64..9, any::<bool>()),
        1..60,
    )) {
        let mut w = World::new(Limits::default());
        let (mut seq, mut cpu, mut current) = (0u32, 0u64, None::<u32>);
        let mut truth = HashMap::<u32, u64>::new();
        let mut booked = HashMap::<String, u64>::new();
        let (mut delivered, mut names) = (0u64, HashMap::<u32, Option<u32>>::new());
        for (i, (step, used, lost)) in steps.iter().copied().enumerate() {
            cpu += used;
            if let Some(task) = current {
                *truth.entry(task).or_default() += used;
            }
            let previous = seq;
            let at = 10 * i as u64 + 10;
            let record = match step {
                Step::Asked => asked(5, seq, at, cpu),
                Step::Task | Step::Idle | Step::Other => {
                    seq += 1;
                    let running = matches!(step, Step::Task).then_some(seq);
                    let name = match step {
                        Step::Task => format!("Executor task launch worker for task 0.0 in stage 0.0 (TID {seq})"),
                        Step::Idle => IDLE.to_owned(),
                        _ => "user's".to_owned(),
                    };
                    // A user's name in a task leaves it the task's.
                    let kept = matches!(step, Step::Other).then(|| names.get(&previous).copied().flatten());
                    names.insert(seq, running.or(kept.flatten()));
                    if !matches!(step, Step::Idle) {
                        current = names.get(&seq).copied().flatten();
                    }
                    named(5, (previous, seq), &name, at, cpu)
                }
            };
            if !lost {
                let before = booked.values().sum::<u64>();
                for (who, cpu, ..) in w.record(young(record, 1)) {
                    *booked.entry(who).or_default() += cpu;
                }
                // An answer with a number that was not heard of waits for the next record.
                if booked.values().sum::<u64>() != before || !matches!(step, Step::Asked) {
                    delivered = cpu;
                }
            }
            let who = w.sample(5, seq);
            if let Some(tid) = who.strip_prefix("task 0.0 0.0 ") {
                prop_assert_eq!(names.get(&seq).copied().flatten(), tid.parse().ok(), "{}", who);
            }
        }
        let total: u64 = booked.values().sum();
        prop_assert_eq!(total, delivered);
        for (who, cpu) in &booked {
            if let Some(tid) = who.strip_prefix("task 0.0 0.0 ") {
                prop_assert!(*cpu <= truth.get(&tid.parse().unwrap()).copied().unwrap_or(0), "{}", who);
            }
        }
    }
}
