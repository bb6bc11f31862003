//! What a store set aside, by time, so that answers tell what they lack.
//!
//! In: directories of blocks and files of journals that are not answered for, at once or left by an earlier start.
//! Out: [`Missing`] of a range. Limits: the last [`MAX_GAPS`] are named; of those before a count and their whole time
//! is kept.

use super::block::Manifest;
use super::files::{JournalReader, MANIFEST};
use emberscope_model::{Missing, MissingPart, TimeRange, WallTime};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Things set aside whose names are kept.
const MAX_GAPS: usize = 1000;
/// A block's or a journal's windows, where only its name tells when they begin.
const HOUR: Duration = Duration::from_secs(3600);

/// What was set aside, by time.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    last: VecDeque<MissingPart>,
    before: Option<(u64, TimeRange)>,
}

impl Gaps {
    pub fn add(&mut self, part: MissingPart) {
        if self.last.len() >= MAX_GAPS
            && let Some(MissingPart { range, .. }) = self.last.pop_front()
        {
            let (count, all) = self.before.unwrap_or((0, range));
            let all = TimeRange { from: all.from.min(range.from), until: all.until.max(range.until) };
            self.before = Some((count + 1, all));
        }
        self.last.push_back(part);
    }

    /// The parts that share an instant with the range, the newest first.
    pub fn within(&self, range: &TimeRange) -> Missing {
        let mut missing = Missing::default();
        self.last
            .iter()
            .rev()
            .filter(|part| part.range.overlaps(range))
            .cloned()
            .for_each(|p| missing.add(p));
        if let Some((count, _)) = self.before.filter(|(_, all)| all.overlaps(range)) {
            missing.add_unnamed(count);
        }
        missing
    }
}

/// Numbers that a manifest of any version may have.
#[derive(serde::Deserialize)]
struct Span {
    from_ns: u64,
    until_ns: u64,
}

/// When the windows of a block's directory are: by its manifest, else by its name.
pub(super) fn of_block(dir: &Path) -> Option<TimeRange> {
    let file = dir.join(MANIFEST);
    let small =
        fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() <= super::block::MAX_MANIFEST);
    let span = || serde_json::from_slice::<Span>(&fs::read(&file).ok()?).ok();
    let span = small.then(span).flatten().filter(|span| span.from_ns < span.until_ns);
    match span {
        Some(Span { from_ns, until_ns }) => {
            Some(TimeRange { from: WallTime(from_ns), until: WallTime(until_ns) })
        }
        None => of_name(dir.file_name()?.to_str()?),
    }
}

/// The hour that a block's name begins with: `20261122T080000Z-000000000006`.
pub fn of_name(name: &str) -> Option<TimeRange> {
    let text = name.get(..16)?;
    let civil = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", text).ok()?;
    let second = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    let from = WallTime(u64::try_from(second).ok()?.checked_mul(1_000_000_000)?);
    Some(TimeRange { from, until: from.plus(HOUR) })
}

/// When the windows of a journal are: from its first one, where that can be read, to the file's last change, an hour at
/// most.
pub(super) fn of_journal(path: &Path) -> Option<TimeRange> {
    let changed = fs::metadata(path).and_then(|file| file.modified()).ok()?;
    let since = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
    let until = WallTime(u64::try_from(since.as_nanos()).ok()?);
    Some(match JournalReader::first_window(path).ok().flatten() {
        Some(from) if until > from => TimeRange { from, until: until.min(from.plus(HOUR)) },
        Some(from) => TimeRange { from, until: from.plus(HOUR) },
        None => TimeRange { from: until.minus(HOUR), until },
    })
}

/// When the windows are that a journal lost when it was cut, of which `read` is still there; `kept` is a copy of the
/// whole.
pub(super) fn of_rest(kept: &Path, read: Option<TimeRange>) -> Option<TimeRange> {
    let all = of_journal(kept)?;
    let Some(read) = read else { return Some(all) };
    let until = all.until.min(read.from.plus(HOUR)).max(read.until.plus(Duration::from_nanos(1)));
    Some(TimeRange { from: read.until, until })
}

/// What an earlier start left among things set aside. A block that stood for others is not missing where all of these
/// are in `blocks`.
pub(super) fn left(paths: Vec<PathBuf>, blocks: &Path, gaps: &mut Gaps) {
    let there = |merged: &BTreeMap<String, u32>| {
        !merged.is_empty() && merged.keys().all(|name| blocks.join(name).is_dir())
    };
    for path in paths {
        let block = path.is_dir();
        if block && Manifest::read(&path).is_ok_and(|known| there(&known.merged)) {
            continue;
        }
        let range = if block { of_block(&path) } else { of_journal(&path) };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(range) = range {
            let place = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            gaps.add(MissingPart::new(&name, range, &format!("set aside by an earlier start, in `{place}`")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: u64, until: u64) -> TimeRange {
        TimeRange { from: WallTime(from), until: WallTime(until) }
    }

    #[test]
    fn names_are_forgotten_before_counts() {
        let mut gaps = Gaps::default();
        for n in 0..MAX_GAPS as u64 + 3 {
            gaps.add(MissingPart::new(&n.to_string(), range(n * 10, n * 10 + 10), "bad"));
        }
        let names =
            |missing: &Missing| missing.parts.iter().map(|part| part.name.clone()).collect::<Vec<_>>();
        let one = gaps.within(&range(35, 36));
        assert_eq!((one.count, names(&one)), (1, vec!["3".to_owned()]));
        assert_eq!(gaps.within(&range(0, 20_000)).count, 1003);
        let old = gaps.within(&range(0, 10));
        assert_eq!((old.count, old.parts.len()), (3, 0), "as many as may be");
        assert_eq!(gaps.within(&range(20_000, 30_000)), Missing::default());
    }

    #[test]
    fn a_name_tells_an_hour() {
        let hour = of_name("20261122T083000Z-000000000006").unwrap();
        assert_eq!(hour.from.to_string(), "2026-11-22T08:30:00.000Z");
        assert_eq!(hour.until.to_string(), "2026-11-22T09:30:00.000Z");
        for odd in ["", "x", "20261122T08", "20269922T083000Z-1", "ää261122T083000Z-000000000006"] {
            assert_eq!(of_name(odd), None, "{odd}");
        }
    }
}
