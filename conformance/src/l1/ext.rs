// SPDX-License-Identifier: GPL-2.0-or-later
//! sched_ext on the board: the decisions of 7.3's class under a scheduler in BPF, driven again.
//!
//! ```text
//! schedtwin-conformance sched-ext [--misses] [FILE...]
//! ```
//!
//! The board loads a scheduler of the kernel's own tree (`board/build-scx`) and prints what the class reads and decides
//! (`board/vdvfs_ext.c`). The product's class is given what was read, and asked ([`ExtSteps`]):
//!
//! | decision | given | compared |
//! |---|---|---|
//! | default selection | idle masks, the asking CPU's cursor and local DSQ, previous CPU, flags, affinity | the CPU, the cursor after it |
//! | order of a user DSQ | each insertion with its virtual time and flags, each removal | the whole queue, whenever one is taken out |
//! | pick | the running task, its slice and clock; the local DSQ; the user DSQ with CPU and affinity of each | what goes on or comes, the slice that is left |
//!
//! A pick runs the product's own class and, of `scx_simple`, the product's own scheduler of that name; under others only picks that the
//! class makes without `dispatch` are asked.
//!
//! **Rules**, set before the first table: of each decision at least 999 of 1000 are met and at least 100 judged. A decision
//! counts as one *with a choice* if more than one answer was possible: some allowed CPU idles, two tasks wait, a task waits while another
//! has slice left. A queue is printed before its lock is taken: a task that another CPU takes meanwhile is left out of the pick.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use schedtwin_kernel::Kernel;
use schedtwin_kernel::policy::{
    ExtProperties, ExtScheduler, Kfuncs, Policies, SCX_OPS_ENQ_LAST, Simple,
};
use schedtwin_kernel::sched::TaskKind;
use schedtwin_kernel::sched::ext::conformance::{ExtSteps, Running, Selection, Waiting};
use schedtwin_kernel::sched::ext::steps::Verdict;
use schedtwin_trace::packed;
use schedtwin_types::{CpuId, CpuMask, TaskId};

use super::board::device_tree;
use super::machine::Machine;
use super::{Percent, Recordings, description_of, recordings_in};

/// A row passes with this many of 1000 met.
const MET_MIN_PERMILLE: u64 = 999;
/// And with this many judged, over all recordings.
const JUDGED_MIN: u64 = 100;
/// `-EBUSY`, which the default selection returns if no CPU idles.
const EBUSY: i64 = -16;
/// Bit 63: a DSQ of the kernel's own.
const BUILT_IN: u64 = 1 << 63;

/// What of the table to show.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// Also each answer that is not the recorded one
    #[arg(long)]
    misses: bool,
    #[command(flatten)]
    recordings: Recordings,
}

/// A decision of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Selection,
    Order,
    Pick,
    Slice,
}

impl What {
    const ALL: [What; 4] = [What::Selection, What::Order, What::Pick, What::Slice];

    fn name(self) -> &'static str {
        match self {
            What::Selection => "default selection",
            What::Order => "order of a user DSQ",
            What::Pick => "pick",
            What::Slice => "slice after the charge",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    judged: u64,
    choice: u64,
    met: u64,
}

/// The table, and what was not met.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: BTreeMap<What, Row>,
    misses: Vec<String>,
    untold: u64,
}

impl Table {
    fn judge(&mut self, what: What, choice: bool, met: bool, miss: impl FnOnce() -> String) {
        let row = self.rows.entry(what).or_default();
        row.judged += 1;
        row.choice += u64::from(choice);
        row.met += u64::from(met);
        if !met {
            self.misses.push(format!("{}: {}", what.name(), miss()));
        }
    }

    fn merge(&mut self, other: &Table) {
        for (what, row) in &other.rows {
            let sum = self.rows.entry(*what).or_default();
            sum.judged += row.judged;
            sum.choice += row.choice;
            sum.met += row.met;
        }
        self.untold += other.untold;
    }

