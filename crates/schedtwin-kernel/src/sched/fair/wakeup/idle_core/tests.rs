// SPDX-License-Identifier: GPL-2.0-or-later
//! The series beside a plain second implementation: one wakeup on random states, and what a cache knows after random
//! switches.

use super::*;
use crate::Kernel;
use crate::config::{Config, IdlerLlc};
use crate::device_tree::DeviceTree;
use crate::sched::core::{WF_SYNC, WF_TTWU};
use crate::sched::topology::IdleCore;
use crate::sched::{CfsRqId, TaskKind};
use schedtwin_types::CpuMask;

const CPUS: usize = 8;
/// CPUs of a cache.
const LLC: usize = 4;

/// Two caches of four CPUs in cores of so many threads.
fn kernel(threads: usize) -> Kernel {
    let mut machine = DeviceTree::of_domains(&[(CPUS as u16, 1024, &[(1_000_000, 100_000)])]);
    for (number, cpu) in machine.cpus.iter_mut().enumerate() {
        cpu.llc = (number / LLC) as u16;
        cpu.core = Some((number / threads) as u16);
    }
    Kernel::boot(machine, Config { idler_llc: IdlerLlc::IdleCore, ..Config::linux_6_12() })
}

fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Runs {
    Nothing,
    Fair,
    SchedIdle,
}

/// The state that a wakeup looks at, and the mails' C as plain steps. `-1` and `-2` are theirs.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    threads: usize,
    runs: [Runs; CPUS],
    /// Tasks on the waker's CPU.
    queued: u32,
    allowed: [bool; CPUS],
    idle_core: [i32; 2],
    nr_busy: [i32; 2],
    nr_idle_scan: [u32; 2],
    load: [u64; CPUS],
    task_load: u64,
    current_load: u64,
    recent: usize,
}

impl Plain {
    fn available(&self, cpu: usize) -> bool {
        self.runs[cpu] == Runs::Nothing
    }

    fn idle(&self, cpu: usize) -> bool {
        self.runs[cpu] != Runs::Fair
    }

    fn core_idle(&self, cpu: usize) -> bool {
        let first = cpu / self.threads * self.threads;
        (first..first + self.threads).all(|c| self.available(c))
    }

    fn idler_llc(&mut self, this: usize, prev: usize, sync: bool) -> (Option<usize>, bool) {
        let (mut pref, mut other) = (this, prev);
        if !sync {
            std::mem::swap(&mut pref, &mut other);
        }
        for cpu in [pref, other] {
            if self.idle(cpu) {
                return (Some(cpu), true);
            }
            let core = self.idle_core[cpu / LLC];
            if core > -1 && self.threads > 1 && self.allowed[core as usize] {
                self.idle_core[cpu / LLC] = -1;
                return (Some(core as usize), true);
            }
        }
        let (pnr_busy, tnr_busy) = (self.nr_busy[pref / LLC], self.nr_busy[other / LLC]);
        if tnr_busy == LLC as i32 && pnr_busy == LLC as i32 {
            return (None, false);
        }
        let diff = tnr_busy * LLC as i32 - pnr_busy * LLC as i32;
        (if diff == 0 { None } else { Some(if diff > 0 { pref } else { other }) }, true)
    }

    fn select(&mut self, this: usize, prev: usize, sync: bool) -> usize {
        let (mut target, mut may_scan) = (prev, true);
        if this != prev {
            let mut choice = None;
            if this / LLC == prev / LLC {
                if self.idle(prev) {
                    choice = Some(prev);
                } else if self.idle(this) {
                    choice = Some(this);
                }
            } else {
                (choice, may_scan) = self.idler_llc(this, prev, sync);
            }
            if choice.is_none() {
                let mut here = self.load[this] as i64;
                let mut there = self.load[prev] as i64 - self.task_load as i64;
                let mut pulls = false;
                if sync {
                    pulls = self.queued <= 1 || self.current_load as i64 > here;
                    here -= self.current_load as i64;
                }
                here += self.task_load as i64;
                // Equal capacities; the cache's domain has 117, and so has the one above.
                here *= 100 * 1024;
                let pct = if self.threads > 1 && this / self.threads == prev / self.threads {
                    110
                } else {
                    117
                };
                there *= (100 + (pct - 100) / 2) * 1024;
                pulls |= here < there + i64::from(sync);
                choice = pulls.then_some(this);
            }
            target = choice.unwrap_or(prev);
        }
        self.sibling(prev, target, may_scan)
    }

