// SPDX-License-Identifier: GPL-2.0-or-later
//! Costs of the kernel's own paths, and how long interrupts take to arrive.
//!
//! A simulated kernel entry happens at one instant and then owes its CPU the path's cost. Costs are
//! **work** (they shrink with capacity and frequency as any work does) on real machines; on the
//! emulated board of the conformance tests every path takes the same **time** on every CPU, because
//! there one instruction is one nanosecond. [`CostScale`] says which.
//!
//! None of the numbers is measured on a phone: they are estimates, marked so in the machines' files
//! with the reasoning, and `path_costs.percent` scales all of them together (`pixel6:path_costs.percent=200`)
//! to see whether a result hangs on them.

use schedtwin_input::{Diagnostics, Located, TableReader};
use schedtwin_types::{Ns, Work};

use crate::keys::{keys, upto, words};

/// The largest single cost, ns: beyond it somebody confused the unit.
pub(crate) const MAX_COST_NS: u64 = 10_000_000;

/// The largest delay of an interrupt, ns.
const MAX_DELAY_NS: u64 = 10_000_000;

keys! {
    /// costs of the kernel's paths; estimates on all machines except rig8: vary `percent`
    struct PathCostKeys in "path_costs" {
        /// the costs are ns of work on a CPU of capacity 1024 at full speed, or ns of time on every CPU
        scale: Located<String> = WithoutClass, words(&["work", "time"]);
        /// factor for all costs
        percent: Located<u64> = WithoutClass, Whole(0, 10_000);
        /// run-queue clocks advance within a path; false
        running_clocks: bool = May, Switch;
        /// CPUs enter the kernel one at a time, as an emulator runs them; false
        one_at_a_time: bool = May, Switch;
        /// share of what sending costs, through a pipe or a socket, that comes after the reader is woken; 0
        after_wakeup_permille: Located<u64> = May, Whole(0, 1000);
    }
}

keys! {
    /// latencies from the cause to the first instruction of the handler on a busy CPU; each is drawn evenly between
    /// two bounds
    struct InterruptKeys in "interrupts" {
        /// interrupt by another CPU: shortest latency
        ipi_latency_min_ns: Located<u64> = WithoutClass, upto(MAX_DELAY_NS);
        /// interrupt by another CPU: longest latency
        ipi_latency_max_ns: Located<u64> = WithoutClass, upto(MAX_DELAY_NS);
        /// timer: shortest latency
        timer_latency_min_ns: Located<u64> = WithoutClass, upto(MAX_DELAY_NS);
        /// timer: longest latency
        timer_latency_max_ns: Located<u64> = WithoutClass, upto(MAX_DELAY_NS);
    }
}

/// The unit of the costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostScale {
    /// Nanoseconds of a CPU of capacity 1024 at full speed; slower CPUs take longer.
    Work,
    /// Nanoseconds on every CPU at every frequency.
    Time,
}

/// A cost as the file has it.
#[derive(Clone, Copy)]
enum Cost {
    Given(u64),
    /// Not given: so many per cent of a system call.
    OfSyscall(u64),
}

impl Cost {
    fn ns(self, syscall: u64) -> u64 {
        match self {
            Cost::Given(ns) => ns,
            Cost::OfSyscall(percent) => syscall * percent / 100,
        }
    }
}

