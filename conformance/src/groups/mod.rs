// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups: what a queue of a group is worth, and what it may run of the group's limit.
//!
//! One group and its queue on one CPU. Shares and loads are drawn anew for each question; the pool lives through a sequence of
//! running, asking, giving back, throttling, periods and handing out.
//!
//! **Not compared here:** what throttling does to the hierarchy, several queues that wait, timers; propagation of averages is
//! part of `pelt`, a new weight of `eevdf`.

mod mutations;

use crate::l0::mutate::{KernelFiles, Mutation, Sources};
use crate::l0::{
    ARGS, OpSpec, Out, Record, Subject, TREE, TREE_6_1, TREE_6_18, TREE_7_3, extract, oracle,
};
use schedtwin_kernel::config::{GroupShares, TgLoadAvg};
use schedtwin_kernel::sched::CfsRqId;
use schedtwin_kernel::sched::fair::bandwidth::{CfsBandwidth, CfsRqBandwidth, PeriodTimer};
use schedtwin_kernel::sched::fair::group::{GroupLoad, calc_group_shares, contribution_delta};
use schedtwin_types::rng::Rng;
use std::path::{Path, PathBuf};

// Operation numbers, as in `shim.c`.
const SHARES: usize = 0;
const CONTRIBUTE: usize = 1;
const LIMIT: usize = 2;
const RUN: usize = 3;
const ASSIGN: usize = 4;
const GIVE_BACK: usize = 5;
const THROTTLE: usize = 6;
const PERIOD: usize = 7;
const HAND_OUT: usize = 8;

/// Operations of a sequence.
const STEPS: usize = 48;
/// `RUNTIME_INF`.
const NO_LIMIT: u64 = u64::MAX;

/// The functions that are cut out of `fair.c`, in an order in which it compiles.
const SHARES_FUNCTIONS: &[&str] = &["calc_group_shares"];
/// The same of 7.3.
const SHARES_FUNCTIONS_7_3: &[&str] = &[
    "__calc_smp_shares",
    "tg_cpus",
    "tg_tasks",
    "calc_tasks_shares",
    "calc_max_shares",
    "calc_concur_shares",
    "calc_smp_shares",
    "calc_up_shares",
];
/// The functions that both have.
const FUNCTIONS: &[&str] = &[
    "update_tg_load_avg",
    "__refill_cfs_bandwidth_runtime",
    "__assign_cfs_rq_runtime",
    "__return_cfs_rq_runtime",
    "distribute_cfs_runtime",
    "do_sched_cfs_period_timer",
];

/// The modules of the kernel crate that the subject needs; a queue's number stands for itself.
const FILES: KernelFiles = KernelFiles {
    library: "pub mod config; pub mod sched {
              #[derive(Clone, Copy, Debug, PartialEq, Eq)] pub struct CfsRqId(pub u32);
              pub mod fair {
              pub mod bandwidth { pub mod pool; pub use pool::*; }
              pub mod group { pub mod shares; pub use shares::*; } } }",
    files: &["config/", "sched/fair/bandwidth/pool.rs", "sched/fair/group/shares.rs"],
};

/// A group with a limit, and its queue.
pub type Groups = GroupsOf<LINUX_6_12>;
/// The same of a tree before 6.4, such as 6.1: throttled queues go on one after the other.
pub type Groups61 = GroupsOf<LINUX_6_1>;
/// The same of 6.18.
pub type Groups618 = GroupsOf<LINUX_6_18>;
/// The same of 7.3: shares in the five forms of `cgroup_mode`, and what the CPUs tell of their runnable tasks.
pub type Groups73 = GroupsOf<LINUX_7_3>;

/// A form of [`GroupsOf`].
pub const LINUX_6_1: u8 = 0;
/// A form of [`GroupsOf`].
pub const LINUX_6_12: u8 = 1;
/// A form of [`GroupsOf`].
pub const LINUX_6_18: u8 = 2;
/// A form of [`GroupsOf`].
pub const LINUX_7_3: u8 = 3;

/// Linux's numbers of `cgroup_mode`.
const MODES: [GroupShares; 5] =
    [GroupShares::Up, GroupShares::Smp, GroupShares::Concur, GroupShares::Max, GroupShares::Tasks];

/// The world of all.
pub struct GroupsOf<const FORM: u8> {
    pool: CfsBandwidth,
    queue: CfsRqBandwidth,
    slice: u64,
}

impl<const FORM: u8> GroupsOf<FORM> {
    const NEW: bool = FORM == LINUX_7_3;
    const TELLS: TgLoadAvg = if Self::NEW { TgLoadAvg::WithRunnable } else { TgLoadAvg::OncePerMs };