    fn sibling(&mut self, prev: usize, target: usize, may_scan: bool) -> usize {
        let (recent, llc) = (self.recent, target / LLC);
        if self.idle(target) {
            return target;
        }
        if prev / LLC == llc && self.idle(prev) {
            return prev;
        }
        self.recent = prev;
        let near = recent != prev && recent != target && recent / LLC == llc;
        if near && self.idle(recent) && self.allowed[recent] {
            return recent;
        }
        if !may_scan {
            return target;
        }
        let smt = self.threads > 1;
        let hint = if smt { self.idle_core[llc] } else { -1 };
        if smt && hint < 0 && prev / LLC == llc {
            let first = prev / self.threads * self.threads;
            for cpu in first..first + self.threads {
                if cpu != prev && self.allowed[cpu] && self.idle(cpu) {
                    return cpu;
                }
            }
        }
        let mut nr = self.nr_idle_scan[llc] + 1;
        if nr == 1 {
            return target;
        }
        let around: Vec<usize> = (target + 1..target + 1 + CPUS)
            .map(|c| c % CPUS)
            .filter(|c| c / LLC == llc && self.allowed[*c])
            .collect();
        let (mut remembered, mut done) = (None, [false; CPUS]);
        for cpu in around {
            if hint == -2 || !smt {
                if hint == -2 {
                    nr -= 1;
                    if nr == 0 {
                        return target;
                    }
                }
                if self.idle(cpu) {
                    return cpu;
                }
                continue;
            }
            if done[cpu] {
                continue;
            }
            if self.core_idle(cpu) {
                if hint == (cpu / self.threads * self.threads) as i32 {
                    self.idle_core[llc] = -1;
                }
                return cpu;
            }
            let first = cpu / self.threads * self.threads;
            for thread in first..first + self.threads {
                if self.allowed[thread] && self.idle(thread) && remembered.is_none() {
                    remembered = Some(thread);
                }
            }
            done[first..first + self.threads].fill(true);
        }
        remembered.unwrap_or(target)
    }
}

fn hint(kernel: &Kernel, llc: usize) -> i32 {
    let shared = kernel.sched.topology.sd_llc_shared[llc * LLC].expect("a cache");
    match kernel.sched.topology.shared[shared].idle_core {
        IdleCore::Core(core) => i32::from(core.0),
        IdleCore::Unknown => -1,
        IdleCore::None => -2,
    }
}

