//! What was judged as JUnit's XML, which CI servers read as tests: the form is that of Ant's junit task, which has no standard
//! of its own; testsuites, testsuite, testcase and failure are what all readers know.

use super::report::{grew, title};
use emberscope_api::Compare;

/// The file.
pub fn write(compare: &Compare<'_>) -> String {
    let judged = compare.judged.clone().unwrap_or_default();
    let name = xml(&title(compare));
    let (tests, failures) = (judged.checked.len(), judged.failed);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{tests}\" failures=\"{failures}\">\n\
         <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">\n"
    );
    for checked in &judged.checked {
        let head = format!(
            "<testcase classname=\"emberscope.{}\" name=\"{}\"",
            xml(&checked.of),
            xml(&checked.name)
        );
        let says = xml(&grew(checked));
        out.push_str(&match checked.failed {
            true => format!("{head}><failure message=\"{says}\"/></testcase>\n"),
            false => format!("{head}><system-out>{says}</system-out></testcase>\n"),
        });
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}

/// Text as XML 1.0 has it: what is no character there is left out.
fn xml(text: &str) -> String {
    let may_be = |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    emberscope_export::html_text(&text.chars().filter(may_be).collect::<String>())
}
