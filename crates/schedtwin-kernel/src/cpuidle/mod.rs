// SPDX-License-Identifier: GPL-2.0-or-later
//! `drivers/cpuidle/` and the idle loop of `kernel/sched/idle.c`.
//!
//! ```text
//! schedule → idle ── idle_enter ── governor.select ── stop or keep the tick ── state
//!                        ▲                                                      │ interrupt
//!                        └── nothing to run ── governor.reflect ◄── idle_exit ──┘
//!                                                    └── something to run ── schedule
//! ```
//!
//! **Too deep, too shallow** (`above`, `below`; trace event `cpu_idle_miss`): a stay shorter than the
//! state's target residency is too deep if a shallower state was enabled; a stay that, less the exit
//! latency, reached the residency of the next deeper enabled state is too shallow.
//!
//! **Refused entries** (`rejected`): a stay of length 0, which is neither a miss nor told the governor.
//!
//! **Latency constraint** (PM QoS): the stricter of the one for all CPUs and the CPU's own.
//!
//! **Polling** is in [`poll_state`].
//!
//! Kernel: 6.12.95 kernel/sched/idle.c `do_idle`, drivers/cpuidle/cpuidle.c `cpuidle_enter_state`; the same
//! in 6.1.
//! Differences: a CPU that is woken on the way into a state enters it, not -EBUSY: the entry is atomic, and
//! the wakeup's interrupt ends the stay at once; constraints and disabled states are set at boot and stay. Where governors answer a state that does not
//! exist (teo's utilisation awareness as posted with all states disabled, haltpoll with one state), Linux
//! crashes; here it is state 0.

pub mod governor;
pub mod haltpoll;
pub mod ladder;
pub mod menu;
pub mod poll_state;
pub mod states;
pub mod teo;

use crate::config::SingleIdleState;
use crate::time::tick_sched::TickSched;
use crate::{Activity, Context, Kernel};
use governor::Governor;
use schedtwin_types::arena::Arena;
use schedtwin_types::{CpuId, Decision, FactKind, IdleInput, IdleRule, IrqLines, Ns, TaskId};
use states::{IdleStateParams, Reflection, SelectInput};

/// Idle loops and governors.
#[derive(Clone)]
pub struct Cpuidle {
    /// Idle governor and idle loop, per CPU.
    cpus: Arena<CpuId, CpuIdle>,
}

impl Cpuidle {
    /// The idle loops of CPUs that have just booted.
    pub(crate) fn new(cpus: Arena<CpuId, CpuIdle>) -> Cpuidle {
        Cpuidle { cpus }
    }

    /// The idle loop of a CPU.
    #[inline(always)]
    pub(crate) fn cpu(&self, cpu: CpuId) -> &CpuIdle {
        &self.cpus[cpu]
    }

    /// As [`Cpuidle::cpu`], for its tick and its wakees.
    #[inline(always)]
    pub(crate) fn cpu_mut(&mut self, cpu: CpuId) -> &mut CpuIdle {
        &mut self.cpus[cpu]
    }
}

crate::inside::opened!(Cpuidle { cpus: Arena<CpuId, CpuIdle>, });

