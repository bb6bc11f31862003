//! Changed manifests and journals whose checksums are right again, as a hostile writer's would be.
//!
//! In and out: bytes of whole files (docs/store.md). The fuzz targets use it too.

/// Bytes of a journal before its first record.
const HEADER: usize = 24;
/// Length and checksum before each record.
const FRAME: usize = 8;

/// A manifest in which a file has another length and checksum.
pub fn with_file(manifest: &[u8], file: &str, bytes: &[u8]) -> Vec<u8> {
    let mut json: serde_json::Value = serde_json::from_slice(manifest).expect("a sound manifest");
    json["files"][file] = serde_json::json!({ "bytes": bytes.len(), "crc32": crc32fast::hash(bytes) });
    json.to_string().into_bytes()
}

/// A sound journal's records without their frames.
pub fn records(journal: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut rest) = (Vec::new(), &journal[HEADER..]);
    while let Some((frame, after)) = rest.split_first_chunk::<FRAME>() {
        let length = u32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
        all.push(after[..length].to_vec());
        rest = &after[length..];
    }
    all
}

/// A journal that begins as another does, with these records.
pub fn journal_of(journal: &[u8], records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = journal[..HEADER].to_vec();
    for record in records {
        let length = (record.len() as u32).to_le_bytes();
        let mut sum = crc32fast::Hasher::new();
        sum.update(&length);
        sum.update(record);
        out.extend(length);
        out.extend(sum.finalize().to_le_bytes());
        out.extend(record);
    }
    out
}
