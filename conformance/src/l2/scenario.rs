// SPDX-License-Identifier: GPL-2.0-or-later
//! A board workload as a scenario of the twin.
//!
//! Each thread of the board becomes a task of an rt-app file, whose language says exactly what the board's threads
//! do, and settings become spellings of kernel and machine:
//!
//! | board | rt-app |
//! |---|---|
//! | LOOPS:RUN:PERIOD | a phase of LOOPS: `run`, `timer` (relative: a missed period restarts from now) |
//! | PERIOD 0 | `sleep` of 1 us |
//! | a period after a step without one | `timer` of period 0 first: the next period counts from now |
//! | wait, >NAME | `sem_wait`; `sem_post` for each thread of NAME |
//! | cpus, nice, fifo, slice | `cpus`, `priority`, `policy`, `dl-runtime` |
//! | UMIN, UMAX | `util_min`, `util_max` |
//! | fork | `fork` of a task without instances |
//! | N~, A..B | a phase for each loop, with the numbers that the board drew |
//!
//! The board's seed shifts the common start by 1.234567 ms a seed and chooses the numbers that are drawn: runs of the twin
//! take those of the recordings in turn ([`Seeds`]), with the tick where it was.
//!
//! Threads are made by the board's init ([`super::boot`]).
//!
//! Differences: the board calls the kernel for each wake, here only if somebody waits; a thread changes its
//! attributes at its start, not a second before; numbers that are drawn repeat after [`PHASES_MAX`] loops.

use super::workload::{Amount, BoardTask, BoardWorkload, NR_CPUS, Random, Step, Then};
use schedtwin_engine::Scenario;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_types::{DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId};
use schedtwin_workload::Workload;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// When the work begins, and a shift by the seed.
pub const START_NS: Ns = 1_000_000_000;
/// The shift, as in the board's init.
pub const SHIFT_NS: Ns = 1_234_567;
/// Phases that loops with changing numbers are written out to.
const PHASES_MAX: usize = 2048;

/// Which start and which drawn numbers, those of a recording; and what the twin itself draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The seed that the board was booted with, the N of `NAME.N.trace.txt`.
    pub board: u64,
    /// The twin's.
    pub twin: u64,
}

impl Seeds {
    /// Run `number` (from 1 on) beside so many recordings: each recording's start in turn.
    pub fn of_run(number: u64, recordings: u64) -> Seeds {
        Seeds { board: 1 + (number - 1) % recordings.max(1), twin: number }
    }
}

/// The changes to the board with which a comparison runs the twin.
#[derive(Clone, Debug, Default)]
pub struct Variant {
    /// The kernel, if it is another than that of the recordings beside it, or there are none: then 6.12.
    pub name: Option<String>,
    /// Patches of the kernel.
    pub patches: Vec<String>,
    /// Settings of the kernel, over those of the workload.
    pub kernel: Vec<(String, String)>,
    /// Settings of the machine, likewise.
    pub machine: Vec<(String, String)>,
}

impl Variant {
    /// All that these say.
    pub fn of(spellings: &[String]) -> Result<Variant, String> {
        let mut variant = Variant::default();
        spellings.iter().try_for_each(|text| variant.add(text))?;
        Ok(variant)
    }

    /// The same beside recordings of that kernel: theirs, unless it names another.
    pub fn beside(&self, kernel: String) -> Variant {
        Variant { name: self.name.clone().or(Some(kernel)), ..self.clone() }
    }

    /// The kernel's name.
    pub fn kernel_name(&self) -> &str {
        self.name.as_deref().unwrap_or("linux-6.12")
    }

    /// Takes in a spelling as `linux-6.12:hz=1000`, `linux-7.3+runnable-boost` or `rig8:settle_us=100`.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let (word, settings) = text.split_once(':').unwrap_or((text, ""));
        let mut names = word.split('+');
        let list = match names.next() {
            Some("rig8") => &mut self.machine,
            Some(name) if name.starts_with("linux-") && KernelFile::load(name).is_ok() => {
                self.name = Some(name.to_string());
                &mut self.kernel
            }
            _ => {
                return Err(format!(
                    "`{text}` is neither linux-6.12[+PATCH][:KEY=VALUE,...] nor another kernel, nor rig8:KEY=VALUE,..., \
                     the machine of the board"
                ));
            }
        };
        for setting in settings.split(',').filter(|s| !s.is_empty()) {
            let (key, value) =
                setting.split_once('=').ok_or_else(|| format!("`{setting}` is not KEY=VALUE"))?;
            list.push((key.to_string(), value.to_string()));
        }
        self.patches.extend(names.map(String::from));
        Ok(())
    }
}

