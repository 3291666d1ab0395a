// SPDX-License-Identifier: GPL-2.0-or-later
//! hrtimers and the tick as a [`Subject`]: the world of `shim.c`, executed with our `time/hrtimer.rs` and
//! `time/tick_sched.rs`.
//!
//! Four CPUs in two pairs, each with its tick, and seven timers: six that go where their CPU's idleness sends them, or
//! are pinned, and in 7.3 one of CPU 1 that is armed lazily (`hrtick`). Handlers of timers forward them, start or cancel
//! another one. CPU 0 has an idle loop: it enters, asks how long it will sleep, stops or keeps its tick, is interrupted, leaves.
//! Compared after each: the programmed clock event of each CPU, each timer's CPU and expiry, each tick, in which order handlers
//! run, and the state of CPU 0's tick.
//!
//! **Not compared here:** timers that another CPU cancels while they are the first there (we arm the clock event anew), timers
//! that expire while handlers run, several clocks, timers that expire in a softirq, low resolution, CPUs that go offline, who
//! updates the jiffies (ours never lag), CPUs without a tick in user space (`nohz_full`), and the wheel (L0 `timer-wheel`), whose
//! answers our code gives to both.

mod mutations;

use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{
    ARGS, OpSpec, Out, Record, Subject, TREE, TREE_6_1, TREE_6_18, TREE_7_3, extract, oracle,
};
use extract::Pieces;
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{
    Config, EevdfForm, FrequencyGovernor, HrtimerRestart, HrtimerTarget, TimerTarget,
};
use schedtwin_kernel::device_tree::DeviceTree;
use schedtwin_kernel::time::conformance::{TickState, TimeSteps};
use schedtwin_kernel::time::hrtimer::{Hrtimer, TimerKind, hrtimer_forward};
use schedtwin_kernel::time::timer::wheel::TimerId;
use schedtwin_types::rng::Rng;
use schedtwin_types::{CpuId, NEVER, Ns};
use std::path::{Path, PathBuf};

// Operation numbers, as in `shim.c`.
const BOOT: usize = 0;
const PASS: usize = 1;
const BUSY: usize = 2;
const START: usize = 3;
const CANCEL: usize = 4;
const SCRIPT: usize = 5;
const INTERRUPT: usize = 6;
const REARM: usize = 7;
const WITHOUT: usize = 8;
const FORWARD: usize = 9;
const TARGET: usize = 10;
const ENTER: usize = 11;
const IRQ_EXIT: usize = 12;
const SLEEP_LENGTH: usize = 13;
const STOP: usize = 14;
const RETAIN: usize = 15;
const EXIT: usize = 16;
const GOT_TICK: usize = 17;
const WHEEL: usize = 18;

const CPUS: u16 = 4;
const CPU_NAMES: [&str; CPUS as usize] = ["c0", "c1", "c2", "c3"];
/// Timers with handlers that the operations choose; the next number is the hrtick of CPU 1.
const TIMERS: usize = 6;
const HRTICK: usize = TIMERS;
const HRTICK_CPU: CpuId = CpuId(1);
const TIMER_NAMES: [&str; TIMERS + 1] = ["t0", "t1", "t2", "t3", "t4", "t5", "hrtick"];
/// Operations of a sequence.
const STEPS: usize = 120;

/// What a handler does, as in `shim.c`.
const DO_NOTHING: u64 = 0;
const DO_FORWARD: u64 = 1;
const DO_START: u64 = 2;
const DO_CANCEL: u64 = 3;

/// Handlers that follow each other, as timer, what it does, and to which: the timer that the interrupt came for goes on, the next one
/// cancels it, so the third takes its place, which the fourth starts again.
const CHAIN: [(u64, u64, Option<u64>); 4] = [
    (0, DO_FORWARD, Some(0)),
    (1, DO_CANCEL, Some(0)),
    (2, DO_NOTHING, Some(0)),
    (3, DO_START, Some(2)),
];

/// The release that is compared.
const V6_1: u8 = 0;
const V6_12: u8 = 1;
const V6_18: u8 = 2;
const V7_3: u8 = 3;

