// SPDX-License-Identifier: GPL-2.0-or-later
//! Drives the twin's idle governor with the inputs that the kernel's governor had, CPU by CPU, and compares the
//! choices.
//!
//! ```text
//!  sched_switch ─► sleep len tick ─► (tick_stop) ─► cpu_idle 1 … cpu_idle −1 ─► reflect st res
//!                  select                                      irq: the tick?   reflect
//!                     ▲──────────── no task came ─────────────────────────────────┘
//! ```
//!
//! | input | from |
//! |---|---|
//! | time of selection, time of reflection | the times of the `sleep` and `reflect` lines, µs |
//! | sleep length, with and without tick | `sleep`, ns |
//! | state and residency of the last sleep | `reflect`, ns |
//! | tick stopped | since a `tick_stop`, until the idle loop is left |
//! | the tick's handler ran | `hrtimer_expire_entry` of the tick in the idle task, in its loop |
//! | a wheel timer keeps the tick although it may stop | `timer_start` and so on ([`super::wheel`]) |
//!
//! Where the kernel's governor did not read the sleep length (menu, and teo since 6.18, after very short sleeps) there is
//! no `sleep` line. The selection is then made at the entry, and the twin's choice is wrong if it reads the sleep
//! length.
//!
//! **Time.** To know whether the timer woke the CPU, teo compares the difference of two clock readings with the
//! sleep length. The readings are not printed, but each lies between two lines of its CPU: the selection's between
//! the line before `sleep` and `sleep` itself, the reflection's between `reflect` and the line after it. So three
//! governors are driven: one with the shortest difference that these lines allow, one with the longest, and one
//! with the difference between `sleep` and `reflect`, which is judged. A wrong choice is excused by time only if
//! the shortest or the longest difference gives the right one.
//!
//! **The beginning.** teo's counters at the beginning of the recording are unknown. But its decisions compare
//! linear sums of the counters, and the sum of all counters is at most 8 pulses, so the possible states are a
//! simplex. A teo is driven from each corner of the simplex. As long as these disagree, the choice depends on the
//! unknown state and is not judged. After some fifty wakeups the state at the beginning has decayed.
//!
//! menu's choices rise with its correction factors, so two corners bound them: all factors 0, and all 1. The eight
//! intervals are unknown until all have been replaced; before that nothing is judged.

use std::collections::BTreeMap;

use schedtwin_kernel::config::{Config, MenuForm, TeoForm};
use schedtwin_kernel::cpuidle::CpuIdle;
use schedtwin_kernel::cpuidle::governor::Governor;
use schedtwin_kernel::cpuidle::menu::{DECADES, INTERVALS, MenuCpu};
use schedtwin_kernel::cpuidle::states::{IdleStateParams, Reflection, SelectInput, SleepLength};
use schedtwin_kernel::cpuidle::teo::v6_12::{TeoBin, TeoCpu};
use schedtwin_kernel::cpuidle::teo::{DECAY_SHIFT, PULSE, v6_18, v7_3};

use super::wheel::Wheel;
use crate::ftrace::{Event, Record, Trace};
use crate::l1::machine::Machine;
use crate::l1::mechanism::{Difference, Table, Unknown, What};

/// No limit (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`, 2000 s): no task on the board requests one.
const LATENCY_REQ_NS: i64 = 2_000_000_000_000;
/// The limit of the counters' sum: there a pulse adds as much as the decay subtracts.
const SUM_MAX: u32 = PULSE << DECAY_SHIFT;
/// The sleep length at which menu's product with the factor wraps, ns: from there on choices do not rise with
/// factors.
const MENU_WRAPS_NS: i64 = 1 << 51;
/// The largest number of differences that are kept as text for a recording.
const MISSES_KEPT: usize = 1000;

/// A choice: state, and whether the tick may stop.
type Choice = (u8, bool);

/// A selection whose outcome has not been printed yet.
#[derive(Clone, Debug)]
struct Pending {
    judged: Choice,
    /// All states between the corners would choose as the corners do.
    bounded: bool,
    corners: Vec<Choice>,
    bounds: [Choice; 2],
    tick_was_stopped: bool,
    tick_stops: bool,
    sleep: Option<SleepLength>,
}

