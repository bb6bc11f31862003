//! Which operator of Spark SQL a sample works for: a pure function of its stack's frames.
//!
//! In: the frames of a stack, from the root to the leaf. Out: an [`Operator`]. Frames of generated code tell it by the
//! number of their codegen stage and the prefix of the generated method, others by their class ([`rules`]); of all that
//! tell, the one nearest to the leaf holds, since an operator's iterator calls that of its child. `Project` has an iterator of
//! Scala's instead (`iter.map(project)`, ProjectExec of 3.x, ProjectEvaluatorFactory of 4.x): a frame of that and one of a
//! projection, as the next, tell it together. What else stands in iterators of Scala's that an operator calls is of an
//! operator below it, and frames do not tell which: [`ITERATED`]. Nothing but names is
//! read, so that stacks of any age can be asked. Names are anybody's words: what no rule knows is `unknown`, and values
//! are from closed lists but for the number of a codegen stage.

use super::{Frame, FrameKind};
use rules::{Claim, of_beginning, of_class, of_library, of_method};
use std::borrow::Cow;

pub use placed::{Placed, PlacedAs, PlanOperators};

mod nodes;
mod placed;
mod rules;

/// What a sample works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// An operator, by its name in Spark's plans.
    Named(&'static str),
    /// Generated code that several operators of a plan share; the number is that of Spark's codegen stage.
    Codegen(u32),
    /// Work of Spark's around operators, or of another engine's, in parentheses.
    Around(&'static str),
    /// No frame tells.
    Unknown,
}

impl Operator {
    /// What work of no operator that frames tell is called.
    pub const UNKNOWN: &'static str = "unknown";
    /// What is done in Python workers, and for them: frames tell that a stage has such an operator, not which.
    pub const PYTHON: &'static str = "(python)";

    /// Its name: that of Spark's plan node, `WholeStageCodegen (3)`, a word in parentheses, or `unknown`.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Named(name) | Self::Around(name) => name.into(),
            Self::Codegen(stage) => format!("WholeStageCodegen ({stage})").into(),
            Self::Unknown => Self::UNKNOWN.into(),
        }
    }

    /// Whether a name is that of an operator that sends rows to Python workers.
    pub fn is_python(name: &str) -> bool {
        nodes::PYTHON.contains(&name)
    }
}

/// What the frames say so far, from the root on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorWalk {
    told: Option<&'static str>,
    around: Option<&'static str>,
    stage: Option<u32>,
    /// The codegen stage whose code stands nearest to the leaf.
    nearest: Option<u32>,
    /// The last frame is an iterator of Scala's that gives its next element.
    iterates: bool,
    /// The operator that is told calls iterators of Scala's, and no frame since tells whose they are.
    below: bool,
}

impl OperatorWalk {
    /// After one frame more.
    pub fn then(self, sign: FrameSign) -> Self {
        let iterated = self.iterates;
        Self { iterates: false, ..self }.told_by(sign, iterated)
    }

    fn told_by(self, sign: FrameSign, iterated: bool) -> Self {
        match sign.0 {
            Sign::Nothing => self,
            Sign::Iterates(next) => Self { iterates: next, below: self.told.is_some(), ..self },
            Sign::Projects if iterated => {
                Self { told: Some(PROJECT), nearest: self.nearest, ..Self::default() }
            }
            Sign::Projects => self,
            // A method without an operator's prefix is called by one of the same stage: that holds.
            Sign::Generated(stage, None) if self.stage == Some(stage) && self.around.is_none() => {
                Self { below: false, ..self }
            }
            Sign::Generated(stage, told) => {
                Self { told, stage: Some(stage), nearest: Some(stage), ..Self::default() }
            }
            Sign::Class(name, Claim::Around) => Self { around: Some(name), ..self },
            Sign::Class(name, Claim::Ground) if self == Self::default() => {
                Self { around: Some(name), ..self }
            }
            Sign::Class(name, Claim::Python) => match self.told {
                Some(told) if Operator::is_python(told) => Self { below: false, ..self },
                _ => Self { around: Some(name), ..self },
            },
            Sign::Class(name, Claim::Own) => {
                Self { told: Some(name), nearest: self.nearest, ..Self::default() }
            }
            Sign::Class(name, Claim::Shared) if self.told.is_none() || self.below => {
                Self { told: Some(name), around: None, below: false, ..self }
            }
            Sign::Class(name, Claim::Unless(other)) if self.told != Some(other) => {
                Self { told: Some(name), nearest: self.nearest, ..Self::default() }
            }
            Sign::Class(..) => self,
        }
    }

    /// The codegen stage whose code stands nearest to the leaf: the operator is of it, or called by it.
    pub fn codegen(self) -> Option<u32> {
        self.nearest
    }

