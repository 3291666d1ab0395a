//! Reads the text traces of the rig: the kernel as judge, line by line.
//!
//! **What a line is.** A recording (`*.trace.txt`, or packed, `*.trace.txt.xz`) is ftrace's text:
//!
//! ```text
//!       task-pid  [cpu] flags    seconds:  event:  what it says
//!         ui-0-78 [006] d..3. 5.090956: p_run: run pid=78 ct=5066799856 cp=5062662773
//!                         ^ h or H: inside an interrupt, s: inside a softirq, else the task itself
//! ```
//!
//! Two kinds of events are mixed. Lines whose event begins with `p_` (and `sugov`, `resolve`, …) are
//! printed by the rig from inside the scheduler: its averages, clocks and counts, times in ns. The
//! others are the kernel's own events, stamped in µs. [`Event`] has the ones that re-driving needs;
//! everything else is [`Event::Other`].
//!
//! **The CPU that prints is not always the CPU that is spoken of**: a wakeup prints, on the waker's
//! CPU, lines about the run queue of another one. [`Record::cpu`] is the printing one; the lines carry
//! the other in a field of their own.
//!
//! **Example.**
//!
//! ```
//! use schedtwin_conformance::ftrace::{Event, parse_line};
//!
//! let line = "  ui-0-78 [006] d..3. 5.090956: p_run: run pid=78 ct=5066799856 cp=5062662773";
//! let record = parse_line(line).unwrap().unwrap();
//! assert_eq!((record.cpu, record.time_us), (6, 5_090_956));
//! assert_eq!(record.event, Event::Run { pid: 78, ct: 5_066_799_856, cp: 5_062_662_773 });
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// One parsed line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// The CPU that printed the line.
    pub cpu: usize,
    /// The task that was running on it; 0 = idle.
    pub pid: i32,
    /// Printed inside a hardware interrupt.
    pub hardirq: bool,
    /// Printed inside a softirq (and not inside an interrupt on top of it).
    pub softirq: bool,
    /// The running task is to be switched away from (`TIF_NEED_RESCHED`).
    pub need_resched: bool,
    /// Trace clock, µs.
    pub time_us: u64,
    /// What happened.
    pub event: Event,
}

/// The averages of an entity as printed (`struct sched_avg`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Averages {
    /// `last_update_time`, ns of the PELT clock.
    pub lut: u64,
    /// `period_contrib`, 0..=1023.
    pub pc: u32,
    /// `load_sum`.
    pub ls: u64,
    /// `runnable_sum`.
    pub rs: u64,
    /// `util_sum`.
    pub us: u32,
    /// `load_avg`.
    pub l: u64,
    /// `runnable_avg`.
    pub r: u64,
    /// `util_avg`.
    pub u: u64,
    /// `util_est` without its flag.
    pub ue: u32,
}

/// Which of a CPU's three small signals a [`Event::PeltOther`] line prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OtherSignal {
    /// `rq->avg_rt`.
    Rt,
    /// `rq->avg_dl`.
    Dl,
    /// `rq->avg_irq`.
    Irq,
}

/// Where an [`Event::Rq`] line was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RqAt {
    /// Before a context switch, with the next task already chosen.
    Switch,
    /// At a waking (the task's last CPU, without its lock) or a wakeup (its new CPU).
    Wake,
}