/// hrtimers and the tick of 6.1.
pub type Hrtimers61 = Hrtimers<V6_1>;
/// Those of 6.12.
pub type Hrtimers612 = Hrtimers<V6_12>;
/// Those of 6.18.
pub type Hrtimers618 = Hrtimers<V6_18>;
/// Those of 7.3.
pub type Hrtimers73 = Hrtimers<V7_3>;

/// The handler of a timer.
#[derive(Clone, Copy, Default)]
struct Script {
    what: u64,
    value: u64,
    other: usize,
}

/// A timer of the sequence: its handler, and the CPU where it was last.
#[derive(Clone, Copy)]
struct Slot {
    script: Script,
    last: CpuId,
}

/// Four CPUs and their timers.
pub struct Hrtimers<const RELEASE: u8> {
    kernel: Kernel,
    slots: [Slot; TIMERS + 1],
    wheel: Option<[TimerId; 2]>,
    now: Ns,
    cpu: CpuId,
    /// CPU 0 is to switch.
    need_resched: bool,
    /// The interrupt of this CPU has left its clock event to be armed.
    deferred: bool,
    /// In this sequence most timers expire together, and their handlers are about each other.
    together: bool,
}

fn kind_of(slot: usize) -> TimerKind {
    if slot == HRTICK { TimerKind::Hrtick } else { TimerKind::ScxTimer(slot as u32) }
}

fn slot_of(kind: TimerKind) -> usize {
    match kind {
        TimerKind::ScxTimer(slot) => slot as usize,
        _ => HRTICK,
    }
}

/// The handler of a timer that has expired.
fn expired(
    steps: &mut TimeSteps<'_>,
    slots: &mut [Slot],
    timer: Hrtimer,
    (now, this): (Ns, CpuId),
    out: &mut Out,
) {
    let slot = slot_of(timer.kind);
    out.word("", "expired", 100 + slot as u64);
    let Script { what, value, other } = slots[slot].script;
    let queued = steps.queued(kind_of(other), CPUS);
    match what {
        DO_FORWARD => {
            let next = hrtimer_forward(timer.expires, now, value);
            steps.restart(timer.kind, (next, next));
        }
        DO_START if queued.is_none() && other != slot => {
            let at = now + value;
            slots[other].last = steps.start(kind_of(other), (at, at), Some(slots[other].last));
        }
        DO_CANCEL if queued.is_some_and(|(on, ..)| on == this) => {
            steps.cancel(kind_of(other), this);
        }
        _ => {}
    }
}

impl<const RELEASE: u8> Hrtimers<RELEASE> {
    const DEFERS: bool = RELEASE == V7_3;

    fn config() -> Config {
        let mut config = Config::linux_6_12();
        config.cpufreq = FrequencyGovernor::Performance;
        config.hz = 250;
        config.fair_server_runtime = 0;
        match RELEASE {
            V6_1 => config.timer_migration = TimerTarget::BusyCpu,
            V7_3 => {
                config.eevdf_form = EevdfForm::V7_3;
                config.hrtimer_target = HrtimerTarget::TickRunning;
                config.hrtimer_restart = HrtimerRestart::InPlace;
                config.features.hrtick = true;
            }
            _ => {}
        }
        config
    }

    fn boot() -> Kernel {
        let mut machine = DeviceTree::of_domains(&[(4, 1024, &[(1_000_000, 1000)])]);
        for (number, cpu) in machine.cpus.iter_mut().enumerate() {
            let half = (number / 2) as u16;
            (cpu.package, cpu.llc, cpu.node) = (half, half, half);
        }
        Kernel::boot(machine, Self::config())
    }

