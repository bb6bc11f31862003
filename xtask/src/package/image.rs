//! The container image, as a tar of the OCI image layout 1.0 (github.com/opencontainers/image-spec, image-layout.md,
//! config.md), without a daemon, a registry or a shell: one layer with the program, the certificates that TLS trusts, and of a
//! program that is linked dynamically the libraries that this machine has for it. The same files give the same bytes, and so
//! the same digest, under which a registry then has it.

use super::archive::{self, GZIP, Tree};
use super::tree;
use crate::arch::Arch;
use crate::kernels::libraries_of;
use crate::step::output;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What curl, Debian's and Fedora's way of it, has the trusted authorities in.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Files of the source tree, and where each is in the image.
const FILES: [(&str, &str); 4] = [
    ("deploy/emberscope.toml", "etc/emberscope/emberscope.toml"),
    ("deploy/debian/copyright", "usr/share/doc/emberscope/copyright"),
    ("LICENSE-MIT", "usr/share/doc/emberscope/LICENSE-MIT"),
    ("LICENSE-APACHE", "usr/share/doc/emberscope/LICENSE-APACHE"),
];

/// What glibc asks for names of users and of hosts. 65532 is who `serve` runs as in the chart.
const WRITTEN: [(&str, &str); 3] = [
    ("etc/passwd", "root:x:0:0:root:/:/bin/false\nemberscope:x:65532:65532::/:/bin/false\n"),
    ("etc/group", "root:x:0:\nemberscope:x:65532:\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
];

/// Directories that the daemon and `serve` write to, where volumes are mounted.
const DIRECTORIES: [&str; 3] = ["var/lib/emberscope", "var/cache/emberscope", "run/emberscope"];

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Packs the image of stripped programs, one for each architecture. `dir` is for its files. The answer is its digest, `sha256:`
/// and hexadecimal digits: of several architectures it is that of their index, of which a runtime takes what its node is.
pub fn pack(
    programs: &[(Arch, PathBuf)],
    (version, epoch): (&str, &str),
    dir: &Path,
    to: &Path,
) -> Result<String> {
    let blobs = Blobs { dir: dir.join("layout/blobs/sha256") };
    std::fs::create_dir_all(&blobs.dir).with_context(|| format!("creating {}", blobs.dir.display()))?;
    let mut manifests = Vec::new();
    for (arch, program) in programs {
        let mut manifest = of_one(*arch, program, (version, epoch), dir, &blobs)?;
        if programs.len() > 1 {
            manifest["platform"] = json!({ "architecture": arch.debian(), "os": "linux" });
        }
        manifests.push(manifest);
    }
    let mut named = of_all(&manifests, dir, &blobs)?;
    let digest = named["digest"].as_str().map(str::to_owned).context("a descriptor without a digest")?;
    named["annotations"] = json!({ "org.opencontainers.image.ref.name": format!("emberscope:{version}") });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [named] });
    let layout = dir.join("layout");
    write(&layout.join("index.json"), &index.to_string())?;
    write(&layout.join("oci-layout"), &json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    let entries = ["blobs", "index.json", "oci-layout"];
    archive::pack(Tree { root: &layout, entries: &entries, name: ".", by: None }, epoch, to)?;
    Ok(digest)
}

/// What the image is found by: the manifest of the only architecture, or an index of all.
fn of_all(manifests: &[Value], dir: &Path, blobs: &Blobs) -> Result<Value> {
    if let [one] = manifests {
        return Ok(one.clone());
    }
    blobs.write(dir, &json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests }), INDEX)
}

/// The image of one architecture; its manifest's descriptor is the answer.
fn of_one(
    arch: Arch,
    program: &Path,
    (version, epoch): (&str, &str),
    dir: &Path,
    blobs: &Blobs,
) -> Result<Value> {
    let root = dir.join("root").join(arch.debian());
    lay(&root, program)?;
    let tar = dir.join("layer.tar");
    let entries = entries(&root)?;
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    archive::pack(Tree { root: &root, entries: &entries, name: ".", by: None }, epoch, &tar)?;
    let unpacked = digest(&tar)?;
    let packed = dir.join("layer.tar.gz");
    archive::pack(Tree { root: &root, entries: &entries, name: ".", by: Some(GZIP) }, epoch, &packed)?;
    let layer = blobs.put(&packed, "application/vnd.oci.image.layer.v1.tar+gzip")?;

    let config = config(version, arch, &time(epoch)?, &unpacked);
    let config = blobs.write(dir, &config, "application/vnd.oci.image.config.v1+json")?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
    });
    blobs.write(dir, &manifest, "application/vnd.oci.image.manifest.v1+json")
}