/// What a line says. Field names are the trace's; times in ns unless stated.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // The names are those of the rig's README, field by field.
pub enum Event {
    PeltSe {
        pid: i32,
        cpu: usize,
        avg: Averages,
        uf: bool,
        w: u64,
        on: bool,
        dly: bool,
        v: u64,
        d: u64,
        vlag: i64,
        sl: u64,
    },
    PeltCfs {
        cpu: usize,
        avg: Averages,
        nr: u32,
        hq: u32,
        hr: u32,
        hd: u32,
        av: i64,
        al: u64,
        zv: u64,
        cur: i32,
    },
    PeltOther {
        signal: OtherSignal,
        cpu: usize,
        lut: u64,
        pc: u32,
        us: u32,
        u: u64,
    },
    Rq {
        at: RqAt,
        cpu: usize,
        clk: u64,
        ct: u64,
        cp: u64,
        lost: u64,
        irq: u64,
        rbw: u64,
        umin: u64,
        umax: u64,
        nr: u32,
    },
    Run {
        pid: i32,
        ct: u64,
        cp: u64,
    },
    Nr {
        cpu: usize,
        nr: u32,
        ch: i32,
        cp: u64,
    },
    UeCfs {
        cpu: usize,
        ue: u32,
    },
    UeSe {
        pid: i32,
        u: u64,
        ue: u32,
        uf: bool,
    },
    Energy {
        pid: i32,
        dst: i32,
        e: u64,
        max: u64,
        busy: u64,
    },
    Sugov {
        cpu: usize,
        time: u64,
        fl: u32,
    },
    Resolve {
        cpu: usize,
        khz: u32,
    },
    Sleep {
        len: i64,
        tick: i64,
    },
    Reflect {
        st: i32,
        res: i64,
    },
    Overutilized {
        on: bool,
    },
    Cap {
        cpu: usize,
        cap: u64,
    },
    SchedSwitch {
        prev_pid: i32,
        prev_prio: i32,
        /// The first letter of the state: `R` still wants to run, `S`, `D`, `I` sleep, `X`, `Z` dead.
        prev_state: u8,
        next_pid: i32,
        next_prio: i32,
        /// The next task is the stop class's (`migration/N`), which shares priority 0 with RT 99.
        next_stop: bool,
    },
    SchedWaking {
        pid: i32,
        prio: i32,
        target_cpu: usize,
    },
    SchedWakeup {
        pid: i32,
        prio: i32,
        target_cpu: usize,
        /// `sched_wakeup_new`: the first one after a fork.
        new: bool,
    },
    SchedMigrateTask {
        pid: i32,
        prio: i32,
        orig_cpu: usize,
        dest_cpu: usize,
    },
    SchedProcessFork {
        pid: i32,
        child_pid: i32,
    },
    SchedProcessExit {
        pid: i32,
    },
    CpuIdle {
        cpu: usize,
        /// −1 = woken up.
        state: i32,
    },
    /// The last stay in idle was in too shallow a state (`below`), or in too deep a one.
    CpuIdleMiss {
        cpu: usize,
        state: u32,
        below: bool,
    },
    CpuFrequency {
        cpu: usize,
        khz: u32,
    },
    /// The idle loop stopped the tick, or (`success` 0) something forbade it.
    TickStop {
        success: bool,
    },
    /// A timer fires; `tick`: the scheduler's tick.
    HrtimerExpire {
        tick: bool,
        now: u64,
    },
    SoftirqEntry {
        vec: u32,
    },
    SoftirqExit {
        vec: u32,
    },
    /// A kernel event that nobody here reads.
    Other,
}

/// A line that does not say what its event should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// 1-based; 0 where the caller knows it.
    pub line: u64,
    /// Which field of which event.
    pub what: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Reads `key=value` pairs in the order in which the line has them; others in between are skipped.
struct Fields<'a> {
    event: &'a str,
    rest: &'a str,
}

