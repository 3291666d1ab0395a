// SPDX-License-Identifier: GPL-2.0-or-later
//! Idle governors as [`Subject`]s: the world of `world.h`, executed with our governors.
//!
//! One generator for all: a table of idle states, then selections and reflections in turn, with times
//! near what matters to a governor: residencies, the tick, the sleep length.

use crate::l0::mutate::{KernelFiles, Mutation, Sources};
use crate::l0::{OpSpec, Out, Record, Subject, TREE, oracle};
use schedtwin_kernel::cpuidle::states::{
    CPUIDLE_STATE_MAX, IdleStateParams, KTIME_MAX, Reflection, SelectInput, SleepLength,
};
use schedtwin_types::rng::Rng;
use std::path::{Path, PathBuf};

// Operation numbers, as in `serve.h`.
const STATE: usize = 0;
const TICK: usize = 1;
const DISABLE: usize = 2;
const SELECT: usize = 3;
const REFLECT: usize = 4;
const IOWAIT: usize = 5;
const RESIDENCY: usize = 6;
const UTIL: usize = 7;

// Habits of the wakeups that only a finder of patterns can tell apart.
const ALIKE_SHORT: u64 = 6;
const ALIKE: u64 = 7;
const HUGE: u64 = 8;

/// The modules of the kernel crate that idle governors need.
pub(crate) const IDLE_FILES: KernelFiles = KernelFiles {
    library: "pub mod config; pub mod cpuidle {
              pub mod haltpoll; pub mod ladder; pub mod menu; pub mod states; pub mod teo; }",
    files: &[
        "config/",
        "cpuidle/haltpoll.rs",
        "cpuidle/ladder.rs",
        "cpuidle/menu/mod.rs",
        "cpuidle/menu/v4_20.rs",
        "cpuidle/menu/v5_18.rs",
        "cpuidle/menu/v6_12.rs",
        "cpuidle/menu/v6_18.rs",
        "cpuidle/menu/v7_3.rs",
        "cpuidle/states.rs",
        "cpuidle/teo/mod.rs",
        "cpuidle/teo/util.rs",
        "cpuidle/teo/v5_14.rs",
        "cpuidle/teo/v6_12.rs",
        "cpuidle/teo/v6_18.rs",
        "cpuidle/teo/v6_6.rs",
        "cpuidle/teo/v7_3.rs",
    ],
};

/// A governor in one of its forms.
pub trait Form: Sized {
    /// Of the subject.
    const NAME: &'static str;
    /// The variable that names its kernel tree.
    const TREE: &'static str = TREE;
    /// The sources from which a mutated copy is compiled.
    const SOURCES: Sources;
    /// Its shim.
    const SHIM: &'static str;
    /// The flags that tell the shim the form.
    const FLAGS: &'static [&'static str] = &[];
    /// The kernel's file, in `drivers/cpuidle/governors`.
    const FILE: &'static str;
    /// Whether that file has the form.
    fn is_form(text: &str) -> bool;
    /// Mutations of our code.
    const MUTATIONS: &'static [Mutation];
    /// How many sequences the golden vectors show in full.
    const GOLDEN_SHOWN: u64;
    /// With how many states the idle loop asks it at least: since 7.3 not with one.
    const FEWEST_STATES: u64 = 1;
    /// By how much the number of a sequence's operations varies.
    const LENGTHS: u64 = 64;
    /// Whether it counts tasks that wait for I/O, and finds patterns in sleeps.
    const MENU: bool = false;
    /// Whether a timer two ticks away is an edge, and sleeps of more than 2^31 µs count.
    const FAR_EDGES: bool = false;
    /// Whether it looks at utilisation.
    const UTIL: bool = false;
    /// Whether it looks at the length of a stay when that is reflected.
    const RESIDENCY: bool = false;

    /// As after enabling it.
    fn new() -> Self;
    /// State, and whether the tick may stop.
    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> (usize, bool);
    /// Is told the states, as far as there are any yet.
    fn enable(&mut self, _states: &[IdleStateParams]) {}
    /// Returns the device's `poll_time_limit` afterwards.
    fn reflect(&mut self, stay: &Reflection) -> bool;
    /// All that it remembers, with that many states.
    fn report(&self, states: usize, out: &mut Out);
    /// Whether a selection has been made since the last reflection.
    fn has_selected(&self) -> bool;
    /// The last sleep length, ns.
    fn sleep_length_ns(&self) -> i64;
}