/// One CPU.
#[derive(Clone, Debug)]
struct Cpu {
    states: Vec<IdleStateParams>,
    /// The state of the tick is known, because the recording has shown the CPU leave its idle loop.
    started: bool,
    tick_stopped: bool,
    /// The CPU is in the idle loop: it has selected a state, and need_resched was not set since.
    in_loop: bool,
    got_tick: bool,
    last_residency_ns: u64,
    /// One governor for each corner of the possible states; the first, which has counted no sleep, is judged.
    corners: Vec<Governor>,
    /// The governors with the shortest and the longest differences of time.
    bounds: [Governor; 2],
    pending: Option<Pending>,
    /// Time and sleep length of the last selection: earliest and latest time, ns.
    selected: (u64, u64, i64),
    /// Time of this CPU's last line, ns.
    last_line_ns: u64,
    /// The end of the present stay has been printed.
    stay_ended: bool,
    /// The printed judgement of the present stay, if its state was wrong: the state, and whether it was too shallow.
    miss: Option<(u32, bool)>,
    /// The twin's code that judges stays (too deep, too shallow).
    accounting: CpuIdle,
}

impl Cpu {
    fn new(states: &[IdleStateParams], corners: Vec<Governor>) -> Cpu {
        Cpu {
            states: states.to_vec(),
            started: false,
            tick_stopped: false,
            in_loop: false,
            got_tick: false,
            last_residency_ns: 0,
            bounds: [corners[0].clone(), corners[0].clone()],
            corners,
            pending: None,
            selected: (0, 0, 0),
            last_line_ns: 0,
            stay_ended: false,
            miss: None,
            accounting: CpuIdle::new(states.to_vec(), Governor::Shallow, i64::MAX),
        }
    }
}

/// Returns the corners of the possible states of a governor, for a CPU with so many idle states; the first has
/// counted no sleep. `None`: the governor is not supported here.
pub fn corners(kernel: &Config, governor: &str, states: usize) -> Option<Vec<Governor>> {
    match (governor, kernel.teo, kernel.menu) {
        ("teo", TeoForm::V6_12, _) => {
            Some(teo_corners(states).into_iter().map(Governor::Teo).collect())
        }
        ("teo", TeoForm::V6_18, _) => {
            Some(teo_6_18_corners(states).into_iter().map(Governor::TeoTickIntercepts).collect())
        }
        ("teo", TeoForm::V7_3, _) => {
            Some(teo_7_3_corners(states).into_iter().map(Governor::TeoTimers).collect())
        }
        ("menu", _, MenuForm::V6_12) => Some(menu_corners().map(Governor::Menu).to_vec()),
        ("menu", _, MenuForm::V6_18) => {
            Some(menu_corners().map(Governor::MenuShortOutliers).to_vec())
        }
        ("menu", _, MenuForm::V7_3) => Some(menu_corners().map(Governor::MenuOutliers).to_vec()),
        _ => None,
    }
}

/// Returns the corners of the sums. Each of the values beside the bins has the same bound as the bins' sum; an
/// intercept within a tick is also counted in a bin.
fn teo_7_3_corners(states: usize) -> Vec<v7_3::TeoCpu> {
    let zero = v7_3::TeoCpu { last_state_idx: None, ..v7_3::TeoCpu::default() };
    let mut corners = vec![zero.clone()];
    for bits in 0..1 << 3 {
        let or_none = |bit: u32| if bits >> bit & 1 != 0 { SUM_MAX } else { 0 };
        for state in 0..states {
            for bin in
                [TeoBin { hits: SUM_MAX, intercepts: 0 }, TeoBin { hits: 0, intercepts: SUM_MAX }]
            {
                if bin.intercepts == 0 && or_none(1) != 0 {
                    continue;
                }
                let mut corner = v7_3::TeoCpu {
                    total: SUM_MAX,
                    total_tick: or_none(0),
                    tick_intercepts: or_none(1),
                    short_idles: or_none(2),
                    ..zero.clone()
                };
                corner.state_bins[state] = bin;
                corners.push(corner);
            }
        }
    }
    corners
}

/// The same of 6.18, whose total is as large as its bins together but for what rounding leaves.
fn teo_6_18_corners(states: usize) -> Vec<v6_18::TeoCpu> {
    let of = |corner: v7_3::TeoCpu| v6_18::TeoCpu {
        state_bins: corner.state_bins,
        total: corner.total,
        tick_intercepts: corner.tick_intercepts,
        short_idles: corner.short_idles,
        last_state_idx: None,
        ..v6_18::TeoCpu::default()
    };
    teo_7_3_corners(states).into_iter().filter(|corner| corner.total_tick == 0).map(of).collect()
}

fn teo_corners(states: usize) -> Vec<TeoCpu> {
    // No wakeup is still to be counted: the first update would need what was not seen.
    let zero = TeoCpu { last_state_idx: None, ..TeoCpu::default() };
    let full = TeoCpu { total: SUM_MAX, ..zero.clone() };
    let mut corners = vec![zero, TeoCpu { tick_hits: SUM_MAX, ..full.clone() }];
    for state in 0..states {
        for bin in
            [TeoBin { hits: SUM_MAX, intercepts: 0 }, TeoBin { hits: 0, intercepts: SUM_MAX }]
        {
            let mut corner = full.clone();
            corner.state_bins[state] = bin;
            corners.push(corner);
        }
    }
    corners
}

