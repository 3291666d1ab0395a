// SPDX-License-Identifier: GPL-2.0-or-later
//! The timer wheel: buckets, next expiry, expiry with handlers that arm and delete timers, and what a CPU's bases
//! tell the tick.
//!
//! The three bases of a CPU and twelve timers. Distances are drawn around the places where levels begin and buckets
//! end, jiffies around the next expiry. The hierarchy of all CPUs answers whatever the operation says.
//!
//! The oracles have different ticks: 6.1 with 1000 Hz, 6.12 with 250, 7.3 with 100, whose wheel has a level less.

mod mutations;

use crate::l0::extract::{self, Pieces};
use crate::l0::mutate::{KernelFiles, Mutation, Sources};
use crate::l0::{ARGS, OpSpec, Out, Record, Subject, TREE, TREE_6_1, TREE_7_3, oracle};
use schedtwin_kernel::time::timer::bases::{
    Armed, CpuBases, DEF, GLOBAL, LOCAL, NEVER, NextTimer, TmigrCall, mod_timer,
};
use schedtwin_kernel::time::timer::wheel::{TimerId, Timers, lvl_depth, round_jiffies_common};
use schedtwin_types::rng::Rng;
use std::path::{Path, PathBuf};

// Operation numbers, as in `shim.c`.
const BOOT: usize = 0;
const ARM: usize = 1;
const DELETE: usize = 2;
const NEXT: usize = 3;
const RUN: usize = 4;
const PASS: usize = 5;
const SCRIPT: usize = 6;
const WAKE: usize = 7;
const ROUND: usize = 8;

/// Timers.
const SLOTS: usize = 12;
const SLOT_NAMES: [&str; SLOTS] =
    ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11"];
const BASE_NAMES: [&str; 3] = ["local", "global", "deferrable"];
/// Operations of a sequence.
const STEPS: usize = 96;

/// The release that is compared.
const V6_1: u8 = 0;
const V6_12: u8 = 1;
const V7_3: u8 = 2;

/// The wheel of 6.1.
pub type TimerWheel61 = TimerWheel<V6_1>;
/// The wheel of 6.12.
pub type TimerWheel612 = TimerWheel<V6_12>;
/// The wheel of 7.3.
pub type TimerWheel73 = TimerWheel<V7_3>;

/// The modules of the kernel crate that the subject needs.
const FILES: KernelFiles = KernelFiles {
    library: "pub mod time { pub mod timer { pub mod bases; pub mod wheel; } }",
    files: &["time/timer/bases.rs", "time/timer/wheel.rs"],
};

/// The bases of a CPU and some timers.
pub struct TimerWheel<const RELEASE: u8> {
    cpu: [CpuBases; 1],
    timers: Timers,
    jiffies: u64,
    /// Per timer: its base, when its handler arms it again, which timer its handler deletes; counted from 1, 0: none.
    slots: [(usize, u64, usize); SLOTS],
}

impl<const RELEASE: u8> TimerWheel<RELEASE> {
    const HZ: u64 = match RELEASE {
        V6_1 => 1000,
        V6_12 => 250,
        _ => 100,
    };
    const MIGRATES: bool = RELEASE != V6_1;

    fn report(&self, out: &mut Out) {
        for (base, name) in self.cpu[0].bases.iter().zip(BASE_NAMES) {
            out.word(name, "clk", base.clk);
            out.word(name, "next_expiry", base.next_expiry);
            out.word(name, "next_expiry_recalc", base.next_expiry_recalc.into());
            out.word(name, "is_idle", base.is_idle.into());
            out.word(name, "timers_pending", base.timers_pending.into());
        }
        for (slot, name) in SLOT_NAMES.into_iter().enumerate() {
            let timer = TimerId(slot as u32);
            let pending = self.timers.is_pending(timer);
            out.word(name, "pending", pending.into());
            out.word(name, "expires", if pending { self.timers.expires(timer) } else { 0 });
            out.word(name, "idx", if pending { self.timers.bucket(timer) } else { 0 });
        }
    }

