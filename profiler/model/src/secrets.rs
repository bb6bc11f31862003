//! Secrets in free text: names of applications and stages, SQL statements, URLs that are logged.
//!
//! In: text of somebody else's. Out: the same without what follows a key that smells of a secret (Spark's own
//! spark.redaction.regex, `secret|password|token|access[.]?key`, and what Azure, Google and JDBC add), without
//! user and password of a URL, and of JDBC URLs only that there was one. Too much rather than too little: this
//! is for people. One pass, linear; the caller bounds the text.

use std::borrow::Cow;

/// What stands in a secret's place.
pub const HIDDEN: &str = "***";

/// A key that has one of these is a secret's, whatever else is in it; dots, dashes and underscores left out. Hadoop's own list is
/// `hadoop.security.sensitive-config-keys` (core-default.xml 3.4).
const SMELLS: [&str; 16] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "token",
    "credential",
    "accesskey",
    "accountkey",
    "privatekey",
    "apikey",
    "signature",
    "azuresas",
    "encryptionkey",
    "keystorepass",
    "truststorepass",
];

/// Bytes of a bearer token, at least.
const LEAST_TOKEN: usize = 16;

/// The text without secrets.
pub fn scrub(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let (hidden, next) = match secret(rest) {
            Found::Secret { from, until } => (Some((at + from, at + until)), at + until),
            Found::Nothing { next } => (None, at + next),
        };
        if let Some((from, until)) = hidden.filter(|(from, until)| from < until) {
            out.push_str(text.get(done..from).unwrap_or_default());
            out.push_str(HIDDEN);
            done = until;
        }
        at = next;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether a key's value is a secret.
pub fn is_secret_key(key: &str) -> bool {
    let plain: String =
        key.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect();
    plain == "sig" || SMELLS.iter().any(|smell| plain.contains(smell))
}

/// What a text begins with.
enum Found {
    /// These bytes are a secret's.
    Secret { from: usize, until: usize },
    /// Nothing of the kind in the first bytes.
    Nothing { next: usize },
}

fn secret(text: &str) -> Found {
    if let Some(rest) = text.strip_prefix("://") {
        // A key may have slashes, so that the last @ of the word counts.
        let word = rest.get(..end(rest, is_end)).unwrap_or_default();
        return match word.rfind('@').filter(|at| word.get(..*at).is_some_and(|user| user.contains(':'))) {
            Some(at) => Found::Secret { from: 3, until: 3 + at },
            None => Found::Nothing { next: 3 },
        };
    }
    let key = text.get(..end(text, |c| !is_key(c))).unwrap_or_default();
    if key.is_empty() {
        return Found::Nothing { next: text.chars().next().map_or(1, char::len_utf8) };
    }
    let after = text.get(key.len()..).unwrap_or_default();
    let scheme = key.rsplit(['.', '-', '_']).next().unwrap_or(key);
    if scheme.eq_ignore_ascii_case("jdbc") && after.starts_with(':') {
        return Found::Secret { from: key.len() + 1, until: key.len() + end(after, is_end) };
    }
    if key.eq_ignore_ascii_case("bearer")
        && let Some(token) = after.strip_prefix(' ')
    {
        // `Authorization: Bearer ..` (RFC 6750); what is shorter is a word.
        let length = end(token, |c| is_end(c) || matches!(c, ',' | ';'));
        if length >= LEAST_TOKEN {
            return Found::Secret { from: key.len() + 1, until: key.len() + 1 + length };
        }
    }
    match is_secret_key(key).then(|| value(key, after)).flatten() {
        Some((from, until)) => Found::Secret { from: key.len() + from, until: key.len() + until },
        None => Found::Nothing { next: key.len() },
    }
}

/// Where the value of a secret's key is in what follows it: `k=v`, `k = 'v'`, `k 'v'`, `"k": "v"`, `--k v`.
fn value(key: &str, after: &str) -> Option<(usize, usize)> {
    let quoted = after.starts_with(['"', '\'', '`']);
    let closed = after.strip_prefix(['"', '\'', '`']).unwrap_or(after);
    let trimmed = closed.trim_start();
    let spaced = closed.len() > trimmed.len();
    let behind = match trimmed.strip_prefix('=').or_else(|| trimmed.strip_prefix(':').filter(|_| quoted)) {
        Some(rest) => rest.trim_start(),
        None if spaced && (key.starts_with("--") || trimmed.starts_with(['"', '\''])) => trimmed,
        None => return None,
    };
    let from = after.len() - behind.len();
    let quote = behind.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    let until = match quote {
        // Up to its own mark, which a backslash or a second one does not end.
        Some(quote) => 1 + closing(behind.get(1..)?, quote),
        None => end(behind, |c| is_end(c) || matches!(c, '&' | ';' | ',' | ')' | '}')),
    };
    let open = usize::from(quote.is_some());
    Some((from + open, from + until.max(open)))
}

/// Bytes up to the mark that ends a quotation, all where there is none.
fn closing(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // SQL doubles the mark within a text.
            c if c == quote && text.get(at + 1..).is_some_and(|rest| rest.starts_with(quote)) => {
                escaped = true
            }
            c if c == quote => return at,
            _ => {}
        }
    }
    text.len()
}

