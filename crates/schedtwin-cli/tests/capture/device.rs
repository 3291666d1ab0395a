// SPDX-License-Identifier: GPL-2.0-or-later
//! Made-up devices, and the script run on them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_machine::Machine;

/// Shells that devices have: Debian's, Alpine's and routers', Android's, and the usual one.
const SHELLS: [&[&str]; 4] = [&["dash"], &["busybox", "sh"], &["mksh"], &["bash", "--posix"]];

pub fn script() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_schedtwin")).arg("capture").output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// The shells of this computer; the others are skipped by name.
pub fn shells() -> Vec<&'static [&'static str]> {
    let here = |shell: &&&[&str]| {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(["-c", ":"]).stdout(Stdio::null()).stderr(Stdio::null());
        let found = command.status().is_ok_and(|status| status.success());
        if !found {
            eprintln!("skipped: there is no {} here", shell[0]);
        }
        found
    };
    let found: Vec<_> = SHELLS.iter().filter(here).copied().collect();
    assert!(!found.is_empty(), "a computer has a shell");
    found
}

/// A made-up device: a directory with its sys/ and proc/.
pub struct Device {
    pub root: tempfile::TempDir,
}

impl Device {
    pub fn new() -> Device {
        Device { root: tempfile::tempdir().unwrap() }
    }

    pub fn says(&self, path: &str, text: impl ToString) -> &Device {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.to_string() + "\n").unwrap();
        self
    }

    pub fn cpu(&self, cpu: usize, path: &str, text: impl ToString) {
        self.says(&format!("sys/devices/system/cpu/cpu{cpu}/{path}"), text);
    }

    /// Runs the script and gives the directory that it wrote to.
    pub fn captured(&self, shell: &[&str], script: &str) -> PathBuf {
        let out = self.root.path().join(format!("out-{}", shell[0]));
        // From standard input, as through ssh and adb.
        let mut child = Command::new(shell[0])
            .args(&shell[1..])
            .args(["-s", "--"])
            .arg(&out)
            .env("SCHEDTWIN_ROOT", self.root.path())
            .env_remove("TMPDIR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        use std::io::Write as _;
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{shell:?}: {stderr}");
        assert_eq!(stderr, "", "{shell:?}");
        let mut left: Vec<_> =
            fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["kernel.toml", "machine.toml"], "{shell:?}: nothing else is left");
        out
    }

    /// What all shells agree on, loaded: machine and kernel, and the texts of both files.
    pub fn check(&self) -> (Machine, KernelFile, String, String) {
        let script = script();
        let mut texts: Option<(String, String)> = None;
        let mut loaded = None;
        for shell in shells() {
            let out = self.captured(shell, &script);
            let read = |file: &str| fs::read_to_string(out.join(file)).unwrap();
            let both = (read("machine.toml"), read("kernel.toml"));
            if let Some(texts) = &texts {
                assert!(*texts == both, "{shell:?} wrote something else:\n{}{}", both.0, both.1);
                continue;
            }
            let path = |file: &str| out.join(file).to_str().unwrap().to_string();
            let machine = Machine::load(&path("machine.toml"));
            let machine = machine.unwrap_or_else(|faults| panic!("{faults}\n{}", both.0));
            let kernel = KernelFile::load(&path("kernel.toml"));
            let kernel = kernel.unwrap_or_else(|faults| panic!("{faults}\n{}", both.1));
            loaded = Some((machine, kernel));
            texts = Some(both);
        }
        let ((machine, kernel), (machine_text, kernel_text)) = (loaded.unwrap(), texts.unwrap());
        let marked = machine_text.lines().filter(|line| line.contains(" # estimated")).count();
        assert!(marked > 0 && machine.estimated == marked as u64, "{marked}: {machine_text}");
        (machine, kernel, machine_text, kernel_text)
    }
}