    fn arm(&mut self, slot: usize, expires: u64, to: usize) {
        let timer = TimerId(slot as u32);
        let places = ((0, self.slots[slot].0), (0, to));
        let armed = (timer, expires);
        let Armed { moved, .. } =
            mod_timer(&mut self.cpu, places, armed, self.jiffies, &mut self.timers);
        if moved {
            self.slots[slot].0 = to;
        }
    }

    fn delete(&mut self, slot: usize) -> bool {
        let base = &mut self.cpu[0].bases[self.slots[slot].0];
        base.detach(TimerId(slot as u32), &mut self.timers)
    }

    fn run(&mut self, base: usize, out: &mut Out) {
        if Self::MIGRATES && !self.cpu[0].bases[base].is_due(self.jiffies) {
            return;
        }
        while let Some(timer) = self.cpu[0].bases[base].expire_next(self.jiffies, &mut self.timers)
        {
            let slot = timer.0 as usize;
            out.word("", "expired", 100 + slot as u64);
            let (home, rearm, kills) = self.slots[slot];
            if rearm != 0 {
                self.arm(slot, self.jiffies.wrapping_add(rearm - 1), home);
            }
            if kills != 0 {
                self.delete(kills - 1);
            }
        }
    }

    fn next_event(&mut self, stops: bool, answer: u64, out: &mut Out) {
        let basej = self.jiffies;
        let of_all = if answer == 0 { NEVER } else { basej.wrapping_add(answer).wrapping_sub(10) };
        let mut asked = (0, 0);
        let next = if Self::MIGRATES {
            self.cpu[0].next_migrating(basej, stops, |call, global| {
                let number = match call {
                    TmigrCall::NewTimer => 1,
                    TmigrCall::Deactivate => 2,
                    TmigrCall::QuickCheck => 3,
                };
                asked = (number, global);
                of_all
            })
        } else {
            NextTimer { expires: self.cpu[0].next_standard(basej), reactivate: false }
        };
        out.word("", "expires", next.expires);
        out.word("", "asked", asked.0);
        out.word("", "global", asked.1);
        out.word("", "reactivate", next.reactivate.into());
    }

    /// A distance around a place where something changes.
    fn distance(&self, rng: &mut Rng) -> u64 {
        let level = rng.below(9);
        let near = match rng.below(6) {
            0 => rng.below(4),
            1 => rng.below(130),
            2 => 63 << (3 * level),
            3 => rng.below(1 << 12),
            4 => {
                // Around the end of a bucket.
                let grain = 1 << (3 * rng.below(4));
                let ahead = rng.below(16) * grain;
                (self.jiffies / grain * grain + ahead).saturating_sub(self.jiffies)
            }
            _ => rng.magnitude(32),
        };
        let off = rng.below(5);
        if rng.one_in(2) { near.wrapping_add(off) } else { near.wrapping_sub(off) }
    }
}

