//! Tests that need no privilege: what the documents, dashboards and exports say, and the server over known rows as its
//! clients ask it (Pyroscope's, Grafana's, a browser). Other work may run beside them.

mod docs;
mod golden;
mod grafana;
mod import;
mod load;
mod page;
mod panel;
mod pyroscope;
mod recordings;
