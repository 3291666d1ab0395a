//! teo as a [`Subject`]: the world of `teo_shim.c`, executed with our `cpuidle/teo/v6_12.rs`.

use super::mutate::Mutation;
use super::{OpSpec, Out, Record, Rng, Subject, oracle};
use schedtwin_kernel::cpuidle::teo::v6_12::TeoCpu;
use schedtwin_kernel::cpuidle::teo::{
    CPUIDLE_STATE_MAX, IdleStateParams, KTIME_MAX, SelectInput, SleepLength,
};
use std::path::{Path, PathBuf};

// Operation numbers, as in `teo_shim.c`.
const STATE: usize = 0;
const TICK: usize = 1;
const DISABLE: usize = 2;
const SELECT: usize = 3;
const REFLECT: usize = 4;

/// One CPU with its idle states.
pub struct Teo {
    teo: TeoCpu,
    states: Vec<IdleStateParams>,
    tick_nsec: i64,
    /// What was selected last.
    selected: usize,
    /// Generator only: the table to build, the habits of the wakeups, and the clock.
    planned: Vec<IdleStateParams>,
    habit: u64,
    length: usize,
    now: u64,
    tick_stopped: bool,
}

impl Teo {
    fn report(&self, out: &mut Out, selected: (u64, u64, u64)) {
        out.word("", "state", selected.0);
        out.word("", "stop_tick", selected.1);
        out.word("", "timers_asked", selected.2);
        out.word("teo", "time_span_ns", self.teo.time_span_ns as u64);
        out.word("teo", "sleep_length_ns", self.teo.sleep_length_ns as u64);
        out.word("teo", "total", self.teo.total as u64);
        out.word("teo", "tick_hits", self.teo.tick_hits as u64);
        let last = self.teo.last_state_idx.map_or(-1, |state| state as i64);
        out.word("dev", "last_state_idx", last as u64);
        const BINS: [&str; CPUIDLE_STATE_MAX] =
            ["bin0", "bin1", "bin2", "bin3", "bin4", "bin5", "bin6", "bin7", "bin8", "bin9"];
        for (name, bin) in BINS.iter().zip(&self.teo.state_bins).take(self.states.len()) {
            out.word(name, "hits", bin.hits as u64);
            out.word(name, "intercepts", bin.intercepts as u64);
        }
    }
}

impl Subject for Teo {
    const NAME: &'static str = "teo";

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
    ];

    const MUTATIONS: &'static [Mutation] = super::mutate::TEO;

    const GOLDEN_SHOWN: u64 = 6;

    fn new() -> Teo {
        Teo {
            teo: TeoCpu::default(),
            states: Vec::new(),
            tick_nsec: 4_000_000,
            selected: 0,
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
                };
                let mut asked = 0;
                let selection = self.teo.select(&input, &mut || {
                    asked += 1;
                    SleepLength { sleep_length_ns: e as i64, delta_tick_ns: f as i64 }
                });
                self.selected = selection.idx;
                (selection.idx as u64, selection.stop_tick as u64, asked)
            }
            REFLECT => {
                self.teo.reflect(b as usize, c != 0, d != 0, a, self.tick_nsec);
                (0, 0, 0)
            }
            _ => panic!("unknown operation {}", record.op),
        };
        self.report(out, selected);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        let record = |op, args| Some(Record { op, args });
        if step == 0 {
            self.habit = rng.below(6);
            self.length = 16 + rng.below(64) as usize;
            // HZ 100, 250, 300, 1000.
            let tick = rng.pick(&[10_000_000, 4_000_000, 3_333_333, 1_000_000]);
            self.planned = state_table(tick, rng);
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
        // Select and reflect alternate, except where an entry was refused.
        if self.teo.last_state_idx.is_none() && !rng.one_in(12) && step > self.planned.len() + 1 {
            self.now += self.duration(rng).clamp(0, 1 << 50) as u64 + rng.below(20_000);
            let got_tick = rng.one_in(5) as u64;
            let gave_up = rng.one_in(16) as u64;
            return record(REFLECT, [self.now, self.selected as u64, got_tick, gave_up, 0, 0]);
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
            0 => KTIME_MAX - self.now as i64,
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
        let governors = tree.join("drivers/cpuidle/governors");
        oracle::compile("teo_shim.c", &[&governors], build_dir, flags)
    }
}

/// A plausible table of idle states, or (one in 16) an arbitrary one.
fn state_table(tick: u64, rng: &mut Rng) -> Vec<IdleStateParams> {
    let count = if rng.one_in(4) { 1 + rng.below(10) } else { 2 + rng.below(4) };
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

impl Teo {
    /// A duration near something that matters: a state's residency, the tick, the sleep length.
    fn duration(&self, rng: &mut Rng) -> i64 {
        let state = &self.states[rng.below(self.states.len() as u64) as usize];
        let near = match rng.below(6) {
            0 => state.target_residency_ns as i64,
            1 => (state.target_residency_ns + state.exit_latency_ns / 2) as i64,
            2 => self.tick_nsec,
            3 => self.teo.sleep_length_ns.min(1 << 40),
            4 => return rng.magnitude(34) as i64,
            _ => return rng.below(2 * self.tick_nsec as u64) as i64,
        };
        near.saturating_add(rng.below(5) as i64 - 2)
    }
}
