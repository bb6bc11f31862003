//! The server for JDBC (HiveThriftServer2), asked by two clients at once: each statement is a query of its own, called as it
//! was written.

use super::*;
use emberscope_tests::Running;
use std::process::Command;
use xtask::launch::port::free_port;

const NAME: &str = "warehouse";
/// What is asked, and how much CPU time of tasks it takes at least, by the sampler.
const STATEMENTS: [&str; 2] = [
    "select sum(hash(id)) from range(0, 400000000, 1, 4)",
    "select count(distinct id % 500000) from range(0, 8000000, 1, 4)",
];

/// The server.
pub struct Jdbc {
    server: Job,
    app: String,
    port: u16,
}

impl Jdbc {
    pub fn start(world: &World) -> Result<Self> {
        let (class, port) = ("org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", free_port()?);
        let (server, app) = world.serve(NAME, class, port, |job| {
            job.arg("--hiveconf").arg(format!("hive.server2.thrift.port={port}"))
        })?;
        Ok(Self { server, app, port })
    }

    pub fn holds(&self, world: &World) -> Result<()> {
        let clients = STATEMENTS.map(|statement| self.client(world, statement));
        for client in clients {
            client?.wait(WORK)?;
        }
        let until = now_ms()?;
        wait_visible(&world.daemon, until)?;
        let row = world.is_known(&self.app, NAME, self.server.pid())?;
        ensure!(row["executors"] == 2, "{row}");
        let query = format!("app={}", self.app);
        wait_for("the statements", VISIBLE + Duration::from_secs(40), || {
            let answer = world.daemon.json(&format!("/api/v1/sql?{query}&limit=1000"))?;
            let rows = answer["queries"].as_array().context("no queries")?;
            let sampled = |row: &Value| row["samples"].as_u64().is_some_and(|samples| samples > 0);
            let is_there =
                |wanted: &&str| rows.iter().any(|row| row["description"] == **wanted && sampled(row));
            Ok(STATEMENTS.iter().all(is_there).then_some(()))
        })?;
        // Its own work is a server's, not a task's.
        let classes = world.values("thread_class", &format!("{query}&role=driver"))?;
        println!("the driver's threads: {classes:?}");
        ensure!(classes.contains("server") && !classes.contains("task"), "{classes:?}");
        world.executors_are_as_proc_says(&self.app)
    }

    fn client(&self, world: &World, statement: &str) -> Result<Running> {
        let home = xtask::setup::python::spark_home(&world.here.venv).context("no pyspark")?;
        let mut beeline = Command::new(home.join("bin/beeline"));
        let url = format!("jdbc:hive2://127.0.0.1:{}", self.port);
        beeline.args(["-u", &url, "-n", "ana", "-e", &format!("{statement};")]);
        beeline.env("JAVA_HOME", &world.here.java).env("SPARK_HOME", &home).env_remove("SPARK_CONF_DIR");
        let which = STATEMENTS.iter().position(|other| *other == statement).unwrap_or_default();
        let log = made(&world.dir, "beeline")?.join(format!("{which}.log"));
        Running::start("beeline", &mut beeline, &log)
    }

    /// Ends it; out: its application's id.
    pub fn end(self) -> Result<String> {
        end(self.server)?;
        Ok(self.app)
    }
}