/// Settings as a spelling; later ones replace earlier ones.
fn spelled(word: String, settings: Vec<(String, String)>) -> String {
    let settings: BTreeMap<String, String> = settings.into_iter().collect();
    let list: Vec<String> = settings.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
    if list.is_empty() { word } else { format!("{word}:{}", list.join(",")) }
}

impl BoardWorkload {
    /// The machine as the command line spells it.
    pub fn machine_spec(&self, variant: &Variant) -> String {
        let mut settings = Vec::new();
        let mut set = |key: &str, value: String| settings.push((key.to_string(), value));
        if !self.fast_switch {
            set("fast_switch", "false".into());
        }
        if self.latency_us != 500 {
            set("transition_latency_us", self.latency_us.to_string());
        }
        let of_release: &[(&str, u64)] = match variant.kernel_name() {
            "linux-7.3" => &super::costs::LINUX_7_3,
            _ => &[],
        };
        let printing: &[(&str, u64)] = if self.probes { &super::costs::PRINTING } else { &[] };
        for (key, value) in of_release.iter().chain(printing) {
            set(&format!("path_costs.{key}_ns"), value.to_string());
        }
        settings.extend(variant.machine.iter().cloned());
        spelled("rig8".into(), settings)
    }

    /// The kernel as the command line spells it.
    pub fn kernel_spec(&self, variant: &Variant) -> String {
        let mut settings = Vec::new();
        let mut set = |key: &str, value: String| settings.push((key.to_string(), value));
        // The board has just booted, and idles for a second.
        set("start", "booted".into());
        // The boards' kernels are built without task groups.
        set("fair_group_sched", "false".into());
        // The default of vm.stat_interval.
        set("stat_interval_ms", "1000".into());
        // No device of the board interrupts, but in 7.3 timers and IPIs count as well, and seeds are made.
        let counts = if variant.kernel_name() == "linux-7.3" { "all" } else { "devices" };
        set("interrupt_randomness", counts.into());
        if self.idle_governor != "teo" {
            set("cpuidle", self.idle_governor.clone());
        }
        if !self.fair_server {
            set("fair_server.runtime_us", "0".into());
        }
        if !self.energy_aware {
            set("energy_aware", "false".into());
        }
        if let Some(us) = self.rate_limit_us {
            set("schedutil.rate_limit_us", us.to_string());
        }
        if let Some(us) = self.slice_us {
            // Times 4 on eight CPUs.
            set("eevdf.base_slice_unscaled_ns", (u64::from(us) * 250).to_string());
        }
        for feature in &self.features {
            let name = feature.text.to_lowercase();
            match name.strip_prefix("no_") {
                Some(name) => set(&format!("features.{name}"), "false".into()),
                None => set(&format!("features.{name}"), "true".into()),
            }
        }
        settings.extend(variant.kernel.iter().cloned());
        let patches = variant.patches.iter().map(|patch| format!("+{patch}"));
        spelled(format!("{}{}", variant.kernel_name(), patches.collect::<String>()), settings)
    }

    /// When the work of a run begins, ns.
    pub fn start(&self, seeds: Seeds) -> Ns {
        START_NS + seeds.board.wrapping_mul(SHIFT_NS) % 1_000_000_000
    }

    /// When the work of a run is over, ns.
    pub fn end(&self, seeds: Seeds) -> Ns {
        self.start(seeds) + Ns::from(self.seconds) * 1_000_000_000
    }

