// SPDX-License-Identifier: GPL-2.0-or-later
//! tracefs: an instance of our own, that is removed however the recording ends.
//!
//! An instance has its own buffers, events and clock, so nothing of another tracer is touched. It is named after this process;
//! one whose process is gone belongs to nobody.

use crate::failure::Failure;
use crate::output::shown;
use rustix::fs::OFlags;
use schedtwin_trace::trace_dat::write::Texts;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where tracefs is mounted, now and on older systems.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The right that writing to tracefs needs.
const RIGHT: &str = "recording needs root: run it with sudo (on a phone: in `adb root`, or `su`); CAP_DAC_OVERRIDE alone is enough";

/// Instances are named by this and a process number.
const NAME: &str = "schedtwin-";

/// CPUs that are recorded at most.
const CPUS_MAX: usize = 1024;

/// Finds tracefs, or says what to do.
pub fn find() -> Result<PathBuf, Failure> {
    let place = PLACES.iter().map(Path::new).find(|place| place.join("instances").exists());
    if let Some(place) = place {
        let writable = OpenOptions::new().write(true).open(place.join("tracing_on"));
        return match writable {
            Ok(_) => Ok(place.to_path_buf()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(Failure::bad(RIGHT))
            }
            Err(error) => Err(Failure::of_file("open", &place.join("tracing_on"), &error)),
        };
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::bad(RIGHT));
    }
    Err(Failure::bad(
        "tracefs is not mounted: mount -t tracefs nodev /sys/kernel/tracing\n\
         (if that fails, the kernel has no CONFIG_TRACING)",
    ))
}

/// Removes instances whose recorder was killed; their names.
pub fn remove_stale(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join("instances")) else { return Vec::new() };
    let mut removed = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix(NAME).and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        if Path::new("/proc").join(pid.to_string()).exists() && pid != std::process::id() {
            continue;
        }
        let _ = write_file(&entry.path().join("tracing_on"), "0");
        if fs::remove_dir(entry.path()).is_ok() {
            removed.push(name);
        }
    }
    removed
}

/// An instance of our own.
pub struct Instance {
    /// The top of tracefs.
    pub root: PathBuf,
    path: PathBuf,
}

impl Instance {
    /// Makes it, with nothing recorded.
    pub fn create(root: &Path) -> Result<Instance, Failure> {
        let path = root.join("instances").join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&path)
            .map_err(|error| Failure::of_file("make the tracefs instance", &path, &error))?;
        let instance = Instance { root: root.to_path_buf(), path };
        instance.set("tracing_on", "0")?;
        Ok(instance)
    }

    /// Writes one of its files.
    pub fn set(&self, file: &str, value: &str) -> Result<(), Failure> {
        let path = self.path.join(file);
        write_file(&path, value).map_err(|error| {
            Failure::bad(format!("failed to write {value} to {}: {error}", shown(&path)))
        })
    }

    /// Empties its buffers: opening `trace` with O_TRUNC does, writing to it does not.
    pub fn empty(&self) -> Result<(), Failure> {
        let path = self.path.join("trace");
        let opened = File::options().write(true).truncate(true).open(&path);
        opened.map(drop).map_err(|error| Failure::of_file("empty", &path, &error))
    }

    /// Whether it has a file.
    pub fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    /// Reads one of its files.
    pub fn read(&self, file: &str) -> Result<String, Failure> {
        text_of(&self.path.join(file))
    }

    /// Reads a file at the top of tracefs.
    pub fn read_top(&self, file: &str) -> Result<String, Failure> {
        text_of(&self.root.join(file))
    }

    /// The size of a CPU's buffer.
    pub fn buffer_kib(&self) -> Option<u64> {
        self.read("buffer_size_kb").ok()?.split_whitespace().next()?.parse().ok()
    }

    /// CPUs, from 0 to the highest one.
    pub fn cpus(&self) -> Result<usize, Failure> {
        let path = self.path.join("per_cpu");
        let entries =
            fs::read_dir(&path).map_err(|error| Failure::of_file("read", &path, &error))?;
        let numbers = entries.flatten().filter_map(|entry| {
            entry.file_name().to_str()?.strip_prefix("cpu")?.parse::<usize>().ok()
        });
        match numbers.max() {
            Some(highest) if highest < CPUS_MAX => Ok(highest + 1),
            Some(highest) => Err(Failure::bad(format!(
                "the machine has a CPU {highest}; at most {CPUS_MAX} are recorded"
            ))),
            None => Err(Failure::bad("the tracefs instance has no CPUs")),
        }
    }

    /// Opens a CPU's pages; `None` if there is no such CPU.
    pub fn open_pipe(&self, cpu: usize) -> Result<Option<File>, Failure> {
        let path = self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let flags = OFlags::NONBLOCK.bits() as i32;
        match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::of_file("open", &path, &error)),
        }
    }

    /// The texts that a reader of the pages needs.
    pub fn texts(&self, events: &[(String, String)]) -> Result<Texts, Failure> {
        let bytes = |text: Result<String, Failure>| text.map(String::into_bytes);
        let mut texts = Texts {
            header_page: bytes(
                self.read("events/header_page").or_else(|_| self.read_top("events/header_page")),
            )?,
            header_event: bytes(self.read_top("events/header_event"))?,
            printk_formats: bytes(self.read_top("printk_formats")).unwrap_or_default(),
            saved_cmdlines: bytes(self.read_top("saved_cmdlines")).unwrap_or_default(),
            trace_clock: self.read("trace_clock")?.trim_end().as_bytes().to_vec(),
            ..Texts::default()
        };
        let ftrace = self.root.join("events/ftrace");
        let mut names: Vec<PathBuf> = fs::read_dir(&ftrace)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        names.sort();
        texts.ftrace_formats =
            names.iter().filter_map(|path| read_file(&path.join("format")).ok()).collect();
        for (system, name) in events {
            let format = bytes(self.read_top(&format!("events/{system}/{name}/format")))?;
            match texts.systems.iter_mut().find(|(known, _)| known == system) {
                Some((_, formats)) => formats.push(format),
                None => texts.systems.push((system.clone(), vec![format])),
            }
        }
        Ok(texts)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = write_file(&self.path.join("tracing_on"), "0");
        let _ = write_file(&self.path.join("events/enable"), "0");
        // The pipes are closed by now: an open one would keep it.
        if let Err(error) = fs::remove_dir(&self.path) {
            crate::output::tell(&format!(
                "failed to remove {}: {error}; `rmdir` it",
                shown(&self.path)
            ));
        }
    }
}

fn write_file(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let bytes = read_file(path).map_err(|error| Failure::of_file("read", path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a file with large reads: `header_page` gives what fits into the first one, and nothing more.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(bytes),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

/// Events lost of a CPU, from its statistics.
pub fn lost(stats: &str) -> u64 {
    let counts = stats.lines().filter_map(|line| {
        let (name, count) = line.split_once(':')?;
        let counts = matches!(name, "overrun" | "commit overrun" | "dropped events");
        counts.then(|| count.trim().parse::<u64>().ok())?
    });
    counts.sum()
}

/// The kernel as trace-cmd writes it: `Linux HOST RELEASE MACHINE`.
pub fn uname() -> String {
    let of = |name: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(name));
        text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
    };
    format!("{} {} {} {}", of("ostype"), of("hostname"), of("osrelease"), std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_loss_are_added() {
        let stats = "entries: 5\noverrun: 3\ncommit overrun: 2\nbytes: 9\ndropped events: 1\nread events: 7\n";
        assert_eq!(lost(stats), 6);
        assert_eq!(lost(""), 0);
    }
}