    fn steps(&mut self) -> TimeSteps<'_> {
        let mut steps = TimeSteps(&mut self.kernel);
        steps.enter(self.now, self.cpu);
        steps
    }

    /// A view that is only read.
    fn look<T>(&mut self, read: impl FnOnce(&TimeSteps<'_>) -> T) -> T {
        read(&self.steps())
    }

    fn queued(&mut self, slot: usize) -> Option<(CpuId, Ns, Ns)> {
        self.look(|steps| steps.queued(kind_of(slot), CPUS))
    }

    fn tick(&mut self) -> TickState {
        self.look(|steps| steps.tick(CpuId(0)))
    }

    fn start(&mut self, slot: usize, (soft, hard): (Ns, Ns), pinned: bool) {
        let (kind, last) = (kind_of(slot), self.slots[slot].last);
        let is_queued = self.queued(slot).is_some();
        let mut steps = self.steps();
        if slot == HRTICK {
            steps.start_lazily(kind, hard);
        } else if is_queued {
            steps.restart(kind, (soft, hard));
        } else {
            let last = (!pinned).then_some(last);
            self.slots[slot].last = steps.start(kind, (soft, hard), last);
        }
    }

    fn cancel(&mut self, slot: usize) {
        let Some((on, ..)) = self.queued(slot) else { return };
        match slot {
            HRTICK => self.steps().cancel_lazily(kind_of(slot)),
            _ => self.steps().cancel(kind_of(slot), on),
        }
    }

    fn interrupt(&mut self, out: &mut Out) {
        let (mut slots, at) = (self.slots, (self.now, self.cpu));
        self.steps().interrupt(|steps, timer| expired(steps, &mut slots, timer, at, out));
        self.slots = slots;
        self.deferred = Self::DEFERS;
    }

    fn report(&mut self, out: &mut Out) {
        let (cpu, deferred) = (self.cpu, self.deferred);
        let steps = self.steps();
        for (number, name) in CPU_NAMES.into_iter().enumerate() {
            let on = CpuId(number as u16);
            let event = if deferred && on == cpu { 0 } else { steps.clock_event(on) };
            out.word(name, "event", event);
            out.word(name, "tick", steps.tick_expires(on).unwrap_or(0));
        }
        for (slot, name) in TIMER_NAMES.into_iter().enumerate() {
            match steps.queued(kind_of(slot), CPUS) {
                None => out.word(name, "cpu", 0),
                Some((on, soft, hard)) => {
                    out.word(name, "cpu", 1 + u64::from(on.0));
                    out.word(name, "soft", soft);
                    out.word(name, "expires", hard);
                }
            }
        }
        let tick = steps.tick(CpuId(0));
        out.word("", "inidle", tick.inidle.into());
        out.word("", "stopped", tick.stopped.into());
        out.word("", "last_tick", tick.last_tick);
        out.word("", "idle_calls", tick.idle_calls);
        out.word("", "computed", tick.timer_expires.is_some().into());
        out.word("", "timer_expires", tick.timer_expires.unwrap_or(0));
        out.word("", "wheel_idle", tick.wheel_idle.into());
    }

    /// A time from now on, around what is there.
    fn distance(&mut self, rng: &mut Rng) -> u64 {
        let (now, tick_nsec) = (self.now, self.look(|steps| steps.tick_nsec()));
        let near = match rng.below(6) {
            0 => rng.below(1000),
            1 => rng.below(tick_nsec),
            2 => tick_nsec - now % tick_nsec,
            3 => (rng.below(5) * tick_nsec).saturating_sub(now % tick_nsec),
            // The same time as a timer that is there, or near it.
            4 => {
                let slot = rng.below(TIMERS as u64 + 1) as usize;
                self.queued(slot).map_or(0, |(_, _, hard)| hard.saturating_sub(now))
            }
            _ => rng.magnitude(30),
        };
        let near = if near > 1 << 40 { 0 } else { near };
        if rng.one_in(3) { (near + rng.below(3)).saturating_sub(1) } else { near }
    }

    /// The arguments of an operation that asks the wheel, if RCU does not need the tick.
    fn answers(&mut self, stops: bool, rng: &mut Rng) -> [u64; ARGS] {
        let rcu = rng.one_in(8);
        let tick = self.tick();
        let asks = !rcu && (!stops || tick.timer_expires.is_none());
        let migrates = RELEASE != V6_1;
        let has_wheel = self.wheel.is_some();
        let marks = stops && migrates && has_wheel && !tick.stopped;
        let [next, stopping] = self.look(|steps| steps.wheel_answers(asks && has_wheel, marks));
        [rcu.into(), next.next, next.idle.into(), stopping.next, stopping.idle.into(), 0]
    }
}