impl<'a> Fields<'a> {
    fn text(&mut self, key: &str) -> Result<&'a str, BadLine> {
        loop {
            self.rest = self.rest.trim_start_matches(' ');
            if self.rest.is_empty() {
                return Err(self.bad(key));
            }
            let end = self.rest.find(' ').unwrap_or(self.rest.len());
            let token = &self.rest[..end];
            self.rest = &self.rest[end..];
            if let Some(value) = token.strip_prefix(key).and_then(|v| v.strip_prefix('=')) {
                return Ok(value);
            }
        }
    }

    fn bad(&self, key: &str) -> BadLine {
        BadLine { line: 0, what: format!("event {} has no readable field `{key}`", self.event) }
    }

    fn number<T: std::str::FromStr>(&mut self, key: &str) -> Result<T, BadLine> {
        self.text(key)?.parse().map_err(|_| self.bad(key))
    }

    fn cpu(&mut self, key: &str) -> Result<usize, BadLine> {
        let cpu: usize = self.number(key)?;
        if cpu < CPUS_MAX { Ok(cpu) } else { Err(self.bad(key)) }
    }

    fn period_contrib(&mut self) -> Result<u32, BadLine> {
        let pc: u32 = self.number("pc")?;
        if pc < 1024 { Ok(pc) } else { Err(self.bad("pc")) }
    }

    fn flag(&mut self, key: &str) -> Result<bool, BadLine> {
        Ok(self.number::<u32>(key)? != 0)
    }

    fn averages(&mut self) -> Result<Averages, BadLine> {
        Ok(Averages {
            lut: self.number("lut")?,
            pc: self.period_contrib()?,
            ls: self.number("ls")?,
            rs: self.number("rs")?,
            us: self.number("us")?,
            l: self.number("l")?,
            r: self.number("r")?,
            u: self.number("u")?,
            ue: self.number("ue")?,
        })
    }
}

/// CPUs that a recording may speak of: far more than the board's eight, few enough for arrays.
pub const CPUS_MAX: usize = 1024;

/// Parses one line. `Ok(None)`: a header or an empty line.
pub fn parse_line(line: &str) -> Result<Option<Record>, BadLine> {
    if line.starts_with('#') || line.trim().is_empty() {
        return Ok(None);
    }
    let malformed = |what: &str| BadLine { line: 0, what: format!("is not a trace line: {what}") };
    let bracket = find_cpu(line).ok_or_else(|| malformed("no [CPU]"))?;
    let cpu: usize = line[bracket + 1..bracket + 4].parse().map_err(|_| malformed("CPU"))?;
    let task = line[..bracket].trim_end();
    let pid = task
        .rfind('-')
        .and_then(|dash| task[dash + 1..].parse().ok())
        .ok_or_else(|| malformed("no task-pid"))?;
    let rest = line[bracket + 5..].trim_start();
    let (flags, rest) = rest.split_once(' ').ok_or_else(|| malformed("no flags"))?;
    let (stamp, rest) = rest.trim_start().split_once(": ").ok_or_else(|| malformed("no time"))?;
    let (seconds, micros) = stamp.split_once('.').ok_or_else(|| malformed("time without `.`"))?;
    let time_us = match (seconds.parse::<u64>(), micros.parse::<u64>()) {
        (Ok(s), Ok(us)) if micros.len() == 6 => s
            .checked_mul(1_000_000)
            .and_then(|s| s.checked_add(us))
            .ok_or_else(|| malformed("time too large"))?,
        _ => return Err(malformed("time")),
    };
    let (name, text) = rest.split_once(':').ok_or_else(|| malformed("no event"))?;
    let context = flags.as_bytes().get(2).copied().unwrap_or(b'.');
    Ok(Some(Record {
        cpu,
        pid,
        hardirq: matches!(context, b'h' | b'H' | b'z' | b'Z'),
        softirq: context == b's',
        need_resched: matches!(flags.as_bytes().get(1), Some(b'N' | b'n' | b'B' | b'b')),
        time_us,
        event: parse_event(name, text)?,
    }))
}

/// Where `[NNN]` begins. A task's name may hold a bracket, so all three digits are looked for.
fn find_cpu(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let is_cpu = |w: &[u8]| w[0] == b'[' && w[4] == b']' && w[1..4].iter().all(u8::is_ascii_digit);
    bytes.windows(5).position(is_cpu)
}

