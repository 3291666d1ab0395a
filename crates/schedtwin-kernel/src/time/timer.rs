// SPDX-License-Identifier: GPL-2.0-or-later
//! Timers of the wheel: who arms them where, and how they expire.
//!
//! ```text
//!  mod_timer ── base of a CPU ── tick: due? ── TIMER softirq ── handler
//!                   └── next event: the tick stops until then; the idle governor's sleep length
//! ```
//!
//! **Which CPU.** A pinned timer stays on the CPU that arms it or that `add_timer_on()` names. Others: up to 6.8 the
//! nearest busy CPU if this one is idle (`get_nohz_timer_target`), since 6.9 always this one, whose timers another CPU expires while
//! it is idle ([`super::timer_migration`]). A timer that its own handler arms again stays in its base.
//!
//! **Jiffies** count from boot in the rest of the kernel. Here they begin five minutes before their 32 bits are full, as in Linux,
//! because that decides where buckets and whole seconds begin.
//!
//! | file | content |
//! |---|---|
//! | `wheel.rs` | buckets, next expiry, expiry |
//! | `bases.rs` | the bases of a CPU, and what they tell the tick |
//!
//! Kernel: 6.12.95 kernel/time/timer.c `__mod_timer`, `add_timer_on`, `trigger_dyntick_cpu`, `run_timer_softirq`; 6.1.192
//! `get_target_base`.
//! Differences: all CPUs are housekeeping CPUs. The wheel exists only where something uses it.

pub mod bases;
pub mod wheel;

use super::timer_migration::TimerMigration;
use crate::config::TimerTarget;
use crate::system::SourceId;
use crate::work::workqueue::WorkStruct;
use crate::{Context, Kernel, Time};
use bases::{Armed, CpuBases, DEF, GLOBAL, LOCAL, NEVER, TmigrCall, mod_timer};
use schedtwin_types::{CpuId, TaskId};
use wheel::{TimerId, Timers, lvl_depth, round_jiffies_common};

/// The function of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerFunction {
    /// `process_timeout`: the end of a task's `schedule_timeout()`.
    ProcessTimeout(TaskId),
    /// A timer of the system's description.
    Source(SourceId),
    /// `delayed_work_timer_fn`: a work is due, on the queue of the CPU that says so.
    DelayedWork(WorkStruct),
    /// `mix_interrupt_randomness` of a CPU.
    MixInterruptRandomness(CpuId),
}

/// The kind of a timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerFlags {
    /// `TIMER_DEFERRABLE`: it wakes no CPU.
    pub deferrable: bool,
    /// `TIMER_PINNED`: it stays on its CPU.
    pub pinned: bool,
}

/// A timer's function, and the base that it is in, or was.
#[derive(Clone, Copy, Debug)]
struct Setup {
    function: TimerFunction,
    flags: TimerFlags,
    cpu: CpuId,
    base: usize,
}

/// The timers of all CPUs.
#[derive(Clone, Debug)]
pub struct TimerWheel {
    /// `INITIAL_JIFFIES`: those at boot.
    initial: u64,
    cpus: Vec<CpuBases>,
    timers: Timers,
    setups: Vec<Setup>,
    /// Who expires the global timers of idle CPUs; with a hierarchy only.
    migration: Option<TimerMigration>,
    /// The timer whose handler runs (`running_timer`).
    running: Option<TimerId>,
}

/// `INITIAL_JIFFIES`, 32 bits of which wrap around five minutes after boot, and the one that has passed when the clock begins (the
/// board's recordings).
pub(crate) fn initial_jiffies(hz: u64) -> u64 {
    (1 << 32) - 300 * hz + 1
}

