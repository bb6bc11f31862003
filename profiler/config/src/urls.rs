//! Lists of servers among the settings: URLs with commas between.

use super::values::{Refused, refused};
use emberscope_model::{SparkUrl, SparkUrlError};
use std::fmt;
use std::str::FromStr;

/// Most servers that one setting can name.
const MAX_URLS: usize = 8;

/// Base URLs of Spark's web servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparkUrls(Vec<SparkUrl>);

impl SparkUrls {
    /// The URLs, in the order in which they are asked.
    pub fn get(&self) -> &[SparkUrl] {
        &self.0
    }
}

impl FromStr for SparkUrls {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Self, Refused> {
        let urls = text.split(',').map(|url| url.parse().map_err(|e: SparkUrlError| Refused(e.to_string())));
        let urls = urls.collect::<Result<Vec<SparkUrl>, _>>()?;
        if urls.len() > MAX_URLS {
            return refused(format!("at most {MAX_URLS} URLs"));
        }
        Ok(Self(urls))
    }
}

impl fmt::Display for SparkUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(SparkUrl::as_str).collect::<Vec<_>>().join(","))
    }
}

/// debuginfod servers: http or https, without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebuginfodUrls(Vec<String>);

impl DebuginfodUrls {
    /// The URLs, in the order in which they are asked.
    pub fn get(&self) -> &[String] {
        &self.0
    }
}

impl FromStr for DebuginfodUrls {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Self, Refused> {
        let url = |text: &str| {
            let text = text.trim().trim_end_matches('/');
            let uri = text.parse::<ureq::http::Uri>().ok()?;
            let known = matches!(uri.scheme_str(), Some("http" | "https"));
            (known && uri.authority().is_some() && uri.query().is_none()).then(|| text.to_owned())
        };
        let urls = text.split(',').map(url).collect::<Option<Vec<_>>>().filter(|urls| urls.len() <= MAX_URLS);
        let allowed =
            format!("at most {MAX_URLS} URLs, such as https://debuginfod.debian.net, with commas between");
        urls.map_or_else(|| refused(allowed), |urls| Ok(Self(urls)))
    }
}

impl fmt::Display for DebuginfodUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::tests::takes;
    use super::*;

    #[test]
    fn lists_of_servers_have_their_shape() {
        takes::<SparkUrls>(
            &["http://history:18080", "http://a:18080,http://[::1]:4040/spark"],
            &[
                "",
                "history:18080",
                "https://history",
                "http://a,",
                "http://u:p@h",
                &["http://h"; 9].join(","),
            ],
        );
        takes::<DebuginfodUrls>(
            &["https://debuginfod.debian.net", "http://a:8002,https://b/path"],
            &["", "debuginfod", "ftp://a", "http://a,", "http://a?b=c", &["http://h"; 9].join(",")],
        );
    }
}
