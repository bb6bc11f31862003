//! The operators of a plan in an event, `sparkPlanInfo`: a tree of any depth.
//!
//! In: the bytes of an event that is JSON already. Out: its operators, each before those that it takes rows of. No
//! recursion: a plan of twenty joins is deeper than a JSON library goes. Limits: [`MAX_INFOS`], [`MAX_DEPTH`].

use emberscope_target::text::cut;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Operators of a tree, those counted that no picture of it has: four times what is kept of a plan.
const MAX_INFOS: usize = 4000;
/// Operators above each other.
const MAX_DEPTH: usize = 1000;

/// An operator of the tree (`SparkPlanInfo`).
#[derive(Debug, Default)]
pub struct Info {
    /// `nodeName`, at most some hundred bytes of it.
    pub name: String,
    /// Places of those that it takes rows of, in order.
    pub children: Vec<usize>,
    /// Hash of name, text and children: two with one are the same operator to Spark.
    pub digest: u64,
}

/// A piece of JSON that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Open(u8),
    Close,
    /// A text with its quotes, and whether a colon follows.
    Text(&'a [u8], bool),
}

/// Pieces of JSON, one after the other; numbers, `true` and the like are left out.
struct Tokens<'a>(&'a [u8]);

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;
    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let (byte, rest) = self.0.split_first()?;
            match byte {
                b'{' | b'[' => {
                    self.0 = rest;
                    return Some(Token::Open(*byte));
                }
                b'}' | b']' => {
                    self.0 = rest;
                    return Some(Token::Close);
                }
                b'"' => {
                    let mut escaped = false;
                    let end = rest.iter().position(|byte| {
                        let is_end = *byte == b'"' && !escaped;
                        escaped = *byte == b'\\' && !escaped;
                        is_end
                    })?;
                    let (text, after) = self.0.split_at_checked(end + 2)?;
                    self.0 = after;
                    let next = after.iter().find(|byte| !byte.is_ascii_whitespace());
                    return Some(Token::Text(text, next == Some(&b':')));
                }
                _ => self.0 = rest,
            }
        }
    }
}

/// Where one is in the tree.
enum Place {
    /// In the object of the operator with this number.
    Info(usize),
    /// In the list of its children.
    Children(usize),
    /// In something of it that is not read.
    Other,
}

/// The operators of an event's plan, the root first. None: it has none, or more or deeper than are read.
pub fn infos(event: &[u8]) -> Option<Vec<Info>> {
    let mut tokens = Tokens(event);
    let (mut depth, mut is_next) = (0_usize, false);
    loop {
        match tokens.next()? {
            Token::Open(b'{') if is_next => break,
            Token::Open(_) => depth += 1,
            Token::Close => depth = depth.checked_sub(1)?,
            Token::Text(text, is_key) => is_next = depth == 1 && is_key && text == b"\"sparkPlanInfo\"",
        }
    }
    let (mut infos, mut texts) = (vec![Info::default()], vec![0_u64]);
    let (mut places, mut key): (Vec<Place>, &[u8]) = (vec![Place::Info(0)], b"");
    while let Some(place) = places.last() {
        match (tokens.next()?, place) {
            (Token::Close, _) => drop(places.pop()),
            (Token::Open(b'['), Place::Info(number)) if key == b"\"children\"" => {
                places.push(Place::Children(*number));
            }
            (Token::Open(b'{'), Place::Children(parent)) => {
                let number = infos.len();
                infos.get_mut(*parent)?.children.push(number);
                infos.push(Info::default());
                texts.push(0);
                places.push(Place::Info(number));
            }
            (Token::Open(_), _) => places.push(Place::Other),
            (Token::Text(text, true), Place::Info(_)) => key = text,
            (Token::Text(text, false), Place::Info(number)) => match key {
                b"\"nodeName\"" => infos.get_mut(*number)?.name = name(text),
                b"\"simpleString\"" => *texts.get_mut(*number)? = hash(&text),
                _ => {}
            },
            (Token::Text(..), _) => {}
        }
        if infos.len() > MAX_INFOS || places.len() > 2 * MAX_DEPTH {
            return None;
        }
    }
    // Those that an operator takes rows of stand behind it.
    for number in (0..infos.len()).rev() {
        let info = infos.get(number)?;
        let children: Vec<u64> =
            info.children.iter().filter_map(|child| Some(infos.get(*child)?.digest)).collect();
        let digest = hash(&(&info.name, texts.get(number)?, children));
        infos.get_mut(number)?.digest = digest;
    }
    Some(infos)
}

/// The text of a JSON string, on its way to where it is cut.
fn name(text: &[u8]) -> String {
    let text: String = serde_json::from_slice(text).unwrap_or_default();
    cut(&text, 512).to_owned()
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