impl<const RELEASE: u8> Subject for Hrtimers<RELEASE> {
    const NAME: &'static str = match RELEASE {
        V6_1 => "hrtimer-6.1",
        V6_12 => "hrtimer",
        V6_18 => "hrtimer-6.18",
        _ => "hrtimer-7.3",
    };
    const TREE: &'static str = match RELEASE {
        V6_1 => TREE_6_1,
        V6_12 => TREE,
        V6_18 => TREE_6_18,
        _ => TREE_7_3,
    };
    const OPS: &'static [OpSpec] = &[
        OpSpec { name: "boot", args: &["now", "wheel"] },
        OpSpec { name: "pass", args: &["cpu", "time"] },
        OpSpec { name: "busy", args: &["cpu", "busy", "need_resched"] },
        OpSpec { name: "start", args: &["timer", "delay", "slack", "pinned"] },
        OpSpec { name: "cancel", args: &["timer"] },
        OpSpec { name: "script", args: &["timer", "what", "value", "other"] },
        OpSpec { name: "interrupt", args: &[] },
        OpSpec { name: "rearm", args: &[] },
        OpSpec { name: "without-tick", args: &[] },
        OpSpec { name: "forward", args: &["expires", "now", "interval"] },
        OpSpec { name: "target", args: &[] },
        OpSpec { name: "enter", args: &[] },
        OpSpec { name: "irq-exit", args: &[] },
        OpSpec {
            name: "sleep-length",
            args: &["rcu", "next", "idle", "next_stopping", "idle_stopping"],
        },
        OpSpec { name: "stop", args: &["rcu", "next", "idle", "next_stopping", "idle_stopping"] },
        OpSpec { name: "retain", args: &[] },
        OpSpec { name: "exit", args: &[] },
        OpSpec { name: "got-tick", args: &[] },
        OpSpec { name: "wheel", args: &["timer", "armed", "delay"] },
    ];
    const SOURCES: Sources = Sources { modules: &["hrtimer"], kernel: None };
    const MUTATIONS: &'static [Mutation] = match RELEASE {
        V6_1 => mutations::LINUX_6_1,
        V6_12 => mutations::LINUX_6_12,
        V6_18 => &[],
        _ => mutations::LINUX_7_3,
    };
    const GOLDEN_SHOWN: u64 = 2;
    const GOLDEN_CASES: u64 = 6_000;

    fn new() -> Self {
        Hrtimers {
            kernel: Self::boot(),
            slots: std::array::from_fn(|slot| Slot {
                script: Script::default(),
                last: if slot == HRTICK { HRTICK_CPU } else { CpuId(0) },
            }),
            wheel: None,
            now: 0,
            cpu: CpuId(0),
            need_resched: false,
            deferred: false,
            together: false,
        }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let arg = record.args;
        let slot = arg[0] as usize;
        match record.op {
            BOOT => {
                self.now = arg[0];
                self.together = arg[0].is_multiple_of(4);
                self.wheel = (arg[1] != 0).then(|| self.steps().make_wheel());
            }
            PASS => {
                self.now += arg[1];
                self.cpu = CpuId(arg[0] as u16);
            }
            BUSY => {
                let (cpu, busy, need_resched) = (CpuId(arg[0] as u16), arg[1] != 0, arg[2] != 0);
                self.steps().set_busy(cpu, busy, need_resched);
                if cpu == CpuId(0) {
                    self.need_resched = need_resched;
                }
            }
            START => {
                let soft = self.now + arg[1];
                self.start(slot, (soft, soft + arg[2]), arg[3] != 0);
            }
            CANCEL => self.cancel(slot),
            SCRIPT => {
                self.slots[slot].script =
                    Script { what: arg[1], value: arg[2], other: arg[3] as usize };
            }
            INTERRUPT => self.interrupt(out),
            REARM => {
                if Self::DEFERS {
                    self.steps().rearm();
                }
                self.deferred = false;
            }
            WITHOUT => {
                let next = self.look(|steps| steps.next_event_without_tick());
                out.word("", "next", next);
                return;
            }
            FORWARD => {
                out.word("", "expires", hrtimer_forward(arg[0], arg[1], arg[2]));
                return;
            }
            TARGET => {
                let target = self.look(|steps| steps.nohz_timer_target());
                out.word("", "cpu", target.0.into());
                return;
            }
            ENTER => self.steps().idle_enter(),
            IRQ_EXIT => self.steps().irq_exit(),
            SLEEP_LENGTH => {
                let length = self.steps().sleep_length(arg[0] != 0);
                out.word("", "sleep_length", length.sleep_length_ns as u64);
                out.word("", "delta_tick", length.delta_tick_ns as u64);
            }
            STOP => self.steps().stop_tick(arg[0] != 0),
            RETAIN => self.steps().retain_tick(),
            EXIT => self.steps().idle_exit(),
            GOT_TICK => {
                let got = self.steps().got_tick();
                out.word("", "got_tick", got.into());
            }
            WHEEL => {
                let timer = self.wheel.expect("there is a wheel")[slot];
                self.steps().set_wheel_timer(timer, (arg[1] != 0).then_some(arg[2]));
            }
            _ => unreachable!("an operation of the list"),
        }
        self.report(out);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        if step == STEPS {
            return None;
        }
        if step == 0 {
            let now = 4_000_000 + rng.below(8_000_000);
            return Some(Record::new(BOOT, &[now, rng.one_in(2).into()]));
        }
        let tick = self.tick();
        let idles = self.cpu == CpuId(0) && tick.inidle && !self.need_resched;
        if tick.timer_expires.is_some() && !rng.one_in(8) {
            // What was asked for the idle governor is followed by its decision.
            return Some(self.decide(rng));
        }
        let op = match rng.below(32) {
            // An interrupt is over before anything else happens on another CPU.
            0..=5 if self.deferred => REARM,
            0..=5 if tick.timer_expires.is_some() => return Some(self.decide(rng)),
            0..=5 => PASS,
            6..=8 => INTERRUPT,
            9..=13 => START,
            14..=15 => CANCEL,
            16..=17 => SCRIPT,
            18 => BUSY,
            19 => WITHOUT,
            20 => FORWARD,
            21 => TARGET,
            // The clock event is armed before the idle loop goes on.
            _ if self.deferred => REARM,
            22 if self.wheel.is_some() && self.cpu == CpuId(0) => WHEEL,
            _ if self.cpu != CpuId(0) || self.need_resched => INTERRUPT,
            _ if !tick.inidle => ENTER,
            _ if tick.timer_expires.is_some() => return Some(self.decide(rng)),
            23 | 24 if idles => EXIT,
            25 if idles => GOT_TICK,
            26 if idles => IRQ_EXIT,
            27 | 28 if idles => STOP,
            29 if idles => RETAIN,
            _ => SLEEP_LENGTH,
        };
        let mut args = [0; ARGS];
        match op {
            PASS => {
                let cpu = if rng.one_in(2) { 0 } else { rng.below(CPUS.into()) };
                let event = self.look(|steps| steps.clock_event(CpuId(cpu as u16)));
                let ahead = event.saturating_sub(self.now);
                let time = match rng.below(4) {
                    0 => self.distance(rng),
                    _ if event == NEVER || ahead > 1 << 40 => rng.magnitude(24),
                    _ => (ahead + rng.below(3)).saturating_sub(1),
                };
                args[..2].copy_from_slice(&[cpu, time]);
            }
            BUSY => {
                let cpu = rng.below(CPUS.into());
                let resched = cpu == 0 && tick.timer_expires.is_none() && rng.one_in(4);
                args[..3].copy_from_slice(&[cpu, rng.below(2), resched.into()]);
            }
            START => return Some(self.draw_start(rng)),
            CANCEL => return Some(self.draw_cancel(rng)),
            SCRIPT => {
                let (slot, what, other) = match self.together && rng.one_in(2) {
                    true => CHAIN[rng.below(CHAIN.len() as u64) as usize],
                    false => (rng.below(TIMERS as u64), rng.below(4), None),
                };
                // A handler that forwards a timer with slack might not come to an end.
                let slack = self.queued(slot as usize).is_some_and(|(_, soft, hard)| soft != hard);
                let what = if slack && what == DO_FORWARD { DO_NOTHING } else { what };
                let value = 1 + self.distance(rng);
                let other = other.unwrap_or_else(|| rng.below(TIMERS as u64));
                args[..4].copy_from_slice(&[slot, what, value, other]);
            }
            FORWARD => {
                let interval = 1 + rng.magnitude(24);
                let expires = rng.magnitude(40);
                let now = match rng.below(3) {
                    0 => rng.magnitude(40),
                    1 => (expires + rng.below(4) * interval).saturating_sub(rng.below(2)),
                    _ => expires + rng.magnitude(30),
                };
                args[..3].copy_from_slice(&[expires, now, interval]);
            }
            SLEEP_LENGTH => args = self.answers(false, rng),
            STOP => args = self.answers(true, rng),
            WHEEL => {
                let delay = if rng.one_in(2) { rng.below(4) } else { rng.below(200) };
                args[..3].copy_from_slice(&[rng.below(2), (!rng.one_in(4)).into(), delay]);
            }
            _ => {}
        }
        Some(Record { op, args })
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        build(tree, build_dir, flags, RELEASE)
    }
}