impl<const RELEASE: u8> Subject for TimerWheel<RELEASE> {
    const NAME: &'static str = match RELEASE {
        V6_1 => "timer-wheel-6.1",
        V6_12 => "timer-wheel",
        _ => "timer-wheel-7.3",
    };
    const TREE: &'static str = match RELEASE {
        V6_1 => TREE_6_1,
        V6_12 => TREE,
        _ => TREE_7_3,
    };
    const OPS: &'static [OpSpec] = &[
        OpSpec { name: "boot", args: &["jiffies"] },
        OpSpec { name: "arm", args: &["timer", "delay", "base"] },
        OpSpec { name: "delete", args: &["timer"] },
        OpSpec { name: "next", args: &["stops", "hierarchy"] },
        OpSpec { name: "run", args: &["base"] },
        OpSpec { name: "pass", args: &["jiffies"] },
        OpSpec { name: "script", args: &["timer", "rearm", "deletes"] },
        OpSpec { name: "wake", args: &[] },
        OpSpec { name: "round", args: &["delay", "cpu", "up"] },
    ];
    const SOURCES: Sources = Sources { modules: &["timer_wheel"], kernel: Some(&FILES) };
    const MUTATIONS: &'static [Mutation] = match RELEASE {
        V6_1 => mutations::TIMER_WHEEL_6_1,
        V6_12 => mutations::TIMER_WHEEL,
        _ => mutations::TIMER_WHEEL_7_3,
    };
    const GOLDEN_SHOWN: u64 = 2;

    fn new() -> Self {
        let mut timers = Timers::default();
        for _ in 0..SLOTS {
            timers.add();
        }
        let cpu = [CpuBases::new(lvl_depth(Self::HZ), 0, Self::MIGRATES)];
        TimerWheel { cpu, timers, jiffies: 0, slots: [(LOCAL, 0, 0); SLOTS] }
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        let arg = record.args;
        match record.op {
            BOOT => {
                self.jiffies = arg[0];
                self.cpu = [CpuBases::new(lvl_depth(Self::HZ), arg[0], Self::MIGRATES)];
            }
            ARM => {
                self.arm(arg[0] as usize, self.jiffies.wrapping_add(arg[1]), arg[2] as usize);
            }
            DELETE => {
                let was = self.delete(arg[0] as usize);
                out.word("", "result", was.into());
            }
            NEXT => self.next_event(arg[0] != 0, arg[1], out),
            RUN => self.run(arg[0] as usize, out),
            PASS => {
                self.jiffies = self.jiffies.wrapping_add(arg[0]);
                out.word("", "raised", self.cpu[0].is_due(self.jiffies).into());
            }
            SCRIPT => {
                let slot = &mut self.slots[arg[0] as usize];
                (slot.1, slot.2) = (arg[1], arg[2] as usize);
            }
            WAKE => self.cpu[0].clear_idle(),
            ROUND => {
                let j = self.jiffies.wrapping_add(arg[0]);
                let rounded = round_jiffies_common(j, arg[1], arg[2] != 0, self.jiffies, Self::HZ);
                out.word("", "result", rounded);
                return;
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
            // Since boot; as Linux begins, 300 s before 2^32; anything.
            let start = match rng.below(3) {
                0 => 100 + rng.below(100),
                1 => (1 << 32) - 300 * Self::HZ,
                _ => 100 + rng.magnitude(40),
            };
            return Some(Record::new(BOOT, &[start]));
        }
        let slot = rng.below(SLOTS as u64);
        let base = match (Self::MIGRATES, rng.below(5)) {
            (true, 0 | 1) => GLOBAL,
            (_, 2) => DEF,
            _ => LOCAL,
        } as u64;
        let mut args = [0; ARGS];
        let op = match rng.below(20) {
            0..=6 => ARM,
            7 => DELETE,
            8..=10 => NEXT,
            11..=13 => RUN,
            14..=16 => PASS,
            17 => SCRIPT,
            18 => WAKE,
            _ => ROUND,
        };
        match op {
            ARM => {
                args[..3].copy_from_slice(&[slot, self.distance(rng), base]);
                // The same time again, or the same bucket.
                let timer = TimerId(slot as u32);
                if self.timers.is_pending(timer) && rng.one_in(4) {
                    let off = self.timers.expires(timer).wrapping_sub(self.jiffies);
                    args[1] = off.wrapping_add(rng.below(3));
                }
            }
            DELETE => args[0] = slot,
            NEXT => {
                let answer = if rng.one_in(2) { 0 } else { 1 + rng.below(64) };
                args[..2].copy_from_slice(&[(Self::MIGRATES && rng.one_in(2)).into(), answer]);
            }
            RUN => args[0] = base,
            PASS => {
                let next = self.cpu[0].bases[base as usize].next_expiry.wrapping_sub(self.jiffies);
                args[0] = match rng.below(4) {
                    0 => rng.below(3),
                    1 => rng.magnitude(14),
                    _ if (next as i64) < 0 || next > 1 << 34 => 1,
                    _ => next.saturating_add(rng.below(4)).saturating_sub(2),
                };
            }
            SCRIPT => {
                let rearm = if rng.one_in(2) { 0 } else { 1 + rng.below(300) };
                let kills = if rng.one_in(2) { 0 } else { 1 + rng.below(SLOTS as u64) };
                args[..3].copy_from_slice(&[slot, rearm, kills]);
            }
            ROUND => {
                let whole = rng.below(4) * Self::HZ;
                let off = rng.below(Self::HZ);
                args[..3].copy_from_slice(&[whole + off, rng.below(300), rng.below(2)]);
            }
            _ => {}
        }
        Some(Record { op, args })
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let timer = extract::read(tree, "kernel/time/timer.c")?;
        let header = extract::read(tree, "include/linux/timer.h")?;
        let mut types = Pieces::default();
        let levels = [
            "LVL_CLK_SHIFT",
            "LVL_CLK_DIV",
            "LVL_CLK_MASK",
            "LVL_SHIFT",
            "LVL_GRAN",
            "LVL_START",
            "LVL_BITS",
            "LVL_SIZE",
            "LVL_MASK",
            "LVL_OFFS",
        ];
        types.add(extract::macro_definition, &timer, &levels)?;
        // The first of two definitions is for more than 100 ticks a second.
        types.text(if Self::HZ > 100 { "#define LVL_DEPTH 9\n" } else { "#define LVL_DEPTH 8\n" });
        types.text(&format!("#define HZ {}\n", Self::HZ));
        let sizes = ["WHEEL_TIMEOUT_CUTOFF", "WHEEL_TIMEOUT_MAX", "WHEEL_SIZE", "BASE_DEF"];
        types.add(extract::macro_definition, &timer, &sizes)?;
        let some = ["BASE_STD", "BASE_LOCAL", "BASE_GLOBAL", "NR_BASES"];
        types.add_if_there(extract::macro_definition, &timer, &some);
        let options = ["MOD_TIMER_PENDING_ONLY", "MOD_TIMER_REDUCE", "MOD_TIMER_NOTPENDING"];
        types.add(extract::macro_definition, &timer, &options)?;
        let delta = ["NEXT_TIMER_MAX_DELTA", "TIMER_NEXT_MAX_DELTA"];
        types.add_if_there(extract::macro_definition, &header, &delta);
        types.add(base_struct, &timer, &["struct timer_base"])?;
        if Self::MIGRATES {
            let internal = extract::read(tree, "kernel/time/tick-internal.h")?;
            types.add(extract::block, &internal, &["struct timer_events"])?;
        }
        types.write(build_dir, "timer_types_extract.h")?;
        let mut code = Pieces::default();
        let functions = [
            "round_jiffies_common",
            "timer_get_idx",
            "timer_set_idx",
            "calc_index",
            "calc_wheel_index",
            "enqueue_timer",
            "internal_add_timer",
            "detach_timer",
            "detach_if_pending",
        ];
        code.add(extract::function, &timer, &functions)?;
        code.add_if_there(extract::function, &timer, &["__forward_timer_base"]);
        code.add(extract::function, &timer, &["forward_timer_base", "__mod_timer"])?;
        code.add(extract::function, &timer, &["expire_timers", "collect_expired_timers"])?;
        code.add(extract::function, &timer, &["next_pending_bucket"])?;
        if Self::MIGRATES {
            let next = [
                "timer_recalc_next_expiry",
                "next_timer_interrupt",
                "fetch_next_timer_interrupt",
                "timer_use_tmigr",
                "__get_next_timer_interrupt",
                "__run_timers",
                "__run_timer_base",
                "run_local_timers",
            ];
            code.add(extract::function, &timer, &next)?;
            code.text("#define __run_timers_of __run_timer_base\n");
        } else {
            let next = [
                "__next_timer_interrupt",
                "get_next_timer_interrupt",
                "__run_timers",
                "run_local_timers",
            ];
            code.add(extract::function, &timer, &next)?;
            code.text("#define __run_timers_of __run_timers\n");
        }
        code.write(build_dir, "timer_extract.h")?;
        oracle::compile("timer_wheel/shim.c", &[build_dir], build_dir, flags)
    }
}

/// A struct whose last line has attributes.
fn base_struct(source: &str, head: &str) -> Option<String> {
    let begin = source.find(&format!("\n{head} {{\n"))? + 1;
    let end = begin + source[begin..].find("\n}")?;
    Some(format!("{}\n}};\n", &source[begin..end]))
}