    fn passes(&self) -> bool {
        What::ALL.iter().all(|what| {
            let row = self.rows.get(what).copied().unwrap_or_default();
            row.judged >= JUDGED_MIN && row.met * 1000 >= row.judged * MET_MIN_PERMILLE
        })
    }

    fn show(&self, name: &str) {
        println!("{name}: {:24}{:>8}{:>15}{:>8}{:>8}", "", "judged", "with a choice", "met", "%");
        for (what, Row { judged, choice, met }) in &self.rows {
            let percent = Percent(*met, *judged);
            println!("  {:24}{judged:8}{choice:15}{met:8}{percent:>8}", what.name());
        }
    }
}

// ---- lines ----------------------------------------------------------------------------------------------------------

/// A printed line: its CPU, its name, its fields.
struct Line<'a> {
    cpu: usize,
    time: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> Option<Line<'a>> {
        let at = text.find(": ext_")?;
        let (head, rest) = (&text[..at], &text[at + 2..]);
        let words = rest.split_once(": ")?.1;
        let cpu = head.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
        let time = head.split_whitespace().last()?.trim_end_matches(':');
        Some(Line { cpu, time, words: words.split_whitespace().collect() })
    }

    fn name(&self) -> &'a str {
        self.words.first().copied().unwrap_or_default()
    }

    fn text(&self, key: &str) -> io::Result<&'a str> {
        let find = |word: &&'a str| word.split_once('=').filter(|(k, _)| *k == key).map(|(_, v)| v);
        self.words.iter().find_map(find).ok_or_else(|| {
            let message = format!("{} at {} has no {key}", self.name(), self.time);
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }

    fn number(&self, key: &str) -> io::Result<i64> {
        // The slice may be endless: all bits.
        let text = self.text(key)?;
        let number = text.parse().or_else(|_| text.parse::<u64>().map(|number| number as i64));
        number.map_err(|_| bad(self, key))
    }

    fn hex(&self, key: &str) -> io::Result<u64> {
        u64::from_str_radix(self.text(key)?, 16).map_err(|_| bad(self, key))
    }

    fn cpu_of(&self, key: &str) -> io::Result<CpuId> {
        Ok(CpuId(self.number(key)? as u16))
    }

    fn mask(&self, key: &str) -> io::Result<CpuMask> {
        let bits = self.hex(key)?;
        Ok(CpuMask::from_cpus((0..64).filter(|cpu| bits >> cpu & 1 != 0).map(CpuId)))
    }
}

fn bad(line: &Line<'_>, key: &str) -> io::Error {
    let message = format!("{} at {}: {key} is no number", line.name(), line.time);
    io::Error::new(io::ErrorKind::InvalidData, message)
}

// ---- the class ------------------------------------------------------------------------------------------------------

/// A scheduler that is only loaded, with central's flags.
#[derive(Clone)]
struct Loaded;

impl ExtScheduler for Loaded {
    fn properties(&self) -> ExtProperties {
        ExtProperties { flags: SCX_OPS_ENQ_LAST, ..ExtProperties::default() }
    }
    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        scx.create_dsq(0)
    }
}

/// A task in a queue, as printed.
#[derive(Clone, Copy, Debug)]
struct Entry {
    pid: i64,
    cpu: CpuId,
    cpus: CpuMask,
    fixed: bool,
}

/// What a CPU has printed of the decision that it is at.
#[derive(Clone, Debug, Default)]
struct At {
    selection: Option<(i64, Selection)>,
    consumed: Option<u64>,
    listing: Vec<Entry>,
    /// The same queue of ours, at the same time.
    order: Vec<TaskId>,
    /// Taken by another CPU since.
    taken: Vec<i64>,
    pick: Option<Pick>,
}

#[derive(Clone, Debug)]
struct Pick {
    prev: i64,
    running: Running,
    local: (u64, i64),
    waiting: Vec<Entry>,
}