impl TimerWheel {
    /// Empty bases.
    fn new(initial: u64, cx: &Context) -> TimerWheel {
        let hierarchy = cx.has_timer_hierarchy();
        let tree = cx.device_tree();
        let bases = || CpuBases::new(lvl_depth(cx.hz()), initial + cx.jiffies(), hierarchy);
        let nodes: Vec<usize> = tree.cpus.iter().map(|cpu| cpu.node.into()).collect();
        TimerWheel {
            initial,
            cpus: nodes.iter().map(|_| bases()).collect(),
            timers: Timers::default(),
            setups: Vec::new(),
            // A single CPU has none (tmigr_init).
            migration: (hierarchy && nodes.len() > 1).then(|| TimerMigration::new(&nodes)),
            running: None,
        }
    }

    /// `jiffies`, as Linux counts them.
    #[inline]
    fn jiffies(&self, cx: &Context) -> u64 {
        self.initial + cx.jiffies()
    }

    fn base_of(&self, flags: TimerFlags) -> usize {
        match (flags.deferrable, flags.pinned || !self.cpus[0].has_global()) {
            (true, _) => DEF,
            (false, true) => LOCAL,
            (false, false) => GLOBAL,
        }
    }

    /// Whether a tick of the CPU has to raise the softirq (`run_local_timers`).
    #[inline]
    fn is_due(&self, cpu: CpuId, jiffies: u64) -> bool {
        self.cpus[cpu.index()].is_due(jiffies)
            || self.migration.as_ref().is_some_and(|all| all.requires_handle_remote(cpu, jiffies))
    }

    /// The jiffy of the CPU's next event ([`NEVER`]: none), and whether the bases are marked idle. `stops`: the tick is about to
    /// be stopped.
    fn next_event(&mut self, cpu: CpuId, basej: u64, stops: bool) -> u64 {
        let bases = &mut self.cpus[cpu.index()];
        if !bases.has_global() {
            return bases.next_standard(basej);
        }
        let migration = &mut self.migration;
        let next = bases.next_migrating(basej, stops, |call, global| match migration {
            None => global,
            Some(all) => match call {
                TmigrCall::NewTimer => all.cpu_new_timer(cpu, global),
                TmigrCall::Deactivate => all.cpu_deactivate(cpu, global),
                TmigrCall::QuickCheck => all.quick_check(cpu, global),
            },
        });
        if let Some(all) = migration
            && next.reactivate
        {
            all.cpu_activate(cpu);
        }
        next.expires
    }

    /// `timer_clear_idle()`.
    fn clear_idle(&mut self, cpu: CpuId) {
        let bases = &mut self.cpus[cpu.index()];
        let was_idle = bases.is_idle();
        bases.clear_idle();
        if let Some(all) = &mut self.migration
            && was_idle
        {
            all.cpu_activate(cpu);
        }
    }
}

impl Time {
    /// Makes the wheel, whose jiffies are `initial` at boot, before its first timer.
    pub(crate) fn init_timers(&mut self, initial: u64, cx: &Context) {
        self.wheel.get_or_insert_with(|| Box::new(TimerWheel::new(initial, cx)));
    }

    /// From now on the rest of the kernel counts so many jiffies more, and pending timers are as far away as before.
    pub(crate) fn keep_timers_from(&mut self, jiffies: u64) {
        if let Some(wheel) = &mut self.wheel {
            wheel.initial -= jiffies;
        }
    }

    /// `timer_setup()`.
    pub(crate) fn timer_setup(&mut self, function: TimerFunction, flags: TimerFlags) -> TimerId {
        let wheel = self.wheel.as_mut().expect("the wheel is made before its timers");
        let base = wheel.base_of(flags);
        wheel.setups.push(Setup { function, flags, cpu: CpuId(0), base });
        wheel.timers.add()
    }

    /// `timer_pending()`.
    pub(crate) fn timer_pending(&self, timer: TimerId) -> bool {
        self.wheel.as_ref().is_some_and(|wheel| wheel.timers.is_pending(timer))
    }

