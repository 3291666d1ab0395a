// SPDX-License-Identifier: GPL-2.0-or-later
//! A scenario as texts: what is run, written down, and run again.

use crate::kernel;
use crate::machine;
use crate::tape::Tape;
use crate::workload::{self, Workload};
use schedtwin_input::Diagnostics;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A scenario as a user would write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// The text of a machine file, or a built-in machine's spelling.
    pub machine: String,
    /// A kernel's spelling.
    pub kernel: String,
    /// The text of an rt-app file, or a built-in workload's spelling.
    pub workload: String,
    /// The name of the system beside it; empty: none.
    pub system: String,
    /// The seed of the run.
    pub seed: u64,
    /// How long to simulate, ms.
    pub duration_ms: u64,
}

/// Built-in machines whose CPUs have clocks of their own, as `scaling_driver` wants them.
const X86_WITH_OWN_CLOCKS: [&str; 3] = ["i5-10600k", "i7-3630qm", "laptop-8c16t"];

/// The kernel without a limit to what may be reserved.
fn without_rt_limit(kernel: &str) -> String {
    let (name, settings) = kernel.split_once(':').unwrap_or((kernel, ""));
    let limit = |setting: &&str| !setting.starts_with("rt_runtime_us=") && !setting.is_empty();
    let kept: Vec<&str> = settings.split(',').filter(limit).chain(["rt_runtime_us=-1"]).collect();
    format!("{name}:{}", kept.join(","))
}

/// A block device, extreme in every way.
fn block_device(tape: &mut Tape, nr_cpus: u64) -> String {
    let queues = if tape.percent(40) { tape.within(1, nr_cpus) } else { 1 };
    let mut text = format!("\n[[block]]\nname = \"sda\"\nqueues = {queues}\n");
    text.push_str(&format!("irq_cpu = {}\n", tape.below(nr_cpus)));
    text.push_str(&format!("depth = {}\n", tape.magnitude(1, 1000)));
    text.push_str(&format!("parallel = {}\n", tape.magnitude(1, 1000)));
    for key in ["read_us", "write_us", "flush_us"] {
        let p10 = tape.magnitude(1, 5_000);
        let p99 = p10 + tape.magnitude(0, 20_000);
        text.push_str(&format!("{key} = [{p10}, {p10}, {p99}, {p99}]\n"));
    }
    for key in ["read_mb_per_s", "write_mb_per_s"] {
        text.push_str(&format!("{key} = {}\n", tape.magnitude(1, 1_000_000)));
    }
    for key in ["submit_ns", "complete_ns"] {
        text.push_str(&format!("{key} = {}\n", tape.magnitude(0, 100_000)));
    }
    text
}

/// The workload with I/O: requests before some of a file's work, or another model.
fn with_io(tape: &mut Tape, workload: String) -> String {
    if !workload.contains('\n') && !workload.contains('{') {
        tape.mark("workload: fio");
        let (jobs, reads) = (tape.magnitude(1, 64), tape.below(101));
        let (flush, size) = (tape.below(3), tape.magnitude(1, 4096));
        let think = tape.magnitude(0, 20_000);
        return format!(
            "fio --numjobs {jobs} --rwmixread {reads} --fsync {flush} --bs {size} --thinktime {think}"
        );
    }
    tape.mark("workload: requests");
    let mut parts = workload.split("\"run\": ");
    let mut text = parts.next().unwrap_or_default().to_string();
    for part in parts {
        if tape.percent(60) {
            let kind = tape.pick(&["read", "write", "flush"]);
            let (bytes, count) = (tape.magnitude(1, 4 << 20), tape.within(1, 4));
            text.push_str(&format!(
                "\"io\": {{ \"type\": \"{kind}\", \"bytes\": {bytes}, \"count\": {count} }}, "
            ));
        }
        if tape.percent(20) {
            text.push_str(&format!("\"iorun\": {}, ", tape.magnitude(0, 10_000_000)));
        }
        text.push_str("\"run\": ");
        text.push_str(part);
    }
    text
}

