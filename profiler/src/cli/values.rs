//! Values of labels that have a closed list: what is nearly one of them is a slip of the pen.
//!
//! In: what was typed. Out: the value, or a sentence with the one that may have been meant. What is far from all of them
//! passes: the daemon may be newer, and answers that there is nothing.

use emberscope_model::{Deploy, LabelKey, Role, ThreadClass, WaitReason};
use emberscope_serve::nearest;

/// Fewest characters that a value may be cut down to.
const SHORTEST: usize = 3;

/// The values of a label.
pub type Values = fn() -> Vec<&'static str>;

/// Values of `role`.
pub fn roles() -> Vec<&'static str> {
    Role::ALL.iter().map(|role| role.slug()).collect()
}

/// Values of `thread_class`.
pub fn classes() -> Vec<&'static str> {
    ThreadClass::ALL.iter().map(|class| class.slug()).collect()
}

/// Values of `wait`.
pub fn waits() -> Vec<&'static str> {
    WaitReason::ALL.iter().map(|reason| reason.slug()).collect()
}

/// Values of `deploy`.
pub fn deploys() -> Vec<&'static str> {
    Deploy::ALL.iter().map(|deploy| deploy.slug()).collect()
}

/// The values of a label; None where the list is open.
pub fn of(key: &str) -> Option<Values> {
    match LabelKey::from_name(key)? {
        LabelKey::Role => Some(roles),
        LabelKey::ThreadClass => Some(classes),
        LabelKey::Wait => Some(waits),
        LabelKey::Deploy => Some(deploys),
        _ => None,
    }
}

/// A reader of such a label's values, for clap.
pub fn near(values: Values) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
    move |typed| {
        let values = values();
        match meant(typed, &values) {
            Some(near) if !values.contains(&typed) => {
                Err(format!("did you mean {near}? There are {}", values.join(", ")))
            }
            _ => Ok(typed.to_owned()),
        }
    }
}

/// The value that begins so, or that differs least, when it differs little enough to be meant.
fn meant(typed: &str, values: &[&'static str]) -> Option<&'static str> {
    if typed.is_empty() {
        return None;
    }
    let typed = typed.to_lowercase().replace('_', "-");
    let cut = values.iter().find(|value| typed.len() >= SHORTEST && value.starts_with(&typed));
    cut.copied().or_else(|| nearest(&typed, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearly_a_value_is_told() {
        let typed = |values: Values, text: &str| near(values)(text);
        let cases: [(Values, &str, &str); 9] = [
            (roles, "exec", "executor"),
            (roles, "Executor", "executor"),
            (roles, "excutor", "executor"),
            (roles, "app_master", "app-master"),
            (classes, "tasks", "task"),
            (classes, "gcc", "gc"),
            (waits, "shufle", "shuffle"),
            (deploys, "k8s", ""),
            (deploys, "kube", "kubernetes"),
        ];
        for (values, slip, meant) in cases {
            match meant {
                "" => assert_eq!(typed(values, slip).as_deref(), Ok(slip)),
                meant => {
                    let said = typed(values, slip).unwrap_err();
                    assert!(said.starts_with(&format!("did you mean {meant}? There are ")), "{slip}: {said}");
                }
            }
        }
        for value in ["executor", "driver", "", "x", "cook"] {
            assert_eq!(typed(roles, value).as_deref(), Ok(value));
        }
        for values in [roles as Values, classes, waits, deploys] {
            assert!(values().iter().all(|value| typed(values, value).is_ok()), "{:?}", values());
        }
    }
}
