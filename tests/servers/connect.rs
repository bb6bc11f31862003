//! Spark Connect: two clients on the node, each with a Python function of its own name. Whose the clients are, and that
//! what ran for one session is in that one's queries.

use super::*;
use emberscope_tests::Running;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Command;
use xtask::launch::port::free_port;

const NAME: &str = "shared connect";
/// The clients, which are called as the functions that their queries run.
const CLIENTS: [&str; 2] = ["alpha", "beta"];
/// How often each asks.
const ROUNDS: &str = "6";
/// How much of the Python halves must be in the right session's queries.
const RIGHT: f64 = 0.995;

/// The server.
pub struct Connect {
    server: Job,
    app: String,
    port: u16,
}

impl Connect {
    pub fn start(world: &World) -> Result<Self> {
        let (class, port) = ("org.apache.spark.sql.connect.service.SparkConnectServer", free_port()?);
        let (server, app) = world.serve(NAME, class, port, |job| {
            job.conf("spark.connect.grpc.binding.port", port.to_string())
                // The executors' Python has no Arrow.
                .conf("spark.sql.execution.pythonUDF.arrow.enabled", "false")
        })?;
        Ok(Self { server, app, port })
    }

    pub fn holds(&self, world: &World, packages: &OsStr) -> Result<()> {
        let mut clients = Vec::new();
        for name in CLIENTS {
            clients.push(self.client(world, name, packages)?);
        }
        let mut sessions = BTreeMap::new();
        for (name, client) in CLIENTS.into_iter().zip(&mut clients) {
            client.wait_fact("done", WORK)?;
            sessions.insert(name, client.fact("session").context("no session")?);
        }
        let until = now_ms()?;
        wait_visible(&world.daemon, until)?;
        let row = world.is_known(&self.app, NAME, self.server.pid())?;
        ensure!(row["executors"] == 2, "{row}");
        let others = world.values("pid", "role=other")?;
        for (name, client) in CLIENTS.into_iter().zip(&clients) {
            world.is_known(&self.app, NAME, client.pid())?;
            ensure!(
                !others.contains(&client.pid().to_string()),
                "{name} was a program of nobody's application"
            );
            let of_it = format!("app={}&role=driver&pid={}", self.app, client.pid());
            let stacks = world.folded(&of_it)?;
            let own = |stack: &str| stack.contains("own_work (connect_client.py)");
            let of_work: u64 = stacks.iter().filter(|(stack, _)| own(stack)).map(|(_, count)| count).sum();
            let all: u64 = stacks.iter().map(|(_, count)| count).sum();
            println!("the client {name}: {of_work} of {all} samples in its own work of 2 s");
            ensure!((150..250).contains(&of_work), "{of_work} samples of 2 s at 99 Hz");
        }
        self.sessions(world, &sessions)?;
        world.executors_are_as_proc_says(&self.app)
    }

    fn client(&self, world: &World, name: &str, packages: &OsStr) -> Result<Running> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/connect_client.py");
        let mut python = Command::new(world.here.venv.join("bin/python"));
        python.arg(script).args([&self.port.to_string(), name, ROUNDS]).env("PYTHONPATH", packages);
        let log = made(&world.dir, "clients")?.join(format!("{name}.log"));
        Running::start(&format!("the client {name}"), &mut python, &log)
    }

    /// The function that a session's queries run is in its own queries' stages, and in no other's.
    fn sessions(&self, world: &World, sessions: &BTreeMap<&str, String>) -> Result<()> {
        let query = format!("app={}", self.app);
        // Spark's words come every few seconds, and at the latest half a minute after.
        let stages = wait_for("the queries of both sessions", VISIBLE + Duration::from_secs(40), || {
            let answer = world.daemon.json(&format!("/api/v1/sql?{query}&limit=10000"))?;
            let rows = answer["queries"].as_array().context("no queries")?;
            let whose = |row: &Value| {
                let says = row["description"].as_str().unwrap_or_default();
                sessions.iter().find(|(_, session)| says.contains(session.as_str())).map(|(name, _)| *name)
            };
            let mut stages = BTreeMap::new();
            for (row, name) in rows.iter().filter_map(|row| Some((row, whose(row)?))) {
                for stage in row["stages"].as_array().into_iter().flatten().filter_map(Value::as_u64) {
                    stages.insert(stage, name);
                }
            }
            // Of a stage that no query is known of; tasks without a stage are nobody's.
            let unnamed =
                rows.iter().any(|row| row["execution"].is_null() && row["stages"] != serde_json::json!([]));
            Ok((stages.len() >= 2 * CLIENTS.len() && !unnamed).then_some(stages))
        })?;
        let (mut right, mut wrong, mut unbound) = (0, 0, 0);
        for (stack, count) in world.folded(&format!("{query}&role=python&group=stage"))? {
            let Some(name) = CLIENTS.into_iter().find(|name| stack.contains(&format!(";{name} ("))) else {
                continue;
            };
            let stage = stack.strip_prefix("stage=").and_then(|rest| rest.split(';').next());
            match stage.and_then(|stage| stages.get(&stage.parse().ok()?)) {
                Some(whose) if *whose == name => right += count,
                Some(_) => wrong += count,
                None => unbound += count,
            }
        }
        println!(
            "samples in the sessions' functions: {right} in its queries, {wrong} in the other's, {unbound} in none"
        );
        let all = (right + wrong + unbound) as f64;
        ensure!(
            right > 100 && right as f64 >= RIGHT * all,
            "{right} right, {wrong} wrong, {unbound} in none"
        );
        Ok(())
    }

    /// Ends it; out: its application's id.
    pub fn end(self) -> Result<String> {
        end(self.server)?;
        Ok(self.app)
    }
}
