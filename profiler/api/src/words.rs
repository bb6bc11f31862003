//! The words that parameters take: one list of each for the server, the command line and the OpenAPI document.
//!
//! Units are not here: they are those of the kinds of samples ([`emberscope_model::SampleKind`]). Nor are formats
//! ([`Format`](crate::Format)), which have media types too.

/// A value of a parameter that takes one of a few words.
pub trait Word: Copy + PartialEq + Send + Sync + 'static {
    /// Every value.
    const ALL: &'static [Self];
    /// The word of each, in the same order.
    const WORDS: &'static [&'static str];
    /// The word of this value, as queries and answers have it.
    fn word(self) -> &'static str;
    /// The value that a word stands for.
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.word() == word)
    }
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$says:meta])* $value:ident = $word:literal;)+ })+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$says])* $value,)+ }
        impl Word for $name {
            const ALL: &'static [Self] = &[$(Self::$value,)+];
            const WORDS: &'static [&'static str] = &[$($word,)+];
            fn word(self) -> &'static str {
                match self { $(Self::$value => $word,)+ }
            }
        }
    )+ };
}

words! {
    /// What makes the sides of a comparison comparable.
    Scale {
        /// The left side's total is made the right side's.
        Equal = "equal";
        /// Times and other amounts are as they are.
        Absolute = "absolute";
        /// They are for each task; only of slow tasks against usual ones.
        Task = "task";
    }

    /// By what methods are sorted, the largest first.
    MethodOrder {
        /// Samples that ended in the method.
        Own = "self";
        /// Samples with the method anywhere in their stacks.
        Total = "total";
    }

    /// By what tasks are sorted, the largest first.
    TaskOrder {
        /// CPU time, helpers and Python workers counted in.
        Cpu = "cpu";
        /// Time in which the thread wanted to run and did not.
        RunDelay = "run_delay";
        /// Time in which the thread waited for something else than a CPU.
        Blocked = "blocked";
        /// Time that passed.
        Wall = "wall";
        /// What samples weigh, of the kind that is asked for; helpers and Python workers counted in.
        Amount = "amount";
        /// Spark's id of the task.
        Task = "task";
    }

    /// By what stages are sorted, the largest first.
    StageOrder {
        /// Their numbers.
        Stage = "stage";
        /// CPU time, helpers and Python workers counted in.
        Cpu = "cpu";
        /// Time in which the tasks' threads wanted to run and did not.
        RunDelay = "run_delay";
        /// Time in which the tasks' threads waited for something else than a CPU.
        Blocked = "blocked";
        /// The tasks' time that passed.
        Wall = "wall";
        /// What samples weigh, of the kind that is asked for; helpers and Python workers counted in.
        Amount = "amount";
    }

    /// What makes tasks slow.
    SlowBy {
        /// Wall time where the longest tasks used hardly more CPU than the others and waits were sampled, else CPU time.
        Auto = "auto";
        /// CPU time.
        Cpu = "cpu";
        /// Wall time.
        Wall = "wall";
    }

    /// Whether Spark is asked for its names and figures.
    Join {
        /// Where Spark can be asked.
        Auto = "auto";
        /// Not at all.
        No = "no";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held<T: Word + std::fmt::Debug>() {
        assert_eq!(T::ALL.iter().map(|value| value.word()).collect::<Vec<_>>(), T::WORDS);
        for value in T::ALL {
            assert_eq!(T::from_word(value.word()), Some(*value));
        }
        assert_eq!(T::from_word("none of them"), None);
    }

    #[test]
    fn each_word_stands_for_its_value() {
        held::<Scale>();
        held::<MethodOrder>();
        held::<TaskOrder>();
        held::<StageOrder>();
        held::<SlowBy>();
        held::<Join>();
    }
}
