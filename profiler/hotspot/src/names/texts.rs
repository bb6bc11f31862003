//! What methods of one name have in common, once for all JVMs: the executors of a node run the same classes.
//!
//! In: a method's texts as they were read. Out: the same, shared with whoever has an equal one still.

use emberscope_model::FastMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What is read of a method besides where it lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Text {
    /// The name, folded: `package.Class.method`.
    pub name: Arc<str>,
    /// Types as Java writes them: `(int)void`; None where the descriptor makes no sense.
    pub signature: Option<Arc<str>>,
    /// The compressed table of the method's lines (`CompressedLineNumberWriteStream`).
    pub lines: Box<[u8]>,
}

impl Text {
    /// Bytes of memory that the texts take, about.
    pub fn bytes(&self) -> usize {
        let signature = self.signature.as_ref().map_or(0, |text| text.len() + 32);
        96 + self.name.len() + signature + self.lines.len()
    }
}

/// The texts that are in use; a clone shares them.
#[derive(Clone, Debug, Default)]
pub struct Texts(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    hasher: RandomState,
    known: FastMap<u64, Weak<Text>>,
    /// At how many to look for those that nobody has any more.
    sweep_at: usize,
}

/// Below so many none is looked for.
const SWEPT: usize = 1024;

impl Texts {
    /// Shares a text. Two that meet under one hash are not shared, and as right.
    pub fn shared(&self, text: Text) -> Arc<Text> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = table.hasher.hash_one(&text);
        if let Some(known) = table.known.get(&hash).and_then(Weak::upgrade) {
            return if *known == text { known } else { Arc::new(text) };
        }
        if table.known.len() >= table.sweep_at.max(SWEPT) {
            table.known.retain(|_, text| text.strong_count() > 0);
            table.sweep_at = 2 * table.known.len();
        }
        let text = Arc::new(text);
        table.known.insert(hash, Arc::downgrade(&text));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str) -> Text {
        Text { name: name.into(), signature: None, lines: [1, 2].into() }
    }

    #[test]
    fn equal_ones_are_shared_while_somebody_has_them() {
        let texts = Texts::default();
        let (first, other) = (texts.shared(text("a.B.c")), texts.shared(text("a.B.d")));
        assert!(Arc::ptr_eq(&first, &texts.clone().shared(text("a.B.c"))));
        assert!(!Arc::ptr_eq(&first, &other));
        drop((first, other));
        for number in 0..10 * SWEPT {
            drop(texts.shared(text(&number.to_string())));
        }
        assert!(texts.0.lock().unwrap().known.len() <= SWEPT);
    }
}
