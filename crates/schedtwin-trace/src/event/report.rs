// SPDX-License-Identifier: GPL-2.0-or-later
//! Data of a file beside its events, and its faults.

use super::{NameId, Names, PowerRail, STEP_BACK_MAX_NS, TraceEvent};
use schedtwin_types::{CpuId, CpuMask, Ns};
use std::fmt;
use std::io;

/// Damages that are kept; more are only counted.
const DAMAGES_KEPT: usize = 20;

/// Facts that a file tells beside its events; each is absent where the format or the recorder does not tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHeader {
    /// The format, in words: `ftrace text`.
    pub format: &'static str,
    /// The program that recorded or wrote it, with its version.
    pub tool: Option<String>,
    /// `uname -r` of the recorded kernel.
    pub release: Option<String>,
    /// The recorded machine's name in its network.
    pub hostname: Option<String>,
    /// The hardware, as the file names it: a SoC, a board.
    pub hardware: Option<String>,
    /// `CONFIG_HZ`.
    pub hz: Option<u32>,
    /// CPUs of the machine, also those without events.
    pub nr_cpus: Option<usize>,
    /// The clock of the stamps: `boot`, `mono`, `local`, …
    pub clock: Option<String>,
    /// Capacities of the CPUs, of 1024, by number.
    pub capacities: Vec<u32>,
    /// Frequencies of the CPUs, kHz, by number.
    pub frequencies_khz: Vec<Vec<u32>>,
    /// Threads, as they were when the recording began.
    pub threads: Vec<StartingThread>,
    /// Its power rails, with what they counted.
    pub rails: Vec<PowerRail>,
    /// Options that our own recorder notes besides, in its order: names and values.
    pub options: Vec<(String, String)>,
}

/// A thread as a file describes it beside its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartingThread {
    /// Its pid.
    pub pid: u32,
    /// Its process.
    pub tgid: Option<u32>,
    /// Its name.
    pub comm: String,
    /// `SCHED_*` as a number.
    pub policy: Option<u32>,
    /// Its nice value.
    pub nice: Option<i32>,
    /// Its real-time priority, 1 to 99.
    pub rt_priority: Option<u32>,
    /// The CPUs that it may use.
    pub affinity: Option<CpuMask>,
    /// Its utilisation clamps, lower and upper, of 1024.
    pub clamps: Option<(u16, u16)>,
    /// Its group in the cpu controller.
    pub cgroup: Option<String>,
}

/// Where in a file something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text, 1-based.
    Line(u64),
    /// A byte of a binary file.
    Byte(u64),
}

/// Something that is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where.
    pub place: Place,
    /// The fault in words.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Line(line) => write!(f, "line {line}: {}", self.what),
            Place::Byte(byte) => write!(f, "byte {byte}: {}", self.what),
        }
    }
}

/// What a file that was cut lacks, as far as it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Events: the heading says how many there were.
    Events(u64),
    /// Bytes of its last packet, and how many of that are there.
    Bytes {
        /// Not there.
        missing: u64,
        /// There.
        there: u64,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Events(events) => write!(f, "its heading tells of {events} more events"),
            Missing::Bytes { missing, there } => write!(
                f,
                "its last packet lacks {missing} of {} bytes, and the events in them",
                missing + there
            ),
        }
    }
}

/// Events of one CPU that the recorder lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLosses {
    /// How many, as far as it counted.
    pub events: u64,
    /// Times it lost events without saying how many.
    pub uncounted: u64,
}

/// How often a tracepoint occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCount {
    /// All of its events.
    pub events: u64,
    /// Those that became [`super::TraceEventKind::Other`].
    pub unused: u64,
}

