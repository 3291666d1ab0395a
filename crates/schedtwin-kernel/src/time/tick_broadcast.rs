// SPDX-License-Identifier: GPL-2.0-or-later
//! Tick broadcast: who wakes a CPU whose own timer stops in its idle state.
//!
//! In some idle states (`CPUIDLE_FLAG_TIMER_STOP`) the CPU's clock event device has no power. Before it enters one, a CPU hands
//! its next event over to the *broadcast device*, one clock event device for all, and takes it back when it leaves.
//!
//! ```text
//!  cpu4   idle ─ enter: event 8.0 ms over ───── asleep ────────────────┐ IPI at 8.0 ms: its handler
//!  cpu5   idle ─ enter: event 8.0 ms over ───── asleep ──┐ interrupt   │
//!  device          armed for 8.0 ms, to cpu5 ────────────┴ handler ────┘
//! ```
//!
//! * `oneshot`: who has handed over its event. The device is armed for the earliest of these events.
//! * `pending`: who has been sent an IPI because its event is due, and has not left its state yet. It does not arm its own
//!   timer again; the IPI's handler will.
//! * `force`: who has left its state for another reason when its event was already due, before the device's interrupt
//!   was handled. That handler will see to it; until then the CPU does not arm its timer, and it enters no such state.
//!
//! **Whom the device interrupts.** The CPU whose event it was last armed for, if the interrupt can be moved
//! (`CLOCK_EVT_FEAT_DYNIRQ`); else one CPU for ever, which may be woken for the sake of another.
//!
//! **No device.** Then an hrtimer serves as one (`tick-broadcast-hrtimer.c`). The CPU that it is queued on needs its own
//! timer and may not enter such a state: its entry is busy, and it falls back to the deepest state whose timer goes on. The
//! timer moves to the CPU that hands over an earlier event, which then is the one to stay awake.
//!
//! A machine that does not say what device it has is left alone: its CPUs are woken at the same time by their own timers.
//!
//! Kernel: 6.12 kernel/time/tick-broadcast.c `___tick_broadcast_oneshot_control`, `tick_handle_oneshot_broadcast`,
//! kernel/time/tick-broadcast-hrtimer.c, drivers/cpuidle/cpuidle.c `cpuidle_enter_state`; the same in 6.1.
//! Differences: a CPU in `force` that is refused leaves `oneshot` at once (in Linux it stays there with its timer
//! off until it has gone in and out of such a state again); no per-CPU wakeup devices; always one-shot, from the
//! first entry on; what is due by the end of the handler's own cost waits for the next interrupt.

use crate::time::hrtimer::TimerKind;
use crate::{Context, Kernel, Scheduler, Time};
use schedtwin_types::{CpuId, CpuMask, IpiKind, NEVER, Ns};

/// The timer that serves as the broadcast device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastDevice {
    /// A timer outside of the CPUs.
    Timer {
        /// The CPU that it interrupts, at first or always.
        cpu: CpuId,
        /// Whether its interrupt goes where the event it was armed for belongs (`CLOCK_EVT_FEAT_DYNIRQ`).
        moves: bool,
    },
    /// An hrtimer of a CPU that stays out of such states (`CLOCK_EVT_FEAT_HRTIMER`).
    Hrtimer,
}

/// The broadcast device and those who rely on it (`tick_broadcast_device` and its masks).
#[derive(Clone, Debug)]
pub struct TickBroadcast {
    device: BroadcastDevice,
    /// The cost of arming it, in the unit of path costs.
    program_cost: u64,
    /// The time that it is armed for; [`NEVER`]: none.
    next_event: Ns,
    /// The CPU that it interrupts; with an hrtimer, the CPU whose queue that is in (`bound_on`).
    cpu: CpuId,
    oneshot: CpuMask,
    pending: CpuMask,
    force: CpuMask,
}

impl TickBroadcast {
    /// `broadcast_needs_cpu()`: the timer that serves all is this CPU's own.
    fn needs(&self, cpu: CpuId) -> bool {
        self.device == BroadcastDevice::Hrtimer && self.next_event != NEVER && self.cpu == cpu
    }
}

impl Kernel {
    /// The timer that serves as the broadcast device expires on the CPU that keeps it, which keeps its own timer, too.
    pub(crate) fn broadcast_hrtimer(&mut self) {
        let local = self.time.tick_handle_oneshot_broadcast(&mut self.sched, &mut self.cx);
        debug_assert!(!local, "its CPU keeps its own timer");
    }

    /// Registers the broadcast device, before time begins. `program_cost`: what arming it costs, in the unit of path
    /// costs.
    pub fn register_broadcast(&mut self, device: BroadcastDevice, program_cost: u64) {
        let cpu = match device {
            BroadcastDevice::Timer { cpu, .. } => cpu,
            BroadcastDevice::Hrtimer => CpuId(0),
        };
        self.time.broadcast = Some(TickBroadcast {
            device,
            program_cost,
            next_event: NEVER,
            cpu,
            oneshot: CpuMask::EMPTY,
            pending: CpuMask::EMPTY,
            force: CpuMask::EMPTY,
        });
    }

    /// Whether [`Kernel::take_broadcast`] has something to tell.
    #[inline]
    pub fn broadcast_changed(&self) -> bool {
        self.time.broadcast_changed
    }

    /// Returns when the broadcast device is to interrupt ([`NEVER`]: not) and which CPU, as
    /// hardware sees it.
    pub fn take_broadcast(&mut self) -> (Ns, CpuId) {
        self.time.broadcast_changed = false;
        let broadcast = self.time.broadcast.as_ref().expect("only a device changes");
        (broadcast.next_event, broadcast.cpu)
    }
}