/// Idle state of a CPU: governor, tick, accounting (`struct cpuidle_device` and `struct tick_sched`).
#[derive(Clone, Debug)]
pub struct CpuIdle {
    /// The tick.
    pub tick: TickSched,
    /// The parameters of the states, as cpuidle knows them.
    pub states: Vec<IdleStateParams>,
    /// The governor that chooses, and its memory.
    pub governor: Governor,
    /// The state entered, while in it (`rq->idle_state`).
    pub entered: Option<u8>,
    /// When.
    pub entered_at: Ns,
    /// `dev->last_residency_ns`.
    pub last_residency_ns: u64,
    /// Longest exit latency that is allowed (`cpuidle_governor_latency_req`).
    pub latency_req_ns: i64,
    /// How long to poll (`dev->poll_limit_ns`); 0: not computed yet.
    poll_limit_ns: Ns,
    /// Calls that came while polling, for which no interrupt was sent (`call_single_queue`).
    pending_calls: IrqLines,
    /// Per state: whether the CPU watches `need_resched` in it asleep; none is like all false.
    pub monitors: Vec<bool>,
    /// Per state: whether the CPU's timer stops in it (`CPUIDLE_FLAG_TIMER_STOP`); none is like all false.
    pub timer_stop: Vec<bool>,
    /// `broadcast` of `cpuidle_enter_state()`: during this stay the broadcast device keeps the CPU's event. Not so in a state
    /// whose timer stops if the device was refused and no other state is left.
    broadcast: bool,
    /// Entries that silicon has refused (`states_usage[].rejected`, of all states together).
    pub rejected: u64,
    /// A stay that the governor has not been told about.
    reflect_pending: Option<u8>,
    /// The tick came in the last round of this idle period, and no governor heard of it (`got_tick` of `do_idle()`).
    got_tick: bool,
    /// Since when the idle task runs; meaningless while another does.
    pub(crate) idle_since: Ns,
    /// How long it ran before.
    pub(crate) idle_time: Ns,
    /// The tasks that the CPU's idle task has woken, from interrupts.
    pub wakees: Wakees,
}

/// The wake-wide heuristic's memory of a waker, as in `Task`; every CPU has an idle task of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakees {
    /// The task that it woke last.
    pub last_wakee: TaskId,
    /// How often that changed.
    pub wakee_flips: u32,
    /// Jiffies of the last decay.
    pub wakee_flip_decay_ts: u64,
}

impl CpuIdle {
    /// A CPU that has never been idle.
    pub fn new(states: Vec<IdleStateParams>, governor: Governor, latency_req_ns: i64) -> CpuIdle {
        CpuIdle {
            tick: TickSched::default(),
            states,
            governor,
            entered: None,
            entered_at: 0,
            last_residency_ns: 0,
            latency_req_ns,
            poll_limit_ns: 0,
            pending_calls: IrqLines::default(),
            monitors: Vec::new(),
            timer_stop: Vec::new(),
            broadcast: false,
            rejected: 0,
            reflect_pending: None,
            got_tick: false,
            idle_since: 0,
            idle_time: 0,
            wakees: Wakees { last_wakee: TaskId::IDLE, ..Wakees::default() },
        }
    }

    /// Whether the CPU's timer stops in `state`.
    #[inline]
    fn timer_stops(&self, state: u8) -> bool {
        self.timer_stop.get(usize::from(state)) == Some(&true)
    }

    /// `find_deepest_state()`: where a CPU goes that may not enter `state`, because its timer has to go on: the enabled
    /// state with the longest exit latency up to that of `state`; else state 0.
    fn deepest_with_timer(&self, state: u8) -> u8 {
        let most = self.states[usize::from(state)].exit_latency_ns;
        let mut deepest = (0, 0);
        for (index, other) in self.states.iter().enumerate().skip(1) {
            let latency = other.exit_latency_ns;
            if !other.disabled
                && !self.timer_stops(index as u8)
                && latency > deepest.0
                && latency <= most
            {
                deepest = (latency, index as u8);
            }
        }
        deepest.1
    }

    /// Returns what `cpu_idle_miss` says of the last stay, which was in `state`: `Some(true)` too
    /// shallow,
    /// `Some(false)` too deep.
    pub fn miss(&self, state: u8) -> Option<bool> {
        let entered = &self.states[state as usize];
        let residency = self.last_residency_ns;
        if residency < entered.target_residency_ns {
            let shallower = self.states[..state as usize].iter().any(|s| !s.disabled);
            return shallower.then_some(false);
        }
        let delay = entered.exit_latency_ns;
        if residency <= delay {
            return None;
        }
        let deeper = self.states[state as usize + 1..].iter().find(|s| !s.disabled)?;
        (residency - delay >= deeper.target_residency_ns).then_some(true)
    }
}

