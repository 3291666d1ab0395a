// SPDX-License-Identifier: GPL-2.0-or-later
//! A folder with the results of runs, so that a sweep that is repeated, or widened, performs only what is new.
//!
//! A run's key is the BLAKE3 hash of everything that determines it: version, model, machine, kernel, workload, duration and
//! seed, each with its length. Nothing else is asked of an entry, so sweeps, shards and computers may share a folder.
//! An entry is a file of packed JSON that appears whole or not at all; one that cannot be read is performed again.
//!
//! A sweep with C of a tree keeps nothing: its runs are measured in one process with that C, which could forge any of them.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use schedtwin_engine::{MODEL_VERSION, Scenario};

/// Bytes that an entry has at most, unpacked: a thousand CPUs with every metric.
const ENTRY_BYTES_MAX: u64 = 256 << 20;
/// Bytes that it has at most as it is kept: entries have a thousandth of it.
const PACKED_BYTES_MAX: u64 = 3 << 20;

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// The hash of all that determines a run.
pub struct Key(blake3::Hash);

impl Key {
    /// The key of a run. `None`: the kernel has policies that are code, whose results cannot be kept.
    pub fn of(scenario: &Scenario, seed: u64) -> Option<Key> {
        Key::of_part(scenario, seed, "")
    }

    /// The key of a part of what a run measured: `part` says which, and has all that decides it beside the run. Empty: everything.
    pub fn of_part(scenario: &Scenario, seed: u64, part: &str) -> Option<Key> {
        let texts = scenario.determining_texts()?;
        let mut hash = blake3::Hasher::new();
        let from =
            format!("schedtwin {} model {MODEL_VERSION} seed {seed}", env!("CARGO_PKG_VERSION"));
        for text in [from.into_bytes()].iter().chain(&texts) {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        hash.update(part.as_bytes());
        Some(Key(hash.finalize()))
    }
}

impl Cache {
    /// Opens a folder, which is made if it is not there.
    pub fn open(folder: &Path) -> io::Result<Cache> {
        fs::create_dir_all(folder)?;
        Ok(Cache { folder: folder.to_path_buf() })
    }

    fn path(&self, key: &Key) -> PathBuf {
        let name = key.0.to_hex();
        self.folder.join(&name[..2]).join(format!("{}.json.gz", &name[2..]))
    }

    /// What a run measured.
    pub fn get(&self, key: &Key) -> Option<Vec<(String, String)>> {
        let packed = fs::File::open(self.path(key)).ok()?.take(PACKED_BYTES_MAX);
        let mut text = String::new();
        GzDecoder::new(packed).take(ENTRY_BYTES_MAX).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps what a run measured.
    pub fn put<'f>(
        &self,
        key: &Key,
        measured: impl Iterator<Item = (&'f str, String)>,
    ) -> io::Result<()> {
        let path = self.path(key);
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        let measured: Vec<(&str, String)> = measured.collect();
        packed.write_all(serde_json::to_string(&measured)?.as_bytes())?;
        let packed = packed.finish()?;
        // Entries that would not be read are not made, and those that are there stay.
        if packed.len() as u64 > PACKED_BYTES_MAX || path.exists() {
            return Ok(());
        }
        let folder = path.parent().expect("it lies in a folder");
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&packed)?;
        file.persist(path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_there_again_and_for_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("new")).unwrap();
        let scenario = |kernel| Scenario::new("uniform8", kernel, "w1", Some(1_000_000)).unwrap();
        let key = |kernel, seed| Key::of(&scenario(kernel), seed).unwrap();
        let measured = [("power.mean".to_string(), "2.5".to_string())];
        assert_eq!(cache.get(&key("linux-6.12", 1)), None);
        let kept = measured.iter().map(|(column, text)| (column.as_str(), text.clone()));
        cache.put(&key("linux-6.12", 1), kept).unwrap();
        assert_eq!(cache.get(&key("linux-6.12", 1)).unwrap(), measured);
        assert_eq!(cache.get(&key("linux-6.12", 2)), None);
        assert_eq!(cache.get(&key("linux-6.12:hz=1000", 1)), None);
        // A damaged entry is none.
        fs::write(cache.path(&key("linux-6.12", 1)), "half").unwrap();
        assert_eq!(cache.get(&key("linux-6.12", 1)), None);
    }
}
