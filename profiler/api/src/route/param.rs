//! Names of the routes' own parameters.

/// Kinds of code apart.
pub const ANNOTATE: &str = "annotate";
/// Labels that divide.
pub const BY: &str = "by";
/// JSON by columns.
pub const COLUMNS: &str = "columns";
/// An execution of Spark SQL.
pub const EXECUTION: &str = "execution";
/// Growth that is allowed.
pub const FAIL_OVER: &str = "fail_over";
/// The way to a task's own code as one frame.
pub const FOLD: &str = "fold";
/// Form of the answer.
pub const FORMAT: &str = "format";
/// Labels as prefix frames.
pub const GROUP: &str = "group";
/// Name of a job.
pub const JOB: &str = "job";
/// Whether Spark is asked.
pub const JOIN: &str = "join";
/// Most rows.
pub const LIMIT: &str = "limit";
/// Source lines apart.
pub const LINES: &str = "lines";
/// Most nodes of a tree.
pub const MAX_NODES: &str = "max_nodes";
/// The merged tree of a comparison.
pub const NODES: &str = "nodes";
/// Beginnings of names.
pub const ONLY: &str = "only";
/// What makes the sides of a comparison comparable.
pub const SCALE: &str = "scale";
/// A stage's slow tasks against the usual ones.
pub const SLOW: &str = "slow";
/// By what rows are ordered.
pub const SORT: &str = "sort";
/// Length of a step.
pub const STEP: &str = "step";
/// What values count.
pub const UNIT: &str = "unit";
