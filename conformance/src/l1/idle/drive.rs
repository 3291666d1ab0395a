// SPDX-License-Identifier: GPL-2.0-or-later
//! Drives a governor with what the kernel's was told, CPU by CPU, and compares the choices.
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
//! Where the governor did not ask the timers (menu and 7.3's teo, after very short sleeps) there is no `sleep` line; the
//! selection is then made at the entry, and a governor that does ask is wrong.
//!
//! **Time.** teo compares one difference of clock readings with the sleep length: did the timer wake
//! the CPU? The readings are not printed, but each lies between two lines of its CPU: the selection's
//! between the line before `sleep` and `sleep` itself, the reflection's between `reflect` and the line
//! after it. So three are driven: with the shortest and the longest difference that these allow, and
//! the one that is judged, with the difference of the two lines. A wrong choice is put down to time only
//! if the shortest or the longest gives the right one.
//!
//! **The beginning.** What teo has counted before the recording begins is unknown. But its decisions
//! compare linear sums of the counters with each other, and the sum of all counters is never more than
//! 8 pulses, so the possible pasts are a simplex. teo is driven from each of its corners; as long as
//! the corners disagree, a choice depends on the untold past and is not judged. After some fifty
//! wakeups nothing is left of it.
//!
//! menu's choices rise with its factors, so two corners bound them: all factors 0, all 1. Of the eight
//! intervals nothing is known until all have been replaced, and nothing is judged before.

use std::collections::BTreeMap;

use schedtwin_kernel::config::{Config, MenuForm, TeoForm};
use schedtwin_kernel::cpuidle::CpuIdle;
use schedtwin_kernel::cpuidle::governor::Governor;
use schedtwin_kernel::cpuidle::menu::{DECADES, INTERVALS, MenuCpu};
use schedtwin_kernel::cpuidle::states::{IdleStateParams, Reflection, SelectInput, SleepLength};
use schedtwin_kernel::cpuidle::teo::v6_12::{TeoBin, TeoCpu};
use schedtwin_kernel::cpuidle::teo::{DECAY_SHIFT, PULSE, v7_3};

use super::wheel::Wheel;
use crate::ftrace::{Event, Record, Trace};
use crate::l1::machine::Machine;
use crate::l1::mechanism::{Difference, Table, Unknown, What};

/// No limit (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`, 2000 s): nobody on the board asks for one.
const LATENCY_REQ_NS: i64 = 2_000_000_000_000;
/// Where the counters' sum ends: what a pulse adds is what the decay takes.
const SUM_MAX: u32 = PULSE << DECAY_SHIFT;
/// Where menu's product of sleep length and factor wraps, ns: choices do not rise with factors there.
const MENU_WRAPS_NS: i64 = 1 << 51;
/// Misses that are kept per recording.
const MISSES_KEPT: usize = 1000;

/// A choice: state, and whether the tick may stop.
type Choice = (u8, bool);

/// A selection whose outcome has not been printed yet.
#[derive(Clone, Debug)]
struct Pending {
    judged: Choice,
    /// All possible pasts between the corners would choose as they do.
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
    /// The tick's state is known: the CPU has left its idle loop in view.
    started: bool,
    tick_stopped: bool,
    /// It has selected since it came, and not been told to leave.
    in_loop: bool,
    got_tick: bool,
    last_residency_ns: u64,
    /// From each corner of the possible pasts; the first, which knows nothing, is judged.
    corners: Vec<Governor>,
    /// With the shortest and the longest times.
    bounds: [Governor; 2],
    pending: Option<Pending>,
    /// Time and sleep length of the last selection: earliest and latest time, ns.
    selected: (u64, u64, i64),
    /// Time of this CPU's last line, ns.
    last_line_ns: u64,
    /// Of the present stay: its end has been printed, and a miss: the state, and whether too shallow.
    stay_ended: bool,
    miss: Option<(u32, bool)>,
    /// The part of the kernel that judges stays.
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

/// The corners of all pasts of a CPU with that many states; the first knows nothing. `None` if nobody here
/// knows the governor.
pub fn corners(kernel: &Config, governor: &str, states: usize) -> Option<Vec<Governor>> {
    match (governor, kernel.teo, kernel.menu) {
        ("teo", TeoForm::V6_12, _) => {
            Some(teo_corners(states).into_iter().map(Governor::Teo).collect())
        }
        ("teo", TeoForm::V7_3, _) => {
            Some(teo_7_3_corners(states).into_iter().map(Governor::TeoTimers).collect())
        }
        ("menu", _, MenuForm::V6_12) => Some(menu_corners().map(Governor::Menu).to_vec()),
        ("menu", _, MenuForm::V7_3) => Some(menu_corners().map(Governor::MenuOutliers).to_vec()),
        _ => None,
    }
}

/// Returns the corners of the sums. The values beside the bins are bounded as their sum is, each by
/// itself; an intercept within a tick is one of the bins', too.
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
    // Intervals that no sleep ever has tell replaced ones from others: see `bounded`.
    [
        MenuCpu { intervals: [u32::MAX - 1; INTERVALS], ..MenuCpu::default() },
        MenuCpu { correction_factor: [0; 2 * DECADES], ..MenuCpu::default() },
    ]
}