impl Time {
    /// `tick_broadcast_enter()`: `cpu`, which executes, is about to stop its timer. `false`: it must not (-EBUSY).
    pub(crate) fn tick_broadcast_enter(
        &mut self,
        cpu: CpuId,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) -> bool {
        let next = self.timers[cpu].armed();
        let Some(broadcast) = &mut self.broadcast else { return true };
        if broadcast.needs(cpu) || broadcast.force.contains(cpu) {
            return false;
        }
        let earlier = next < broadcast.next_event;
        if earlier && broadcast.device == BroadcastDevice::Hrtimer {
            // The timer comes here, so this CPU has to stay out.
            self.tick_broadcast_set_event(cpu, next, sched, cx);
            return false;
        }
        broadcast.oneshot.insert(cpu);
        self.local_timers_off.insert(cpu);
        self.program_clock_event(cpu, cx);
        if earlier {
            self.tick_broadcast_set_event(cpu, next, sched, cx);
        }
        true
    }

    /// `tick_broadcast_exit()`: `cpu`, which executes, has its timer back.
    pub(crate) fn tick_broadcast_exit(&mut self, cpu: CpuId, cx: &mut Context) {
        let next = self.timers[cpu].armed();
        let Some(broadcast) = &mut self.broadcast else { return };
        assert!(broadcast.oneshot.contains(cpu), "{cpu:?} has handed over its event");
        broadcast.oneshot.remove(cpu);
        if broadcast.pending.contains(cpu) {
            broadcast.pending.remove(cpu);
        } else if next <= cx.now {
            broadcast.force.insert(cpu);
        } else {
            self.local_timers_off.remove(cpu);
            self.program_clock_event(cpu, cx);
        }
    }

    /// `tick_broadcast_set_event()`: arms the device for an event of `of`.
    fn tick_broadcast_set_event(
        &mut self,
        of: CpuId,
        at: Ns,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) {
        let this = cx.this_cpu;
        let Some(broadcast) = &mut self.broadcast else { unreachable!("somebody relies on it") };
        broadcast.next_event = at;
        let cost = broadcast.program_cost;
        match broadcast.device {
            BroadcastDevice::Timer { moves, .. } => {
                if moves {
                    broadcast.cpu = of;
                }
                self.broadcast_changed = true;
            }
            BroadcastDevice::Hrtimer => {
                let before = std::mem::replace(&mut broadcast.cpu, this);
                self.hrtimer_cancel(before, TimerKind::Broadcast, cx);
                self.hrtimer_start(this, at, at, TimerKind::Broadcast, cx);
            }
        }
        sched.charge(cost, cx);
    }

    /// `tick_handle_oneshot_broadcast()`: the device has interrupted the executing CPU. Whether that CPU is one of
    /// those whose event is due.
    pub(crate) fn tick_handle_oneshot_broadcast(
        &mut self,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) -> bool {
        let (this, now) = (cx.this_cpu, cx.now);
        let Some(broadcast) = &mut self.broadcast else { unreachable!("it has interrupted") };
        broadcast.next_event = NEVER;
        self.broadcast_changed |= broadcast.device != BroadcastDevice::Hrtimer;
        let mut wake = std::mem::replace(&mut broadcast.force, CpuMask::EMPTY);
        let mut next: Option<(Ns, CpuId)> = None;
        for cpu in broadcast.oneshot.iter() {
            let at = self.timers[cpu].armed();
            if at <= now {
                wake.insert(cpu);
                broadcast.pending.insert(cpu);
            } else if at < next.map_or(NEVER, |(at, _)| at) {
                next = Some((at, cpu));
            }
        }
        let local = wake.contains(this);
        wake.remove(this);
        for cpu in wake.iter() {
            sched.send_ipi_to_awake(cpu, IpiKind::Timer, cx);
        }
        if let Some((at, cpu)) = next {
            self.tick_broadcast_set_event(cpu, at, sched, cx);
        }
        local
    }

    /// Asserts that every CPU without a timer of its own is woken by somebody.
    pub(crate) fn verify_broadcast(&self, _sched: &Scheduler, cx: &Context) {
        let Some(broadcast) = &self.broadcast else {
            assert!(self.local_timers_off.is_empty(), "timers are off without a broadcast device");
            return;
        };
        let TickBroadcast { device, next_event, oneshot, pending, force, .. } = broadcast;
        assert!(pending.and_not(oneshot).is_empty(), "pending without having left its state");
        assert!(!force.intersects(oneshot), "in `force` and in `oneshot`");
        assert!(oneshot.and_not(&self.local_timers_off).is_empty(), "two timers for one event");
        for cpu in self.local_timers_off.iter() {
            let told = cx.platform.wires[cpu].ipi_at[IpiKind::Timer as usize] != NEVER;
            let waits = oneshot.contains(cpu) && !pending.contains(cpu);
            let covered = *next_event <= self.timers[cpu].armed();
            let forced = force.contains(cpu) && *next_event != NEVER;
            assert!(told || forced || (waits && covered), "{cpu:?}: nobody wakes it");
        }
        if *device == BroadcastDevice::Hrtimer {
            for cpu in self.timers.ids() {
                let queued = self.timers[cpu].expires(TimerKind::Broadcast);
                let expected = broadcast.needs(cpu).then_some(*next_event);
                assert_eq!(queued, expected, "{cpu:?}: the timer that serves all");
                assert!(queued.is_none() || !oneshot.contains(cpu), "{cpu:?} is needed");
            }
        }
    }
}