// `NAME or PERCENT`: a file need not give it; it is so many per cent of `syscall_ns` then.
macro_rules! path_costs {
    ($($(#[doc = $doc:literal])+ $field:ident $(or $share:literal)?,)*) => {
        /// The cost of each path, in the unit that `scale` says.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct PathCosts {
            /// Work or time.
            pub scale: CostScale,
            /// `running_clocks = true`: the kernel's run-queue clocks advance within a path; else, and unless given,
            /// they read the time of its beginning.
            pub running_clocks: bool,
            /// `one_at_a_time = true`: CPUs enter the kernel one at a time, as an emulator runs them, so that no lock is ever
            /// found taken; false unless given.
            pub one_at_a_time: bool,
            /// `after_wakeup_permille`: the share of what sending costs that comes after the reader is woken.
            pub after_wakeup_permille: u64,
            $($(#[doc = $doc])+ pub $field: Work,)*
        }

        impl PathCosts {
            /// A machine whose kernel costs nothing but the 1 ns of every system call: for tests of
            /// policies.
            pub fn free() -> PathCosts {
                PathCosts { syscall_ns: 1, ..PathCosts { scale: CostScale::Work, running_clocks: false, one_at_a_time: false, after_wakeup_permille: 0, $($field: 0,)* } }
            }

            /// Name, value and meaning of each cost, in the order of the type.
            pub fn entries(&self) -> Vec<(&'static str, Work, &'static str)> {
                vec![$((stringify!($field), self.$field, concat!($($doc),+).trim_ascii()),)*]
            }

            /// Name and meaning of each, and the share of a system call in per cent that it is where a file leaves it out.
            pub(crate) fn declared() -> Vec<(&'static str, &'static str, Option<u64>)> {
                vec![$((stringify!($field), concat!($($doc),+).trim_ascii(), {
                    let share: &[u64] = &[$($share)?];
                    share.first().copied()
                }),)*]
            }

            /// Reads `[path_costs]`.
            pub(crate) fn read(mut table: TableReader<'_>, faults: &mut Diagnostics) -> Option<PathCosts> {
                let PathCostKeys {
                    scale,
                    percent,
                    running_clocks,
                    one_at_a_time,
                    after_wakeup_permille,
                } = PathCostKeys::read(&mut table, faults);
                if let Some(told) = after_wakeup_permille.as_ref().filter(|told| told.value > 1000) {
                    faults.push_at(&told.at, "a share is at most 1000", None);
                }
                let after_wakeup_permille = after_wakeup_permille.map_or(0, |told| told.value);
                let scale = scale.and_then(|scale| read_scale(&scale, faults));
                let percent = percent.and_then(|percent| read_percent(&percent, faults));
                let running_clocks = running_clocks.unwrap_or(false);
                let one_at_a_time = one_at_a_time.unwrap_or(false);
                let costs = Raw { $($field: {
                    let share: &[u64] = &[$($share)?];
                    read_cost(&mut table, stringify!($field), share.first().copied(), faults)
                },)* };
                table.finish(faults);
                let percent = percent?;
                let syscall = match costs.syscall_ns? {
                    Cost::Given(ns) => ns,
                    Cost::OfSyscall(_) => unreachable!("a system call's cost is required"),
                };
                Some(PathCosts { scale: scale?, running_clocks, one_at_a_time, after_wakeup_permille, $($field: costs.$field?.ns(syscall) * percent / 100,)* }.at_least_one())
            }
        }

        struct Raw { $($field: Option<Cost>,)* }
    };
}

path_costs! {
    /// a system call: entry, exit and a light body
    syscall_ns,
    /// schedule(): leaving one task and picking the next
    schedule_ns,
    /// context_switch(): entering another task
    context_switch_ns,
    /// try_to_wake_up() without the search for a CPU
    wakeup_ns,
    /// the search for a CPU, per CPU looked at
    select_per_cpu_ns,
    /// the energy-aware search, per performance domain
    energy_per_domain_ns,
    /// taking an interrupt: entry and exit, of a timer with its reprogramming
    interrupt_ns,
    /// each expired hrtimer, without the wakeup it causes
    hrtimer_ns,
    /// the tick: time keeping, sched_tick()
    tick_ns,
    /// sending an inter-processor interrupt
    ipi_send_ns,
    /// running the pending softirqs, without their work
    softirq_ns,
    /// load balancing, per CPU whose statistics are read
    balance_per_cpu_ns,
    /// moving one task to another run queue
    migrate_task_ns,
    /// going idle: governor and tick
    idle_enter_ns,
    /// coming back from idle: governor and tick
    idle_exit_ns,
    /// a frequency switch in the scheduler's context
    frequency_switch_ns,
    /// creating a thread, on top of the system call
    fork_ns,
    /// a thread's exit
    exit_ns,
    /// reading or writing a pipe, on top of the system call
    pipe_ns or 100,
    /// of which, and of copying, under the pipe's mutex
    pipe_lock_ns or 100,
    /// a message through an AF_UNIX socket: each of sending and receiving
    unix_socket_ns or 200,
    /// of which under the lock of the receiver's queue
    unix_lock_ns or 50,
    /// TCP over loopback: each of sending, receiving in softirq, reading
    tcp_ns or 500,
    /// UDP over loopback: the same
    udp_ns or 300,
    /// poll() of one file, on top of the system call
    poll_ns or 100,
    /// copying 1024 bytes from or to user memory
    copy_per_kib_ns or 25,
    /// 1,000 instructions of the fair class, beyond those of CFS without groups
    kilo_instruction_ns or 0,
}

impl PathCosts {
    /// A system call costs at least 1 ns, so that a task that does nothing but system calls moves
    /// through time.
    fn at_least_one(mut self) -> PathCosts {
        self.syscall_ns = self.syscall_ns.max(1);
        self
    }
}

fn read_scale(scale: &Located<String>, faults: &mut Diagnostics) -> Option<CostScale> {
    match scale.value.as_str() {
        "work" => Some(CostScale::Work),
        "time" => Some(CostScale::Time),
        other => {
            faults.push_at(
                &scale.at,
                format!("there is no scale `{other}`"),
                Some("known: `work`, `time`".into()),
            );
            None
        }
    }
}

fn read_percent(percent: &Located<u64>, faults: &mut Diagnostics) -> Option<u64> {
    if percent.value > 10_000 {
        faults.push_at(&percent.at, "more than 10000 percent", None);
        return None;
    }
    Some(percent.value)
}

/// `share`: what a file that does not give it means, per cent of a system call; `None`: it has to.
fn read_cost(
    table: &mut TableReader<'_>,
    key: &str,
    share: Option<u64>,
    faults: &mut Diagnostics,
) -> Option<Cost> {
    let cost: Option<Located<u64>> = match share {
        Some(_) => table.optional(key, faults),
        None => Some(table.required(key, faults)?),
    };
    let Some(cost) = cost else { return share.map(Cost::OfSyscall) };
    if cost.value > MAX_COST_NS {
        faults.push_at(
            &cost.at,
            format!("`{key}` is more than 10 ms"),
            Some("costs are in nanoseconds".into()),
        );
        return None;
    }
    Some(Cost::Given(cost.value))
}

/// Latencies of interrupts from their cause to the first instruction of the handler, on a CPU that is neither idle
/// nor has interrupts off. Each is drawn evenly from a range, keyed by the seed; on real hardware it depends on the
/// state of the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupts {
    /// Inter-processor interrupt: the least.
    pub ipi_latency_min_ns: Ns,
    /// Inter-processor interrupt: the most.
    pub ipi_latency_max_ns: Ns,
    /// Timer: the least after its programmed time.
    pub timer_latency_min_ns: Ns,
    /// Timer: the most.
    pub timer_latency_max_ns: Ns,
}

impl Interrupts {
    /// Reads `[interrupts]`.
    pub(crate) fn read(mut table: TableReader<'_>, faults: &mut Diagnostics) -> Option<Interrupts> {
        let keys = InterruptKeys::read(&mut table, faults);
        let names = InterruptKeys::names();
        let ipi = (keys.ipi_latency_min_ns, keys.ipi_latency_max_ns);
        let ipi = read_range([names[0], names[1]], ipi, faults);
        let timer = (keys.timer_latency_min_ns, keys.timer_latency_max_ns);
        let timer = read_range([names[2], names[3]], timer, faults);
        table.finish(faults);
        let (
            (ipi_latency_min_ns, ipi_latency_max_ns),
            (timer_latency_min_ns, timer_latency_max_ns),
        ) = (ipi?, timer?);
        Some(Interrupts {
            ipi_latency_min_ns,
            ipi_latency_max_ns,
            timer_latency_min_ns,
            timer_latency_max_ns,
        })
    }
}

fn read_range(
    [min_key, max_key]: [&str; 2],
    (min, max): (Option<Located<u64>>, Option<Located<u64>>),
    faults: &mut Diagnostics,
) -> Option<(Ns, Ns)> {
    let (min, max) = (min?, max?);
    if max.value > MAX_DELAY_NS {
        let help = Some("delays are in nanoseconds".to_string());
        faults.push_at(&max.at, format!("`{max_key}` is more than 10 ms"), help);
        return None;
    }
    if min.value > max.value {
        faults.push_at(&min.at, format!("`{min_key}` is above `{max_key}`"), None);
        return None;
    }
    Some((min.value, max.value))
}