fn menu_corners() -> [MenuCpu; 2] {
    // No sleep has this length, so replaced intervals can be told from others: see `bounded`.
    [
        MenuCpu { intervals: [u32::MAX - 1; INTERVALS], ..MenuCpu::default() },
        MenuCpu { correction_factor: [0; 2 * DECADES], ..MenuCpu::default() },
    ]
}

/// The drive of one recording.
pub struct IdleDrive<'a> {
    machine: &'a Machine,
    /// The twin's kernel.
    kernel: Config,
    /// The governor's rows in the table: states and ticks.
    what: [What; 2],
    cpus: BTreeMap<usize, Cpu>,
    wheel: Wheel,
    table: Table,
    /// The recorded choices that are judged, for each row and CPU: the most frequent one is the trivial answer.
    recorded: BTreeMap<(What, usize), BTreeMap<u8, u64>>,
    /// Number of wakeups at which the time stamps do not tell whether the timer had expired.
    pub time_open: u64,
    /// `tick_stop` is among the last events that the board switches on: before the first one no CPU's tick is known.
    ticks_told: bool,
    /// The recording has the event of stays that were too short or too long, which was switched on after that of
    /// stays.
    misses_told: bool,
    /// The first differences, as text.
    pub misses: Vec<String>,
}

impl<'a> IdleDrive<'a> {
    /// Returns a drive that has read nothing yet.
    pub fn new(machine: &'a Machine) -> IdleDrive<'a> {
        IdleDrive {
            machine,
            kernel: machine.kernel(),
            what: match machine.governor.as_str() {
                "menu" => [What::MenuState, What::MenuTick],
                _ => [What::TeoState, What::TeoTick],
            },
            cpus: BTreeMap::new(),
            wheel: Wheel::default(),
            table: Table::default(),
            recorded: BTreeMap::new(),
            time_open: 0,
            ticks_told: false,
            misses_told: false,
            misses: Vec::new(),
        }
    }

    /// Reads ahead which wheel timers were pending at the beginning: the recording shows them only when they
    /// expire.
    pub fn read_ahead(&mut self, trace: &mut Trace) -> std::io::Result<()> {
        self.wheel = Wheel::read(trace)?;
        Ok(())
    }

    /// Returns the counts, with the trivial answers: each CPU's most frequent choice.
    pub fn table(&self) -> Table {
        let mut table = self.table.clone();
        for ((what, _), choices) in &self.recorded {
            table.row(*what).trivial += choices.values().max().copied().unwrap_or(0);
        }
        table
    }

    /// Drives the whole of `trace`.
    pub fn drive(&mut self, trace: &mut Trace) -> std::io::Result<()> {
        while let Some(record) = trace.next_record()? {
            self.record(&record, trace);
        }
        Ok(())
    }

    fn record(&mut self, r: &Record, trace: &Trace) {
        let machine = self.machine;
        let states = machine.states(r.cpu);
        let kernel = &self.kernel;
        let now = r.time_us.saturating_mul(1000);
        self.wheel.record(r, machine.tick_nsec as u64);
        if states.is_empty() {
            return;
        }
        let cpu = self.cpus.entry(r.cpu).or_insert_with(|| {
            let corners = corners(kernel, &machine.governor, states.len());
            Cpu::new(states, corners.expect("only known governors are driven"))
        });
        // A tick that is delayed until the switch is handled before the idle loop, and is not reported to the governor.
        match r.event {
            Event::Sleep { .. } => cpu.in_loop = true,
            Event::CpuIdle { state, .. } if state >= 0 => cpu.in_loop = true,
            Event::SchedSwitch { prev_pid, next_pid, .. } if prev_pid == 0 || next_pid == 0 => {
                cpu.in_loop = false;
            }
            _ => {}
        }
        match r.event {
            Event::Sleep { len, tick } if cpu.started => {
                let sleep = SleepLength { sleep_length_ns: len, delta_tick_ns: tick };
                cpu.select(now, Some(sleep), machine.tick_nsec);
            }
            Event::TickStop { success: true } => {
                self.ticks_told = true;
                cpu.tick_stopped = true;
                if let Some(pending) = &mut cpu.pending {
                    pending.tick_stops = true;
                }
            }
            Event::CpuIdle { state, .. } if state >= 0 => {
                let asks_always = machine.governor == "teo" && kernel.teo == TeoForm::V6_12;
                if cpu.pending.is_none() && cpu.started && !asks_always {
                    cpu.select(now, None, machine.tick_nsec);
                }
                if let Some(pending) = cpu.pending.take() {
                    self.judge(r, &pending, state);
                }
            }
            Event::CpuIdle { .. } => cpu.stay_ended = true,
            Event::CpuIdleMiss { state, below, .. } => {
                self.misses_told = true;
                cpu.miss = Some((state, below));
            }
            Event::HrtimerExpire { tick: true, .. } if r.pid == 0 && cpu.in_loop => {
                cpu.got_tick = true;
            }
            Event::Reflect { st, res } => {
                cpu.pending = None;
                if let Some((recorded, ours)) = cpu.account(st, res).filter(|_| self.misses_told) {
                    // The trivial answer: neither.
                    let row = self.table.row(What::IdleMiss);
                    row.count(ours == recorded, recorded.is_none(), || Difference::ModelWrong);
                }
                let next =
                    trace.ahead(r.cpu).next().map_or(now, |r| r.time_us.saturating_mul(1000));
                if cpu.started && cpu.reflect(st, res, (now, next), machine.tick_nsec) {
                    self.time_open += 1;
                }
                // At the end of each round of the loop the tick's arrival is forgotten. A stopped tick starts again
                // when the loop is left, even if the scheduler then picks the idle task once more.
                cpu.got_tick = false;
                if r.need_resched {
                    cpu.in_loop = false;
                    cpu.tick_stopped = false;
                }
            }
            Event::SchedSwitch { prev_pid: 0, .. } => {
                cpu.started = self.ticks_told;
                cpu.tick_stopped = false;
                cpu.pending = None;
            }
            _ => {}
        }
        if let Some(cpu) = self.cpus.get_mut(&r.cpu) {
            cpu.last_line_ns = now;
        }
    }

    /// Compares a selection with the state that was entered after it.
    fn judge(&mut self, r: &Record, pending: &Pending, state: i32) {
        let recorded = (u8::try_from(state).unwrap_or(u8::MAX), pending.tick_stops);
        let [state_row, tick_row] = self.what;
        let miss = self.score(state_row, r.cpu, pending, recorded.0, |c| c.0, None);
        let mut why = miss.map(|why| (why, "state"));
        if !pending.tick_was_stopped {
            // A CPU that the recording has not shown to leave idle counts as asleep with its tick stopped.
            let mut others = self.cpus.iter().filter(|(cpu, _)| **cpu != r.cpu);
            let last = others.all(|(_, cpu)| cpu.tick_stopped || !cpu.started);
            let tick_nsec = self.machine.tick_nsec as u64;
            // If the sleep length is longer than the time to the next clock event, no wheel timer is due.
            let asked_wheel =
                pending.sleep.is_none_or(|sleep| sleep.sleep_length_ns == sleep.delta_tick_ns);
            let keeps = asked_wheel && self.wheel.keeps_tick(r.cpu, last, tick_nsec);
            let kept = !recorded.1 && pending.judged.1 && !keeps;
            let wheel = Difference::UnknownInput(Unknown::WheelTimer);
            let known = (kept && (last || asked_wheel)).then_some(wheel);
            let of = |c: Choice| u8::from(c.1 && !keeps);
            let recorded = recorded.1 as u8;
            let miss = self.score(tick_row, r.cpu, pending, recorded, of, known);
            why = why.or(miss.map(|why| (why, "tick")));
        }
        if let Some((why, what)) = why
            && self.misses.len() < MISSES_KEPT
        {
            let governor = &self.cpus[&r.cpu].corners[0];
            self.misses.push(format!(
                "CPU {} at {} us: {what} ({why}): recorded {recorded:?}, ours {:?}, shortest and longest {:?}, tick was stopped {}, {:?}, {governor:?}",
                r.cpu, r.time_us, pending.judged, pending.bounds, pending.tick_was_stopped, pending.sleep,
            ));
        }
    }

    /// Counts one choice; returns the reason if it differs from the twin's.
    fn score(
        &mut self,
        what: What,
        cpu: usize,
        pending: &Pending,
        recorded: u8,
        of: impl Fn(Choice) -> u8,
        known: Option<Difference>,
    ) -> Option<Difference> {
        let row = self.table.row(what);
        let ours = of(pending.judged);
        if !pending.bounded || pending.corners.iter().any(|choice| of(*choice) != ours) {
            row.skip();
            return None;
        }
        let choices = self.recorded.entry((what, cpu)).or_default();
        *choices.entry(recorded).or_default() += 1;
        let by_time = pending.bounds.iter().any(|choice| of(*choice) == recorded);
        let why = match known {
            Some(known) => known,
            None if by_time => Difference::Timestamp,
            None => Difference::ModelWrong,
        };
        // The most frequent choice is known only at the end.
        (!row.count(ours == recorded, false, || why)).then_some(why)
    }
}

impl Cpu {
    /// Makes a selection; `sleep` is the sleep length, if the kernel's governor read it.
    fn select(&mut self, now: u64, sleep: Option<SleepLength>, tick_nsec: i64) {
        // A stamp is cut to µs, so the reading may be up to 1 µs later than the line says.
        let (earliest, latest) = (self.last_line_ns, now.saturating_add(1000));
        let Cpu { states, tick_stopped, last_residency_ns, .. } = self;
        let choose = |governor: &mut Governor, now: u64| {
            let input = SelectInput {
                states,
                latency_req_ns: LATENCY_REQ_NS,
                tick_stopped: *tick_stopped,
                tick_nsec,
                now,
                last_residency_ns: *last_residency_ns,
                nr_iowaiters: 0,
                cpu_util: 0,
            };
            const NEVER: SleepLength = SleepLength { sleep_length_ns: 0, delta_tick_ns: 0 };
            let choice = governor.select(&input, &mut || sleep.unwrap_or(NEVER));
            let asked_alike = choice.sleep_length_ns.is_some() == sleep.is_some();
            (if asked_alike { choice.state } else { u8::MAX }, choice.stop_tick)
        };
        let corners: Vec<Choice> =
            self.corners.iter_mut().map(|corner| choose(corner, now)).collect();
        let [shortest, longest] = &mut self.bounds;
        let bounds = [choose(shortest, latest), choose(longest, earliest)];
        self.pending = Some(Pending {
            judged: corners[0],
            bounded: self.bounded(sleep),
            corners,
            bounds,
            tick_was_stopped: self.tick_stopped,
            tick_stops: false,
            sleep,
        });
        self.selected = (earliest, latest, sleep.map_or(i64::MAX, |sleep| sleep.sleep_length_ns));
    }