    fn report(&self, out: &mut Out) {
        let CfsBandwidth { runtime, runtime_snap, idle, stat, .. } = &self.pool;
        out.word("pool", "runtime", *runtime);
        out.word("pool", "runtime_snap", *runtime_snap);
        out.word("pool", "idle", *idle as u64);
        out.word("pool", "nr_periods", stat.nr_periods);
        out.word("pool", "nr_throttled", stat.nr_throttled);
        out.word("pool", "nr_burst", stat.nr_bursts);
        out.word("pool", "burst_time", stat.burst_time);
        out.word("queue", "runtime_remaining", self.queue.runtime_remaining as u64);
    }

    fn waits(&self) -> bool {
        !self.pool.throttled.is_empty()
    }

    /// The queue asks the pool as one that waits; whether it goes on.
    fn hand_out(&mut self) -> bool {
        let goes_on = self.pool.hand_out(&mut self.queue);
        if goes_on {
            self.pool.throttled.clear();
        }
        goes_on
    }
}

impl<const FORM: u8> Subject for GroupsOf<FORM> {
    const NAME: &'static str = ["groups-6.1", "groups", "groups-6.18", "groups-7.3"][FORM as usize];
    const TREE: &'static str = [TREE_6_1, TREE, TREE_6_18, TREE_7_3][FORM as usize];
    const OPS: &'static [OpSpec] = &[
        OpSpec {
            name: "shares",
            args: &[
                "shares",
                "tg_load_avg",
                "contrib",
                "weight",
                "load_avg",
                "tg_runnable_avg_cpus_mode",
            ],
        },
        OpSpec {
            name: "contribute",
            args: &["contrib", "load_avg", "runnable_contrib", "runnable_avg"],
        },
        OpSpec { name: "limit", args: &["quota", "burst", "slice"] },
        OpSpec { name: "run", args: &["delta"] },
        OpSpec { name: "assign", args: &["target"] },
        OpSpec { name: "give_back", args: &["another_waits"] },
        OpSpec { name: "throttle", args: &[] },
        OpSpec { name: "period", args: &["overrun"] },
        OpSpec { name: "hand_out", args: &[] },
    ];
    const SOURCES: Sources = Sources { modules: &["groups"], kernel: Some(&FILES) };
    const MUTATIONS: &'static [Mutation] =
        if Self::NEW { mutations::GROUPS_7_3 } else { mutations::GROUPS };
    const GOLDEN_SHOWN: u64 = 3;

    fn new() -> Self {
        GroupsOf { pool: CfsBandwidth::default(), queue: CfsRqBandwidth::default(), slice: 0 }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let arg = record.args;
        match record.op {
            SHARES => {
                let load = (arg[3] >> 10).max(arg[4]);
                let group = GroupLoad {
                    shares: arg[0],
                    load_avg: arg[1] as i64,
                    runnable_avg: arg[5] as i64 >> 16,
                    cpus: (arg[5] >> 8 & 0xff) as u32,
                };
                let form = if Self::NEW { MODES[(arg[5] & 0xff) as usize] } else { MODES[1] };
                out.word("", "result", calc_group_shares(form, &group, arg[2], load));
            }
            CONTRIBUTE => {
                let told = contribution_delta(Self::TELLS, (arg[1], arg[0]), (arg[3], arg[2]));
                let (load, runnable) = told.unwrap_or((0, 0));
                out.word("", "result", load as u64);
                if Self::NEW {
                    out.word("", "runnable", runnable as u64);
                }
            }
            LIMIT => {
                self.pool.quota = (arg[0] != NO_LIMIT).then_some(arg[0]);
                (self.pool.burst, self.slice) = (arg[1], arg[2]);
                self.pool.refill();
                self.report(out);
            }
            RUN => self.queue.runtime_remaining -= arg[0] as i64,
            ASSIGN => {
                out.word("", "result", self.pool.assign(&mut self.queue, arg[0]) as u64);
                self.report(out);
            }
            GIVE_BACK => {
                if arg[0] != 0 {
                    self.pool.throttled.push(CfsRqId(2));
                }
                let worth = self.pool.give_back(&mut self.queue, self.slice);
                self.pool.throttled.retain(|queue| *queue != CfsRqId(2));
                out.word("", "result", worth as u64);
                self.report(out);
            }
            THROTTLE => self.pool.throttled = vec![CfsRqId(1)],
            PERIOD => {
                let timer = self.pool.begin_period(arg[0]);
                let mut goes_on = false;
                while timer == PeriodTimer::HandsOut && self.waits() && self.pool.runtime > 0 {
                    goes_on = self.hand_out();
                }
                out.word("", "result", (timer == PeriodTimer::Stops) as u64);
                out.word("", "goes_on", goes_on as u64);
                self.report(out);
            }
            HAND_OUT => {
                let waits = self.waits();
                let goes_on = waits && self.hand_out();
                out.word("", "result", (waits && !goes_on) as u64);
                out.word("", "goes_on", goes_on as u64);
                self.report(out);
            }
            _ => unreachable!("an operation of the list"),
        }
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        if step == STEPS {
            return None;
        }
        let mut args = [0; ARGS];
        let left = self.queue.runtime_remaining;
        let op = match rng.below(16) {
            _ if step == 0 => LIMIT,
            0..=2 => SHARES,
            3 => CONTRIBUTE,
            4 => LIMIT,
            5..=7 => RUN,
            // A queue asks when it has nothing left, gives back what it has, and waits when it got nothing.
            8..=10 if left <= 0 && !self.waits() => ASSIGN,
            8..=10 if !self.waits() => GIVE_BACK,
            11 if left <= 0 => THROTTLE,
            12 if self.waits() && self.pool.runtime > 0 => HAND_OUT,
            _ => PERIOD,
        };
        match op {
            SHARES => {
                let shares = 2 + rng.magnitude(28);
                let contrib = rng.magnitude(17);
                // Sums that others change may fall below what this queue has told.
                let elsewhere = match rng.below(4) {
                    0 => 0,
                    1 => rng.below(contrib + 1).wrapping_neg(),
                    _ => rng.magnitude(20),
                };
                let weight = rng.magnitude(28);
                args[..5].copy_from_slice(&[
                    shares,
                    contrib.wrapping_add(elsewhere),
                    contrib,
                    weight,
                    rng.magnitude(18),
                ]);
                if Self::NEW {
                    let runnable_avg = rng.below(9 << 10).wrapping_sub(rng.below(64));
                    args[5] = runnable_avg << 16 | (1 + rng.below(8)) << 8 | rng.below(5);
                }
            }
            CONTRIBUTE => {
                for pair in args[..if Self::NEW { 4 } else { 2 }].chunks_exact_mut(2) {
                    let contrib = rng.magnitude(18);
                    let off = rng.below(contrib / 32 + 3);
                    let is =
                        if rng.one_in(2) { contrib + off } else { contrib.saturating_sub(off) };
                    pair.copy_from_slice(&[contrib, is]);
                }
            }
            LIMIT => {
                let quota = 1_000_000 + rng.magnitude(26);
                let quota = if rng.one_in(8) { NO_LIMIT } else { quota };
                let burst =
                    if rng.one_in(2) || quota == NO_LIMIT { 0 } else { rng.below(quota + 1) };
                args[..3].copy_from_slice(&[
                    quota,
                    burst,
                    rng.pick(&[1_000_000, 3_000_000, 5_000_000]),
                ]);
            }
            RUN if self.waits() => args[0] = 0,
            RUN => {
                args[0] = match rng.below(4) {
                    0 => left.max(0) as u64,
                    // What it can give back makes just a slice.
                    2 => {
                        let slack = self.slice as i64 - self.pool.runtime as i64;
                        (left - 1_000_000 - slack).max(0) as u64
                    }
                    1 => (left - 1_000_000).max(0) as u64 + rng.below(3),
                    _ => rng.magnitude(25),
                }
            }
            ASSIGN => args[0] = if rng.one_in(3) { 1 } else { self.slice },
            GIVE_BACK => args[0] = rng.one_in(2) as u64,
            PERIOD => args[0] = 1 + rng.one_in(8) as u64,
            _ => {}
        }
        Some(Record { op, args })
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let path = tree.join("kernel/sched/fair.c");
        let fair = std::fs::read_to_string(&path)
            .map_err(|error| format!("read {}: {error}", path.display()))?;
        let mut text = String::new();
        let shares = if Self::NEW { SHARES_FUNCTIONS_7_3 } else { SHARES_FUNCTIONS };
        for name in shares.iter().chain(FUNCTIONS) {
            let missing = || format!("{}: no {name} in fair.c", tree.display());
            // Without SMP there is an empty one before it, which is not inline.
            let from = fair.find(&format!("static inline void {name}(")).unwrap_or(0);
            text += &extract::function(&fair[from..], name).ok_or_else(missing)?;
        }
        let file = build_dir.join("groups_extract.h");
        std::fs::write(&file, text)
            .map_err(|error| format!("write {}: {error}", file.display()))?;
        let form: &[&str] = [&["-DFORM_6_1"][..], &[], &[], &["-DFORM_7_3"]][FORM as usize];
        oracle::compile("groups/shim.c", &[build_dir], build_dir, &[flags, form].concat())
    }
}
