//! Selectors as Grafana and people write them, and as they break them.

use super::*;
use emberscope_model::LabelSetBuilder;
use proptest::prelude::*;

fn one(text: &str) -> (String, Comparison, String) {
    let selector = parse(text).unwrap();
    assert_eq!(selector.matchers.len(), 1, "{text}");
    let m = selector.matchers[0].clone();
    (m.name, m.comparison, m.value)
}

fn selects(text: &str, app: &str) -> bool {
    let set = LabelSetBuilder::new().set(LabelKey::App, app).build();
    let selection = parse(text).unwrap().to_selection(UnknownLabels::AreEmpty).unwrap();
    selection.is_some_and(|s| s.matches(&set))
}

#[test]
fn what_grafana_sends() {
    for text in ["", " ", "{}", "{ }", "process_cpu:cpu:nanoseconds:cpu:nanoseconds{}", "cpu"] {
        assert!(parse(text).unwrap().matchers.is_empty(), "{text:?}");
    }
    assert_eq!(parse("a:b:c{}").unwrap().metric, "a:b:c");
    assert_eq!(
        one(r#"{__profile_type__="a:b:c:d:e",}"#),
        ("__profile_type__".into(), Comparison::Equal, "a:b:c:d:e".into())
    );
    let two = parse("{ a = \"1\" ,\n b !~ '2|3' }").unwrap();
    assert_eq!(two.matchers[1].comparison, Comparison::NotMatches);
    assert_eq!(two.matchers[1].value, "2|3");
}

#[test]
fn strings_are_gos() {
    assert_eq!(one(r#"{a="x\"y\\\n\x41\101\u00e9\U0001F525'"}"#).2, "x\"y\\\nAA\u{e9}\u{1F525}'");
    assert_eq!(one(r#"{a='it\'s "so"'}"#).2, "it's \"so\"");
    assert_eq!(one(r"{a=~`\d+`}").2, r"\d+");
    assert_eq!(one(r#"{a="\xc3\xa9"}"#).2, "\u{e9}");
    for bad in [r#"{a="\q"}"#, r#"{a="\xff"}"#, r#"{a="\'"}"#, r#"{a="\u12"}"#, r#"{a="\400"}"#] {
        assert!(matches!(parse(bad), Err(SelectorError::Escape { .. })), "{bad}");
    }
}

#[test]
fn bad_text_names_the_place() {
    assert_eq!(
        parse("{a}").unwrap_err(),
        SelectorError::Expected { wanted: "`=`, `!=`, `=~` or `!~`", at: 2 }
    );
    for bad in
        ["{", "}", "{a=\"b\"", "{a=b}", "{a=\"b}", "{,}", "{a=\"b\"}x", "{1a=\"b\"}", "{a=\"b\" c=\"d\"}"]
    {
        assert!(matches!(parse(bad), Err(SelectorError::Expected { .. })), "{bad}");
    }
    assert_eq!(parse(&" ".repeat(MAX_TEXT + 1)).unwrap_err(), SelectorError::TooLong);
    let many = format!("{{{}}}", "a=\"b\",".repeat(MAX_MATCHERS + 1));
    assert_eq!(parse(&many).unwrap_err(), SelectorError::TooMany);
    let most = format!("{{{}}}", "a=\"b\",".repeat(MAX_MATCHERS));
    assert_eq!(parse(&most).unwrap().matchers.len(), MAX_MATCHERS);
}

#[test]
fn expressions_match_the_whole_value() {
    assert!(selects(r#"{app=~"app-.*"}"#, "app-1"));
    assert!(selects(r#"{app=~"app-.*"}"#, "app-1\n2"), "a dot matches a line break");
    assert!(!selects(r#"{app=~"pp"}"#, "app"));
    assert!(!selects(r#"{app=~"a|b"}"#, "ab"));
    assert!(selects(r#"{app!~"a|b"}"#, "ab"));
    assert!(!selects(r#"{app!="x"}"#, "x"));
    assert!(selects(r#"{app=""}"#, ""));
    let halves = parse(r#"{app=~"a)|(b"}"#).unwrap().to_selection(UnknownLabels::Refuse);
    assert!(matches!(halves, Err(SelectorError::Regex { .. })));
}

#[test]
fn labels_that_do_not_exist() {
    let selector = parse(r#"{namespace="x"}"#).unwrap();
    assert_eq!(
        selector.to_selection(UnknownLabels::Refuse).unwrap_err(),
        SelectorError::UnknownLabel { label: "namespace".into() }
    );
    assert!(selector.to_selection(UnknownLabels::AreEmpty).unwrap().is_none());
    assert!(selects(r#"{namespace=~".*"}"#, "a"));
    assert!(selects(r#"{namespace!="x"}"#, "a"));
}

#[test]
fn an_expression_cannot_eat_the_memory() {
    for pattern in ["(a{1000}){1000}", r"\\pL{5000}", &"(".repeat(3000)] {
        let text = format!("{{app=~\"{pattern}\"}}");
        let result = parse(&text).unwrap().to_selection(UnknownLabels::Refuse);
        assert!(matches!(result, Err(SelectorError::Regex { .. })), "{pattern}");
    }
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,60}|[{}=~!\"'`\\\\a-c,: \n]{0,60}") {
        if let Ok(selector) = parse(&text) {
            let _ = selector.to_selection(UnknownLabels::AreEmpty);
        }
    }

    #[test]
    fn any_value_comes_back(value in "\\PC{0,40}", name in "[a-zA-Z_][a-zA-Z0-9_]{0,10}") {
        let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
        let text = format!("{{{name}=\"{quoted}\"}}");
        prop_assert_eq!(one(&text), (name, Comparison::Equal, value));
    }
}