/// One CPU with its idle states.
pub struct World<F> {
    governor: F,
    states: Vec<IdleStateParams>,
    tick_nsec: i64,
    nr_iowaiters: u32,
    cpu_util: u64,
    last_residency_ns: u64,
    /// The state that was selected last.
    selected: usize,
    /// Generator only: whether the length of the stay has been told, the table to build, the habits of the wakeups, and the clock.
    told: bool,
    planned: Vec<IdleStateParams>,
    habit: u64,
    length: usize,
    now: u64,
    tick_stopped: bool,
}

impl<F: Form> World<F> {
    fn report(&self, out: &mut Out, selected: (u64, u64, u64)) {
        out.word("", "state", selected.0);
        out.word("", "stop_tick", selected.1);
        out.word("", "timers_asked", selected.2);
        self.governor.report(self.states.len(), out);
    }
}

impl<F: Form> Subject for World<F> {
    const NAME: &'static str = F::NAME;
    const TREE: &'static str = F::TREE;

    const OPS: &'static [OpSpec] = &[
        OpSpec {
            name: "state",
            args: &["exit_latency_ns", "target_residency_ns", "polling", "disabled"],
        },
        OpSpec { name: "tick", args: &["nsec"] },
        OpSpec { name: "disable", args: &["state", "disabled"] },
        OpSpec {
            name: "select",
            args: &[
                "now",
                "latency_req",
                "tick_stopped",
                "last_residency",
                "sleep_length",
                "delta_tick",
            ],
        },
        OpSpec { name: "reflect", args: &["now", "state", "got_tick", "poll_time_limit"] },
        OpSpec { name: "iowait", args: &["tasks"] },
        OpSpec { name: "residency", args: &["nsec"] },
        OpSpec { name: "util", args: &["util"] },
    ];

    const SOURCES: Sources = F::SOURCES;
    const MUTATIONS: &'static [Mutation] = F::MUTATIONS;

    const GOLDEN_SHOWN: u64 = F::GOLDEN_SHOWN;

    fn new() -> World<F> {
        World {
            governor: F::new(),
            states: Vec::new(),
            tick_nsec: 4_000_000,
            nr_iowaiters: 0,
            cpu_util: 0,
            last_residency_ns: 0,
            selected: 0,
            told: false,
            planned: Vec::new(),
            habit: 0,
            length: 0,
            now: 0,
            tick_stopped: false,
        }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let [a, b, c, d, e, f] = record.args;
        let selected = match record.op {
            STATE => {
                assert!(self.states.len() < CPUIDLE_STATE_MAX);
                self.states.push(IdleStateParams {
                    exit_latency_ns: a,
                    target_residency_ns: b,
                    polling: c != 0,
                    disabled: d != 0,
                });
                self.governor.enable(&self.states);
                (0, 0, 0)
            }
            TICK => {
                self.tick_nsec = a as i64;
                (0, 0, 0)
            }
            DISABLE => {
                if let Some(state) = self.states.get_mut(a as usize) {
                    state.disabled = b != 0;
                }
                (0, 0, 0)
            }
            SELECT => {
                let input = SelectInput {
                    states: &self.states,
                    latency_req_ns: b as i64,
                    tick_stopped: c != 0,
                    tick_nsec: self.tick_nsec,
                    now: a,
                    last_residency_ns: d,
                    nr_iowaiters: self.nr_iowaiters,
                    cpu_util: self.cpu_util,
                };
                self.last_residency_ns = d;
                let mut asked = 0;
                let (idx, stop_tick) = self.governor.select(&input, &mut || {
                    asked += 1;
                    SleepLength { sleep_length_ns: e as i64, delta_tick_ns: f as i64 }
                });
                self.selected = idx;
                (idx as u64, stop_tick as u64, asked)
            }
            REFLECT => {
                let left = self.governor.reflect(&Reflection {
                    state: b as usize,
                    got_tick: c != 0,
                    poll_time_limit: d != 0,
                    now: a,
                    tick_nsec: self.tick_nsec,
                    last_residency_ns: self.last_residency_ns,
                });
                (0, 0, left as u64)
            }
            IOWAIT => {
                self.nr_iowaiters = a as u32;
                (0, 0, 0)
            }
            RESIDENCY => {
                self.last_residency_ns = a;
                (0, 0, 0)
            }
            UTIL => {
                self.cpu_util = a;
                (0, 0, 0)
            }
            _ => panic!("unknown operation {}", record.op),
        };
        self.report(out, selected);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        let record = |op, args| Some(Record { op, args });
        if step == 0 {
            self.habit = rng.below(if F::MENU { 10 } else { 6 });
            self.length = 16 + rng.below(F::LENGTHS) as usize;
            // HZ 100, 250, 300, 1000.
            let tick = rng.pick(&[10_000_000, 4_000_000, 3_333_333, 1_000_000]);
            self.planned = state_table(tick, F::FEWEST_STATES, rng);
            return record(TICK, [tick, 0, 0, 0, 0, 0]);
        }
        if step <= self.planned.len() {
            let state = self.planned[step - 1];
            let (polling, disabled) = (state.polling as u64, state.disabled as u64);
            let (exit, residency) = (state.exit_latency_ns, state.target_residency_ns);
            return record(STATE, [exit, residency, polling, disabled, 0, 0]);
        }
        if step >= self.length {
            return None;
        }
        if rng.one_in(40) {
            let state = rng.below(self.states.len() as u64);
            return record(DISABLE, [state, rng.below(2), 0, 0, 0, 0]);
        }
        if F::MENU && rng.one_in(30) {
            return record(IOWAIT, [rng.below(4).saturating_sub(1), 0, 0, 0, 0, 0]);
        }
        if F::UTIL && rng.one_in(6) {
            // 16 is the threshold.
            let util = if rng.one_in(3) { rng.below(1025) } else { rng.below(34) };
            return record(UTIL, [util, 0, 0, 0, 0, 0]);
        }
        // Select and reflect alternate, except where an entry was refused.
        if self.governor.has_selected() && !rng.one_in(12) && step > self.planned.len() + 1 {
            if F::RESIDENCY && !std::mem::replace(&mut self.told, true) {
                let near = rng.pick(&[25_000, 50_000, 100_000, 200_000, 400_000]);
                let residency =
                    if rng.one_in(2) { near + rng.below(3) - 1 } else { rng.below(2 * near) };
                return record(RESIDENCY, [residency, 0, 0, 0, 0, 0]);
            }
            self.told = false;
            self.now += self.duration(rng).clamp(0, 1 << 50) as u64 + rng.below(20_000);
            let got_tick = rng.one_in(5) as u64;
            let gave_up = rng.one_in(16) as u64;
            // Where a governor answers a state that does not exist, the kernel takes the first.
            let entered = if self.selected < self.states.len() { self.selected } else { 0 };
            return record(REFLECT, [self.now, entered as u64, got_tick, gave_up, 0, 0]);
        }
        self.now += rng.below(100_000);
        if rng.one_in(4) {
            self.tick_stopped = rng.one_in(3);
        }
        let latency_req = match rng.below(8) {
            0 => 0,
            1..=2 => {
                let state = rng.below(self.states.len() as u64) as usize;
                self.states[state].exit_latency_ns as i64 + rng.below(3) as i64 - 1
            }
            _ => i64::MAX,
        };
        let sleep_length = match rng.below(8) {
            1.. if self.habit == HUGE => KTIME_MAX - rng.below(1 << 20) as i64,
            0 => KTIME_MAX - self.now as i64,
            _ if F::FAR_EDGES && rng.one_in(4) => 2 * self.tick_nsec + rng.below(3) as i64 - 1,
            1 => -(rng.below(5000) as i64),
            2..=4 => self.duration(rng),
            _ => self.tick_nsec + rng.below(100_000_000) as i64,
        };
        // The next tick: at most one tick away, if it was not late.
        let delta_tick = match rng.below(8) {
            0 => self.tick_nsec / 2,
            1 => self.duration(rng),
            2 => -(rng.below(5000) as i64),
            _ => rng.below(self.tick_nsec as u64) as i64,
        }
        .min(sleep_length.max(self.tick_nsec));
        let last_residency = match self.habit {
            // Woken early most of the time; by timers most of the time; mixed.
            0 => rng.below(30_000),
            1 => rng.below(self.tick_nsec as u64),
            // Sleeps much alike, but for some.
            ALIKE_SHORT if !rng.one_in(6) => 10_000 + rng.below(100) * 1000,
            ALIKE if !rng.one_in(6) => self.length as u64 * 70_000 + rng.below(200_000),
            HUGE if F::FAR_EDGES => (1 << 41) + rng.below(1 << 41),
            HUGE if rng.one_in(2) => rng.below(1 << 41),
            _ if F::MENU && rng.one_in(12) => 0,
            _ => self.duration(rng).max(0) as u64,
        };
        let stopped = self.tick_stopped as u64;
        record(
            SELECT,
            [
                self.now,
                latency_req as u64,
                stopped,
                last_residency,
                sleep_length as u64,
                delta_tick as u64,
            ],
        )
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        tree_has_form::<F>(tree)?;
        let governors = tree.join("drivers/cpuidle/governors");
        let flags = [flags, F::FLAGS].concat();
        oracle::compile(F::SHIM, &[&governors], build_dir, &flags)
    }
}

