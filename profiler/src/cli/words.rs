//! How words of parameters and names of labels are read from the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use emberscope_api::Word;
use emberscope_model::LabelKey;

/// Reads one of the words of a parameter; `run-delay` stands for `run_delay`, as in names of flags.
pub fn word<T: Word>() -> impl TypedValueParser<Value = T> {
    let typed = T::WORDS.iter().map(|word| word.replace('_', "-"));
    PossibleValuesParser::new(typed)
        .try_map(|typed| T::from_word(&typed.replace('-', "_")).ok_or("no such word"))
}

/// Reads the name of a label.
pub fn label() -> impl TypedValueParser<Value = LabelKey> {
    let names = LabelKey::ASKED.iter().map(|key| key.name());
    PossibleValuesParser::new(names).try_map(|name| LabelKey::from_name(&name).ok_or("no such label"))
}