    /// Refuses abilities of the board that the twin lacks.
    fn refuse(&self) -> Result<(), Diagnostics> {
        let mut faults = Diagnostics::new();
        let mut pend = |at: &std::ops::Range<usize>, what: &str, feature: &str| {
            faults.push(&self.source, at.clone(), format!("{what} waits for: {feature}"), None);
        };
        for group in &self.groups {
            pend(&group.at, &format!("group `{}`", group.text), "task groups");
        }
        for task in &self.tasks {
            let name = &task.name.text;
            if let Some(group) = &task.group {
                pend(&group.at, &format!("the group of `{name}`"), "task groups");
            }
            let first = task.steps.iter().position(|step| matches!(step, Step::Work { .. }));
            let changes = task.steps.iter().rposition(|step| matches!(step, Step::Cpus(_)));
            if let (Some(first), Some(_)) = (first, changes)
                && !task.steps[..first].iter().any(|step| matches!(step, Step::Cpus(_)))
            {
                // Only where the last mask is not the first one would the rounds differ.
                let last = task.steps.iter().rev().find_map(|step| match step {
                    Step::Cpus(mask) => Some(*mask),
                    _ => None,
                });
                if last != Some(task.mask) {
                    let what = format!("`{name}`, whose first round has other CPUs than the rest,");
                    pend(&task.name.at, &what, "a cpus: before its first work");
                }
            }
            if task.fifo.is_some() && task.steps.iter().any(|s| matches!(s, Step::Fork { .. })) {
                pend(&task.name.at, &format!("`{name}`"), "children of real-time tasks");
            }
        }
        faults.into_result(())
    }

    /// The rt-app file of a run whose first thread, init, is made `born_us` after the beginning: rt-app counts from then.
    pub fn rt_app(&self, seeds: Seeds, born_us: u64) -> String {
        let start_us = self.start(seeds) / 1000 - born_us;
        let mut tasks = Map::new();
        let (mut number, mut births) = (0, Map::new());
        for task in &self.tasks {
            for index in 0..task.count {
                let random = Random::of_thread(number, seeds.board);
                let mut thread = Thread { workload: self, task, random, children: Vec::new() };
                let (from, to) = task.start_us;
                let offset = match task.count {
                    1 => from,
                    count => {
                        (i64::from(from)
                            + (i64::from(to) - i64::from(from)) * i64::from(index)
                                / i64::from(count - 1)) as u32
                    }
                };
                let semaphore = semaphore(&task.name.text, index);
                let value = thread.value(start_us + u64::from(offset), &semaphore);
                let name = format!("{}.{index}", task.name.text);
                births.insert(format!("fork{number}"), json!(name));
                tasks.insert(name, value);
                for run in thread.children {
                    let child = json!({ "instance": 0, "loop": 1, "run": run });
                    tasks.insert(child_name(task, run), child);
                }
                number += 1;
            }
        }
        tasks.extend(super::boot::tasks(births, !self.fair_server));
        // Work is in microseconds at full capacity.
        json!({ "global": { "calibration": "largest" }, "tasks": tasks }).to_string()
    }

    /// The scenario of a run, whose work begins at [`BoardWorkload::start`].
    ///
    /// rt-app counts delays from the birth of its first thread, at a time that the twin draws: a first run goes to there.
    pub fn scenario(&self, seeds: Seeds, variant: &Variant) -> Result<Scenario, Diagnostics> {
        self.refuse()?;
        let of = |born_us: u64| {
            let source = Source::new(format!("{}.json", self.name), self.rt_app(seeds, born_us));
            Scenario::with_workload(
                &self.machine_spec(variant),
                &self.kernel_spec(variant),
                Workload::parse_rtapp(source),
                Some(self.end(seeds) + 1_000_000_000),
            )
        };
        let mut twin: Twin = of(0)?.twin(seeds.twin);
        let mut birth = Birth::default();
        twin.introduce(&mut birth);
        while birth.at.is_none() && twin.step(&mut birth) {}
        let born = birth.at.expect("init is born before it works");
        assert!(born < START_NS, "born within a second");
        of(born / 1000)
    }
}

/// When the first thread is switched to.
#[derive(Default)]
struct Birth {
    first: Option<TaskId>,
    at: Option<Ns>,
}

impl Observer for Birth {
    const DECISIONS: bool = false;
    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        if self.first.is_none() && name.strip_suffix("-0") == Some(super::boot::INIT) {
            self.first = Some(id);
        }
    }
    fn fact(&mut self, fact: &Fact) {
        if let FactKind::Switch { next, .. } = fact.kind
            && Some(next) == self.first
        {
            self.at.get_or_insert(fact.at);
        }
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// The semaphore that counts a thread's wakes.
fn semaphore(task: &str, index: u32) -> String {
    format!("{task}.{index}")
}

fn child_name(task: &BoardTask, run: i64) -> String {
    format!("{}.c{run}", task.name.text)
}

fn cpus(mask: u32) -> Value {
    let listed = (0..NR_CPUS).filter(|cpu| mask == 0 || mask >> cpu & 1 == 1);
    json!(listed.collect::<Vec<u32>>())
}

/// A thread being written.
struct Thread<'w> {
    workload: &'w BoardWorkload,
    task: &'w BoardTask,
    random: Random,
    /// Work of the children that it makes.
    children: Vec<i64>,
}

