//! What requests are read as.

use super::*;
use emberscope_model::LabelSetBuilder;

const NOW: WallTime = WallTime(1_795_000_000_000_000_000);

fn asked(raw: &str) -> Result<Asked, ApiError> {
    Asked::read(&Params::selecting(Some(raw), &["group"]).unwrap(), NOW)
}

#[test]
fn the_last_hour_by_default() {
    let hour = DEFAULT_SPAN;
    assert_eq!(asked("").unwrap().range, TimeRange { from: NOW.minus(hour), until: NOW });
    let two = asked("until=-1h").unwrap().range;
    assert_eq!(two, TimeRange { from: NOW.minus(2 * hour), until: NOW.minus(hour) });
    assert_eq!(asked("from=now").unwrap_err().parameter.as_deref(), Some("from"));
    assert_eq!(asked("from=-1m&until=-2m").unwrap_err().code, "bad_parameter");
    assert_eq!(asked("until=soon").unwrap_err().parameter.as_deref(), Some("until"));
}

#[test]
fn every_label_selects_and_twice_means_either() {
    for key in LabelKey::ASKED.iter().filter(|k| **k != LabelKey::App) {
        let selection = asked(&format!("{key}=a&{key}=b")).unwrap().selection;
        for (value, want) in [("a", true), ("b", true), ("c", false), ("", false)] {
            let set = LabelSetBuilder::new().set(*key, value).build();
            assert_eq!(selection.matches(&set), want, "{key}={value}");
        }
    }
    let none = asked("stage=").unwrap().selection;
    assert!(none.matches(&LabelSetBuilder::new().build()));
    assert!(!none.matches(&LabelSetBuilder::new().set(LabelKey::Stage, "3").build()));
}

#[test]
fn query_adds_conditions() {
    let selection = asked("role=executor&query={stage=~%223|4%22}").unwrap().selection;
    let set = |role, stage: &str| {
        LabelSetBuilder::new().set(LabelKey::Role, role).set(LabelKey::Stage, stage).build()
    };
    assert!(selection.matches(&set("executor", "3")));
    assert!(!selection.matches(&set("driver", "3")));
    assert!(!selection.matches(&set("executor", "34")));
    let error = asked("query={stag=%221%22}").unwrap_err();
    assert!(error.message.contains("did you mean `stage`?"), "{}", error.message);
    assert_eq!(asked("query={a").unwrap_err().parameter.as_deref(), Some("query"));
    assert_eq!(asked("query={}&query={}").unwrap_err().parameter.as_deref(), Some("query"));
}

#[test]
fn idle_threads_are_no_waits_unless_asked_for() {
    let idle = LabelSetBuilder::new().set(LabelKey::Wait, "idle").build();
    for (query, has) in [
        ("type=off-cpu", false),
        ("type=off-cpu&stage=3", false),
        ("type=off-cpu&wait=idle", true),
        ("type=off-cpu&query={wait=~%22.*%22}", true),
        ("type=cpu", true),
    ] {
        let selection = Selection { matchers: asked(query).unwrap().selection.matchers };
        let stage = LabelSetBuilder::from_set(&idle).set(LabelKey::Stage, "3").build();
        assert_eq!(selection.matches(&stage), has, "{query}");
    }
}

#[test]
fn grouping() {
    let want = [LabelKey::Stage, LabelKey::ThreadClass];
    assert_eq!(asked("group=stage,thread_class").unwrap().group, want);
    assert_eq!(asked("group=stage&group=thread_class").unwrap().group, want);
    assert!(asked("group=stage,stage").is_err());
    assert!(asked("group=thread").unwrap_err().message.contains("thread_class"));
}