struct Drive {
    kernel: Kernel,
    /// The same, with the queues as they have become.
    queues: Kernel,
    tasks: BTreeMap<i64, TaskId>,
    spare: TaskId,
    /// Insertions that were seen, so that the order of these tasks is known.
    known: BTreeMap<i64, bool>,
    dispatches: bool,
    at: Vec<At>,
    table: Table,
}

impl Drive {
    fn new(machine: &Machine, description: &str) -> Drive {
        let simple = description.contains("/sys/kernel/sched_ext/root/ops = simple");
        let make = move || -> Box<dyn ExtScheduler> {
            if simple { Box::new(Simple::new(false)) } else { Box::new(Loaded) }
        };
        let policies = Policies::default().with_ext_scheduler("recorded", make);
        let mut kernel = Kernel::boot_with(device_tree(machine), machine.kernel(), &policies);
        let spare = kernel.new_task(None, TaskKind::User);
        let at = vec![At::default(); machine.nr_cpus()];
        let (queues, table) = (kernel.clone(), Table::default());
        Drive {
            kernel,
            queues,
            tasks: BTreeMap::new(),
            spare,
            known: BTreeMap::new(),
            dispatches: simple,
            at,
            table,
        }
    }

    fn task(&mut self, pid: i64) -> TaskId {
        *self.tasks.entry(pid).or_insert_with(|| {
            let task = self.kernel.new_task(None, TaskKind::User);
            assert_eq!(
                self.queues.new_task(None, TaskKind::User),
                task,
                "both have the same tasks"
            );
            task
        })
    }

    fn line(&mut self, line: &Line<'_>) -> io::Result<()> {
        match line.name() {
            "ext_select" => self.selection(line),
            "ext_selected" => self.selected(line),
            "ext_insert" => self.insertion(line),
            "ext_step" if line.words.get(1) == Some(&"dequeue") => {
                let pid = line.number("pid")?;
                let task = self.task(pid);
                ExtSteps(&mut self.queues).leave(task);
                self.taken_from_others(line.cpu, pid);
                Ok(())
            }
            "ext_consume" => {
                let order = ExtSteps(&mut self.queues).order(0);
                let at = &mut self.at[line.cpu];
                at.taken.clear();
                (at.consumed, at.listing, at.order) = (Some(line.hex("dsq")?), Vec::new(), order);
                Ok(())
            }
            "ext_ent" => {
                let (pid, fixed) = (line.number("pid")?, line.number("fixed")? != 0);
                let entry =
                    Entry { pid, cpu: line.cpu_of("cpu")?, cpus: line.mask("cpus")?, fixed };
                self.at[line.cpu].listing.push(entry);
                Ok(())
            }
            "ext_consumed" => self.consumed(line),
            "ext_pick" => self.pick(line),
            "ext_picked" => self.picked(line),
            _ => Ok(()),
        }
    }

    /// A CPU has a task that others may have seen in a queue.
    fn taken_from_others(&mut self, cpu: usize, pid: i64) {
        let others = self.at.iter_mut().enumerate().filter(|(other, _)| *other != cpu);
        others.for_each(|(_, at)| at.taken.push(pid));
    }

    fn selection(&mut self, line: &Line<'_>) -> io::Result<()> {
        let selection = Selection {
            task: self.spare,
            this: line.cpu_of("this")?,
            prev: line.cpu_of("prev")?,
            wake_flags: line.hex("fl")?,
            allowed: line.mask("cpus")?,
            idle: [line.mask("idle")?, line.mask("smt")?],
            cursor: line.cpu_of("cursor")?,
            local_waits: line.number("nr")? > 0,
            flags: line.hex("flags")?,
        };
        self.at[line.cpu].selection = Some((line.number("pid")?, selection));
        Ok(())
    }