fn parse_event(name: &str, text: &str) -> Result<Event, BadLine> {
    let f = &mut Fields { event: name, rest: text };
    let other = |signal, f: &mut Fields| {
        Ok(Event::PeltOther {
            signal,
            cpu: f.cpu("cpu")?,
            lut: f.number("lut")?,
            pc: f.period_contrib()?,
            us: f.number("us")?,
            u: f.number("u")?,
        })
    };
    // Struct fields are evaluated in the order written, which is the order of the line.
    Ok(match name {
        "p_se" => Event::PeltSe {
            pid: f.number("pid")?,
            cpu: f.cpu("cpu")?,
            avg: f.averages()?,
            uf: f.flag("uf")?,
            w: f.number("w")?,
            on: f.flag("on")?,
            dly: f.flag("dly")?,
            v: f.number("v")?,
            d: f.number("d")?,
            vlag: f.number("vlag")?,
            sl: f.number("sl")?,
        },
        "p_cfs" => Event::PeltCfs {
            cpu: f.cpu("cpu")?,
            avg: f.averages()?,
            nr: f.number("nr")?,
            hq: f.number("hq")?,
            hr: f.number("hr")?,
            hd: f.number("hd")?,
            av: f.number("av")?,
            al: f.number("al")?,
            zv: f.number("zv")?,
            cur: f.number("cur")?,
        },
        "p_rt" => other(OtherSignal::Rt, f)?,
        "p_dl" => other(OtherSignal::Dl, f)?,
        "p_irq" => other(OtherSignal::Irq, f)?,
        "p_switch" | "p_wake" => Event::Rq {
            at: if name == "p_switch" { RqAt::Switch } else { RqAt::Wake },
            cpu: f.cpu("cpu")?,
            clk: f.number("clk")?,
            ct: f.number("ct")?,
            cp: f.number("cp")?,
            lost: f.number("lost")?,
            irq: f.number("irq")?,
            rbw: f.number("rbw")?,
            umin: f.number("umin")?,
            umax: f.number("umax")?,
            nr: f.number("nr")?,
        },
        "p_run" => Event::Run { pid: f.number("pid")?, ct: f.number("ct")?, cp: f.number("cp")? },
        "p_nr" => Event::Nr {
            cpu: f.cpu("cpu")?,
            nr: f.number("nr")?,
            ch: f.number("ch")?,
            cp: f.number("cp")?,
        },
        "p_ue_cfs" => Event::UeCfs { cpu: f.cpu("cpu")?, ue: f.number("ue")? },
        "p_ue_se" => Event::UeSe {
            pid: f.number("pid")?,
            u: f.number("u")?,
            ue: f.number("ue")?,
            uf: f.flag("uf")?,
        },
        "p_energy" => Event::Energy {
            pid: f.number("pid")?,
            dst: f.number("dst")?,
            e: f.number("e")?,
            max: f.number("max")?,
            busy: f.number("busy")?,
        },
        "sugov" => Event::Sugov {
            cpu: f.cpu("cpu")?,
            time: f.number("time")?,
            fl: u32::from_str_radix(f.text("fl")?, 16).map_err(|_| f.bad("fl"))?,
        },
        "resolve" => Event::Resolve { cpu: f.cpu("cpu")?, khz: f.number("khz")? },
        "sleep_out" => Event::Sleep { len: f.number("len")?, tick: f.number("tick")? },
        "reflect" => Event::Reflect { st: f.number("st")?, res: f.number("res")? },
        "p_over" => Event::Overutilized { on: f.flag("on")? },
        "p_cap" => Event::Cap { cpu: f.cpu("cpu")?, cap: f.number("cap")? },
        "sched_switch" => Event::SchedSwitch {
            prev_pid: f.number("prev_pid")?,
            prev_prio: f.number("prev_prio")?,
            prev_state: *f
                .text("prev_state")?
                .as_bytes()
                .first()
                .ok_or_else(|| f.bad("prev_state"))?,
            next_stop: f.text("next_comm")?.starts_with("migration/"),
            next_pid: f.number("next_pid")?,
            next_prio: f.number("next_prio")?,
        },
        "sched_waking" => Event::SchedWaking {
            pid: f.number("pid")?,
            prio: f.number("prio")?,
            target_cpu: f.cpu("target_cpu")?,
        },
        "sched_wakeup" | "sched_wakeup_new" => Event::SchedWakeup {
            pid: f.number("pid")?,
            prio: f.number("prio")?,
            target_cpu: f.cpu("target_cpu")?,
            new: name == "sched_wakeup_new",
        },
        "sched_migrate_task" => Event::SchedMigrateTask {
            pid: f.number("pid")?,
            prio: f.number("prio")?,
            orig_cpu: f.cpu("orig_cpu")?,
            dest_cpu: f.cpu("dest_cpu")?,
        },
        "sched_process_fork" => {
            Event::SchedProcessFork { pid: f.number("pid")?, child_pid: f.number("child_pid")? }
        }
        "sched_process_exit" => Event::SchedProcessExit { pid: f.number("pid")? },
        "cpu_idle" => {
            Event::CpuIdle { state: f.number::<u32>("state")? as i32, cpu: f.cpu("cpu_id")? }
        }
        "cpu_idle_miss" => Event::CpuIdleMiss {
            cpu: f.cpu("cpu_id")?,
            state: f.number("state")?,
            below: f.text("type")? == "below",
        },
        "cpu_frequency" => Event::CpuFrequency { khz: f.number("state")?, cpu: f.cpu("cpu_id")? },
        "tick_stop" => Event::TickStop { success: f.flag("success")? },
        "hrtimer_expire_entry" => Event::HrtimerExpire {
            tick: matches!(f.text("function")?, "tick_nohz_handler" | "tick_sched_timer"),
            now: f.number("now")?,
        },
        "softirq_entry" => Event::SoftirqEntry { vec: f.number("vec")? },
        "softirq_exit" => Event::SoftirqExit { vec: f.number("vec")? },
        _ => Event::Other,
    })
}