impl<const RELEASE: u8> Hrtimers<RELEASE> {
    /// The idle governor's decision.
    fn decide(&mut self, rng: &mut Rng) -> Record {
        match rng.below(4) {
            0 => Record::new(RETAIN, &[]),
            _ => Record { op: STOP, args: self.answers(true, rng) },
        }
    }

    fn draw_start(&mut self, rng: &mut Rng) -> Record {
        let (cpu, mut delay) = (self.cpu, self.distance(rng));
        let at_once = if self.together { !rng.one_in(4) } else { rng.one_in(4) };
        if at_once && let Some(first) = self.look(|steps| steps.first()) {
            // As the earliest one here, so that several expire at the same time.
            delay = first.expires.saturating_sub(self.now).min(1 << 40);
        }
        if RELEASE == V7_3 && cpu == HRTICK_CPU && rng.one_in(2) {
            return Record::new(START, &[HRTICK as u64, delay, 0, 1]);
        }
        let mut slot = rng.below(TIMERS as u64);
        if self.together && rng.one_in(2) {
            let free = (0..TIMERS).find(|slot| self.queued(*slot).is_none());
            slot = free.map_or(slot, |slot| slot as u64);
        }
        let mut pinned = rng.one_in(3);
        match self.queued(slot as usize) {
            // It goes on here, or another operation has to take it out first.
            Some((on, ..)) if on == cpu => pinned = true,
            Some(_) => return Record::new(WITHOUT, &[]),
            None => {}
        }
        let forwards = self.slots[slot as usize].script.what == DO_FORWARD;
        let slack = if forwards || rng.one_in(2) { 0 } else { self.distance(rng) };
        Record::new(START, &[slot, delay, slack, pinned.into()])
    }

