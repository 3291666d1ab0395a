// SPDX-License-Identifier: GPL-2.0-or-later
//! Births: the CPU on which each thread of the workload begins.
//!
//! They are told and not judged: the share of runs that two sides have in common, the mean over the threads. Two samples of one
//! distribution have less than all in common.

use super::execution::Execution;
use super::workload::{BoardWorkload, NR_CPUS};
use std::fmt::Write;

/// The first CPU of each thread, in the order of their births; children of threads are left out.
pub fn first_cpus(execution: &Execution, workload: &BoardWorkload) -> Vec<usize> {
    let threads: u32 = workload.tasks.iter().map(|task| task.count).sum();
    let born = execution.born.iter().filter(|(pid, _)| execution.task_of.contains_key(pid));
    born.map(|(_, cpu)| *cpu).take(threads as usize).collect()
}

/// How often the thread of that number begins on each CPU, of all runs that have it.
fn shares(runs: &[Vec<usize>], thread: usize) -> [f64; NR_CPUS as usize] {
    let mut shares = [0.0; NR_CPUS as usize];
    let cpus: Vec<usize> = runs.iter().filter_map(|run| run.get(thread).copied()).collect();
    cpus.iter().for_each(|cpu| shares[*cpu] += 1.0 / cpus.len() as f64);
    shares
}

/// The table of a workload.
pub fn print(recorded: &[Vec<usize>], twin: &[Vec<usize>]) -> String {
    let threads = recorded.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = format!("  {:<14} {:<46} twin\n", "first CPU", "recorded");
    let mut common = 0.0;
    for thread in 0..threads {
        let sides = [recorded, twin].map(|runs| shares(runs, thread));
        common += sides[0].iter().zip(sides[1]).map(|(a, b)| a.min(b)).sum::<f64>();
        let [recorded, twin] = sides.map(|shares| {
            let mut cpus: Vec<(usize, f64)> =
                shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0).collect();
            cpus.sort_by(|a, b| b.1.total_cmp(&a.1));
            let listed: Vec<String> =
                cpus.iter().map(|(cpu, share)| format!("{cpu} {:.0} %", share * 100.0)).collect();
            listed.join(", ")
        });
        writeln!(text, "  thread {:<7} {recorded:<46} {twin}", thread + 1)
            .expect("memory takes it");
    }
    let common = 100.0 * common / threads.max(1) as f64;
    text + &format!("  in common: {common:.0} %\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_sides_have_in_common() {
        let recorded = [vec![0, 3], vec![0, 2], vec![7, 3], vec![0, 3]];
        let twin = [vec![0, 3], vec![0, 1]];
        assert_eq!(
            print(&recorded, &twin),
            "  first CPU      recorded                                       twin\n\
             \x20 thread 1       0 75 %, 7 25 %                                 0 100 %\n\
             \x20 thread 2       3 75 %, 2 25 %                                 1 50 %, 3 50 %\n\
             \x20 in common: 62 %\n"
        );
    }

    #[test]
    fn a_run_without_a_thread_does_not_count() {
        assert!(print(&[vec![1], vec![]], &[vec![1]]).ends_with("in common: 100 %\n"));
    }
}