    /// What a sample that ends here works for.
    pub fn operator(self) -> Operator {
        match self {
            Self { around: Some(name), .. } => Operator::Around(name),
            Self { below: true, .. } => Operator::Around(ITERATED),
            Self { told: Some(name), .. } => Operator::Named(name),
            Self { stage: Some(stage), .. } => Operator::Codegen(stage),
            _ => Operator::Unknown,
        }
    }
}

/// What one frame says, whatever stands above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSign(Sign);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Nothing,
    /// Generated code of a codegen stage, and the operator that its method's prefix tells.
    Generated(u32, Option<&'static str>),
    Class(&'static str, Claim),
    /// An iterator of Scala's; whether it gives its next element.
    Iterates(bool),
    /// A row goes through a projection.
    Projects,
}

/// Where generated classes are, up to Spark 4.x.
const GENERATED: &str = "org.apache.spark.sql.catalyst.expressions.GeneratedClass$";
const OF_STAGE: &str = "GeneratedIteratorForCodegenStage";
/// The iterators of `map`, `filter` and others; the number behind it is the compiler's.
const ITERATORS: &str = "scala.collection.Iterator$$anon$";
/// Their methods by which an element is come to, the one that gives it first; `nextCur` is that of `flatMap`.
const ITERATE: [&str; 3] = ["next", "hasNext", "nextCur"];
/// What stands in iterators of Scala's that an operator calls: the filter, projection or generator below it.
const ITERATED: &str = "(iterators)";
/// What rows are projected by (UnsafeProjection.createObject, of code or without).
const PROJECTIONS: [&str; 2] = [
    "org.apache.spark.sql.catalyst.expressions.GeneratedClass$SpecificUnsafeProjection",
    "org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection",
];
const PROJECT: &str = "Project";
/// Highest number of a codegen stage.
const MAX_STAGE: u32 = 999;
/// Functions that Python workers begin with, and those of the process that they are forked from: it collects garbage for each
/// (daemon.py of PySpark 3.5.9 and 4.3.0).
const WORKERS: [&str; 5] = [
    "<module> (pyspark/daemon.py)",
    "invoke_udf (pyspark/worker.py)",
    "main (pyspark/worker.py)",
    "manager (pyspark/daemon.py)",
    "worker (pyspark/daemon.py)",
];

impl FrameSign {
    /// What a frame says by its name. A line behind the name (`name:123`) does not matter.
    pub fn of(frame: &Frame) -> Self {
        Self(match frame.kind {
            FrameKind::Kernel | FrameKind::Label | FrameKind::Class | FrameKind::Unknown => Sign::Nothing,
            FrameKind::Native => match of_library(&frame.module) {
                Some(engine) => Sign::Class(engine, Claim::Around),
                None => sign(&frame.name),
            },
            _ => sign(&frame.name),
        })
    }
}

/// The operator that a method of generated code is for; None: the frame is no such method.
pub fn operator_of_generated(frame: &Frame) -> Option<Operator> {
    match FrameSign::of(frame).0 {
        Sign::Generated(_, Some(name)) => Some(Operator::Named(name)),
        Sign::Generated(stage, None) => Some(Operator::Codegen(stage)),
        _ => None,
    }
}

fn sign(name: &str) -> Sign {
    let name = match name.rsplit_once(':') {
        Some((before, line)) if !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => name,
    };
    if WORKERS.contains(&name) {
        return Sign::Class(Operator::PYTHON, Claim::Python);
    }
    // `Class.<init>` and `Class.method`.
    let Some((class, method)) = name.rsplit_once('.') else { return Sign::Nothing };
    if ITERATE.contains(&method) && class.starts_with(ITERATORS) {
        return Sign::Iterates(Some(&method) == ITERATE.first());
    }
    if PROJECTIONS.contains(&class) {
        return Sign::Projects;
    }
    match class.strip_prefix(GENERATED).and_then(|inner| inner.strip_prefix(OF_STAGE)) {
        Some(rest) => generated(rest, method),
        None => match of_class(class).or_else(|| of_beginning(name)) {
            Some((name, claim)) => Sign::Class(name, claim),
            None => Sign::Nothing,
        },
    }
}

/// Of `3` and `processNext`, or of `3$hashAgg_FastHashMap_0` and `findOrInsert`.
fn generated(rest: &str, method: &str) -> Sign {
    let (number, inner) = rest.split_once('$').unwrap_or((rest, ""));
    match number.parse() {
        // A class within it is of its operator: a fast hash map; or of none: one of the parts of code that is large. A
        // plan has tens of codegen stages; what has more is no plan, and each would be a value of the label.
        Ok(stage) if stage <= MAX_STAGE => {
            Sign::Generated(stage, of_method(inner).or_else(|| of_method(method)))
        }
        _ => Sign::Nothing,
    }
}

#[cfg(test)]
mod table;
#[cfg(test)]
mod tests;