    /// `timer_delete()`: whether it was pending.
    pub(crate) fn timer_delete(&mut self, timer: TimerId) -> bool {
        let wheel = self.wheel.as_mut().expect("a timer is in the wheel");
        let Setup { cpu, base, .. } = wheel.setups[timer.0 as usize];
        wheel.cpus[cpu.index()].bases[base].detach(timer, &mut wheel.timers)
    }

    /// Whether a tick of `cpu` has to raise the TIMER softirq (`run_local_timers`).
    #[inline]
    pub(crate) fn timers_are_due(&self, cpu: CpuId, cx: &Context) -> bool {
        self.wheel.as_ref().is_some_and(|wheel| wheel.is_due(cpu, wheel.jiffies(cx)))
    }

    /// `get_next_timer_interrupt()`, or with `stops` `timer_base_try_to_set_idle()`: the jiffy of the next event.
    #[inline]
    pub(crate) fn next_timer_event(&mut self, cpu: CpuId, basej: u64, stops: bool) -> u64 {
        let Some(wheel) = &mut self.wheel else { return NEVER };
        match wheel.next_event(cpu, wheel.initial + basej, stops) {
            NEVER => NEVER,
            expires => expires - wheel.initial,
        }
    }

    /// Whether the bases of a CPU are marked idle; `None`: there are none.
    pub(crate) fn timer_base_is_idle(&self, cpu: CpuId) -> Option<bool> {
        self.wheel.as_ref().map(|wheel| wheel.cpus[cpu.index()].is_idle())
    }

    /// `timer_clear_idle()`.
    #[inline]
    pub(crate) fn timer_clear_idle(&mut self, cpu: CpuId) {
        if let Some(wheel) = &mut self.wheel {
            wheel.clear_idle(cpu);
        }
    }

    /// Asserts what holds between entries.
    pub(crate) fn verify_timers(&self, tick_stopped: impl Fn(CpuId) -> bool) {
        let Some(wheel) = &self.wheel else { return };
        assert!(wheel.running.is_none(), "no handler runs between entries");
        if let Some(all) = &wheel.migration {
            all.verify(|cpu| wheel.cpus[cpu.index()].is_idle());
        }
        for (index, bases) in wheel.cpus.iter().enumerate() {
            let cpu = CpuId(index as u16);
            if bases.has_global() {
                assert_eq!(bases.is_idle(), tick_stopped(cpu), "{cpu:?}: bases and tick");
            }
        }
    }
}

impl Kernel {
    /// `mod_timer()` by the executing CPU: `expires` is a jiffy.
    pub(crate) fn mod_timer(&mut self, timer: TimerId, expires: u64) {
        let this = self.cx.this_cpu;
        let wheel = self.time.wheel.as_ref().expect("a timer is in the wheel");
        let Setup { flags, cpu, .. } = wheel.setups[timer.0 as usize];
        let to = if wheel.running == Some(timer) {
            cpu
        } else if flags.pinned || wheel.cpus[0].has_global() {
            this
        } else {
            self.sched.nohz_timer_target(this)
        };
        self.arm_timer(timer, expires, to);
    }

    /// `add_timer_on()`.
    pub(crate) fn add_timer_on(&mut self, timer: TimerId, expires: u64, cpu: CpuId) {
        self.arm_timer(timer, expires, cpu);
    }

    /// Arms a timer on `to`, and wakes that CPU if it sleeps beyond it (`trigger_dyntick_cpu`).
    fn arm_timer(&mut self, timer: TimerId, expires: u64, to: CpuId) {
        let wheel = self.time.wheel.as_mut().expect("a timer is in the wheel");
        let (jiffies, expires) = (wheel.jiffies(&self.cx), wheel.initial + expires);
        let Setup { flags, cpu, base, .. } = wheel.setups[timer.0 as usize];
        let to_base = wheel.base_of(flags);
        let places = ((cpu.index(), base), (to.index(), to_base));
        let TimerWheel { cpus, timers, .. } = &mut **wheel;
        let Armed { moved, first } = mod_timer(cpus, places, (timer, expires), jiffies, timers);
        if moved {
            let setup = &mut wheel.setups[timer.0 as usize];
            (setup.cpu, setup.base) = (to, to_base);
        }
        let sleeps = to_base == LOCAL && wheel.cpus[to.index()].is_idle();
        if first && sleeps && to != self.cx.this_cpu {
            // wake_up_nohz_cpu(): a round through the idle loop.
            self.sched.resched_curr(to, &mut self.cpuidle, &mut self.cx);
        }
    }