/// Puts the state into the kernel, wakes, and reads what is left of it.
fn in_kernel(
    kernel: &mut Kernel,
    [task, waker]: [TaskId; 2],
    before: &Plain,
    [this, prev]: [usize; 2],
    sync: bool,
) -> (usize, [i32; 2], usize) {
    for llc in 0..2 {
        let shared = kernel.sched.topology.sd_llc_shared[llc * LLC].expect("a cache");
        let shared = &mut kernel.sched.topology.shared[shared];
        shared.idle_core = match before.idle_core[llc] {
            -1 => IdleCore::Unknown,
            -2 => IdleCore::None,
            core => IdleCore::Core(CpuId(core as u16)),
        };
        shared.nr_busy_cpus = before.nr_busy[llc] as u32;
        shared.nr_idle_scan = before.nr_idle_scan[llc];
    }
    for (number, runs) in before.runs.iter().enumerate() {
        let cpu = CpuId(number as u16);
        let queued = if number == this { before.queued } else { 1 };
        let (curr, nr, idle) = match runs {
            Runs::Nothing => (TaskId::IDLE, 0, 0),
            Runs::Fair => (waker, queued, 0),
            Runs::SchedIdle => (waker, queued, queued),
        };
        kernel.sched.rq[cpu].curr = curr;
        kernel.sched.rq[cpu].nr_running = nr;
        let cfs = &mut kernel.sched.cfs[CfsRqId::root(cpu)];
        (cfs.h_nr_queued, cfs.h_nr_runnable, cfs.h_nr_idle) = (nr, nr, idle);
        cfs.avg.load_avg = before.load[number];
        kernel.sched.refresh_idle(cpu);
        kernel.sched.refresh_sched_idle(cpu);
    }
    let load_of = [(task, before.task_load), (waker, before.current_load)];
    for (who, load) in load_of {
        let se = kernel.sched.tasks[who].se;
        kernel.sched.se[se].avg.load_avg = load;
        kernel.sched.tasks[who].wakee_flips = 0;
    }
    let allowed = (0..CPUS).filter(|cpu| before.allowed[*cpu]);
    kernel.sched.tasks[task].cpus_mask = allowed.map(|cpu| CpuId(cpu as u16)).collect::<CpuMask>();
    kernel.sched.tasks[task].recent_used_cpu = CpuId(before.recent as u16);
    kernel.cx.this_cpu = CpuId(this as u16);
    let flags = if sync { WF_TTWU | WF_SYNC } else { WF_TTWU };
    let cpu = kernel.select_task_rq_fair(task, CpuId(prev as u16), flags);
    let recent = kernel.sched.tasks[task].recent_used_cpu.index();
    (cpu.index(), [hint(kernel, 0), hint(kernel, 1)], recent)
}

/// Random states; each way out has to come up.
#[test]
fn a_plain_form_finds_the_same_cpu() {
    let mut draw = random(5);
    let mut counts = [0; 5];
    for threads in [1, 2, 4] {
        let mut kernel = kernel(threads);
        let both = [(); 2].map(|()| kernel.new_task(None, TaskKind::User));
        for round in 0..6_000 {
            let density = 2 + draw(7);
            let [this, prev] = [(); 2].map(|()| draw(CPUS as u64) as usize);
            let mut before = Plain {
                threads,
                runs: std::array::from_fn(|_| match (draw(8) < density, draw(8)) {
                    (true, 0) => Runs::SchedIdle,
                    (true, _) => Runs::Fair,
                    (false, _) => Runs::Nothing,
                }),
                queued: 1 + draw(3) as u32,
                allowed: std::array::from_fn(|_| draw(6) != 0),
                idle_core: [0, 1].map(|llc| match draw(3) {
                    0 => -1,
                    1 => -2,
                    _ => ((llc * LLC + draw(LLC as u64) as usize) / threads * threads) as i32,
                }),
                nr_busy: [(); 2].map(|()| 3 + draw(3) as i32),
                nr_idle_scan: [(); 2].map(|()| draw(6) as u32),
                load: std::array::from_fn(|_| draw(2048)),
                task_load: draw(1024),
                current_load: draw(1024),
                recent: draw(CPUS as u64) as usize,
            };
            // Somebody wakes, who may also be where the task is allowed: a pull needs that.
            before.allowed[this] = true;
            before.allowed[prev] = true;
            if before.runs[this] == Runs::Nothing {
                before.runs[this] = Runs::Fair;
            }
            let sync = draw(2) == 0;
            let mut after = before.clone();
            let expected = after.select(this, prev, sync);
            let got = in_kernel(&mut kernel, both, &before, [this, prev], sync);
            let after_all = (expected, after.idle_core, after.recent);
            assert_eq!(got, after_all, "{round}: {this} {prev} {sync} {before:?}");
            let across = this / LLC != prev / LLC;
            let full = before.nr_busy == [LLC as i32; 2];
            counts[0] += u32::from(across && after.idle_core != before.idle_core);
            counts[1] += u32::from(!across && after.idle_core != before.idle_core);
            counts[2] += u32::from(across && full && expected != this && expected != prev);
            counts[3] += u32::from(across && full && (expected == this || expected == prev));
            counts[4] += u32::from(across && expected / LLC == this / LLC);
        }
    }
    // The scan rarely finds the very core that is known.
    let least = [100, 8, 100, 100, 100];
    assert!(counts.iter().zip(least).all(|(count, least)| *count > least), "{counts:?}");
}