/// Counts of the events read, and the faults found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceReport {
    /// Lines of text, or packets or pages.
    pub pieces: u64,
    /// Events, of whatever kind.
    pub events: u64,
    /// Events that nobody here reads.
    pub unused: u64,
    /// Pieces that are no events and no known headings.
    pub foreign: u64,
    /// 1 if the file ends in the middle of an event; that one is not among the events.
    pub cut: u64,
    /// How much the file lacks behind its cut, where it tells that.
    pub missing: Option<Missing>,
    /// Pieces of another machine, as of a guest, that are left out.
    pub elsewhere: u64,
    /// Events that are a little earlier than the one before, less than [`STEP_BACK_MAX_NS`].
    pub disordered: u64,
    /// Lost events whose CPU is not told.
    pub lost_anywhere: CpuLosses,
    /// Damages, the first ones.
    pub damages: Vec<Damage>,
    /// All damages.
    pub damage_count: u64,
    /// Lost events by CPU.
    losses: Vec<CpuLosses>,
    /// Counts by the number of the tracepoint's name.
    counts: Vec<EventCount>,
    /// Names of tracepoints in the order in which they first occurred.
    counted: Vec<NameId>,
}

impl SourceReport {
    /// Counts an event of that tracepoint.
    pub fn count(&mut self, name: NameId, unused: bool) {
        self.events += 1;
        self.unused += u64::from(unused);
        if name.index() >= self.counts.len() {
            self.counts.resize(name.index() + 1, EventCount::default());
        }
        let count = &mut self.counts[name.index()];
        if count.events == 0 {
            self.counted.push(name);
        }
        count.events += 1;
        count.unused += u64::from(unused);
    }

    /// Notes lost events: of a CPU, if that is known.
    pub fn lose(&mut self, cpu: Option<CpuId>, events: Option<u64>) {
        let losses = match cpu {
            None => &mut self.lost_anywhere,
            Some(cpu) => {
                if cpu.index() >= self.losses.len() {
                    self.losses.resize(cpu.index() + 1, CpuLosses::default());
                }
                &mut self.losses[cpu.index()]
            }
        };
        match events {
            Some(events) => losses.events = losses.events.saturating_add(events),
            None => losses.uncounted += 1,
        }
    }

    /// Compares an event's time with the latest before it, and moves that on. A step back is counted; one beyond
    /// [`STEP_BACK_MAX_NS`] is damage.
    pub(crate) fn follow(&mut self, latest: &mut Ns, event: &TraceEvent, place: Place) {
        let back = latest.saturating_sub(event.at);
        self.disordered += u64::from(back > 0);
        if back > STEP_BACK_MAX_NS {
            self.damage(place, format!("the time of CPU {} goes back by {back} ns", event.cpu.0));
        }
        *latest = event.at.max(*latest);
    }

    /// Notes damage.
    pub fn damage(&mut self, place: Place, what: impl Into<String>) {
        self.damage_count += 1;
        if self.damages.len() < DAMAGES_KEPT {
            self.damages.push(Damage { place, what: what.into() });
        }
    }

    /// Each tracepoint with its counts, in the order in which they first occurred.
    pub fn counts<'a>(&'a self, names: &'a Names) -> impl Iterator<Item = (&'a str, EventCount)> {
        self.counted.iter().map(|name| (names.text(*name), self.counts[name.index()]))
    }

    /// Lost events of each CPU that lost any.
    pub fn losses(&self) -> impl Iterator<Item = (CpuId, CpuLosses)> {
        let all = self.losses.iter().enumerate().map(|(cpu, losses)| (CpuId(cpu as u16), *losses));
        all.filter(|(_, losses)| *losses != CpuLosses::default())
    }

    /// Lost events of all CPUs.
    pub fn lost(&self) -> CpuLosses {
        self.losses.iter().fold(self.lost_anywhere, |all, cpu| CpuLosses {
            events: all.events.saturating_add(cpu.events),
            uncounted: all.uncounted + cpu.uncounted,
        })
    }
}

/// Why a source cannot go on.
#[derive(Debug)]
pub enum SourceFault {
    /// The file cannot be read.
    Io(io::Error),
    /// It is not what it was taken for, or nothing of it can be used; a clause that begins with `it`.
    Unusable(String),
}

impl fmt::Display for SourceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceFault::Io(error) => write!(f, "{error}"),
            SourceFault::Unusable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for SourceFault {}

impl From<io::Error> for SourceFault {
    fn from(error: io::Error) -> SourceFault {
        SourceFault::Io(error)
    }
}