    fn draw_cancel(&mut self, rng: &mut Rng) -> Record {
        if RELEASE == V7_3 && self.cpu == HRTICK_CPU && rng.one_in(2) {
            return Record::new(CANCEL, &[HRTICK as u64]);
        }
        let cpu = self.cpu;
        // The earliest one here, or any.
        let slot = match self.look(|steps| steps.first()).map(|timer| timer.kind) {
            Some(TimerKind::ScxTimer(first)) if rng.one_in(2) => first.into(),
            _ => rng.below(TIMERS as u64),
        };
        match self.queued(slot as usize) {
            Some((on, ..)) if on != cpu => Record::new(WITHOUT, &[]),
            _ => Record::new(CANCEL, &[slot]),
        }
    }
}

fn build(tree: &Path, build_dir: &Path, flags: &[&str], release: u8) -> Result<PathBuf, String> {
    let headers: String = ["hrtimer_types.h", "hrtimer_defs.h", "hrtimer_bases.h", "hrtimer.h"]
        .iter()
        .filter_map(|name| extract::read(tree, &format!("include/linux/{name}")).ok())
        .collect();
    let hrtimer = extract::read(tree, "kernel/time/hrtimer.c")?;
    let tick = extract::read(tree, "kernel/time/tick-sched.c")?;
    let tick_header = extract::read(tree, "kernel/time/tick-sched.h")?;
    let timer = extract::read(tree, "kernel/time/timer.c")?;
    let core = extract::read(tree, "kernel/sched/core.c")?;

    let mut types = Pieces::default();
    let macros = ["HRTIMER_STATE_INACTIVE", "HRTIMER_STATE_ENQUEUED"];
    let defined = format!("{headers}{hrtimer}");
    types.add(extract::macro_definition, &defined, &macros)?;
    types.add(extract::block, &headers, &["enum hrtimer_mode", "enum hrtimer_restart"])?;
    types.add_if_there(
        extract::block,
        &headers,
        &["enum  hrtimer_base_type", "enum hrtimer_base_type"],
    );
    let structs = ["struct hrtimer", "struct hrtimer_clock_base", "struct hrtimer_cpu_base"];
    types.add(with_attributes, &headers, &structs)?;
    let flags_of_tick = [
        "TS_FLAG_INIDLE",
        "TS_FLAG_STOPPED",
        "TS_FLAG_IDLE_ACTIVE",
        "TS_FLAG_DO_TIMER_LAST",
        "TS_FLAG_NOHZ",
        "TS_FLAG_HIGHRES",
    ];
    types.add_if_there(extract::macro_definition, &tick_header, &flags_of_tick);
    types.add_if_there(extract::block, &tick_header, &["enum tick_nohz_mode"]);
    types.add(with_attributes, &tick_header, &["struct tick_sched"])?;
    let accessors = [
        "hrtimer_set_expires",
        "hrtimer_set_expires_range_ns",
        "hrtimer_add_expires",
        "hrtimer_add_expires_ns",
        "hrtimer_get_expires",
        "hrtimer_get_softexpires",
    ];
    types.add(extract::function, &headers, &accessors)?;
    let some = ["hrtimer_get_expires_tv64", "hrtimer_get_softexpires_tv64"];
    types.add_if_there(extract::function, &headers, &some);
    types.add(extract::function, &headers, &["hrtimer_callback_running"])?;
    types.write(build_dir, "hrtimer_types_extract.h")?;

    let mut code = Pieces::default();
    code.add(extract::function, &headers, &["hrtimer_start"])?;
    code.add_if_there(extract::function, &headers, &["hrtimer_start_expires"]);
    code.add(extract::function, &core, &["get_nohz_timer_target"])?;
    queues(&mut code, &hrtimer)?;
    stopping(&mut code, &tick, &timer)?;

    let linux = build_dir.join("linux");
    let failed = |error: std::io::Error| format!("write {}: {error}", linux.display());
    std::fs::create_dir_all(&linux).map_err(failed)?;
    std::fs::write(linux.join("bug.h"), "").map_err(failed)?;
    for header in ["timerqueue.h", "timerqueue_types.h"] {
        // Up to 6.2 there is one.
        let text = extract::read(tree, &format!("include/linux/{header}")).unwrap_or_default();
        std::fs::write(linux.join(header), text).map_err(failed)?;
    }
    let form = match release {
        V6_1 => "-DKERNEL_6_1",
        V7_3 => "-DKERNEL_7_3",
        _ => "-DKERNEL_6_12",
    };
    let flags: Vec<&str> = flags.iter().copied().chain([form]).collect();
    let names = ("hrtimer", "hrtimer");
    oracle::compile_with_rbtree(tree, build_dir, &flags, names, code.text_so_far())
}

