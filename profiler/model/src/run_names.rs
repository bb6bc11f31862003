//! What the names of a job's runs have in common.

use regex::{Regex, RegexBuilder};

/// Bytes that the compiled expression may take.
const MAX_SIZE: usize = 1 << 20;

/// Says of which job an application is a run, by its name: `nightly-2026-11-26` and `nightly-2026-11-27` are runs of
/// `nightly` by `^(.+)-\d{4}-\d\d-\d\d$`.
#[derive(Clone, Debug, Default)]
pub struct RunNames(Option<Regex>);

impl RunNames {
    /// By the first group of an expression that takes part in a match.
    ///
    /// # Errors
    /// What is wrong with the expression, for people: it cannot be read, compiles into more than 1 MiB, or has no group.
    pub fn new(expression: &str) -> Result<Self, String> {
        let built = RegexBuilder::new(expression).size_limit(MAX_SIZE).build();
        let expression = built.map_err(|error| error.to_string())?;
        match expression.captures_len() {
            0 | 1 => {
                Err("it has no group `(..)` around what the names of a job's runs have in common".to_owned())
            }
            _ => Ok(Self(Some(expression))),
        }
    }

    /// The job of an application of this name: what the first group holds, else the name.
    pub fn of<'a>(&self, name: &'a str) -> &'a str {
        let groups = self.0.as_ref().and_then(|expression| expression.captures(name));
        let common = groups.as_ref().and_then(|groups| groups.iter().skip(1).flatten().next());
        common.map(|group| group.as_str()).filter(|common| !common.is_empty()).unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_job_have_its_name_in_common() {
        let names = RunNames::new(r"^(.+)-\d{4}-\d\d-\d\d$|^run \d+ of (.*)$").unwrap();
        assert_eq!(names.of("nightly-2026-11-26"), "nightly");
        assert_eq!(names.of("run 7 of report"), "report");
        assert_eq!(names.of("run 7 of "), "run 7 of ", "nothing in common is no name");
        assert_eq!(names.of("daily"), "daily");
        assert_eq!(RunNames::default().of("nightly-2026-11-26"), "nightly-2026-11-26");
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(RunNames::new("^nightly").unwrap_err().contains("no group"));
        assert!(RunNames::new("(").is_err());
        assert!(RunNames::new(r"(\w{1000}){1000}").unwrap_err().contains("size"));
    }
}
