//! Spark Connect: a driver that serves clients, which are processes of their own, here or elsewhere.
//!
//! The server is started as a program of its own (sbin/start-connect-server.sh) or as a plugin of any driver. Its port is
//! 15002 unless `spark.connect.grpc.binding.port` says another (Spark 3.4 to 4.2: connect/config/Connect.scala). What a
//! client is to Spark no command line tells: it is found by its connection (`discovery`).

use crate::facts::ProcessFacts;
use crate::java::SubmitOptions;

/// The main class of the server, as spark-submit is told (connect/service/SparkConnectServer.scala).
const SERVER: &str = "org.apache.spark.sql.connect.service.SparkConnectServer";
/// The plugin that serves inside a driver (connect/SparkConnectPlugin.scala).
const PLUGIN: &str = "org.apache.spark.sql.connect.SparkConnectPlugin";
/// The server's port where nothing says another.
const PORT: u16 = 15002;

/// The port of the server in a driver's JVM. None: there is none, or its port is not said (0 is any that is free).
pub(super) fn port(submit: &SubmitOptions<'_>, facts: &ProcessFacts) -> Option<u16> {
    let said = |key| submit.conf(key).or_else(|| facts.properties.get(key));
    let is_plugin = said("spark.plugins").is_some_and(|all| all.split(',').any(|one| one.trim() == PLUGIN));
    if submit.get("--class") != Some(SERVER) && !is_plugin {
        return None;
    }
    let port = said("spark.connect.grpc.binding.port").map_or(Some(PORT), |port| port.trim().parse().ok());
    port.filter(|port| *port != 0)
}

/// Whether spark-submit starts a client of a server elsewhere: its JVM is no driver.
/// `--remote local` is none: it starts a server.
pub(super) fn is_client(submit: &SubmitOptions<'_>) -> bool {
    submit.get("--remote").is_some_and(|remote| remote.starts_with("sc://"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::identity_of;
    use emberscope_model::Role;

    fn submitted(words: &[&str]) -> (Role, Option<u16>) {
        let all = [&["java", "org.apache.spark.deploy.SparkSubmit"], words].concat();
        let identity = identity_of(&all, &[]);
        (identity.role, identity.connect_port)
    }

    #[test]
    fn servers_and_their_ports() {
        let plugin = format!("spark.plugins=com.example.Other, {PLUGIN}");
        let [other, free] = ["15009", "0"].map(|port| format!("spark.connect.grpc.binding.port={port}"));
        for (words, wanted) in [
            (&["--master", "local", "--class", SERVER, "spark-internal"][..], Some(PORT)),
            (&["--conf", &plugin, "job.py"], Some(PORT)),
            (&["--class", SERVER, "--conf", &other, "spark-internal"], Some(15009)),
            (&["--class", SERVER, "--conf", &free, "spark-internal"], None),
            (&["--conf", "spark.plugins=com.example.Other", "job.py"], None),
            (&["--class", "com.example.Main", "--conf", &other, "x.jar"], None),
        ] {
            assert_eq!(submitted(words), (Role::Driver, wanted), "{words:?}");
        }
    }

    #[test]
    fn who_starts_a_client_is_no_driver() {
        assert_eq!(submitted(&["--remote", "sc://edge-1;token=hush", "job.py"]), (Role::Other, None));
        assert_eq!(submitted(&["--remote", "local[2]", "job.py"]).0, Role::Driver);
        assert_eq!(submitted(&["job.py", "--remote", "x"]).0, Role::Driver, "the program's own word");
    }
}