/// Lays out the files of the layer.
fn lay(root: &Path, program: &Path) -> Result<()> {
    for (from, to) in FILES {
        tree::copy(from, &root.join(to))?;
    }
    for (to, text) in WRITTEN {
        tree::create_parent(&root.join(to))?;
        write(&root.join(to), text)?;
    }
    for dir in DIRECTORIES {
        tree::create_parent(&root.join(dir).join("-"))?;
    }
    let mend = "Debian's package ca-certificates has it";
    bring(Path::new(CERTIFICATES), root).with_context(|| format!("{CERTIFICATES}: {mend}"))?;
    let to = root.join("usr/bin/emberscope");
    tree::create_parent(&to)?;
    std::fs::copy(program, &to).with_context(|| format!("copying {}", program.display()))?;
    libraries_of(program)?.iter().try_for_each(|library| bring(library, root))
}

/// Copies a file of this machine to the same place in the image.
fn bring(file: &Path, root: &Path) -> Result<()> {
    let to = root.join(file.strip_prefix("/")?);
    tree::create_parent(&to)?;
    std::fs::copy(file, &to).with_context(|| format!("copying {}", file.display())).map(drop)
}

fn entries(root: &Path) -> Result<Vec<String>> {
    let read = || -> std::io::Result<Vec<String>> {
        std::fs::read_dir(root)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    };
    let mut names = read().with_context(|| format!("reading {}", root.display()))?;
    names.sort_unstable();
    Ok(names)
}

/// What a runtime starts when it is told nothing else. Root inside, without root's capabilities but those it is given: a JVM
/// answers only its own user or root.
fn config(version: &str, arch: Arch, created: &str, layer: &str) -> Value {
    json!({
        "created": created,
        "architecture": arch.debian(),
        "os": "linux",
        "config": {
            "User": "0:0",
            "ExposedPorts": { "4099/tcp": {} },
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": ["/usr/bin/emberscope"],
            "Cmd": ["daemon", "--config", "/etc/emberscope/emberscope.toml"],
            "Volumes": { "/var/lib/emberscope": {} },
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.title": "emberscope",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
                "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [layer] },
        "history": [{ "created": created, "created_by": "./x package" }],
    })
}

/// The layout's files, each under its digest.
struct Blobs {
    dir: PathBuf,
}

impl Blobs {
    /// Moves a file there; its descriptor is the answer.
    fn put(&self, file: &Path, media: &str) -> Result<Value> {
        let digest = digest(file)?;
        let size = file.metadata().with_context(|| format!("reading {}", file.display()))?.len();
        let name = digest.split_once(':').map_or(digest.as_str(), |(_, name)| name);
        std::fs::rename(file, self.dir.join(name)).with_context(|| format!("moving {}", file.display()))?;
        Ok(json!({ "mediaType": media, "digest": digest, "size": size }))
    }

    fn write(&self, dir: &Path, content: &Value, media: &str) -> Result<Value> {
        let file = dir.join("content.json");
        write(&file, &content.to_string())?;
        self.put(&file, media)
    }
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    tree::mode(file, 0o644)
}

/// A file's SHA-256 as the layout writes it.
fn digest(file: &Path) -> Result<String> {
    let said = output(Command::new("sha256sum").arg(file))?;
    let sum = said.split_whitespace().next().unwrap_or_default();
    ensure!(sum.len() == 64, "sha256sum printed {said:?}");
    Ok(format!("sha256:{sum}"))
}

/// RFC 3339, in UTC, of seconds since 1970.
fn time(epoch: &str) -> Result<String> {
    Ok(output(Command::new("date").args(["-u", "-d", &format!("@{epoch}"), "+%FT%TZ"]))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_architectures_are_found_by_an_index() {
        let dir = std::env::temp_dir().join(format!("xtask-image-{}", std::process::id()));
        let blobs = Blobs { dir: dir.join("blobs") };
        std::fs::create_dir_all(&blobs.dir).unwrap();
        let manifests =
            ["amd64", "arm64"].map(|arch| json!({ "digest": arch, "platform": { "os": "linux" } }));
        assert_eq!(of_all(&manifests[..1], &dir, &blobs).unwrap(), manifests[0]);
        assert_eq!(std::fs::read_dir(&blobs.dir).unwrap().count(), 0, "one alone needs no index");
        let index = of_all(&manifests, &dir, &blobs).unwrap();
        assert_eq!(index["mediaType"], INDEX);
        let name = index["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let written = std::fs::read_to_string(blobs.dir.join(name)).unwrap();
        assert_eq!(index["size"], written.len());
        let written: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written["manifests"], json!(manifests));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(time("1700000000").unwrap(), "2023-11-14T22:13:20Z");
    }
}
