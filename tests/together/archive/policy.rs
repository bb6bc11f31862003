//! Who may write what on S3: the policies that docs/archive.md prints, on a real server. A node's key writes below its own
//! names only, a reader's key writes nothing; daemons with them work, and say where they may not.

use super::{SMALL, WINDOW_MS, archive, busy, now_ms, s3_binary, wait, wait_copied};
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, wait_visible};
use std::path::Path;
use std::process::Command;
use xtask::launch::S3;
use xtask::launch::s3::BUCKET;

/// The pieces of JSON that docs/archive.md prints under "Who may write what".
fn policies() -> Result<Vec<String>> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/archive.md"))?;
    let (_, part) = page.split_once("## Who may write what").context("the heading")?;
    let part = part.split("\n## ").next().unwrap_or(part);
    Ok(part
        .split("```json\n")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("```")?.0.to_owned()))
        .collect())
}

/// The node's policy and the reader's statements as one, of our bucket and prefix.
fn policy() -> Result<String> {
    let [node, reader] = &policies()?[..] else { anyhow::bail!("two policies") };
    let (head, tail) = node.rsplit_once(']').context("statements")?;
    let all = format!("{head}, {reader} ]{tail}");
    Ok(all
        .replace("BUCKET", BUCKET)
        .replace("/PREFIX/", "/x/")
        .replace("NODE-1", "node-1")
        .replace("\"READER\"", "\"reader\""))
}

/// A request with a user's key, as curl signs it: the status.
fn ask(
    server: &S3,
    user: &str,
    secret: &str,
    method: &str,
    path: &str,
    body: Option<&str>,
) -> Result<String> {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "-X", method]);
    curl.args(["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", &format!("{user}:{secret}")]);
    // Before curl 8 it is not there by itself, and servers want it.
    curl.args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]);
    if let Some(body) = body {
        curl.args(["--data-binary", body]);
    }
    let out = curl.arg(server.address(path)).output().context("curl")?;
    ensure!(out.status.success(), "curl: {}", String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8(out.stdout)?)
}

#[test]
fn a_nodes_key_writes_below_its_own_names_only() -> Result<()> {
    let test = "a_nodes_key_writes_below_its_own_names_only";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let Some(binary) = s3_binary(test) else { return Ok(()) };
    let server = S3::start(&binary, &dir.path().join("storage"))?;
    for user in ["node-1", "node-2", "reader"] {
        server.add_user(user, &secret(user))?;
    }
    let put = |method: &str, path: &str, body| {
        server.as_root(|user, key| ask(&server, user, key, method, path, body))
    };
    let taken = put("PUT", "?policy=", Some(&policy()?))?;
    ensure!(taken.starts_with('2'), "the server does not take the policy: {taken}");

    for (user, method, path, want) in [
        ("node-1", "PUT", "/x/v1/nodes/node-1/blocks/a", "200"),
        ("node-1", "PUT", "/x/v1/index/20261122T08/node-1/a", "200"),
        ("node-1", "PUT", "/x/v1/open/node-1/b/a", "200"),
        ("node-1", "DELETE", "/x/v1/open/node-1/b/a", "204"),
        ("node-1", "PUT", "/x/v1/heartbeats/node-1/1-0-0", "200"),
        ("node-1", "DELETE", "/x/v1/heartbeats/node-1/1-0-0", "204"),
        ("node-1", "PUT", "/x/v1/heartbeats/node-2/1-0-0", "403"),
        ("node-1", "PUT", "/x/v1/nodes/node-2/blocks/a", "403"),
        ("node-1", "PUT", "/x/v1/index/20261122T08/node-2/a", "403"),
        ("node-1", "PUT", "/x/v1/gathered/a/b", "403"),
        ("node-2", "PUT", "/x/v1/nodes/node-1/blocks/a", "403"),
        ("node-2", "DELETE", "/x/v1/nodes/node-1/blocks/a", "403"),
        ("reader", "GET", "/x/v1/nodes/node-1/blocks/a", "200"),
        ("reader", "GET", "?list-type=2", "200"),
        ("reader", "PUT", "/x/v1/nodes/node-1/blocks/b", "403"),
        ("reader", "DELETE", "/x/v1/nodes/node-1/blocks/a", "403"),
        ("node-2", "GET", "?list-type=2", "403"),
    ] {
        let body = (method == "PUT").then_some("hello");
        let got = ask(&server, user, &secret(user), method, path, body)?;
        ensure!(got == want, "{user} {method} {path}: {got}, not {want}");
    }
    ask(&server, "node-1", &secret("node-1"), "DELETE", "/x/v1/nodes/node-1/blocks/a", None)?;
    ask(&server, "node-1", &secret("node-1"), "DELETE", "/x/v1/index/20261122T08/node-1/a", None)?;

    // Real daemons with the same keys.
    let _busy = busy(dir.path())?;
    let url = format!("s3://{BUCKET}/x");
    let key = server.environment_of("node-1", &secret("node-1"));
    let own = [&SMALL[..], &["--archive", &url, "--node", "node-1"]].concat();
    let own = Daemon::start_in(&here.binary, &dir.path().join("own"), &own, &key)?;
    let others = [&SMALL[..], &["--archive", &url, "--node", "node-2"]].concat();
    let others = Daemon::start_in(&here.binary, &dir.path().join("others"), &others, &key)?;
    let says = wait("the refusal is told", || Ok(archive(&others)?["failing"].as_str().map(str::to_owned)))?;
    ensure!(says.contains("node-2") && says.contains("not allowed"), "{says}");
    wait_visible(&own, now_ms()? + 2 * WINDOW_MS)?;
    wait_copied(&own)?;
    let reader = server.environment_of("reader", &secret("reader"));
    let serve = Daemon::serve(&here.binary, &dir.path().join("cache"), &url, &["--refresh", "1s"], &reader)?;
    wait("the reader answers of node-1", || {
        let reply = serve.get("/api/v1/labels/node/values?from=-5m")?;
        Ok((reply.status == 200 && reply.body.contains("node-1")).then_some(()))
    })?;
    let nodes = serve.get("/api/v1/labels/node/values?from=-5m")?.body;
    ensure!(!nodes.contains("node-2"), "{nodes}");
    own.stop()?;
    others.stop()?;
    Ok(())
}

fn secret(user: &str) -> String {
    format!("not-a-secret-of-{user}")
}
