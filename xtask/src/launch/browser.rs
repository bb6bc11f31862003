//! A headless Chromium, driven over WebDriver (W3C) by Debian's chromedriver: the page's tests and measurements.
//!
//! In: scripts and keys. Out: what they give, as JSON. The browser's profile is a new one each time; dropped, driver
//! and browser end. Only loopback is asked for anything.

use super::port::free_port;
use crate::places;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the driver and the browser may take to start on a crowded machine.
const START: Duration = Duration::from_secs(120);

/// A browser with one window of 1440 by 900.
pub struct Browser {
    driver: Child,
    session: String,
    agent: ureq::Agent,
}

/// What is missing to start one, in words; None when nothing is.
pub fn missing() -> Option<String> {
    let gone = ["chromedriver", "chromium"].into_iter().find(|name| places::on_path(name).is_none())?;
    Some(format!("there is no {gone}: apt-get install chromium chromium-driver"))
}

impl Browser {
    /// Starts it.
    pub fn start() -> Result<Self> {
        let chromium = places::on_path("chromium").context("there is no chromium")?;
        let port = free_port()?;
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start chromedriver")?;
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(START));
        let mut browser =
            Self { driver, session: format!("http://127.0.0.1:{port}"), agent: config.build().into() };
        let begun = Instant::now();
        while browser.agent.get(format!("{}/status", browser.session)).call().is_err() {
            if begun.elapsed() > START {
                bail!("chromedriver does not answer after {START:?}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let options = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": {
                "binary": chromium,
                "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1440,900"],
            },
        } } });
        let session = browser.call("session", &options)?;
        let id = session["sessionId"].as_str().context("chromedriver gave no session")?;
        browser.session = format!("{}/session/{id}", browser.session);
        Ok(browser)
    }

    fn call(&self, path: &str, body: &Value) -> Result<Value> {
        let url = format!("{}/{path}", self.session);
        let mut response = self.agent.post(&url).send_json(body).with_context(|| format!("POST {url}"))?;
        let answer: Value = response.body_mut().with_config().limit(256 << 20).read_json()?;
        match answer["value"]["error"].as_str() {
            Some(error) => bail!("{error}: {}", answer["value"]["message"].as_str().unwrap_or_default()),
            None => Ok(answer["value"].clone()),
        }
    }

    /// Opens an address, and waits until it is loaded.
    pub fn go(&self, url: &str) -> Result<()> {
        self.call("url", &json!({ "url": url })).map(drop)
    }

    /// Goes into the page's frame of this number, or with None back to the page; scripts and places are of it then.
    pub fn frame(&self, number: Option<u32>) -> Result<()> {
        self.call("frame", &json!({ "id": number })).map(drop)
    }

    /// Runs a function's body; what it returns. A promise is waited for.
    pub fn js(&self, script: &str) -> Result<Value> {
        self.call("execute/sync", &json!({ "script": script, "args": [] })).with_context(|| script.to_owned())
    }

    /// Waits until an expression is true, for half a minute.
    pub fn wait(&self, what: &str) -> Result<()> {
        let begun = Instant::now();
        while self.js(&format!("return Boolean({what})"))? != true {
            if begun.elapsed() > Duration::from_secs(30) {
                bail!(
                    "not so after 30 s: {what}; the page says: {}",
                    self.js("return document.body.innerText")?
                );
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        Ok(())
    }

    /// Presses keys, one after another (WebDriver's names: `\u{E007}` is Enter).
    pub fn keys(&self, keys: &[&str]) -> Result<()> {
        let actions: Vec<Value> = keys
            .iter()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        self.call("actions", &json!({ "actions": [{"type": "key", "id": "keys", "actions": actions}] }))
            .map(drop)
    }

    /// Presses a mouse button at the first place and lets it go at the last.
    pub fn drag(&self, button: u8, places: &[(i64, i64)]) -> Result<()> {
        let mut actions = Vec::new();
        for (at, (x, y)) in places.iter().enumerate() {
            actions.push(json!({"type": "pointerMove", "duration": 20, "x": x, "y": y}));
            if at == 0 {
                actions.push(json!({"type": "pointerDown", "button": button}));
            }
        }
        actions.push(json!({"type": "pointerUp", "button": button}));
        let mouse = json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions});
        self.call("actions", &json!({ "actions": [mouse] })).map(drop)
    }

    /// What the page wrote to its console since the last call: level and text.
    pub fn console(&self) -> Result<Vec<String>> {
        let log = self.call("se/log", &json!({ "type": "browser" }))?;
        let line = |entry: &Value| format!("{} {}", entry["level"], entry["message"]);
        Ok(log.as_array().map(|entries| entries.iter().map(line).collect()).unwrap_or_default())
    }

    /// A picture of what is in the window, as base64 of a PNG.
    pub fn picture(&self) -> Result<String> {
        let url = format!("{}/screenshot", self.session);
        let answer: Value =
            self.agent.get(&url).call()?.body_mut().with_config().limit(64 << 20).read_json()?;
        Ok(answer["value"].as_str().context("no picture")?.to_owned())
    }

    /// Makes its window so large, in pixels.
    pub fn size(&self, width: u32, height: u32) -> Result<()> {
        let parameters = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        let command = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": parameters });
        self.call("goog/cdp/execute", &command).map(drop)
    }

    /// Lets downloads go to a directory.
    pub fn downloads(&self, dir: &Path) -> Result<()> {
        let parameters = json!({ "behavior": "allow", "downloadPath": dir });
        self.call("goog/cdp/execute", &json!({ "cmd": "Page.setDownloadBehavior", "params": parameters }))
            .map(drop)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends with its session, the driver by a signal.
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