impl Texts {
    /// Generates one.
    pub fn generate(tape: &mut Tape) -> Texts {
        let built_in = tape.percent(15);
        let (machine, nr_cpus) = if built_in {
            tape.mark("machine: built in");
            let machines = schedtwin_engine::list_machines();
            // Built-in workloads name their CPUs themselves; files are for what every machine has.
            (tape.pick(&machines).0.clone(), 4)
        } else {
            let machine = machine::machine(tape);
            (machine.text, machine.nr_cpus)
        };
        let kernel = kernel::kernel(tape);
        // Drivers of x86 processors need one, which random machines rarely are.
        let other_driver =
            kernel.contains("scaling_driver=") && !kernel.contains("scaling_driver=machine");
        let (machine, nr_cpus) = match other_driver {
            true => (tape.pick(&X86_WITH_OWN_CLOCKS).to_string(), 4),
            false => (machine, nr_cpus),
        };
        let workload = match workload::workload(tape, nr_cpus) {
            Workload::File(text) => text,
            Workload::Model(spec) => spec,
        };
        // Groups need a kernel that has them.
        let has = kernel.contains("fair_group_sched=true");
        let asks = workload.contains("taskgroup")
            || workload.contains("cgroup=")
            || kernel.contains("sched_autogroup=true");
        let kernel = match asks && !has {
            true if kernel.contains("fair_group_sched") => {
                kernel.replace("fair_group_sched=false", "fair_group_sched=true")
            }
            true if kernel.contains(':') => format!("{kernel},fair_group_sched=true"),
            true => format!("{kernel}:fair_group_sched=true"),
            false => kernel,
        };
        // Nobody knows how much is left for deadlines on a random machine: all of it.
        let kernel = match workload.contains("SCHED_DEADLINE") {
            true => without_rt_limit(&kernel),
            false => kernel,
        };
        let duration_ms = *tape.pick(&[100, 100, 100, 100, 100, 100, 150, 200, 400, 1000]);
        let seed = tape.below(1 << 32);
        // Drawn last, so that nothing before depends on it.
        let system = if tape.percent(20) {
            tape.mark("workload: system");
            tape.pick(&schedtwin_engine::list_systems()).0.clone()
        } else {
            String::new()
        };
        let (machine, workload) = match !machine.contains('\n') || !tape.percent(25) {
            true => (machine, workload),
            false => {
                tape.mark("machine: block device");
                (machine + &block_device(tape, nr_cpus), with_io(tape, workload))
            }
        };
        Texts { machine, kernel, workload, system, seed, duration_ms }
    }

    /// Writes the files that it needs into a folder, and checks it.
    pub fn load(&self, folder: &Path) -> Result<schedtwin_engine::Scenario, Diagnostics> {
        let [machine, mut workload] = self.in_folder(folder);
        if !self.system.is_empty() {
            workload.push_str(&format!(" --system {}", self.system));
        }
        let duration = Some(self.duration_ms * 1_000_000);
        schedtwin_engine::Scenario::new(&machine, &self.kernel, &workload, duration)
    }

    /// Returns the arguments to type for machine and workload; texts are written as files.
    fn in_folder(&self, folder: &Path) -> [String; 2] {
        [(&self.machine, "machine.toml"), (&self.workload, "workload.json")].map(|(text, name)| {
            if !text.contains('\n') {
                return text.clone();
            }
            let path = folder.join(name);
            fs::write(&path, text).expect("the folder can be written");
            path.display().to_string()
        })
    }

    /// Writes it as one file, which [`Texts::read`] reads. Makes its folder.
    pub fn write(&self, path: &Path, what: &str) -> io::Result<()> {
        let mut text: String = what.lines().map(|line| format!("# {line}\n")).collect();
        text.push_str(&format!(
            "\nkernel = '{}'\nseed = {}\nduration_ms = {}\n",
            self.kernel, self.seed, self.duration_ms
        ));
        if !self.system.is_empty() {
            text.push_str(&format!("system = '{}'\n", self.system));
        }
        text.push_str(&format!("machine = '''\n{}'''\n", self.machine));
        text.push_str(&format!("workload = '''\n{}'''\n", self.workload));
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(path, text)
    }

    /// Reads a file that [`Texts::write`] has written.
    pub fn read(path: &Path) -> Result<Texts, String> {
        let fail = |what: String| format!("failed to read {}: {what}", path.display());
        let text = fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let table: toml::Table = text.parse().map_err(|error| fail(format!("{error}")))?;
        let text_of = |key: &str| {
            let value = table.get(key).and_then(|value| value.as_str());
            value.map(str::to_string).ok_or_else(|| fail(format!("no text `{key}`")))
        };
        let number_of = |key: &str| {
            let value = table.get(key).and_then(|value| value.as_integer());
            value
                .and_then(|n| u64::try_from(n).ok())
                .ok_or_else(|| fail(format!("no number `{key}`")))
        };
        Ok(Texts {
            machine: text_of("machine")?,
            kernel: text_of("kernel")?,
            workload: text_of("workload")?,
            system: text_of("system").unwrap_or_default(),
            seed: number_of("seed")?,
            duration_ms: number_of("duration_ms")?,
        })
    }
}

/// All files of a folder of findings.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for seed in 0..50 {
            let texts = Texts::generate(&mut Tape::of_seed(seed));
            assert_eq!(
                texts,
                Texts::generate(&mut Tape::of_seed(seed)),
                "a scenario is its seed's"
            );
            let path = folder.path().join("one.toml");
            texts.write(&path, "found with seed 3:\nit rests").unwrap();
            assert_eq!(Texts::read(&path), Ok(texts));
        }
    }

    /// Whatever is left out of a tape, it is a scenario still; an empty tape is the simplest one, which runs.
    #[test]
    fn the_empty_tape_is_the_simplest_scenario() {
        let folder = tempfile::tempdir().unwrap();
        let simplest = Texts::generate(&mut Tape::given(vec![]));
        let newest = schedtwin_engine::list_kernels().pop().expect("there are kernels");
        assert_eq!(simplest.kernel, newest.0);
        simplest.load(folder.path()).unwrap_or_else(|faults| panic!("{faults}"));
    }
}