    /// `round_jiffies_relative()` of a delay, as seen by `cpu`: a jiffy.
    pub(crate) fn round_jiffies_after(&self, delay: u64, cpu: CpuId) -> u64 {
        let (initial, now) = (initial_jiffies(self.cx.hz()), self.cx.jiffies());
        let (jiffies, cpu) = (initial + now, cpu.index() as u64);
        round_jiffies_common(jiffies + delay, cpu, false, jiffies, self.cx.hz()) - initial
    }

    /// `run_timer_softirq()`.
    pub(crate) fn run_timer_softirq(&mut self, cpu: CpuId) {
        for base in [LOCAL, GLOBAL, DEF] {
            self.run_timer_base(cpu, base);
        }
        self.tmigr_handle_remote(cpu);
    }

    /// `__run_timer_base()`: on the executing CPU, whose base it need not be.
    fn run_timer_base(&mut self, cpu: CpuId, base: usize) {
        loop {
            let wheel = self.time.wheel.as_mut().expect("a softirq comes from a timer");
            let jiffies = wheel.jiffies(&self.cx);
            let of = &mut wheel.cpus[cpu.index()].bases[base];
            let Some(timer) = of.expire_next(jiffies, &mut wheel.timers) else { break };
            wheel.running = Some(timer);
            let function = wheel.setups[timer.0 as usize].function;
            let cost = self.cx.platform.device_tree.path_costs.hrtimer;
            self.sched.charge(cost, &mut self.cx);
            self.run_timer(function);
            self.time.wheel.as_mut().expect("it stays").running = None;
        }
    }

    /// `tmigr_handle_remote()`: expires the due global timers of idle CPUs.
    fn tmigr_handle_remote(&mut self, this: CpuId) {
        let wheel = self.time.wheel.as_ref().expect("a softirq comes from a timer");
        let jiffies = wheel.jiffies(&self.cx);
        let all = |kernel: &mut Kernel, f: &mut dyn FnMut(&mut TimerMigration)| {
            let wheel = kernel.time.wheel.as_mut().expect("a softirq comes from a timer");
            wheel.migration.as_mut().map(f).is_some()
        };
        let mut walk = None;
        let there = all(self, &mut |all| {
            walk = all.handles_remote(this).then(|| all.remote_walk(this));
        });
        let Some(mut walk) = walk.filter(|_| there) else { return };
        loop {
            let mut next = None;
            let mut due = false;
            all(self, &mut |all| {
                next = all.next_remote(&mut walk, jiffies);
                due = next.is_some_and(|cpu| all.remote_begins(cpu, jiffies));
            });
            let Some(cpu) = next else { break };
            if !due {
                continue;
            }
            self.run_timer_base(cpu, GLOBAL);
            let wheel = self.time.wheel.as_mut().expect("it stays");
            let (_, events) = wheel.cpus[cpu.index()].fetch_next_timer_interrupt(jiffies);
            all(self, &mut |all| all.remote_ends(cpu, events.global));
        }
        all(self, &mut |all| all.remote_walk_ends(this, walk));
    }
}

impl Context {
    /// Whether another CPU expires the timers of an idle one; else asking for the next event marks bases idle.
    pub(crate) fn has_timer_hierarchy(&self) -> bool {
        self.config.timer_migration == TimerTarget::Hierarchy
    }

    /// Ticks per second.
    pub(crate) fn hz(&self) -> u64 {
        self.config.hz.into()
    }
}