impl Kernel {
    /// `do_idle()` until the CPU sleeps: the executing CPU runs its idle task and has paid its debt.
    pub(crate) fn do_idle(&mut self) {
        let cpu = self.cx.this_cpu;
        if !self.cpuidle.cpus[cpu].tick.inidle {
            self.cpuidle.cpus[cpu].got_tick = false;
            self.nohz_run_idle_balance(cpu);
            self.cpuidle.tick_nohz_idle_enter(cpu, &self.cx);
        }
        if self.sched.rq(cpu).need_resched {
            self.leave_idle(cpu);
            return;
        }
        let tick_first = self.cx.config.bugs.tick_stopped_first;
        if tick_first {
            self.tick_nohz_idle_stop_tick(cpu, self.rcu.needs_cpu(cpu));
        }
        let (state, stop_tick) = self.cpuidle_select(cpu);
        if tick_first {
            // The governor's question is not for the tick.
            self.cpuidle.cpus[cpu].tick.timer_expires = None;
        } else if stop_tick || self.cpuidle.cpus[cpu].tick.tick_stopped {
            self.tick_nohz_idle_stop_tick(cpu, self.rcu.needs_cpu(cpu));
        } else {
            self.tick_nohz_idle_retain_tick(cpu);
        }
        let tick_stopped = self.cpuidle.cpus[cpu].tick.tick_stopped;
        let mut state = state;
        let stops = self.cpuidle.cpus[cpu].timer_stops(state);
        let broadcast = stops && self.time.tick_broadcast_enter(cpu, &mut self.sched, &mut self.cx);
        if stops && !broadcast {
            state = self.cpuidle.cpus[cpu].deepest_with_timer(state);
        }
        let at = self.cx.local_clock();
        let idle = &mut self.cpuidle.cpus[cpu];
        idle.broadcast = broadcast;
        idle.entered = Some(state);
        idle.entered_at = at;
        self.cx.fact(FactKind::IdleEnter { state, tick_stopped });
        let idle = &mut self.cpuidle.cpus[cpu];
        self.cx.platform.wires[cpu].activity = if idle.states[state as usize].polling {
            Activity::Poll { until: at + idle.poll_time(self.cx.tick_nsec, &self.cx.config.bugs) }
        } else {
            Activity::Idle { state }
        };
        if self.cpufreq.reads_counters()
            && self.cx.platform.wires[cpu].activity == (Activity::Idle { state })
        {
            self.cpufreq.counter_works(cpu, at, false);
        }
    }

    /// Asks the governor (`cpuidle_select`), if there is a choice. Else the tick goes on until it has come once.
    fn cpuidle_select(&mut self, cpu: CpuId) -> (u8, bool) {
        if !self.cpuidle.has_choice(cpu, &self.cx) {
            let stop_tick = self.cpuidle.cpus[cpu].got_tick;
            if self.cx.wants_decisions() {
                let rule = IdleRule::OnlyState;
                self.cx.record(Decision::Idle {
                    state: 0,
                    stop_tick,
                    sleep_length_ns: None,
                    rule,
                    tick_rule: None,
                    input: IdleInput::default(),
                });
            }
            return (0, stop_tick);
        }
        let now = self.cx.local_clock();
        let needs_tick = self.rcu.needs_cpu(cpu);
        let reads_util = self.cpuidle.cpus[cpu].governor.reads_util();
        let cpu_util = if reads_util { self.sched.sched_cpu_util(cpu, &self.cx) } else { 0 };
        let nr_iowaiters = self.sched.rq(cpu).nr_iowait;
        let CpuIdle { governor, states, last_residency_ns, latency_req_ns, tick, .. } =
            &mut self.cpuidle.cpus[cpu];
        let input = SelectInput {
            states,
            latency_req_ns: *latency_req_ns,
            // A governor that cannot keep the tick does not know of it.
            tick_stopped: tick.tick_stopped && !self.cx.config.bugs.tick_stopped_first,
            tick_nsec: self.cx.tick_nsec as i64,
            now,
            last_residency_ns: *last_residency_ns,
            nr_iowaiters,
            cpu_util,
        };
        let (time, cx) = (&mut self.time, &self.cx);
        let mut timers = || time.tick_nohz_get_sleep_length(cpu, tick, needs_tick, cx);
        let of_machine = self.own.machine_idle_mut();
        let choice = governor.select_on(cpu, of_machine, &input, &mut timers);
        let governor::Choice { state, stop_tick, sleep_length_ns, rule, tick_rule } = choice;
        if self.cx.wants_decisions() {
            let input = self.cpuidle.cpus[cpu].governor.looked_at(cpu_util);
            self.cx.record(Decision::Idle {
                state,
                stop_tick,
                sleep_length_ns,
                rule,
                tick_rule,
                input,
            });
        }
        // No such state: see above.
        let state =
            if usize::from(state) < self.cpuidle.cpus[cpu].states.len() { state } else { 0 };
        (state, stop_tick)
    }