/// Switches to and from the idle task, one CPU at a time: what is known and counted, beside the rules of the mails.
#[test]
fn caches_know_and_count_as_posted() {
    let mut draw = random(9);
    for threads in [1, 2, 4] {
        let mut kernel = kernel(threads);
        let waker = kernel.new_task(None, TaskKind::User);
        // The booting CPU has gone idle once.
        let (mut busy, mut is_idle) = ([LLC as i32 - 1, LLC as i32], [true; CPUS]);
        let (mut idle_core, mut runs) = ([-1_i32; 2], [false; CPUS]);
        let mut met = [0; 3];
        for _ in 0..4_000 {
            let number = draw(CPUS as u64) as usize;
            let (cpu, llc) = (CpuId(number as u16), number / LLC);
            let first = number / threads * threads;
            runs[number] = !runs[number];
            kernel.sched.rq[cpu].curr = if runs[number] { waker } else { TaskId::IDLE };
            kernel.sched.refresh_idle(cpu);
            if runs[number] {
                if draw(4) == 0 {
                    // A tick before the switch, of a CPU that slept without one.
                    kernel.sched.count_at_tick(cpu, false);
                    if busy[llc] != LLC as i32 {
                        busy[llc] += 1;
                    }
                    is_idle[number] = false;
                }
                kernel.put_prev_task_idle(cpu);
                if threads > 1 && idle_core[llc] == first as i32 {
                    idle_core[llc] = -1;
                }
                busy[llc] += i32::from(is_idle[number]);
                is_idle[number] = false;
            } else {
                kernel.set_next_task_idle(cpu);
                busy[llc] = (busy[llc] - 1).max(0);
                is_idle[number] = true;
                let quiet = |core: usize| (core..core + threads).all(|c| !runs[c]);
                if threads > 1 && idle_core[llc] < 0 {
                    if quiet(first) {
                        idle_core[llc] = first as i32;
                    } else if idle_core[llc] == -1 {
                        let around = (number..number + CPUS).map(|c| c % CPUS);
                        let mut around =
                            around.filter(|c| c / LLC == llc && c / threads * threads != first);
                        let next = around.find(|c| quiet(c / threads * threads));
                        idle_core[llc] = next.map_or(-2, |c| (c / threads * threads) as i32);
                    }
                }
            }
            let known = [hint(&kernel, 0), hint(&kernel, 1)];
            let counted = [0, 1].map(|llc| {
                let shared = kernel.sched.topology.sd_llc_shared[llc * LLC].expect("a cache");
                kernel.sched.topology.shared[shared].nr_busy_cpus as i32
            });
            assert_eq!((known, counted), (idle_core, busy), "{threads} {number} {runs:?}");
            for (count, known) in met.iter_mut().zip([-2..-1, -1..0, 0..8]) {
                *count += u32::from(known.contains(&idle_core[llc]));
            }
        }
        assert!(threads == 1 || met.iter().all(|count| *count > 20), "{threads}: {met:?}");
    }
}

/// The text of the series says of a cache of four: 3 to 8 busy CPUs.
#[test]
fn the_count_starts_with_everybody_twice() {
    let mut kernel = kernel(2);
    let shared = kernel.sched.topology.sd_llc_shared[0].expect("a cache");
    assert_eq!(kernel.sched.topology.shared[shared].nr_busy_cpus, 3);
    for cpu in 0..4 {
        kernel.put_prev_task_idle(CpuId(cpu));
    }
    assert_eq!(kernel.sched.topology.shared[shared].nr_busy_cpus, 7);
    let shared = kernel.sched.topology.sd_llc_shared[4].expect("a cache");
    for cpu in 4..8 {
        kernel.put_prev_task_idle(CpuId(cpu));
    }
    assert_eq!(kernel.sched.topology.shared[shared].nr_busy_cpus, 8);
}
