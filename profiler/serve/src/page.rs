//! The page at `/` and its files under `/ui/`.
//!
//! In: a path. Out: a file of `profiler/ui`, which is inside the binary. They are the same for everybody and say
//! nothing of the node: the page asks the API for all that it shows, so that its files need no token. A browser asks
//! each time whether its copy is still good (`ETag`, `no-cache`). The content policy lets nothing in but files of
//! this origin: no script, style or handler inside the HTML, and no string becomes a script's address but the
//! worker's (Trusted Types).

use super::error::ApiError;
use super::params::Params;
use super::plain::unknown_route;
use axum::body::Body;
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use emberscope_api::route;
use std::hash::{BuildHasher, Hasher};

/// What the page may do.
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types emberscope-worker";

/// A file and its name.
type File = (&'static str, &'static [u8]);

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../ui/", $name)))),+]
    };
}

/// All files of the page, the page itself first.
const FILES: &[File] = files![
    "index.html",
    "api.js",
    "app.js",
    "bars.js",
    "dom.js",
    "export/folded.js",
    "export/pprof.js",
    "export/save.js",
    "export/speedscope.js",
    "export/svg.js",
    "flame/aria.js",
    "flame/colour.js",
    "flame/compute.js",
    "flame/draw.js",
    "flame/engine.js",
    "flame/fold.js",
    "flame/graph.js",
    "flame/input.js",
    "flame/layout.js",
    "flame/menu.js",
    "flame/moves.js",
    "flame/search.js",
    "flame/shape.js",
    "flame/tip.js",
    "flame/tree.js",
    "flame/worker.js",
    "format.js",
    "graph.css",
    "help.js",
    "icon.svg",
    "keys.js",
    "kinds.js",
    "methods.js",
    "period.js",
    "plan.css",
    "plan/graph.js",
    "plan/layout.js",
    "quality.js",
    "scale.js",
    "spark.js",
    "state.js",
    "strip.js",
    "style.css",
    "table.js",
    "theme.js",
    "timeline.js",
    "trouble.js",
    "units.js",
    "views/apps.js",
    "views/compare.js",
    "views/executors.js",
    "views/filters.js",
    "views/flame.js",
    "views/methods.js",
    "views/queries.js",
    "views/runs.js",
    "views/source.js",
    "views/stages.js",
    "views/tasks.js",
    "views/tax.js",
    "views/toolbar.js",
    "views/verdict.js",
    "views/versus.js",
];

/// Whether a path is the page's or one of its files': these need no token.
pub fn is_public(path: &str) -> bool {
    path == "/" || path.strip_prefix("/ui/").is_some_and(|name| find(name).is_some())
}

fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|(known, _)| *known == name)
}

/// Answers `/`.
pub async fn index(headers: HeaderMap, RawQuery(raw): RawQuery) -> Response {
    if let Err(error) = Params::of_route(raw.as_deref(), &route::PAGE) {
        return error.into_response();
    }
    match FILES.first() {
        Some(file) => answer(file, &headers),
        None => ApiError::internal("The page is not in this binary.").into_response(),
    }
}

/// Answers `/ui/{*file}`.
pub async fn file(uri: Uri, headers: HeaderMap, Path(name): Path<String>) -> Response {
    match find(&name) {
        Some(file) => answer(file, &headers),
        None => unknown_route(uri).await.into_response(),
    }
}

fn answer((name, bytes): &File, asked: &HeaderMap) -> Response {
    let tag = tag(bytes);
    let known = asked.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    // A compressing layer or proxy may have made the tag a weak one.
    let same = known.is_some_and(|all| {
        all.split(',').any(|one| one.trim().trim_start_matches("W/") == tag || one.trim() == "*")
    });
    let mut response = match same {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(*bytes).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// The `ETag` of a file, a hash of its content, so that a browser takes a new version at once.
fn tag(bytes: &[u8]) -> String {
    let mut hasher = foldhash::quality::FixedState::with_seed(0).build_hasher();
    hasher.write(bytes);
    format!("\"{:016x}\"", hasher.finish())
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn below(dir: &Path, prefix: &str, out: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true if name == "test" => {}
                true => below(&entry.path(), &format!("{name}/"), out),
                // Tells node that the files are modules; browsers are told by the page.
                false if name == "package.json" => {}
                false => out.push(name),
            }
        }
    }

    #[test]
    fn every_file_of_the_page_is_in_the_binary() {
        let mut there = Vec::new();
        below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui"), "", &mut there);
        let mut listed: Vec<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        there.sort();
        listed.sort();
        assert_eq!(there, listed);
        for (name, _) in FILES {
            assert_ne!(content_type(name), "application/octet-stream", "{name}");
        }
    }

    #[test]
    fn nothing_inline_and_nothing_from_elsewhere() {
        for (name, bytes) in FILES {
            let text = std::str::from_utf8(bytes).unwrap();
            for bad in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
            {
                assert!(!text.contains(bad), "{name} has {bad}");
            }
            // An SVG file names its namespace; nothing is fetched from there.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            let far = text.match_indices("://").find(|(at, _)| {
                let before = text.get(..*at).unwrap_or_default();
                before.ends_with("http") || before.ends_with("https")
            });
            assert!(far.is_none() || name.starts_with("export/"), "{name} names another origin");
            if name.ends_with(".html") {
                for bad in ["<style", " style=", "onclick", "onload", "<script>", "href=\"/", "src=\"/"] {
                    assert!(!text.contains(bad), "{name} has {bad}");
                }
            }
        }
    }

    #[test]
    fn the_same_file_is_not_sent_twice() {
        let file = FILES.first().unwrap();
        let plain = answer(file, &HeaderMap::new());
        assert_eq!(plain.status(), StatusCode::OK);
        let tag = plain.headers()[header::ETAG].clone();
        for known in [tag.to_str().unwrap().to_owned(), format!("\"other\", W/{}", tag.to_str().unwrap())] {
            let mut asked = HeaderMap::new();
            asked.insert(header::IF_NONE_MATCH, known.parse().unwrap());
            assert_eq!(answer(file, &asked).status(), StatusCode::NOT_MODIFIED, "{known}");
        }
        let mut other = HeaderMap::new();
        other.insert(header::IF_NONE_MATCH, "\"other\"".parse().unwrap());
        assert_eq!(answer(file, &other).status(), StatusCode::OK);
    }
}