    fn selected(&mut self, line: &Line<'_>) -> io::Result<()> {
        let Some((pid, selection)) = self.at[line.cpu].selection.take() else { return Ok(()) };
        if pid != line.number("pid")? {
            self.table.untold += 1;
            return Ok(());
        }
        let recorded = (line.number("cpu")?, line.cpu_of("cursor")?);
        let (chosen, cursor) = ExtSteps(&mut self.kernel).select(&selection);
        let ours = (chosen.map_or(EBUSY, |cpu| cpu.0.into()), cursor);
        let choice = selection.idle[0].intersects(&selection.allowed);
        self.table.judge(What::Selection, choice, ours == recorded, || {
            format!("at {}: {ours:?}, recorded {recorded:?}: {selection:?}", line.time)
        });
        Ok(())
    }

    fn insertion(&mut self, line: &Line<'_>) -> io::Result<()> {
        let (dsq_id, flags) = (line.hex("dsq")?, line.hex("fl")?);
        let pid = line.number("pid")?;
        let task = self.task(pid);
        let mut steps = ExtSteps(&mut self.queues);
        steps.leave(task);
        self.taken_from_others(line.cpu, pid);
        let mut steps = ExtSteps(&mut self.queues);
        if dsq_id == 0 {
            steps.enqueue(task, dsq_id, line.number("vtime")? as u64, flags);
            self.known.insert(pid, true);
        }
        Ok(())
    }

    fn consumed(&mut self, line: &Line<'_>) -> io::Result<()> {
        let listing = std::mem::take(&mut self.at[line.cpu].listing);
        let consumed = self.at[line.cpu].consumed.take();
        if consumed == Some(0) {
            let recorded: Vec<i64> = listing.iter().map(|entry| entry.pid).collect();
            let known = recorded.iter().all(|pid| self.known.contains_key(pid));
            let tasks: Vec<TaskId> = recorded.iter().map(|pid| self.task(*pid)).collect();
            let ours = std::mem::take(&mut self.at[line.cpu].order);
            if known {
                let names: BTreeMap<TaskId, i64> =
                    self.tasks.iter().map(|(p, t)| (*t, *p)).collect();
                let met = ours == tasks;
                self.table.judge(What::Order, tasks.len() > 1, met, || {
                    let ours: Vec<i64> = ours.iter().map(|task| names[task]).collect();
                    format!("at {}: {ours:?}, recorded {recorded:?}", line.time)
                });
            } else {
                self.table.untold += 1;
            }
        }
        if consumed.is_some_and(|dsq_id| dsq_id & BUILT_IN == 0)
            && let Some(pick) = &mut self.at[line.cpu].pick
        {
            pick.waiting = listing;
        }
        if line.number("got")? != 0 {
            let task = self.task(line.number("last")?);
            ExtSteps(&mut self.queues).leave(task);
        }
        Ok(())
    }

    fn pick(&mut self, line: &Line<'_>) -> io::Result<()> {
        let prev = line.number("prev")?;
        let is_ext = line.number("ext")? != 0;
        let running = Running {
            task: if is_ext { Some(self.task(prev)) } else { None },
            queued: line.number("queued")? != 0,
            slice: line.number("slice")? as u64,
            exec_start: line.number("start")? as u64,
            clock_task: line.number("ct")? as u64,
        };
        let local = (line.number("nr")? as u64, line.number("head")?);
        self.at[line.cpu].pick = Some(Pick { prev, running, local, waiting: Vec::new() });
        Ok(())
    }

