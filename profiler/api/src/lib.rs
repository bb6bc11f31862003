//! The HTTP API, written down once: its routes, their parameters and their JSON answers.
//!
//! In: data of `model`. Out: the table of routes ([`route`]) that the server, the command line and the OpenAPI document
//! read, and a type for each answer: the server fills and writes it, the command line reads it, and its docs are the
//! descriptions of the schema. What is written is complete; what is read may lack any field that was added later, and may
//! have fields that are not known here, since a daemon and its clients are not of one version. Answers that are no JSON
//! (pictures, pprof, Pyroscope's messages) are elsewhere. No I/O.

mod apps;
mod basis;
mod compare;
mod diff;
mod error;
mod figures;
mod format;
mod labels;
mod login;
mod pauses;
mod processes;
pub mod route;
mod runs;
mod schema;
mod series;
mod spark;
mod sql;
mod stages;
mod status;
mod tax;
mod top;
mod tree;
mod words;

pub use apps::{App, Apps, Executor, Executors, Jvm};
pub use basis::{Amount, Answer, Basis, Head, Held, Instant, MissingPart, Quality, Range, Weight};
pub use compare::{
    Change, Checked, Compare, Compared, ComparedMethod, ComparedOperator, ComparedQuery, ComparedRun,
    ComparedSetting, ComparedStage, ComparedTimes, ComparedWhole, Judged,
};
pub use diff::{
    Because, Diff, DiffNode, DiffRow, LongTask, MethodName, Pair, Side, SideTask, Slow, SlowLock, SlowSide,
};
pub use error::{Error, ErrorBody};
pub use figures::{Exact, Figures, Sampled, Waited};
pub use format::Format;
pub use labels::{LabelValue, LabelValues, Labels, Ledger, LedgerLine};
pub use login::LoginLink;
pub use pauses::{Pause, PauseCause, PausedJvm, Pauses};
pub use processes::{Process, Processes};
pub use runs::{Reserved, Run, RunChange, Runs};
pub use schema::Schemas;
pub use series::{Point, Series, SeriesLine};
pub use spark::{SparkCpu, SparkExecutor, SparkOrigin, SparkStage, SparkTask};
pub use sql::{Sql, SqlOperator, SqlPlan, SqlPlanEdge, SqlPlanNode, SqlQuery};
pub use stages::{ClassFigures, Durations, Stage, Stages, Task, Tasks};
pub use status::{
    Disk, Failing, Health, Quarantine, QuarantineEntry, Resolution, SetAside, Status, Store, ThreadHealth,
};
pub use tax::{Beside, Part, PartOf, Tax, TaxProcess, TaxStage, Who};
pub use top::{Cost, Method, Top};
pub use tree::{Columns, Frame, Node, Tree, TreeColumns, TreeHead};
pub use words::{Join, MethodOrder, Scale, SlowBy, StageOrder, TaskOrder, Word};
