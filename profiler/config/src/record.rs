//! What a one-off recording is told to do.
//!
//! In: the flags of `emberscope record`. Out: how to sample, for how long, and which samples are wanted;
//! which label an application is chosen by is known only when the recording is over, so that is asked
//! with the labels that were seen.

use super::DaemonConfig;
use emberscope_model::{Detail, LabelKey, LabelSet, MatchOp, Matcher, SampleKind, Selection};
use std::collections::BTreeSet;
use std::time::Duration;

/// A recording.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordConfig {
    /// How to sample, as a daemon would. Its `listen`, `token_file`, `data_dir` and `store_*` mean nothing here.
    pub daemon: DaemonConfig,
    /// How long samples are taken.
    pub duration: Duration,
    /// Labels that samples must have: each key with one of its values.
    pub labels: Vec<(LabelKey, Vec<String>)>,
    /// Kind of samples that the result is of.
    pub kind: SampleKind,
    /// Labels that become prefix frames.
    pub group: Vec<LabelKey>,
    /// How finely frames are told apart.
    pub detail: Detail,
}

/// Why a choice cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No such application was sampled.
    #[error("no application {app:?} was sampled; {}", these_were(.known))]
    UnknownApp {
        /// As asked: an id or a name.
        app: String,
        /// Ids that were sampled.
        known: Vec<String>,
    },
    /// Several applications have this name.
    #[error("several applications are named {app:?}: choose one by its id: {}", .ids.join(", "))]
    AmbiguousApp {
        /// As asked: a name.
        app: String,
        /// Ids of the applications of that name.
        ids: Vec<String>,
    },
}

fn these_were(ids: &[String]) -> String {
    match ids {
        [] => "no Spark application was".to_owned(),
        ids => format!("these were: {}", ids.join(", ")),
    }
}

impl RecordConfig {
    /// The choice, once it is known who was sampled. An application is an id, else a name.
    ///
    /// # Errors
    /// [`SelectError::UnknownApp`]: an application that was asked for is not among `seen`.
    /// [`SelectError::AmbiguousApp`]: several there have that name.
    pub fn selection<'a>(
        &self,
        seen: impl IntoIterator<Item = &'a LabelSet>,
    ) -> Result<Selection, SelectError> {
        let apps: BTreeSet<(&str, &str)> = seen
            .into_iter()
            .map(|labels| (labels.get(LabelKey::App), labels.get(LabelKey::AppName)))
            .filter(|(id, _)| !id.is_empty())
            .collect();
        let mut matchers = Vec::new();
        for (key, values) in &self.labels {
            let values = match key {
                LabelKey::App => values.iter().map(|app| app_id(app, &apps)).collect::<Result<_, _>>()?,
                _ => values.clone(),
            };
            matchers.push(Matcher { key: *key, op: MatchOp::In(values) });
        }
        Ok(Selection { matchers })
    }
}

fn app_id(app: &str, seen: &BTreeSet<(&str, &str)>) -> Result<String, SelectError> {
    if seen.iter().any(|(id, _)| *id == app) {
        return Ok(app.to_owned());
    }
    let ids = |of: &dyn Fn(&str) -> bool| -> Vec<String> {
        let ids: BTreeSet<&str> = seen.iter().filter(|(_, name)| of(name)).map(|(id, _)| *id).collect();
        ids.into_iter().map(str::to_owned).collect()
    };
    let mut named = ids(&|name| name == app);
    match (named.pop(), named.is_empty()) {
        (Some(id), true) => Ok(id),
        (Some(last), false) => {
            named.push(last);
            Err(SelectError::AmbiguousApp { app: app.to_owned(), ids: named })
        }
        (None, _) => Err(SelectError::UnknownApp { app: app.to_owned(), known: ids(&|_| true) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::LabelSetBuilder;

    fn labels(app: &str, name: &str, executor: &str) -> LabelSet {
        LabelSetBuilder::new()
            .set(LabelKey::App, app)
            .set(LabelKey::AppName, name)
            .set(LabelKey::Executor, executor)
            .build()
    }

    fn record(labels: Vec<(LabelKey, Vec<String>)>) -> RecordConfig {
        RecordConfig {
            daemon: DaemonConfig::default(),
            duration: Duration::from_secs(1),
            labels,
            kind: SampleKind::Cpu,
            group: vec![],
            detail: Detail::default(),
        }
    }

    #[test]
    fn an_app_is_an_id_else_a_name() {
        let seen = [labels("app-1", "etl", "1"), labels("app-1", "etl", "2"), labels("app-2", "web", "1")];
        for app in ["app-1", "etl"] {
            let config = record(vec![
                (LabelKey::App, vec![app.to_owned()]),
                (LabelKey::Executor, vec!["2".to_owned(), "3".to_owned()]),
            ]);
            let selection = config.selection(&seen).unwrap();
            let chosen: Vec<bool> = seen.iter().map(|labels| selection.matches(labels)).collect();
            assert_eq!(chosen, [false, true, false], "{app}");
        }
        assert!(record(vec![]).selection(&seen).unwrap().matches(&LabelSet::default()));
    }

    #[test]
    fn an_app_that_is_not_there_or_not_one_is_told() {
        let seen = [labels("app-1", "etl", "1"), labels("app-2", "etl", "1")];
        let error = |app: &str| {
            record(vec![(LabelKey::App, vec![app.to_owned()])]).selection(&seen).unwrap_err().to_string()
        };
        assert_eq!(error("x"), r#"no application "x" was sampled; these were: app-1, app-2"#);
        assert_eq!(
            error("etl"),
            r#"several applications are named "etl": choose one by its id: app-1, app-2"#
        );
    }
}
