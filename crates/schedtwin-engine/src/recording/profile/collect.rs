// SPDX-License-Identifier: GPL-2.0-or-later
//! Events become runs: of whom, on which CPU, how much work, within the handler of which interrupt.

use super::{Collector, Cpu, Key, Kind, WORK_MARK, keep};
use schedtwin_trace::event::{EventTask, Left, Names, TraceEvent, TraceEventKind};
use schedtwin_types::Ns;

/// After an interrupt's handler its thread is woken within this.
const THREAD_WAKE_NS: Ns = 50_000;

/// Beginnings of names of kernel threads whose runs are background.
const KERNEL_THREADS: [&str; 19] = [
    "kworker/",
    "kcompactd",
    "kswapd",
    "khugepaged",
    "ksmd",
    "kdamond",
    "jbd2/",
    "irq/",
    "kauditd",
    "oom_reaper",
    "psimon",
    "hwrng",
    "card",
    "ext4-",
    "f2fs_",
    "xfs",
    "loop",
    "nvme",
    "scsi",
];

/// Beginnings of names of threads that mechanisms of the kernel make by themselves.
const OF_MECHANISMS: [&str; 6] =
    ["ksoftirqd/", "migration/", "sugov:", "cpuhp/", "swapper", "idle_inject"];

/// Functions of timers that belong to what else is modelled: ticks, sleeps, bandwidth, servers, delayed works, threads.
const OF_KERNEL: [&str; 17] = [
    "tick_nohz_handler",
    "tick_sched_timer",
    "tick",
    "hrtimer_wakeup",
    "hrtick",
    "dl_task_timer",
    "inactive_task_timer",
    "sched_rt_period_timer",
    "sched_cfs_period_timer",
    "sched_cfs_slack_timer",
    "delayed_work_timer_fn",
    "process_timeout",
    "it_real_fn",
    "timerfd_tmrproc",
    "posix_timer_fn",
    "idle_worker_timeout",
    "bc_handler",
];

/// Names of interrupts that are no devices: timers, and those of other CPUs.
const NO_DEVICES: [&str; 9] = [
    "timer",
    "reschedule",
    "wake_list",
    "nohz_kick",
    "irq_work",
    "cpufreq",
    "timer_broadcast",
    "broadcast_device",
    "none",
];

/// The device among the names of an interrupt, if there is one.
fn device_of(handler: &str) -> Option<String> {
    if handler.contains("arch_timer")
        || handler.contains("arch_mem_timer")
        || handler.starts_with("IPI")
    {
        return None;
    }
    let mut parts = handler.split('+').filter(|part| !NO_DEVICES.contains(part));
    parts.next().map(str::to_string)
}

/// A thread's name without the number of its CPU, and whether it had one.
fn base_of(name: &str) -> (String, bool) {
    match name.rsplit_once('/') {
        Some((base, cpu)) if !cpu.is_empty() && cpu.chars().all(|c| c.is_ascii_digit()) => {
            (base.to_string(), true)
        }
        _ => (name.to_string(), false),
    }
}

/// The queue of a kworker, by its name.
fn queue_of(name: &str) -> Kind {
    let rest = name.strip_prefix("kworker/").unwrap_or(name);
    let high = rest.split(['-', '+']).next().is_some_and(|id| id.ends_with('H'));
    match (rest.starts_with('u'), high) {
        (true, _) => Kind::UnboundWork,
        (false, true) => Kind::HighWork,
        (false, false) => Kind::Work,
    }
}