    /// The CPU is awake again after `cpuidle_enter_state()`.
    pub(crate) fn cpuidle_exit(&mut self) {
        let cpu = self.cx.this_cpu;
        let now = self.cx.local_clock();
        let idle = &mut self.cpuidle.cpus[cpu];
        let state = idle.entered.take().expect("an idle CPU has entered a state");
        idle.last_residency_ns = now - idle.entered_at;
        idle.reflect_pending = Some(state);
        let residency_ns = idle.last_residency_ns;
        let miss = idle.miss(state);
        if self.cpufreq.reads_counters() {
            self.cpufreq.counter_works(cpu, now, true);
        }
        let idle = &mut self.cpuidle.cpus[cpu];
        if std::mem::take(&mut idle.broadcast) {
            self.time.tick_broadcast_exit(cpu, &mut self.cx);
        }
        self.cx.fact(FactKind::IdleExit { state, residency_ns });
        if let Some(below) = miss {
            self.cx.fact(FactKind::IdleMiss { state, below });
        }
    }

    /// `cpuidle_enter_state()` has failed: as if the CPU had not tried.
    pub(crate) fn cpuidle_refused(&mut self) {
        let idle = &mut self.cpuidle.cpus[self.cx.this_cpu];
        let state = idle.entered.take().expect("a refused CPU has asked for a state");
        idle.last_residency_ns = 0;
        idle.rejected += 1;
        if self.cpufreq.reads_counters() {
            let now = self.cx.local_clock();
            self.cpufreq.counter_works(self.cx.this_cpu, now, true);
        }
        let idle = &mut self.cpuidle.cpus[self.cx.this_cpu];
        if std::mem::take(&mut idle.broadcast) {
            self.time.tick_broadcast_exit(self.cx.this_cpu, &mut self.cx);
        }
        self.cx.fact(FactKind::IdleExit { state, residency_ns: 0 });
    }

    /// After an interrupt in idle: tell the governor, then leave or go round again.
    pub(crate) fn idle_after_interrupt(&mut self) {
        let cpu = self.cx.this_cpu;
        let resched = self.sched.rq(cpu).need_resched;
        if !resched {
            self.cpuidle.tick_nohz_irq_exit(cpu, &self.cx);
        }
        if matches!(self.cx.platform.wires[cpu].activity, Activity::Poll { .. }) {
            if !resched {
                // An interrupt alone does not end the loop that it came into.
                return;
            }
            self.cpuidle_exit();
        }
        self.idle_round_ends(cpu, false);
    }

    /// The polling state's loop is over: its time is up, unless there is something to do.
    pub(crate) fn idle_after_poll(&mut self) {
        let cpu = self.cx.this_cpu;
        let poll_time_limit = !self.sched.rq(cpu).need_resched;
        self.cpuidle_exit();
        self.idle_round_ends(cpu, poll_time_limit);
    }

