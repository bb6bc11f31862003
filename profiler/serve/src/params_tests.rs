//! Query strings: what is refused, what is taken, and where limits lie.

use super::*;
use proptest::prelude::*;

#[test]
fn decodes_strictly() {
    let got = pairs("a=1&a=2&b&&c=%7B%22x%22%7d+y&d=a=b").unwrap();
    let want = [("a", "1"), ("a", "2"), ("b", ""), ("c", "{\"x\"} y"), ("d", "a=b")];
    assert_eq!(got, want.map(|(k, v)| (k.to_owned(), v.to_owned())));
    for bad in ["a=%", "a=%4", "a=%zz", "%g1=1", "a=%+1"] {
        assert_eq!(pairs(bad), Err(QueryStringError::Percent), "{bad}");
    }
    assert_eq!(pairs("a=%ff"), Err(QueryStringError::NotUtf8));
    assert_eq!(pairs(&"a&".repeat(MAX_PAIRS + 1)), Err(QueryStringError::TooMany));
    assert_eq!(pairs(&"a".repeat(MAX_QUERY + 1)), Err(QueryStringError::TooLong));
}

#[test]
fn unknown_names_get_the_nearest() {
    let error = Params::selecting(Some("exeuctor=1"), &["format"]).unwrap_err();
    assert_eq!(error.code, "unknown_parameter");
    assert_eq!(error.parameter.as_deref(), Some("exeuctor"));
    assert!(error.message.contains("did you mean `executor`?"), "{}", error.message);
    let error = Params::selecting(Some("utterly_different=1"), &[]).unwrap_err();
    assert!(error.message.contains("there are: service_name, node,"), "{}", error.message);
    assert!(Params::of(Some("app=1"), &[]).is_err());
    assert_eq!(nearest("form", &["from", "format"]), Some("from"));
}

#[test]
fn a_sides_own_value_goes_before_the_shared_one() {
    let raw = "app=a&stage=1&left.app=b&left.app=c&right.from=-1h&query=x&slow";
    let params = Params::comparing(Some(raw), &["slow"]).unwrap();
    let (left, right) = (params.side("left."), params.side("right."));
    assert_eq!(left.all("app").collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(right.all("app").collect::<Vec<_>>(), ["a"]);
    assert_eq!((left.one("stage").unwrap(), left.one("from").unwrap()), (Some("1"), None));
    assert_eq!((right.one("from").unwrap(), right.one("query").unwrap()), (Some("-1h"), Some("x")));
    assert_eq!(params.sided(), Some("left.app"));
    assert!(params.has("slow") && left.sided().is_none() && !left.has("left.app"));
    for bad in ["left.type=cpu", "left.slow=1", "left.=1", "centre.app=1", "left.left.app=1"] {
        let error = Params::comparing(Some(bad), &["slow"]).unwrap_err();
        assert_eq!(error.code, "unknown_parameter", "{bad}");
    }
    let near = Params::comparing(Some("left.exeuctor=1"), &[]).unwrap_err();
    assert!(near.message.contains("did you mean `left.executor`?"), "{}", near.message);
}

#[test]
fn values() {
    let p = Params::of(Some("a=1&a=2&n=5&f&g=no&l=x,y&l=z&w=red"), &["a", "n", "f", "g", "l", "w"]).unwrap();
    assert_eq!(p.one("a").unwrap_err().parameter.as_deref(), Some("a"));
    assert_eq!(p.number("n", 1, 5).unwrap(), Some(5));
    assert!(p.number("n", 1, 4).is_err());
    assert!(p.flag("f").unwrap());
    assert!(p.flag("g").is_err());
    assert_eq!(p.list("l"), ["x", "y", "z"]);
    assert_eq!(p.choice("w", &[("red", 1), ("blue", 2)], 2).unwrap(), 1);
    assert_eq!(p.choice("w", &[("blue", 2)], 2).unwrap_err().choices, ["blue"]);
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,60}|[%&=+0-9a-g]{0,60}") {
        let _ = pairs(&text);
    }
    #[test]
    fn encoded_bytes_come_back(value in "\\PC{0,30}") {
        let encoded: String = value.bytes().map(|b| format!("%{b:02x}")).collect();
        prop_assert_eq!(pairs(&format!("k={encoded}")), Ok(vec![("k".to_owned(), value)]));
    }
}
