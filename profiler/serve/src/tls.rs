//! TLS: the server's certificate, read again when it changes.
//!
//! In: two PEM files, the chain and its key, which others may not read. Out: a rustls configuration that takes the
//! newest good pair for each connection. A pair that is no good, or does not fit together (one file is there already
//! and the other not yet), leaves the one before.

use super::secret::{self, Stamp};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, ServerConfig};
use rustls::sign::CertifiedKey;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_rustls::TlsAcceptor;

use super::guard::Again;

/// Largest file, in bytes: a long chain with its comments has some 20 KB.
const MAX_FILE: usize = 1 << 20;

/// Where the certificate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// File of the chain, PEM.
    pub cert: PathBuf,
    /// File of the private key, PEM.
    pub key: PathBuf,
}

/// The certificate that is shown.
#[derive(Debug)]
pub struct Certificate {
    files: TlsFiles,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    key: Arc<CertifiedKey>,
    stamps: [Option<Stamp>; 2],
    failing: Option<String>,
}

impl Certificate {
    /// Reads the certificate of these files.
    ///
    /// # Errors
    /// A sentence with the mend: a file cannot be read, holds no PEM, or the two do not go together.
    pub fn new(files: TlsFiles) -> Result<Arc<Self>, String> {
        let stamps = files.stamps();
        let key = files.read()?;
        Ok(Arc::new(Self { files, held: Mutex::new(Held { key, stamps, failing: None }) }))
    }

    /// What accepts connections with this certificate.
    ///
    /// # Errors
    /// The cryptography that is built in has none of the protocol's versions.
    pub fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, String> {
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth();
        let mut config = config.with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Reads the files again if one changed.
    pub fn read_again(&self) -> Again {
        let stamps = self.files.stamps();
        if self.held().stamps == stamps {
            return Again::Same;
        }
        let read = self.files.read();
        let mut held = self.held();
        held.stamps = stamps;
        match read {
            Ok(key) => {
                (held.key, held.failing) = (key, None);
                Again::Read
            }
            Err(reason) => {
                held.failing = Some(reason.clone());
                Again::Bad(reason)
            }
        }
    }

    /// The files that the certificate is read from.
    pub fn files(&self) -> &TlsFiles {
        &self.files
    }

    /// Why the files are no good any more; None: they are good.
    pub fn failing(&self) -> Option<String> {
        self.held().failing.clone()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.held().key))
    }
}

impl TlsFiles {
    fn stamps(&self) -> [Option<Stamp>; 2] {
        [&self.cert, &self.key].map(|path| Stamp::of(path))
    }

    fn read(&self) -> Result<Arc<CertifiedKey>, String> {
        let named = |path: &PathBuf, reason: String| format!("{}: {reason}", path.display());
        let cert = secret::read(&self.cert, MAX_FILE, false).map_err(|reason| named(&self.cert, reason))?;
        let key = secret::read(&self.key, MAX_FILE, true).map_err(|reason| named(&self.key, reason))?;
        let chain = CertificateDer::pem_slice_iter(&cert).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| named(&self.cert, format!("is no PEM: {error}")))?;
        if chain.is_empty() {
            return Err(named(&self.cert, "holds no certificate (PEM)".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&key);
        let key = key.map_err(|error| named(&self.key, format!("holds no private key (PEM): {error}")))?;
        let certified = CertifiedKey::from_der(chain, key, &default_provider());
        certified
            .map(Arc::new)
            .map_err(|error| named(&self.cert, format!("does not go with its key: {error}")))
    }
}