/// Whether a tree has the form; what else it has if not.
pub fn tree_has_form<F: Form>(tree: &Path) -> Result<(), String> {
    let path = tree.join("drivers/cpuidle/governors").join(F::FILE);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("read {}: {error}", path.display()))?;
    let other = || format!("{} is another form than {}", path.display(), F::NAME);
    F::is_form(&text).then_some(()).ok_or_else(other)
}

/// A plausible table of idle states, at least `fewest` of them, or (one in 16) an arbitrary one.
fn state_table(tick: u64, fewest: u64, rng: &mut Rng) -> Vec<IdleStateParams> {
    let count = if rng.one_in(4) { 1 + rng.below(10) } else { 2 + rng.below(4) }.max(fewest);
    let arbitrary = rng.one_in(16);
    let mut residencies: Vec<u64> = (0..count)
        .map(|_| match rng.below(8) {
            0 => rng.below(3) * 1000,
            1 => 14_999 + rng.below(3),
            2 => tick - 1 + rng.below(3),
            3 => rng.below(20) * 1_000_000,
            _ => rng.magnitude(24),
        })
        .collect();
    if !arbitrary {
        residencies.sort_unstable();
    }
    let mut states: Vec<IdleStateParams> = residencies
        .into_iter()
        .map(|target_residency_ns| IdleStateParams {
            exit_latency_ns: if rng.one_in(4) {
                rng.magnitude(24)
            } else {
                rng.below(target_residency_ns + 1)
            },
            target_residency_ns,
            polling: arbitrary && rng.one_in(4),
            disabled: rng.one_in(8),
        })
        .collect();
    if rng.one_in(3) {
        let disabled = states[0].disabled;
        states[0] = IdleStateParams { polling: true, disabled, ..Default::default() };
    }
    states
}

impl<F: Form> World<F> {
    /// A duration near something that matters: a state's residency, the tick, the sleep length.
    fn duration(&self, rng: &mut Rng) -> i64 {
        let state = &self.states[rng.below(self.states.len() as u64) as usize];
        let near = match rng.below(6) {
            0 => state.target_residency_ns as i64,
            1 => (state.target_residency_ns + state.exit_latency_ns / 2) as i64,
            2 => self.tick_nsec,
            3 => self.governor.sleep_length_ns().min(1 << 40),
            4 => return rng.magnitude(34) as i64,
            _ => return rng.below(2 * self.tick_nsec as u64) as i64,
        };
        near.saturating_add(rng.below(5) as i64 - 2)
    }
}