    /// Whether a choice on which all corners agree is the choice from every possible state.
    fn bounded(&self, sleep: Option<SleepLength>) -> bool {
        match &self.corners[..] {
            [Governor::Menu(low), Governor::Menu(high)]
            | [Governor::MenuOutliers(low), Governor::MenuOutliers(high)] => {
                low.intervals == high.intervals
                    && sleep.is_none_or(|sleep| sleep.sleep_length_ns < MENU_WRAPS_NS)
            }
            _ => true,
        }
    }

    /// Returns two judgements of the stay that ended, the recorded one and the twin's: the state, and whether it
    /// was too shallow; `None` if the state was right. `None` as a whole if the recording does not show the end of
    /// the stay.
    #[allow(clippy::type_complexity)] // Twice the same: recorded and ours.
    fn account(
        &mut self,
        state: i32,
        res: i64,
    ) -> Option<(Option<(u32, bool)>, Option<(u32, bool)>)> {
        let recorded = self.miss.take();
        if !std::mem::take(&mut self.stay_ended) {
            return None;
        }
        let state = u8::try_from(state).ok().filter(|s| usize::from(*s) < self.states.len())?;
        self.accounting.last_residency_ns = u64::try_from(res).ok()?;
        let ours = self.accounting.miss(state).map(|below| (u32::from(state), below));
        Some((recorded, ours))
    }

    /// Reports the end of a stay to the governors; returns whether the time stamps do not tell if the timer had
    /// expired.
    fn reflect(&mut self, state: i32, res: i64, (now, next): (u64, u64), tick_nsec: i64) -> bool {
        self.last_residency_ns = u64::try_from(res).unwrap_or(0);
        // Negative: no state was entered, and the governor gets no report.
        let Some(state) = usize::try_from(state).ok().filter(|s| *s < self.states.len()) else {
            return false;
        };
        let next = next.saturating_add(1000);
        let (tick, [shortest, longest]) = (self.got_tick, &mut self.bounds);
        let stay = |now| Reflection {
            state,
            got_tick: tick,
            poll_time_limit: false,
            now,
            tick_nsec,
            last_residency_ns: self.last_residency_ns,
        };
        for corner in &mut self.corners {
            corner.reflect(&stay(now));
        }
        shortest.reflect(&stay(now));
        longest.reflect(&stay(next));
        let (earliest, latest, length) = self.selected;
        let reached = |from: u64, to: u64| to.wrapping_sub(from) as i64 >= length;
        reached(latest, now) != reached(earliest, next)
    }
}
