//! Which applications and executors are kept.
//!
//! In: untrusted text. Out: a choice whose shape is checked; what an id or a pattern means is for the room
//! that knows processes.

use super::values::{Refused, parsed, refused};
use std::fmt;
use std::str::FromStr;

parsed!(
    /// Share of the executors that is kept.
    Fraction(f64),
    |text| match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => refused("a number above 0, up to 1"),
    }
);

parsed!(
    /// What an hour of something costs.
    Price(f64),
    |text| match text.parse::<f64>() {
        Ok(price) if (0.0..=1e9).contains(&price) => Ok(price),
        _ => refused("a number from 0 on, such as 0.05"),
    }
);

parsed!(
    /// A choice of applications by id or name: `*`, or a comma list in which `*` stands for any text.
    Names(String),
    |text| list(text, "* for all, or application ids or names with commas between: app-1,nightly-*", |item| {
        !item.chars().any(char::is_control)
    })
);

parsed!(
    /// A choice of executors: `*`, or a comma list of ids and ranges of ids, `driver` among them.
    Executors(String),
    |text| list(text, "* for all, or executor ids and ranges with commas between: driver,1,3-5", |item| {
        let number = |text: &str| text.parse::<u32>().ok();
        match item.split_once('-') {
            Some((from, to)) => number(from).zip(number(to)).is_some_and(|(from, to)| from <= to),
            None => item == "*" || item == "driver" || number(item).is_some(),
        }
    })
);

/// A comma list of at least one item, each good; spaces around items go.
fn list(text: &str, allowed: &str, good: fn(&str) -> bool) -> Result<String, Refused> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    if items.iter().all(|item| !item.is_empty() && good(item)) {
        Ok(items.join(","))
    } else {
        refused(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::tests::takes;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn choices_have_their_shapes() {
        takes::<Fraction>(&["0.2", "1"], &["0", "1.01", "-0.5", "NaN", "inf", ""]);
        takes::<Price>(&["0", "0.05", "12"], &["-1", "NaN", "inf", "1e10", "5 EUR", ""]);
        takes::<Names>(&["*", "a,b", "nightly-*"], &["", "a,,b", "a\nb"]);
        takes::<Executors>(&["*", "1,3-5", "driver,7"], &["", "5-3", "x", "1-", "-1", "1,"]);
        assert_eq!(" 1, 3-5 ".parse::<Executors>().unwrap().get(), "1,3-5");
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "[-*0-9a-z,.= ]{0,20}") {
            if let Ok(ids) = text.parse::<Executors>() {
                prop_assert_eq!(ids.get().parse::<Executors>(), Ok(ids));
            }
            if let Ok(names) = text.parse::<Names>() {
                prop_assert_eq!(names.get().parse::<Names>(), Ok(names));
            }
            if let Ok(share) = text.parse::<Fraction>() {
                prop_assert!(*share.get() > 0.0 && *share.get() <= 1.0);
            }
        }
    }
}