/// Drives one recording.
pub struct IdleDrive<'a> {
    machine: &'a Machine,
    /// The kernel of ours.
    kernel: Config,
    /// The rows of the governor: its states, its ticks.
    what: [What; 2],
    cpus: BTreeMap<usize, Cpu>,
    wheel: Wheel,
    table: Table,
    /// Judged choices as recorded, per row and CPU: the commonest one is the trivial answer.
    recorded: BTreeMap<(What, usize), BTreeMap<u8, u64>>,
    /// Wakeups near which the stamps leave open whether the timer had come.
    pub time_open: u64,
    /// The event of stays that were too short or too long has been switched on; that of stays was before it.
    misses_told: bool,
    /// The first misses, as text.
    pub misses: Vec<String>,
}

impl<'a> IdleDrive<'a> {
    /// Nothing driven yet.
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
            misses_told: false,
            misses: Vec::new(),
        }
    }

    /// Learns what the recording tells too late: the wheel timers that were pending at its beginning.
    pub fn read_ahead(&mut self, trace: &mut Trace) -> std::io::Result<()> {
        self.wheel = Wheel::read(trace)?;
        Ok(())
    }

    /// The counts, with the trivial answers: each CPU's commonest choice.
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
        // A tick that was held up until the switch comes before the loop is entered, and is not told.
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
                cpu.tick_stopped = true;
                if let Some(pending) = &mut cpu.pending {
                    pending.tick_stops = true;
                }
            }
            Event::CpuIdle { state, .. } if state >= 0 => {
                let may_not_ask = machine.governor == "menu" || kernel.teo == TeoForm::V7_3;
                if cpu.pending.is_none() && cpu.started && may_not_ask {
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
                // Forgotten at the end of each round; and a tick that stood starts again when the
                // loop is left, also if the scheduler then picks the idle task once more.
                cpu.got_tick = false;
                if r.need_resched {
                    cpu.in_loop = false;
                    cpu.tick_stopped = false;
                }
            }
            Event::SchedSwitch { prev_pid: 0, .. } => {
                cpu.started = true;
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
            // A CPU not yet seen to leave idle sleeps with its tick stopped.
            let mut others = self.cpus.iter().filter(|(cpu, _)| **cpu != r.cpu);
            let last = others.all(|(_, cpu)| cpu.tick_stopped || !cpu.started);
            let tick_nsec = self.machine.tick_nsec as u64;
            // Where the timers answered with more than the next clock event, no wheel timer is due.
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

    /// Counts one choice; why it is not ours, if it is not.
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
        // Who chose the commonest is only known at the end.
        (!row.count(ours == recorded, false, || why)).then_some(why)
    }
}

impl Cpu {
    /// A selection; `sleep`: what the timers said, if they were asked.
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

    /// Whether what all corners choose is what every possible past would.
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

    /// Returns the judgement of the stay that ended, recorded and by us: the state, and whether it
    /// was too shallow, if it
    /// was not right. `None` if its end was not in view.
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

    /// Whether the stamps leave open if the timer had come.
    fn reflect(&mut self, state: i32, res: i64, (now, next): (u64, u64), tick_nsec: i64) -> bool {
        self.last_residency_ns = u64::try_from(res).unwrap_or(0);
        // Negative: no state was entered, and the governor is not told.
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