/// How many records ahead of the present one can be looked at.
///
/// What an enqueue was for is printed up to some thirty lines after it began, with the lines of
/// seven other CPUs in between.
pub const WINDOW: usize = 512;

/// A recording, read as it is asked for, with a bounded view ahead.
pub struct Trace {
    lines: Box<dyn BufRead>,
    window: VecDeque<Record>,
    text: String,
    line: u64,
    at_end: bool,
    bad: Vec<BadLine>,
    bad_count: u64,
}

/// Bytes of a line; the rig's longest have about 350. What is longer is cut and then bad.
const LINE_MAX: u64 = 4096;
/// Bad lines that are kept; more are only counted.
const BAD_LINES_KEPT: usize = 20;

impl Trace {
    /// Opens a recording; `.xz` is unpacked.
    pub fn open(path: &Path) -> io::Result<Trace> {
        let file = BufReader::new(File::open(path)?);
        Ok(if path.extension().is_some_and(|e| e == "xz") {
            Trace::new(Box::new(BufReader::new(lzma_rust2::XzReader::new(file, true))))
        } else {
            Trace::new(Box::new(file))
        })
    }

    /// Reads from any lines.
    pub fn new(lines: Box<dyn BufRead>) -> Trace {
        Trace {
            lines,
            window: VecDeque::with_capacity(WINDOW),
            text: String::new(),
            line: 0,
            at_end: false,
            bad: Vec::new(),
            bad_count: 0,
        }
    }

    /// The next record, `None` at the end.
    pub fn next_record(&mut self) -> io::Result<Option<Record>> {
        while !self.at_end && self.window.len() < WINDOW {
            self.text.clear();
            self.line += 1;
            if (&mut self.lines).take(LINE_MAX).read_line(&mut self.text)? == 0 {
                self.at_end = true;
                break;
            }
            match parse_line(self.text.trim_end()) {
                Ok(record) => self.window.extend(record),
                Err(mut bad) => {
                    self.bad_count += 1;
                    bad.line = self.line;
                    if self.bad.len() < BAD_LINES_KEPT {
                        self.bad.push(bad);
                    }
                }
            }
        }
        Ok(self.window.pop_front())
    }