/// What is taken of `hrtimer.c`.
fn queues(code: &mut Pieces, hrtimer: &str) -> Result<(), String> {
    code.add_if_there(extract::function, hrtimer, &["__next_base"]);
    code.add(extract::macro_definition, hrtimer, &["for_each_active_base"])?;
    code.add_if_there(extract::macro_definition, hrtimer, &["hrtimer_from_timerqueue_node"]);
    code.text("enum { HRTIMER_REPROGRAM_NONE, HRTIMER_REPROGRAM, HRTIMER_REPROGRAM_FORCE };\n");
    let some = [
        "hrtimer_bases_next_event_without",
        "clock_base_next_timer",
        "hrtimer_bases_first",
        "__hrtimer_next_event_base",
    ];
    code.add(extract::function, hrtimer, &["hrtimer_base_is_online"])?;
    code.add(extract::function, hrtimer, &["hrtimer_suitable_target", "get_target_base"])?;
    code.add(extract::function, hrtimer, &["switch_hrtimer_base"])?;
    code.add_if_there(extract::function, hrtimer, &some);
    code.add(extract::function, hrtimer, &["__hrtimer_get_next_event"])?;
    code.add(extract::function, hrtimer, &["hrtimer_update_next_event", "hrtimer_hres_active"])?;
    code.add_if_there(extract::function, hrtimer, &["hrtimer_rearm_event"]);
    let reprogram = ["__hrtimer_reprogram", "hrtimer_force_reprogram", "hrtimer_reprogram"];
    code.add(extract::function, hrtimer, &reprogram)?;
    code.add(extract::function, hrtimer, &["hrtimer_forward", "enqueue_hrtimer"])?;
    code.add_if_there(extract::function, hrtimer, &["base_update_next_timer"]);
    code.add(extract::function, hrtimer, &["__remove_hrtimer", "remove_hrtimer"])?;
    let in_place = [
        "hrtimer_can_update_in_place",
        "remove_and_enqueue_same_base",
        "hrtimer_prefer_local",
        "hrtimer_keep_base",
    ];
    code.add(extract::function, hrtimer, &["hrtimer_update_lowres"])?;
    code.add_if_there(extract::function, hrtimer, &in_place);
    code.add(extract::function, hrtimer, &["__hrtimer_start_range_ns"])?;
    code.add_if_there(extract::function, hrtimer, &["hrtimer_start_range_ns_common"]);
    let start = ["hrtimer_start_range_ns", "hrtimer_active", "hrtimer_try_to_cancel"];
    code.add(extract::function, hrtimer, &start)?;
    code.add(extract::function, hrtimer, &["hrtimer_next_event_without"])?;
    code.add(extract::function, hrtimer, &["__run_hrtimer", "__hrtimer_run_queues"])?;
    let deferred = ["hrtimer_rearm", "__hrtimer_rearm_deferred", "hrtimer_interrupt_rearm"];
    code.add_if_there(extract::function, hrtimer, &deferred);
    code.add(extract::function, hrtimer, &["hrtimer_interrupt"])
}

