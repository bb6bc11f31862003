//! Label selectors, and the conditions they become.
#![cfg_attr(fuzzing, no_main)]

use emberscope_model::LabelSet;
use emberscope_serve::selector::{UnknownLabels, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(selector) = parse(text)
        && let Ok(Some(selection)) = selector.to_selection(UnknownLabels::AreEmpty)
    {
        selection.matches(&LabelSet::default());
    }
});