impl Thread<'_> {
    fn value(&mut self, start_us: u64, semaphore: &str) -> Value {
        let task = self.task;
        let mut value =
            json!({ "instance": 0, "loop": -1, "delay": start_us, "cpus": cpus(task.mask) });
        match task.fifo {
            Some(priority) => {
                value["policy"] = json!("SCHED_FIFO");
                value["priority"] = json!(priority);
            }
            None => {
                value["policy"] = json!("SCHED_OTHER");
                value["priority"] = json!(task.nice);
            }
        }
        if let Some(us) = task.own_slice_us {
            value["dl-runtime"] = json!(us);
        }
        for (key, (clamp, _)) in ["util_min", "util_max"].into_iter().zip(&task.clamps) {
            if *clamp >= 0 {
                value[key] = json!(clamp);
            }
        }
        value["phases"] = Value::Object(self.phases(semaphore));
        value
    }

    fn phases(&mut self, semaphore: &str) -> Map<String, Value> {
        let task = self.task;
        let fixed = |step: &Step| match step {
            Step::Work { run, then, .. } => {
                run.is_fixed() && !matches!(then, Then::Period(p) if !p.is_fixed())
            }
            Step::Fork { run, .. } => run.is_fixed(),
            _ => true,
        };
        // Whether steps with a period and steps without one follow each other.
        let timed = |step: &&Step| {
            matches!(step, Step::Work { then: Then::Period(Amount::Rises(p, _)), .. } if *p > 0)
                || matches!(step, Step::Work { then: Then::Period(Amount::Drawn(_)), .. })
        };
        let works: Vec<&Step> =
            task.steps.iter().filter(|s| matches!(s, Step::Work { .. })).collect();
        let timed = works.iter().copied().filter(|s| timed(s)).count();
        let mixed = timed > 0 && timed < works.len();
        let drawn = task.steps.iter().any(|step| {
            matches!(step, Step::Work { run: Amount::Drawn(_), .. })
                || matches!(step, Step::Work { then: Then::Period(Amount::Drawn(_)), .. })
                || matches!(step, Step::Fork { run: Amount::Drawn(_), .. })
        });
        let mut phases = Map::new();
        let mut mask = task.steps.iter().rev().find_map(|step| match step {
            Step::Cpus(mask) => Some(*mask),
            _ => None,
        });
        // Rounds differ only in what is drawn; loops are written out where their numbers change.
        let run_us = i64::from(self.workload.seconds) * 1_500_000;
        let mut written_us = 0;
        loop {
            for step in &task.steps {
                let name = format!("p{}", phases.len());
                let mut phase = Map::new();
                match step {
                    Step::Cpus(new) => {
                        mask = Some(*new);
                        phase.insert("run".into(), json!(0));
                    }
                    Step::Nice(nice) => {
                        phase.insert("policy".into(), json!("SCHED_OTHER"));
                        phase.insert("priority".into(), json!(nice));
                        phase.insert("run".into(), json!(0));
                    }
                    Step::Fork { count, run } => {
                        for index in 0..*count {
                            let run = run.value(index, *count, &mut self.random);
                            if !self.children.contains(&run) {
                                self.children.push(run);
                            }
                            phase.insert(format!("fork{index}"), json!(child_name(task, run)));
                        }
                    }
                    Step::Work { loops, run, then, .. } => {
                        let (pieces, each) = if fixed(step) { (1, *loops) } else { (*loops, 1) };
                        for index in 0..pieces {
                            let run = run.value(index, pieces, &mut self.random);
                            let period = match then {
                                Then::Period(period) => {
                                    let us = period.value(index, pieces, &mut self.random);
                                    written_us += us.max(run) * i64::from(each);
                                    Some(us)
                                }
                                Then::Waited => {
                                    written_us += run * i64::from(each);
                                    None
                                }
                            };
                            let mut phase = self.work(step, run, period, each, mixed, semaphore);
                            if let Some(mask) = mask {
                                phase.insert("cpus".into(), cpus(mask));
                            }
                            phases.insert(format!("p{}", phases.len()), Value::Object(phase));
                            if drawn && (written_us > run_us || phases.len() >= PHASES_MAX) {
                                return phases;
                            }
                        }
                        continue;
                    }
                }
                if let Some(mask) = mask {
                    phase.insert("cpus".into(), cpus(mask));
                }
                phases.insert(name, Value::Object(phase));
            }
            if !drawn {
                return phases;
            }
        }
    }

    fn work(
        &self,
        step: &Step,
        run: i64,
        period: Option<i64>,
        loops: u32,
        mixed: bool,
        semaphore: &str,
    ) -> Map<String, Value> {
        let Step::Work { wakes, .. } = step else { unreachable!("only work is written so") };
        let mut phase = Map::new();
        phase.insert("loop".into(), json!(loops));
        if period.is_none() {
            phase.insert("sem_wait".into(), json!(semaphore));
        }
        phase.insert("run".into(), json!(run));
        let woken = wakes.iter().flat_map(|name| {
            let tasks = &self.workload.tasks;
            let task = tasks.iter().find(|t| t.name.text == name.text).expect("the reader looked");
            (0..task.count).map(|index| self::semaphore(&task.name.text, index))
        });
        for (index, semaphore) in woken.enumerate() {
            phase.insert(format!("sem_post{index}"), json!(semaphore));
        }
        let restart = |phase: &mut Map<String, Value>| {
            if mixed {
                let timer = json!({ "ref": "unique", "period": 0 });
                phase.insert("timer_restart".into(), timer);
            }
        };
        match period {
            Some(us) if us > 0 => {
                phase.insert("timer".into(), json!({ "ref": "unique", "period": us }));
            }
            Some(0) => {
                phase.insert("sleep".into(), json!(1));
                restart(&mut phase);
            }
            _ => restart(&mut phase),
        }
        phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Seeds = Seeds { board: 1, twin: 1 };

    fn workload(text: &str) -> BoardWorkload {
        BoardWorkload::parse(&Source::new("some.wl.txt", text)).unwrap()
    }

    #[test]
    fn settings_become_spellings() {
        let wl = workload(
            "gov menu\nprobes 0\nfast 0\nlatency_us 5000\nfair_server 0\nrate_limit_us 900\n\
             features NO_RUN_TO_PARITY\nslice_us 3000\ntask a 1 0 0 -1 -1 1:2:3000\n",
        );
        let plain = Variant::default();
        assert_eq!(wl.machine_spec(&plain), "rig8:fast_switch=false,transition_latency_us=5000");
        let expected = "linux-6.12:cpuidle=menu,eevdf.base_slice_unscaled_ns=750000,\
            fair_group_sched=false,fair_server.runtime_us=0,features.run_to_parity=false,interrupt_randomness=devices,\
            schedutil.rate_limit_us=900,start=booted,stat_interval_ms=1000";
        assert_eq!(wl.kernel_spec(&plain), expected);
        let mut variant = Variant::default();
        variant.add("linux-6.12+runnable-boost:cpuidle=teo,hz=1000").unwrap();
        variant.add("rig8:settle_us=5").unwrap();
        let spec = wl.kernel_spec(&variant);
        assert!(spec.starts_with("linux-6.12+runnable-boost:cpuidle=teo,"), "{spec}");
        assert!(spec.contains(",hz=1000,") && wl.machine_spec(&variant).contains("settle_us=5"));
        assert!(variant.add("linux-6.20").is_err() && variant.add("rig8:x").is_err());
        // The recordings' kernel, unless another is named.
        assert!(wl.kernel_spec(&plain.beside("linux-7.3".into())).starts_with("linux-7.3:"));
        assert_eq!(variant.beside("linux-7.3".into()).kernel_name(), "linux-6.12");
        // And the twin knows all of them.
        wl.scenario(ONE, &plain).unwrap_or_else(|faults| panic!("{faults}"));
    }

    #[test]
    fn what_the_twin_lacks_is_refused_by_name() {
        let wl = workload(
            "group top\ntask a 1 0 0 -1 -1 group:top 1:2:3000\n\
             task b 1 0f 0 -1 -1 1:2:3000 cpus:f0\ntask c 1 0 0 -1 -1 fifo:1 1:2:3000 fork:1:5\n",
        );
        let faults = wl.scenario(ONE, &Variant::default()).err().expect("refused").to_string();
        for expected in [
            "some.wl.txt:1:7: group `top` waits for: task groups",
            "some.wl.txt:2:26: the group of `a` waits for: task groups",
            "waits for: a cpus: before its first work",
            "some.wl.txt:4:6: `c` waits for: children of real-time tasks",
        ] {
            assert!(faults.contains(expected), "{expected}\n{faults}");
        }
    }

    /// Phases of a thread as rt-app is told them.
    fn phases(wl: &BoardWorkload, thread: &str) -> String {
        let file: Value = serde_json::from_str(&wl.rt_app(ONE, 0)).unwrap();
        file["tasks"][thread]["phases"].to_string()
    }

    #[test]
    fn steps_become_phases() {
        let wl = workload(
            "task ui 2 0 0 -1 -1 90:1800:16667>render 1:0:40000\n\
             task render 1 0 0 -1 -1 2:30..10:wait 3:5:0\n\
             task mixed 1 c0 0 -1 -1 5:100:2000 1:7:0 fork:2:9\n",
        );
        assert_eq!(
            phases(&wl, "ui.1"),
            r#"{"p0":{"loop":90,"run":1800,"sem_post0":"render.0","timer":{"ref":"unique","period":16667}},"#
                .to_owned()
                + r#""p1":{"loop":1,"run":0,"timer":{"ref":"unique","period":40000}}}"#
        );
        assert_eq!(
            phases(&wl, "render.0"),
            r#"{"p0":{"loop":1,"sem_wait":"render.0","run":30},"p1":{"loop":1,"sem_wait":"render.0","run":10},"#
                .to_owned()
                + r#""p2":{"loop":3,"run":5,"sleep":1}}"#
        );
        assert_eq!(
            phases(&wl, "mixed.0"),
            r#"{"p0":{"loop":5,"run":100,"timer":{"ref":"unique","period":2000}},"#.to_owned()
                + r#""p1":{"loop":1,"run":7,"sleep":1,"timer_restart":{"ref":"unique","period":0}},"#
                + r#""p2":{"fork0":"mixed.c9","fork1":"mixed.c9"}}"#
        );
    }

    /// The twin does it: so many jobs, at their times, with the work that was asked for.
    #[test]
    fn the_twin_executes_the_work() {
        use crate::l2::execution::{Execution, What};
        let wl = workload(
            "seconds 1\nprobes 0\ntask ui 1 c0 0 -1 -1 1000:1800:20000>render\n\
             task render 2 30 0 -1 -1 wait:300\ntask late 1 40 0 -1 -1 2:9000:5000 1:100:50000\n\
             task forks 1 0f 0 -1 -1 1:10:100000 fork:3:50\n",
        );
        let execution = Execution::of_twin(&wl, Seeds::of_run(3, 8), &Variant::default()).unwrap();
        assert_eq!(execution.start, 1_003_703_701);
        let inside = |at| (execution.start..execution.end).contains(&at);
        let wakings = |task: usize| {
            let of = |pid| execution.task_of.get(&pid) == Some(&task);
            let wakings = execution.seen.iter().filter(|s| inside(s.at));
            wakings.filter(|s| matches!(s.what, What::Waking(pid) if of(pid))).count()
        };
        // Each renderer begins with a sleep, too.
        assert_eq!([wakings(0), wakings(1)], [50, 102]);
        // Forks of 3 every 100 ms, and the parent.
        let threads = execution.task_of.values().filter(|task| **task == 3).count();
        assert_eq!(threads, 1 + 27);
        // Two periods of 5 ms are missed, each restarts, then a sleep of 50 ms less the work.
        let first =
            execution.seen.iter().find(|s| inside(s.at) && matches!(s.what, What::Waking(_)));
        let late = first.expect("somebody wakes").at - execution.start;
        assert!(late < 400_000, "the work begins with the start: {late}");
        // Were they caught up, a round would take 60 ms.
        assert!((10..=14).contains(&wakings(2)), "{}", wakings(2));
    }
}