fn end(text: &str, is_end: impl Fn(char) -> bool) -> usize {
    text.find(is_end).unwrap_or(text.len())
}

fn is_key(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn secrets_go_and_the_rest_stays() {
        for (text, want) in [
            ("fs.s3a.secret.key=hush", "fs.s3a.secret.key=***"),
            ("spark.hadoop.fs.s3a.access.key=AKIA spark.x=1", "spark.hadoop.fs.s3a.access.key=*** spark.x=1"),
            ("fs.s3a.session.token = hush, more", "fs.s3a.session.token = ***, more"),
            (
                "fs.azure.account.key.acct.dfs.core.windows.net=hush==",
                "fs.azure.account.key.acct.dfs.core.windows.net=***",
            ),
            (
                "https://a.blob.core.windows.net/c/x.py?sv=2020&sig=hu%2Fsh&se=1",
                "https://a.blob.core.windows.net/c/x.py?sv=2020&sig=***&se=1",
            ),
            (
                "fs.azure.sas.c.a.blob.core.windows.net=sv=1&sig=hush",
                "fs.azure.sas.c.a.blob.core.windows.net=***&sig=***",
            ),
            ("fs.azure.account.oauth2.client.secret=hush", "fs.azure.account.oauth2.client.secret=***"),
            ("read s3a://AKIA:hu/sh@bucket/key", "read s3a://***@bucket/key"),
            ("abfs://c@a.dfs.core.windows.net/x", "abfs://c@a.dfs.core.windows.net/x"),
            ("load jdbc:postgresql://h/db?user=u&password=hush now", "load jdbc:*** now"),
            (
                "OPTIONS (url 'jdbc:mysql://u:hush@h', password 'hu''sh')",
                "OPTIONS (url 'jdbc:***', password '***')",
            ),
            (
                r#"{"private_key": "-----BEGIN\nhu\"sh", "type": "x"}"#,
                r#"{"private_key": "***", "type": "x"}"#,
            ),
            ("job.py --password hush --date 2026", "job.py --password *** --date 2026"),
            ("-Djavax.net.ssl.trustStorePassword=hush", "-Djavax.net.ssl.trustStorePassword=***"),
            ("AWS_SECRET_ACCESS_KEY=hush", "AWS_SECRET_ACCESS_KEY=***"),
            ("SET fs.s3a.encryption.key=hush", "SET fs.s3a.encryption.key=***"),
            ("fs.s3a.server-side-encryption.key=hush", "fs.s3a.server-side-encryption.key=***"),
            ("dfs.client.keystore.pass = hush", "dfs.client.keystore.pass = ***"),
            ("Authorization: Bearer hu.sh-_x0123456789 now", "Authorization: Bearer *** now"),
            ("bearer of news", "bearer of news"),
        ] {
            assert_eq!(scrub(text), want);
        }
    }

    #[test]
    fn plain_names_stay_as_they_are() {
        for text in [
            "",
            "daily sales é",
            "count at job.py:10",
            "tokenize: daily",
            "count tokens",
            "a@b",
            "http://h:80/x",
            "local[2]",
            "select password from users",
            "=",
            "://",
            "jdbc",
            "secret",
            "spark.master=yarn",
        ] {
            assert!(matches!(scrub(text), Cow::Borrowed(same) if same == text), "{text}: {}", scrub(text));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in ".*", key in "[a-z.]{0,9}(secret|password|token)[a-z.]{0,9}", hush in "hush[a-zA-Z0-9/+]{8,40}") {
            let _ = scrub(&text);
            let shown = scrub(&format!("a {key}={hush} b")).into_owned();
            prop_assert_eq!(shown, format!("a {}=*** b", key));
        }
    }
}