    /// The state in which the CPU watched the flag is over: it has been written.
    pub(crate) fn idle_after_write(&mut self) {
        self.idle_round_ends(self.cx.this_cpu, false);
    }

    /// A round of the idle loop ends: the governor hears of the stay, if there was one, and then the loop is
    /// left or goes round again.
    fn idle_round_ends(&mut self, cpu: CpuId, poll_time_limit: bool) {
        // tick_nohz_idle_got_tick(): a tick is forgotten at the end of each round, whether the governor
        // heard of it or not.
        let got_tick = std::mem::take(&mut self.cpuidle.cpus[cpu].tick.got_idle_tick);
        let has_choice = self.cpuidle.has_choice(cpu, &self.cx);
        self.cpuidle.cpus[cpu].got_tick = got_tick && !has_choice;
        if let Some(state) = self.cpuidle.cpus[cpu].reflect_pending.take()
            && has_choice
        {
            let now = self.cx.local_clock();
            let tick_nsec = self.cx.tick_nsec as i64;
            let CpuIdle { governor, last_residency_ns, .. } = &mut self.cpuidle.cpus[cpu];
            let stay = Reflection {
                state: state as usize,
                got_tick,
                poll_time_limit,
                now,
                tick_nsec,
                last_residency_ns: *last_residency_ns,
            };
            governor.reflect_on(cpu, self.own.machine_idle_mut(), &stay);
        }
        if self.sched.rq(cpu).need_resched {
            self.leave_idle(cpu);
        } else {
            let cost = self.cx.platform.device_tree.path_costs.idle_enter;
            self.sched.charge(cost, &mut self.cx);
            self.cx.platform.wires[cpu].activity = Activity::IdleLoop;
        }
    }

    /// The idle loop ends.
    fn leave_idle(&mut self, cpu: CpuId) {
        let cost = self.cx.platform.device_tree.path_costs.idle_exit;
        self.sched.charge(cost, &mut self.cx);
        if self.cpuidle.cpus[cpu].tick.inidle {
            self.time.tick_nohz_idle_exit(cpu, &mut self.cpuidle, &mut self.cx);
        }
        self.flush_smp_call_function_queue(cpu);
        self.schedule(false);
        if self.sched.rq(cpu).curr.is_idle() {
            // The task was taken away again before this CPU got to it.
            self.cx.platform.wires[cpu].activity = Activity::IdleLoop;
        }
    }
}

impl Cpuidle {
    /// Whether the governor is asked, and told of stays (`cpuidle_idle_call`).
    pub(crate) fn has_choice(&self, cpu: CpuId, cx: &Context) -> bool {
        match cx.config.single_idle_state {
            SingleIdleState::Governor => true,
            SingleIdleState::Skipped => self.cpus[cpu].states.len() > 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_deep_and_too_shallow() {
        let state = |exit_us: u64, residency_us: u64| IdleStateParams {
            exit_latency_ns: exit_us * 1000,
            target_residency_ns: residency_us * 1000,
            polling: false,
            disabled: false,
        };
        let states = vec![state(1, 1), state(455, 3500), state(500, 9000)];
        let mut idle = CpuIdle::new(states, Governor::Shallow, i64::MAX);
        let (deep, shallow) = (Some(false), Some(true));
        for (state, us, miss) in [
            (1, 3000, deep),
            (1, 3600, None),
            (0, 3600, shallow),
            (0, 3500, None),
            (1, 9454, None),
            (1, 9455, shallow),
            (2, 8999, deep),
            (2, 99_999, None),
        ] {
            idle.last_residency_ns = us * 1000;
            assert_eq!(idle.miss(state), miss, "{us} us in state {state}");
        }
        // Only enabled states count: nothing shallower, and the next deeper one is the last.
        idle.states[0].disabled = true;
        idle.last_residency_ns = 3_000_000;
        assert_eq!(idle.miss(1), None);
        idle.states[1].disabled = true;
        idle.last_residency_ns = 5_000_000;
        assert_eq!(idle.miss(0), None);
    }
}
