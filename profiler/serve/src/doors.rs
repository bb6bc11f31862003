//! The open doors: sockets that listen, who may come in by them, and what the log and the status say of that.
//!
//! In: what [`super::config::ServeConfig::open`] opened. Out: the listeners, for [`super::connection`].

use super::config::Access;
use super::connection::Listener;
use super::socket::SocketFile;
use super::tls::Certificate;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The sockets, and who may come in.
#[derive(Debug)]
pub struct Doors {
    /// Sockets at which all is served.
    pub listeners: Vec<Listener>,
    /// Sockets at which health alone is served.
    pub health: Vec<Listener>,
    /// What a request must show.
    pub access: Access,
    /// The certificate of the TCP sockets, where TLS is spoken.
    pub certificate: Option<Arc<Certificate>>,
    /// The address of the first TCP socket.
    pub address: SocketAddr,
    /// The Unix socket's file, which goes when this is dropped.
    pub socket: Option<SocketFile>,
    /// The file of the full token; None: loopback is open.
    pub(super) token_file: Option<PathBuf>,
}

impl Doors {
    /// What the log says at the start.
    pub fn announce(&self) {
        let shown = |path: Option<&Path>| path.map(|path| path.display().to_string());
        let socket = shown(self.socket.as_ref().map(SocketFile::path));
        let token = shown(self.token_file.as_deref());
        tracing::info!(listen = %self.address, socket, token, tls = self.certificate.is_some(), "listening");
        if matches!(self.access, Access::LocalHostOnly) {
            tracing::warn!(
                listen = %self.address,
                "open-loopback is on: every user and program of this machine can read all profiles"
            );
        }
    }

    /// What the status says of who may ask.
    pub fn status(&self) -> Arc<dyn Fn() -> Value + Send + Sync> {
        let (access, certificate, listen) = (self.access.clone(), self.certificate.clone(), self.address);
        let socket = self.socket.as_ref().map(|file| file.path().display().to_string());
        Arc::new(move || {
            let mut files = Vec::new();
            let mut add = |what: &str, path: &Path, failing: Option<String>| {
                files.push(json!({ "what": what, "path": path.display().to_string(), "failing": failing }));
            };
            if let Access::Guarded(guard) = &access {
                guard.files().for_each(|(what, path, failing)| add(what, path, failing));
            }
            if let Some(certificate) = &certificate {
                add("tls-cert", &certificate.files().cert, certificate.failing());
            }
            let open = matches!(access, Access::LocalHostOnly);
            json!({
                "listen": listen.to_string(),
                "socket": socket,
                "tls": certificate.is_some(),
                "open_loopback": open,
                "warning": open.then_some("every user and program of this machine can read all profiles"),
                "files": files,
            })
        })
    }
}

/// What a link to an address begins with; what is bound to all addresses is reached by loopback.
pub(super) fn link(address: SocketAddr, tls: bool) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_this_machine() {
        for (address, tls, want) in [
            ("127.0.0.1:4099", false, "http://127.0.0.1:4099"),
            ("0.0.0.0:80", true, "https://127.0.0.1:80"),
            ("[::]:80", false, "http://[::1]:80"),
            ("10.1.2.3:80", false, "http://10.1.2.3:80"),
        ] {
            assert_eq!(link(address.parse().unwrap(), tls), want);
        }
    }
}