impl Collector<'_> {
    pub(super) fn event(&mut self, event: &TraceEvent, names: &Names) {
        let (at, cpu) = (event.at, event.cpu.index());
        self.begin.get_or_insert(at);
        self.end = self.end.max(at);
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, Cpu::default());
        }
        let symbols = self.symbols;
        let text = |name| symbols.name(names.text(name)).to_string();
        match event.kind {
            TraceEventKind::Frequency { cpu, khz } => {
                if let Some(of) = self.cpus.get_mut(cpu.index()) {
                    of.khz = khz;
                }
            }
            TraceEventKind::Waking { task, .. } | TraceEventKind::Wakeup { task, .. } => {
                self.wakes(at, cpu, task, names);
            }
            TraceEventKind::Switch { prev, left, next } => {
                self.switch(at, cpu, prev, left, next, names);
            }
            TraceEventKind::IrqEntry { handler, .. } => {
                let device = device_of(names.text(handler));
                self.cpus[cpu].irq = device.map(|device| (device, at));
            }
            TraceEventKind::IrqExit { .. } => {
                if let Some((device, since)) = self.cpus[cpu].irq.take() {
                    self.cpus[cpu].handled = Some((device.clone(), at));
                    self.ran((Kind::Interrupt, device), since, at, cpu);
                }
            }
            TraceEventKind::HrtimerExpire { function, .. } => {
                self.cpus[cpu].hrtimer = Some((text(function), at));
            }
            TraceEventKind::HrtimerDone { .. } => {
                if let Some((function, since)) = self.cpus[cpu].hrtimer.take() {
                    self.timer_ran(Kind::Hrtimer, function, since, at, cpu);
                }
            }
            TraceEventKind::TimerExpire { function, .. } => {
                self.cpus[cpu].timer = Some((text(function), at));
            }
            TraceEventKind::TimerDone { .. } => {
                if let Some((function, since)) = self.cpus[cpu].timer.take() {
                    self.timer_ran(Kind::Timer, function, since, at, cpu);
                }
            }
            TraceEventKind::SoftirqEntry { vector } => {
                self.cpus[cpu].softirq = Some((vector, at));
            }
            TraceEventKind::SoftirqExit { .. } => {
                const RCU: u8 = 9;
                if let Some((RCU, since)) = self.cpus[cpu].softirq.take() {
                    let work = at.saturating_sub(since) as f64 * self.speed(cpu);
                    keep(&mut self.rcu_softirq, work);
                }
            }
            TraceEventKind::WorkStart { function, work } => {
                self.work_starts(at, cpu, format!("{}{WORK_MARK}{work:x}", text(function)));
            }
            TraceEventKind::WorkEnd { .. } => self.work_ends(at, cpu),
            TraceEventKind::Lost { .. } | TraceEventKind::Begins => {
                let khz = self.cpus[cpu].khz;
                self.cpus[cpu] = Cpu { khz, ..Cpu::default() };
            }
            _ => {}
        }
    }

    /// Work that a CPU does in a ns, at most 1.
    fn speed(&self, cpu: usize) -> f64 {
        let Some(of) = self.machine.and_then(|machine| machine.cpus.get(cpu)) else { return 1.0 };
        let highest = self.machine.map_or(0, |m| m.domains[of.domain].max_khz());
        let khz = self.cpus[cpu].khz;
        let frequency = if khz == 0 { 1.0 } else { f64::from(khz) / f64::from(highest.max(1)) };
        f64::from(of.capacity) / 1024.0 * frequency.min(1.0)
    }

    fn timer_ran(&mut self, kind: Kind, function: String, since: Ns, at: Ns, cpu: usize) {
        if !OF_KERNEL.contains(&function.as_str()) {
            self.ran((kind, function), since, at, cpu);
        }
    }

    /// A run that nothing preempts.
    fn ran(&mut self, key: Key, since: Ns, at: Ns, cpu: usize) {
        let work = at.saturating_sub(since) as f64 * self.speed(cpu);
        let of = self.found.entry(key).or_default();
        of.begins(since, cpu);
        keep(&mut of.runs, work);
    }

    fn wakes(&mut self, at: Ns, cpu: usize, task: EventTask, names: &Names) {
        let Cpu { irq, handled, .. } = &self.cpus[cpu];
        let is_thread_of_irq = names.text(task.comm).starts_with("irq/");
        let handled = handled
            .as_ref()
            .filter(|(_, ended)| is_thread_of_irq && at.saturating_sub(*ended) < THREAD_WAKE_NS);
        let inside = irq.as_ref().or(handled).map(|(device, _)| device.clone());
        let of = self.threads.entry(task.pid).or_default();
        names.text(task.comm).clone_into(&mut of.name);
        of.prio = task.prio;
        if !of.awake {
            of.woken_in = of.woken_in.take().or(inside);
        }
    }

    fn switch(
        &mut self,
        at: Ns,
        cpu: usize,
        prev: Option<EventTask>,
        left: Left,
        next: EventTask,
        names: &Names,
    ) {
        self.count_time(at, cpu);
        if let Some(prev) = prev.filter(|prev| prev.pid != 0) {
            names.text(prev.comm).clone_into(&mut self.threads.entry(prev.pid).or_default().name);
            if left.sleeps() || left == Left::Dead {
                self.run_ends(prev.pid);
            }
        }
        self.cpus[cpu].running = next.pid;
        self.cpus[cpu].since = Some(at);
        if next.pid == 0 {
            return;
        }
        let of = self.threads.entry(next.pid).or_default();
        names.text(next.comm).clone_into(&mut of.name);
        of.prio = next.prio;
        if !std::mem::replace(&mut of.awake, true) {
            self.run_begins(at, cpu, next.pid);
        }
    }

    /// Counts the running thread's time until now.
    fn count_time(&mut self, at: Ns, cpu: usize) {
        let Some(since) = self.cpus[cpu].since.replace(at) else { return };
        let work = at.saturating_sub(since) as f64 * self.speed(cpu);
        if let Some(of) = self.threads.get_mut(&self.cpus[cpu].running) {
            of.work += work;
        }
    }

    /// The activity that a thread's runs belong to; `None`: they are not background, or belong to a mechanism.
    fn key_of(&self, name: &str) -> Option<(Key, bool)> {
        if OF_MECHANISMS.iter().any(|begin| name.starts_with(begin)) || name.starts_with("rcu") {
            return None;
        }
        if name.starts_with("kworker/") {
            let queue = queue_of(name);
            return (!self.works)
                .then(|| ((queue, format!("{} of kworkers", queue.run(false))), false));
        }
        let known = KERNEL_THREADS.iter().any(|begin| name.starts_with(begin));
        let (base, bound) = base_of(name);
        known.then_some(((Kind::Thread, base), bound))
    }

    fn run_begins(&mut self, at: Ns, cpu: usize, pid: u32) {
        let of = &self.threads[&pid];
        let Some((key, bound)) = self.key_of(&of.name) else {
            self.user_runs += u64::from(!of.name.starts_with("rcu"));
            return;
        };
        let (prio, inside) = (of.prio, of.woken_in.clone());
        let found = self.found.entry(key).or_default();
        found.begins(at, cpu);
        (found.prio, found.bound) = (prio, bound);
        if let Some(device) = inside {
            *found.inside.entry(device).or_insert(0) += 1;
        }
    }

    fn run_ends(&mut self, pid: u32) {
        let Some(of) = self.threads.get_mut(&pid) else { return };
        let (begun, work) = (std::mem::take(&mut of.awake), std::mem::take(&mut of.work));
        of.woken_in = None;
        let name = of.name.clone();
        if !begun {
            return;
        }
        if name.starts_with("rcu_preempt") || name.starts_with("rcu_sched") {
            self.rcu_runs += 1;
            keep(&mut self.rcu_thread, work);
        }
        self.offloaded |= name.starts_with("rcuop") || name.starts_with("rcuog");
        if let Some((key, _)) = self.key_of(&name)
            && let Some(found) = self.found.get_mut(&key)
        {
            keep(&mut found.runs, work);
        }
    }

    fn work_starts(&mut self, at: Ns, cpu: usize, function: String) {
        self.count_time(at, cpu);
        if !std::mem::replace(&mut self.works, true) {
            // What kworkers did before is told by works from here on.
            self.found.retain(|(_, name), _| !name.ends_with("of kworkers"));
        }
        let running = self.cpus[cpu].running;
        if let Some(of) = self.threads.get_mut(&running) {
            let (kind, before) = (queue_of(&of.name), of.work);
            of.doing = Some((function.clone(), before));
            let inside = of.woken_in.clone();
            let found = self.found.entry((kind, function)).or_default();
            found.begins(at, cpu);
            if let Some(device) = inside {
                *found.inside.entry(device).or_insert(0) += 1;
            }
        }
    }

    fn work_ends(&mut self, at: Ns, cpu: usize) {
        self.count_time(at, cpu);
        let running = self.cpus[cpu].running;
        let Some(of) = self.threads.get_mut(&running) else { return };
        let Some((function, before)) = of.doing.take() else { return };
        let (work, kind) = (of.work - before, queue_of(&of.name));
        if let Some(found) = self.found.get_mut(&(kind, function)) {
            keep(&mut found.runs, work);
        }
    }
}