/// What is taken of `tick-sched.c`, and of `timer.c` between.
fn stopping(code: &mut Pieces, tick: &str, timer: &str) -> Result<(), String> {
    let flags = ["tick_sched_flag_test", "tick_sched_flag_set", "tick_sched_flag_clear"];
    code.add_if_there(extract::function, tick, &flags);
    code.add(extract::macro_definition, tick, &["MAX_STALLED_JIFFIES"])?;
    code.add_if_there(extract::function, tick, &["tick_limited_update_jiffies64"]);
    code.add(extract::function, tick, &["tick_sched_do_timer", "tick_sched_handle"])?;
    let handlers = ["tick_sched_timer", "tick_sched_timer_cancel"];
    code.add_if_there(extract::function, tick, &handlers);
    // Before 6.9 this is the handler of low resolution.
    let handler = extract::function(tick, "tick_nohz_handler");
    code.text(&handler.filter(|text| text.contains("struct hrtimer")).unwrap_or_default());
    code.add_if_there(extract::function, tick, &["tick_nohz_start_idle", "tick_forward_now"]);
    code.add(extract::function, tick, &["tick_nohz_restart", "local_timer_softirq_pending"])?;
    code.add_if_there(extract::function, tick, &["get_jiffies_update"]);
    code.add_if_there(extract::function, timer, &["timer_base_try_to_set_idle"]);
    code.add(extract::function, tick, &["tick_nohz_next_event", "tick_nohz_stop_tick"])?;
    code.add(extract::function, tick, &["tick_nohz_retain_tick", "tick_nohz_restart_sched_tick"])?;
    code.add(extract::function, tick, &["can_stop_idle_tick"])?;
    code.add_if_there(extract::function, tick, &["__tick_nohz_idle_stop_tick"]);
    code.add(extract::function, tick, &["tick_nohz_idle_stop_tick"])?;
    let clock = ["tick_nohz_clock_sleep", "tick_nohz_clock_wakeup"];
    code.add_if_there(extract::function, tick, &clock);
    let idle = [
        "tick_nohz_idle_retain_tick",
        "tick_nohz_idle_enter",
        "tick_nohz_irq_exit",
        "tick_nohz_idle_got_tick",
        "tick_nohz_get_sleep_length",
        "tick_nohz_idle_update_tick",
        "tick_nohz_idle_exit",
    ];
    code.add(extract::function, tick, &idle)
}

/// A struct whose last line may have attributes.
fn with_attributes(source: &str, head: &str) -> Option<String> {
    let begin = source.find(&format!("\n{head} {{\n"))? + 1;
    let end = begin + source[begin..].find("\n}")?;
    Some(format!("{}\n}};\n", &source[begin..end]))
}
