//! `emberscope url`: a link that logs a browser in.
//!
//! In: the daemon, asked by its Unix socket, or by a URL with its full token. Out: the link, good once and for five
//! minutes.

use super::CliError;
use super::client::{Client, ClientArgs};
use clap::Args;
use emberscope_api::{LoginLink, route};
use std::io::{self, Write};

/// Flags of `emberscope url`.
#[derive(Args, Clone, Debug)]
pub struct UrlArgs {
    /// Address that the link begins with, if the browser reaches the daemon at another address than the daemon knows.
    #[arg(long, value_name = "URL")]
    base: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints the link.
///
/// # Errors
/// [`CliError::Answer`]: the daemon does not know its own address, and there is no `--base`. [`CliError::Output`].
/// Else as for [`ClientArgs::client`] and [`Client::post`].
pub fn run(args: &UrlArgs) -> Result<(), CliError> {
    show(&args.client.client()?, args.base.as_deref(), &mut io::stdout().lock())
}

fn show(client: &Client, base: Option<&str>, out: &mut dyn Write) -> Result<(), CliError> {
    let answered = client.post(route::LOGIN.path)?;
    let link: LoginLink =
        serde_json::from_slice(&answered.body).map_err(|error| client.odd(format!("its answer: {error}")))?;
    let url = match (base, link.url) {
        (Some(base), _) => format!("{}{}", base.trim_end_matches('/'), link.path),
        (None, Some(url)) => url,
        (None, None) => {
            return Err(client.odd("it does not know its own address: name it with --base".to_owned()));
        }
    };
    writeln!(out, "{}", super::text::clean(&url))?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;

    #[test]
    fn the_link_is_printed() {
        let body = r#"{"path":"/login?code=c0de","url":"http://127.0.0.1:4099/login?code=c0de"}"#;
        for (base, want) in [
            (None, "http://127.0.0.1:4099/login?code=c0de\n"),
            (Some("https://node-7/behind/"), "https://node-7/behind/login?code=c0de\n"),
        ] {
            let fake = Fake::answering(200, &[], body);
            let mut out = Vec::new();
            show(&fake.client(None), base, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), want);
            assert_eq!(fake.request().target, "/api/v1/login");
        }
    }
}
