// SPDX-License-Identifier: GPL-2.0-or-later
//! The functions behind interrupts, timers and kernel threads: one table each.
//!
//! A new kind of one of them is a line in its table and the function that the line names, in the module of the
//! subsystem that it belongs to.

use crate::Kernel;
use crate::sched::TaskKind;
use crate::system::SourceId;
use crate::time::hrtimer::{Hrtimer, TimerKind};
use crate::time::timer::TimerFunction;
use crate::work::workqueue::WorkStruct;
use schedtwin_types::{CpuId, IrqLine, IrqLines, Ns, WakeSource};

/// A function that serves an interrupt of the CPU.
type IrqHandler = fn(&mut Kernel, CpuId);

/// Handlers of interrupts, in the order in which lines that came together are served. Lines that are not here
/// expire timers, which is done first.
const IRQ_HANDLERS: [(IrqLine, IrqHandler); 5] = [
    (IrqLine::WakeList, Kernel::flush_call_functions),
    (IrqLine::NohzKick, |kernel, cpu| kernel.sched.nohz_csd_func(cpu)),
    (IrqLine::IrqWork, Kernel::irq_work_run),
    (IrqLine::CpufreqDriver, |kernel, _| kernel.sugov_driver_interrupt()),
    (IrqLine::Peripheral, |kernel, _| kernel.wake_for_peripherals()),
];

impl Kernel {
    /// Does what interrupts of these lines are sent for, but for timers.
    pub(crate) fn handle_ipis(&mut self, cpu: CpuId, lines: IrqLines) {
        for (line, handler) in IRQ_HANDLERS {
            if lines.contains(line) {
                handler(self, cpu);
            }
        }
    }

    /// Expires timers, if one of these lines tells the CPU to: its own clock event, the broadcast IPI, or the broadcast
    /// device if it is this CPU's event as well.
    pub(crate) fn handle_clock_events(&mut self, lines: IrqLines) {
        if lines.contains(IrqLine::ClockEvent) || lines.contains(IrqLine::TimerBroadcast) {
            self.hrtimer_interrupt();
        }
        if lines.contains(IrqLine::BroadcastDevice)
            && self.time.tick_handle_oneshot_broadcast(&mut self.sched, &mut self.cx)
        {
            self.hrtimer_interrupt();
        }
    }

    /// Runs the function of an expired timer (`timer->function`).
    #[inline(always)]
    pub(crate) fn run_hrtimer(&mut self, cpu: CpuId, timer: Hrtimer) {
        match timer.kind {
            TimerKind::SchedTick => self.tick_nohz_handler(cpu, timer.expires),
            TimerKind::Sleeper(task) => self.hrtimer_wakeup(task),
            TimerKind::FairServer(server) => self.fair_server_timer(server, timer.expires),
            TimerKind::FairServerInactive(server) => self.fair_server_inactive_timer(server),
            TimerKind::DlTask(task) => self.dl_task_timer(task),
            TimerKind::DlInactive(task) => self.inactive_task_timer(task),
            TimerKind::RtPeriod => self.sched_rt_period_timer(timer.expires),
            TimerKind::CfsPeriod(group) => self.sched_cfs_period_timer(group, timer.expires),
            TimerKind::CfsSlack(group) => self.sched_cfs_slack_timer(group),
            TimerKind::Hrtick => self.hrtick(cpu),
            TimerKind::Broadcast => self.broadcast_hrtimer(),
            TimerKind::ScxTimer(index) => self.scx_timer(index),
            TimerKind::ScxWatchdog => self.scx_watchdog(timer.expires),
            TimerKind::ScxLife => self.scx_life(),
            TimerKind::Source(source) => self.source_hrtimer(source, timer.expires),
        }
    }

    /// Runs the function of a timer of the wheel (`call_timer_fn`).
    pub(crate) fn run_timer(&mut self, function: TimerFunction) {
        match function {
            TimerFunction::ProcessTimeout(task) => {
                self.wake_up_kthread(task, WakeSource::Timer);
            }
            TimerFunction::Source(source) => self.source_fires(source),
            TimerFunction::DelayedWork(work) => self.delayed_work_timer_fn(work),
            TimerFunction::MixInterruptRandomness(cpu) => self.mix_interrupt_randomness(cpu),
        }
    }

    /// The running kworker begins a work (`worker->current_func`): the work may be queued again from here on.
    pub(crate) fn work_starts(&mut self, work: WorkStruct) {
        match work {
            WorkStruct::Source(source) => self.source_starts(source),
            WorkStruct::VmstatShepherd => self.vmstat_shepherd(),
            WorkStruct::VmstatUpdate(cpu) => self.vmstat_update(cpu),
            WorkStruct::CrngReseed => self.crng_reseed(),
        }
    }

    /// It has done it.
    pub(crate) fn work_done(&mut self, work: WorkStruct) {
        match work {
            WorkStruct::Source(source) => self.source_done(source),
            WorkStruct::VmstatShepherd => self.vmstat_shepherd_done(),
            WorkStruct::VmstatUpdate(cpu) => self.vmstat_update_done(cpu),
            WorkStruct::CrngReseed => {}
        }
    }

    /// Runs the function of the current kernel thread. Returns until when it spins, waiting for hardware; 0: it does not.
    pub(crate) fn run_kthread(&mut self, cpu: CpuId) -> Ns {
        match self.sched.task(self.sched.rq(cpu).curr).kind {
            TaskKind::Stopper { .. } => self.cpu_stopper_thread(),
            TaskKind::Kworker { worker, .. } => self.worker_thread(worker.into()),
            TaskKind::Source { source, .. } => self.source_thread(SourceId(source)),
            TaskKind::Rcu { thread } => self.rcu_thread(thread),
            TaskKind::Ksoftirqd { .. } => self.run_ksoftirqd(),
            TaskKind::ExtProgram => self.scx_program(),
            TaskKind::Sugov { policy } => return self.sugov_kthread_worker(policy),
            kind @ (TaskKind::Swapper | TaskKind::User) => panic!("{kind:?} is no kernel thread"),
        }
        0
    }

    /// `generic_smp_call_function_single_interrupt()`: what other CPUs have left for this one.
    fn flush_call_functions(&mut self, cpu: CpuId) {
        self.cfsb_csd_unthrottle(cpu);
        self.sched.hrtick_csd(cpu, &mut self.time, &mut self.cx);
        self.sched_ttwu_pending(cpu);
        self.block_csd(cpu);
    }

    /// The handlers of the workload's devices: each wakes the tasks that wait for its device.
    fn wake_for_peripherals(&mut self) {
        for at in 0..self.cx.platform.peripheral_wakes.len() {
            let futex = self.cx.platform.peripheral_wakes[at];
            self.futex_wake(futex, 1, WakeSource::Kernel);
        }
        self.cx.platform.peripheral_wakes.clear();
        self.handle_source_interrupts();
        self.handle_block_interrupts();
    }
}