    fn picked(&mut self, line: &Line<'_>) -> io::Result<()> {
        let Some(pick) = self.at[line.cpu].pick.take() else { return Ok(()) };
        let cpu = line.cpu_of("cpu")?;
        let charged = pick.running.clock_task.saturating_sub(pick.running.exec_start);
        let keeps = pick.running.queued && pick.running.slice > charged;
        // A task that is fixed to its CPU for the moment, which the twin's never are.
        let fixed = pick.waiting.iter().any(|entry| entry.fixed && entry.cpu != cpu);
        let asks = !keeps && pick.local.0 == 0;
        let taken = std::mem::take(&mut self.at[line.cpu].taken);
        if fixed || asks && !self.dispatches {
            self.table.untold += 1;
            return Ok(());
        }
        let waiting: Vec<(Waiting, i64)> = pick
            .waiting
            .iter()
            .filter(|entry| !taken.contains(&entry.pid))
            .map(|entry| {
                let Entry { pid, cpu, cpus, .. } = *entry;
                (Waiting { task: self.task(pid), cpu, cpus }, pid)
            })
            .collect();
        let head = (pick.local.0 > 0).then(|| self.task(pick.local.1));
        let mut kernel = self.kernel.clone();
        let mut steps = ExtSteps(&mut kernel);
        if let Some(task) = head {
            steps.waits(&Waiting { task, cpu, cpus: CpuMask::of(cpu) }, None);
        }
        for (waiting, _) in &waiting {
            steps.waits(waiting, Some(0));
        }
        let (verdict, next, slice) = steps.pick(cpu, &pick.running);
        let number = match verdict {
            Verdict::None => 0,
            Verdict::Local => 1,
            Verdict::Prev => 2,
        };
        let recorded = line.number("verdict")?;
        let recorded_head = match line.number("head")? {
            0 => None,
            pid => Some(self.task(pid)),
        };
        let met = number == recorded && (number != 1 || next == recorded_head);
        let choice = waiting.len() > 1 || keeps && !(waiting.is_empty() && pick.local.0 == 0);
        self.table.judge(What::Pick, choice, met, || {
            format!(
                "at {}: {verdict:?} {next:?}, recorded {recorded} {recorded_head:?}: {pick:?}",
                line.time
            )
        });
        if pick.running.task.is_some() {
            let recorded = line.number("slice")? as u64;
            self.table.judge(What::Slice, charged > 0, slice == recorded, || {
                format!("at {} of {}: {slice}, recorded {recorded}: {pick:?}", line.time, pick.prev)
            });
        }
        Ok(())
    }
}

/// Drives one recording.
pub fn drive_file(path: &Path) -> io::Result<Table> {
    let machine = Machine::of_recording(path)?;
    let description = std::fs::read_to_string(description_of(path))?;
    let mut drive = Drive::new(&machine, &description);
    for text in packed::open(path)?.reader.lines() {
        if let Some(line) = Line::parse(&text?)
            && line.cpu < machine.nr_cpus()
        {
            drive.line(&line)?;
        }
    }
    Ok(drive.table)
}

/// The recordings under a scheduler, in this checkout.
fn own_recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/sched-ext");
    recordings_in(&folder).unwrap_or_default()
}

/// The command; returns the exit code.
pub fn main(options: &Options) -> i32 {
    let files = match options.recordings.files.is_empty() {
        true => own_recordings(),
        false => options.recordings.files.clone(),
    };
    let mut total = Table::default();
    let shown = Recordings { files }.walk(drive_file, |name, table| {
        if options.misses {
            table.misses.iter().for_each(|miss| println!("{name}: {miss}"));
        }
        table.show(name);
        total.merge(&table);
    });
    let Some(walk) = shown else { return 2 };
    total.show("all");
    println!("not told by the recordings: {}", total.untold);
    walk.exit_code(!total.passes())
}

#[cfg(test)]
mod tests {
    use super::super::name_of;
    use super::*;

    #[test]
    fn the_class_decides_as_recorded() {
        let mut total = Table::default();
        for path in own_recordings() {
            let table = drive_file(&path).unwrap();
            let first = table.misses.first();
            println!("{}: {first:?}", name_of(&path));
            table.show(&name_of(&path));
            total.merge(&table);
        }
        total.show("all");
        assert!(total.passes());
    }
}
