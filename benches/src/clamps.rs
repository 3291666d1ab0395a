// SPDX-License-Identifier: GPL-2.0-or-later
//! The cost of clamps: instructions of an enqueue and the dequeue after it.
//!
//! A task joins the run queue of an idle CPU of the fair class and leaves it again, a millisecond later each time, so that
//! averages are refreshed as they are when tasks wake and move; the governor is told as ever. Valgrind counts a long and a
//! short repetition, and their difference holds neither boot nor end.
//!
//! | mode | clamps |
//! |---|---|
//! | key off | nobody has used one, as on most machines |
//! | max | each task asks for a minimum and a maximum; buckets count them |
//! | sum | the same tasks; biases and factors follow each refresh |

use crate::budget::callgrind;
use crate::w1::table;
use schedtwin_kernel::Kernel;
use schedtwin_kernel::config::{
    Config, MaxUclampFactor, NegativeBias, Uclamp, UclampAggregation, UtilBiasHook, UtilEstUclamp,
};
use schedtwin_kernel::device_tree::DeviceTree;
use schedtwin_kernel::sched::TaskKind;
use schedtwin_kernel::sched::demand::uclamp::UclampRequest;
use schedtwin_types::{CpuId, TaskId};
use std::io;

/// How clamps are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Not at all.
    KeyOff,
    /// The largest minimum and maximum of a queue count.
    Max,
    /// Clamped utilisations are added up.
    Sum,
}

/// Repetitions of the two runs.
const SHORT: u64 = 2_000;
const LONG: u64 = 12_000;
/// Tasks that take turns.
const TASKS: u64 = 4;
const CPU: CpuId = CpuId(0);

fn boot(mode: Mode) -> (Kernel, Vec<TaskId>) {
    let opps = [(500_000, 100), (1_000_000, 300), (2_000_000, 900)];
    let mut config = Config {
        fair_server_runtime: 0,
        uclamp: if mode == Mode::KeyOff { Uclamp::KeyOff } else { Uclamp::On },
        ..Config::linux_6_12()
    };
    if mode == Mode::Sum {
        config.uclamp_aggregation = UclampAggregation::Sum;
        config.util_est_uclamp = UtilEstUclamp::Tracked;
        config.negative_bias = NegativeBias::Propagated;
        config.max_uclamp_factor = MaxUclampFactor::Tracked;
        config.enqueue_hook = UtilBiasHook::Boosted;
    }
    let mut kernel = Kernel::boot(DeviceTree::of_domains(&[(2, 1024, &opps)]), config);
    let tasks: Vec<TaskId> = (0..TASKS).map(|_| kernel.new_task(None, TaskKind::User)).collect();
    if mode != Mode::KeyOff {
        for (&task, (min, max)) in tasks.iter().zip([(0, 300), (200, 1024), (100, 800), (512, 600)])
        {
            let request = UclampRequest { min: Some(min), max: Some(max) };
            kernel.inside_mut().tasks[task].uclamp_req = request;
        }
    }
    (kernel, tasks)
}

/// Lets tasks join and leave so many times. All but one that takes turns stay queued.
pub fn run(mode: Mode, pairs: u64) {
    let (mut kernel, tasks) = boot(mode);
    let mut now = 100_000_000;
    let mut advance = |kernel: &mut Kernel| {
        now += 1_000_000;
        *kernel.inside_mut().now = now;
    };
    for &task in &tasks {
        advance(&mut kernel);
        kernel.activate_task(CPU, task, 0);
    }
    for pair in 0..pairs {
        let task = tasks[(pair % TASKS) as usize];
        advance(&mut kernel);
        kernel.deactivate_task(CPU, task, 0);
        advance(&mut kernel);
        kernel.activate_task(CPU, task, 0);
    }
}

/// Instructions of a pair.
fn count(mode: Mode) -> io::Result<u64> {
    let name = clap::ValueEnum::to_possible_value(&mode).expect("a mode has a name");
    let total = |pairs: u64| {
        let arguments = ["clamps-case", name.get_name(), &pairs.to_string()];
        callgrind(&arguments).map(|profile| profile.total)
    };
    Ok((total(LONG)? - total(SHORT)?) / (LONG - SHORT))
}

/// Measures and prints.
pub fn report() -> io::Result<()> {
    let mut table = table(["clamps", "instructions of an enqueue and a dequeue", "against none"]);
    let none = count(Mode::KeyOff)?;
    for (name, mode) in [("key off", Mode::KeyOff), ("max", Mode::Max), ("sum", Mode::Sum)] {
        let count = if mode == Mode::KeyOff { none } else { count(mode)? };
        let more = count as i64 - none as i64;
        table.add_row([name.to_string(), count.to_string(), format!("{more:+}")]);
    }
    println!("{table}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each mode runs, and what it is to measure happens.
    #[test]
    fn modes_differ() {
        for mode in [Mode::KeyOff, Mode::Max, Mode::Sum] {
            run(mode, 16);
            let (mut kernel, tasks) = boot(mode);
            *kernel.inside_mut().now = 100_000_000;
            kernel.activate_task(CPU, tasks[3], 0);
            let demand = kernel.rt_uclamp_min(tasks[3]);
            assert_eq!(demand, if mode == Mode::KeyOff { 0 } else { 512 }, "{mode:?}");
        }
    }
}
