//! Pure data that every room shares: samples, frames, stacks, labels, windows, selections, answers.
//!
//! Imports nothing of the other rooms and does no I/O. Types are named by where they are on a sample's
//! way: [`RawSample`] and [`RawStack`] as the kernel gave them, [`Stack`] once named, [`Window`] once
//! counted, [`Answer`] once merged for a [`Query`].

mod answer;
mod fast;
mod frame;
mod growing;
mod ids;
mod kind;
mod labels;
mod missing;
mod named;
mod operator;
mod pause;
mod probe;
mod process;
mod raw;
mod rewrite;
mod run_names;
mod secrets;
mod selection;
mod spark;
mod stack;
mod tenant;
mod thread;
mod time;
mod wait;
mod wait_reason;
mod window;

pub use answer::{
    Answer, LabelTotal, LedgerTotal, MethodAnswer, MethodSum, Node, NodeId, Quality, SeriesPoint, Summary,
    Tree, sampling_error,
};
pub use fast::{FastMap, FastSet, shrink};
pub use frame::{Frame, FrameKind, UnknownReason};
pub use growing::GrowingTree;
pub use ids::{Pid, ProcessKey, Tid};
pub use kind::{Amount, COUNT, KindFacts, Pace, SampleKind, Scale, ValueFacts};
pub use labels::{LabelKey, LabelSet, LabelSetBuilder};
pub use missing::{Missing, MissingPart};
pub use named::{EventSource, MAX_NAMED, NamedEvent, PerfSort};
pub use operator::{
    FrameSign, Operator, OperatorWalk, Placed, PlacedAs, PlanOperators, operator_of_generated,
};
pub use pause::{Pause, Pauses};
pub use probe::{AllocProbe, FileId, NameProbe, PauseProbe};
pub use process::{Deploy, JvmFacts, NameSource, ProcessRecord, Role};
pub use profiler_ebpf::{BlockWay, DropReason, RuntimeId, StackEnd, StringLayout};
pub use raw::{RawEvent, RawPause, RawSample, RawStack, RawTask, RawWait, TaskEvent};
pub use rewrite::LabelRewrite;
pub use run_names::RunNames;
pub use secrets::scrub;
pub use selection::{Detail, MatchOp, Matcher, Query, Selection, grouped, implied};
pub use spark::{
    Joined, PlanNode, PlanProblem, SparkFact, SparkFactKind, SparkFacts, SparkPlan, SparkSource, SparkStage,
    SparkStages, SparkTask, SparkTasks, SparkUrl, SparkUrlError, SqlRef, size_in_bytes,
};
pub use stack::Stack;
pub use tenant::{Excess, Refusals, Tenant, cgroup_of};
pub use thread::{Accounts, LedgerRow, LedgerSums, RawThread, ThreadCause, ThreadClass};
pub use time::{TimeRange, WallTime, thread_cpu_time};
pub use wait::{Waits, Wanted, nobody_waits};
pub use wait_reason::WaitReason;
pub use window::{LostCounts, Row, Window};