    /// What will be printed by `cpu` after the record that [`Trace::next_record`] gave last, as far as the
    /// window reaches.
    pub fn ahead(&self, cpu: usize) -> impl Iterator<Item = &Record> {
        self.window.iter().filter(move |r| r.cpu == cpu)
    }

    /// Lines that could not be read: the first few, and how many there were.
    pub fn bad_lines(&self) -> (&[BadLine], u64) {
        (&self.bad, self.bad_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_they_say() {
        let check = |line: &str, expected: Event| {
            assert_eq!(parse_line(line).unwrap().unwrap().event, expected, "{line}");
        };
        let line = "kworker/u32:1-60 [007] d..3. 5.340347: ";
        check(
            &format!("{line}p_nr: nr cpu=4 nr=2 ch=-1 cp=77"),
            Event::Nr { cpu: 4, nr: 2, ch: -1, cp: 77 },
        );
        check(
            &format!(
                "{line}sched_switch: prev_comm=a b prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm=migration/3 next_pid=32 next_prio=0"
            ),
            Event::SchedSwitch {
                prev_pid: 5,
                prev_prio: 120,
                prev_state: b'R',
                next_pid: 32,
                next_prio: 0,
                next_stop: true,
            },
        );
        check(
            &format!("{line}sugov: sugov cpu=0 time=12 fl=1f"),
            Event::Sugov { cpu: 0, time: 12, fl: 31 },
        );
        check(
            &format!("{line}cpu_idle: state=4294967295 cpu_id=6"),
            Event::CpuIdle { cpu: 6, state: -1 },
        );
        check(
            &format!("{line}p_rt: pelt_rt cpu=6 lut=1024 pc=3 us=9 u=0"),
            Event::PeltOther { signal: OtherSignal::Rt, cpu: 6, lut: 1024, pc: 3, us: 9, u: 0 },
        );
        check(&format!("{line}tick_stop: success=1"), Event::TickStop { success: true });
        check(&format!("{line}ipi_entry: (x)"), Event::Other);
    }

    #[test]
    fn the_head_of_a_line() {
        let record =
            parse_line("   a[1]-b-2-31 [012] dNH5. 71.000009: ipi_exit: x").unwrap().unwrap();
        assert_eq!((record.cpu, record.pid, record.time_us), (12, 31, 71_000_009));
        assert!(record.hardirq && !record.softirq && record.need_resched);
        assert_eq!(parse_line("# tracer: nop"), Ok(None));
    }

    #[test]
    fn bad_lines_are_counted_and_named_not_fatal() {
        let text = "no trace at all\n\
            a-1 [000] d..3. 1.000000: p_nr: nr cpu=0 nr=1 ch=1\n\
            a-1 [000] d..3. 1.000000: p_nr: nr cpu=99999 nr=1 ch=1 cp=5\n\
            a-1 [000] d..3. 1.00000: p_nr: nr cpu=0 nr=1 ch=1 cp=5\n\
            a-1 [000] d..3. 1.000000: p_nr: nr cpu=0 nr=1 ch=1 cp=5\n";
        let mut trace = Trace::new(Box::new(text.as_bytes()));
        assert!(trace.next_record().unwrap().is_some());
        assert!(trace.next_record().unwrap().is_none());
        let (bad, count) = trace.bad_lines();
        assert_eq!(count, 4);
        assert_eq!(bad[1].to_string(), "line 2: event p_nr has no readable field `cp`");
        assert_eq!(bad[2].to_string(), "line 3: event p_nr has no readable field `cpu`");
    }
}
