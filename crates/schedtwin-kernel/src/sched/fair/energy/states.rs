// SPDX-License-Identifier: GPL-2.0-or-later
//! Random states of placements by energy, and the answers of our code: `find_energy_efficient_cpu`.
//!
//! A state is eight CPUs in one to five performance domains with energy models of their own, signals of all
//! classes, clamps of queues, limits of frequencies, and a task. A line has the chosen CPU (−1: EAS cannot tell), how
//! many domains were computed, and the energy that the task adds wherever that was asked.
//! `sched/fair/states.rs` says what a line is.

use super::*;
use crate::config::{
    CapacityPressure, EffectiveCpuUtil, EmCpuEnergy, FindEnergyEfficientCpu, RunnableBoost, Uclamp,
    UtilEstForm,
};
use crate::observe::DecisionLog;
use crate::sched::demand::conformance::DemandSteps;
use crate::sched::demand::uclamp::RqClamps;
use crate::sched::demand::uclamp::conformance::ClampSteps;
use crate::sched::demand::uclamp::max::{Clamps, UclampRq};
use crate::sched::fair::states::{Family, NR_CPUS, Random, bits_of, mask_of};
use crate::sched::pelt::{SchedAvg, UTIL_AVG_UNCHANGED};
use crate::sched::root_domain::perf_states;
use crate::sched::topology::parts::{self, Part};
use crate::sched::{OnRq, TaskKind};
use schedtwin_types::CpuMask;
use std::fmt::Write;

/// Domains of one, two and three levels.
fn kernels(form: fn(&mut Config)) -> Vec<Kernel> {
    let part = |count, llc, cluster| Part::of(count, 1024).llc(llc).cluster(cluster);
    let machines: [Vec<Part>; 3] = [
        vec![Part::of(8, 1024)],
        vec![Part::of(4, 1024).llc(0), Part::of(4, 1024).llc(1)],
        vec![part(2, 0, 0), part(2, 0, 1), part(4, 1, 2)],
    ];
    let kernel = |parts: &Vec<Part>| {
        let mut kernel = parts::boot(parts, false);
        kernel.cx.config.fair_server_runtime = 0;
        kernel.cx.config.uclamp = Uclamp::KeyOff;
        form(&mut kernel.cx.config);
        kernel.sched.set_capacity_pressure(&kernel.cx.config);
        kernel.new_task(None, TaskKind::User);
        kernel
    };
    machines.iter().map(kernel).collect()
}

impl Random {
    /// An average of what a CPU of this capacity does: often little, sometimes more than it can.
    fn util(&mut self, capacity: u64) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => self.below(1100),
            2 => capacity * 4 / 5,
            _ => self.below(capacity),
        }
    }

    /// Clamps of a queue; one without tasks may retain a maximum.
    fn queue_clamps(&mut self) -> UclampRq {
        let mut rq = UclampRq::default();
        let tasks: Vec<Clamps> = (0..self.below(3)).map(|_| self.clamps()).collect();
        tasks.iter().for_each(|task| rq.inc(*task));
        if self.one_in(4) {
            tasks.iter().for_each(|task| rq.dec(*task));
        }
        rq
    }
}

/// Whether it has the form of 6.1 and not that of 5.19.
fn is_6_1(config: &Config) -> bool {
    config.em_cpu_energy == EmCpuEnergy::ByFrequency
        && config.find_energy_efficient_cpu != FindEnergyEfficientCpu::Margin
}

/// Makes frequencies some that a utilisation asks for exactly.
fn frequencies_of_utilisations(opps: &mut [(u32, u64)], capacity: u64) {
    let top = u64::from(opps.last().expect("a domain has a frequency").0);
    let mut below = 0;
    for (khz, _) in opps {
        let util = u64::from(*khz) * capacity / top;
        let asked = (top * util / capacity) as u32;
        if asked > below {
            *khz = asked;
        }
        below = *khz;
    }
}

/// Splits the CPUs into performance domains, the one of the highest CPU first, and writes them.
fn draw_domains(k: &mut Kernel, r: &mut Random, line: &mut String) {
    let mut first = 0;
    let mut pds = Vec::new();
    while first < NR_CPUS {
        let rest = u64::from(NR_CPUS - first);
        let weight = if pds.len() == 4 { rest } else { 1 + r.below(rest) } as u16;
        let any = 100 + r.below(925);
        let capacity = r.of(&[124, 427, 512, 1024, any]);
        let span: CpuMask = (first..first + weight).map(CpuId).collect();
        // The lowest frequency leaves a performance of one at least.
        let (mut khz, mut power) = (100_000 + r.below(400_000) as u32, 0);
        let step = r.of(&[4, 300, 900]);
        let mut opps: Vec<(u32, u64)> = (0..1 + r.below(6))
            .map(|_| {
                khz += 1 + r.below(500_000) as u32;
                power += 1000 * (1 + r.below(step));
                (khz, power)
            })
            .collect();
        if is_6_1(&k.cx.config) && r.one_in(2) {
            frequencies_of_utilisations(&mut opps, capacity);
        }
        let states = perf_states(&k.cx.config, capacity, &opps);
        let skip_inefficiencies = states.iter().any(|s| s.inefficient) && !r.one_in(4);
        for cpu in span.iter() {
            k.sched.rq[cpu].arch_capacity = capacity;
        }
        pds.push((PerfDomain { span, first: CpuId(first), states, skip_inefficiencies }, weight));
        first += weight;
    }
    pds.reverse();
    write!(line, "{} ", pds.len()).unwrap();
    for (pd, weight) in &pds {
        let (first, skip, states) = (pd.first, pd.skip_inefficiencies as u8, pd.states.len());
        let capacity = k.sched.arch_scale_cpu_capacity(pd.first);
        write!(line, "{first} {weight} {capacity} {skip} {states} ").unwrap();
        for state in &pd.states {
            write!(line, "{} {} ", state.frequency, state.power).unwrap();
        }
    }
    k.sched.rd.pds = pds.into_iter().map(|(pd, _)| pd).collect();
}

/// The chain of domains that EAS looks for prev in.
fn draw_chain(k: &mut Kernel, r: &mut Random, line: &mut String) {
    let this = k.cx.this_cpu;
    let chain: Vec<_> = k.sched.topology.domains_of(this).collect();
    let from = if r.one_in(12) { chain.len() } else { r.below(chain.len() as u64) as usize };
    k.sched.topology.sd_asym_cpucapacity[this.index()] = chain.get(from).copied();
    write!(line, "{} ", chain.len() - from).unwrap();
    for sd in &chain[from..] {
        write!(line, "{} ", bits_of(&k.sched.topology[*sd].span)).unwrap();
    }
}

/// Signals, clamps and limits of a CPU. `quiet`: no class but the fair one has used it.
fn draw_cpu(k: &mut Kernel, cpu: CpuId, quiet: bool, r: &mut Random, line: &mut String) {
    let capacity = k.sched.arch_scale_cpu_capacity(cpu);
    let others = |r: &mut Random| if quiet || r.one_in(2) { 0 } else { r.below(capacity / 2 + 1) };
    let (util, estimate, runnable) = (r.util(capacity), r.util(capacity), r.util(2 * capacity));
    let (rt, dl) = (others(r), others(r));
    let irq = if r.one_in(30) { capacity + r.below(3) } else { others(r) };
    let running_bw = if quiet || r.one_in(2) { 0 } else { r.below(1 << 20) };
    let rt_runnable = !quiet && r.one_in(6);
    // Without the key nobody is counted.
    let clamps = if ClampSteps(k).key() { r.queue_clamps() } else { UclampRq::default() };
    let mut steps = DemandSteps(k);
    steps.change_averages(cpu, |averages| {
        let cfs = averages.cfs;
        (cfs.util_avg, cfs.util_est, cfs.runnable_avg) = (util, estimate as u32, runnable);
        (averages.rt.util_avg, averages.dl.util_avg, averages.irq.util_avg) = (rt, dl, irq);
    });
    steps.set_running_bw(cpu, running_bw);
    steps.set_rt_runnable(cpu, rt_runnable);
    steps.set_clamps(cpu, clamps);
    let rq = &mut k.sched.rq[cpu];
    rq.avg_hw.load_avg = if quiet || r.one_in(2) { 0 } else { r.below(capacity) };
    let pressure = if quiet || r.one_in(2) { 0 } else { r.below(capacity) };
    rq.cpu_capacity = if r.one_in(2) { capacity } else { 1 + r.below(capacity) };
    let RqClamps::Max(clamps) = &*rq.uclamp else { panic!("clamps are not added up") };
    let (Clamps { min, max }, idle) = (clamps.clamps(), clamps.is_idle() as u8);
    let (hw, left) = (rq.avg_hw.load_avg, rq.cpu_capacity);
    k.sched.set_cpufreq_pressure(cpu, pressure);
    write!(
        line,
        "{util} {estimate} {runnable} {rt} {dl} {irq} {running_bw} {} {min} {max} {idle} {hw} {pressure} {left} ",
        rt_runnable as u8,
    )
    .unwrap();
}

/// The task: where it was, what it uses, what it asks for.
fn draw_task(k: &mut Kernel, task: TaskId, r: &mut Random, line: &mut String) {
    let two_numbers = k.cx.config.util_est == UtilEstForm::EnqueuedAndEwma;
    let (last, queued, current) = (r.cpu(), r.one_in(10), r.one_in(10));
    let allowed = if r.one_in(2) { 255 } else { r.mask() };
    let nothing = r.one_in(16);
    let size = r.of(&[40, 300, 1100]);
    let mut draw = || if nothing { 0 } else { r.below(size) };
    let avg = SchedAvg {
        util_avg: draw(),
        runnable_avg: draw(),
        util_est: draw() as u32,
        util_est_ewma: if two_numbers { draw() as u32 } else { 0 },
        ..SchedAvg::default()
    };
    let flag = if r.one_in(2) { UTIL_AVG_UNCHANGED } else { 0 };
    let request = r.uclamp_request();
    let t = &mut k.sched.tasks[task];
    (t.cpu, t.cpus_mask) = (last, mask_of(allowed));
    t.on_rq = if queued { OnRq::Queued } else { OnRq::No };
    t.uclamp_req = request;
    k.sched.se[t.se].avg = SchedAvg { util_est: avg.util_est | flag, ..avg };
    k.sched.rq[k.cx.this_cpu].curr = if current { task } else { TaskId::IDLE };
    let Clamps { min, max } = ClampSteps(k).task(task).effective;
    let (util, runnable, ewma) = (avg.util_avg, avg.runnable_avg, avg.util_est_ewma);
    let (estimate, queued, current) = (avg.util_est | flag, queued as u8, current as u8);
    write!(
        line,
        "{last} {queued} {current} {allowed} {util} {estimate} {ewma} {runnable} {min} {max} "
    )
    .unwrap();
}

/// A state, and where the task goes.
fn case(kernels: &mut [Kernel], r: &mut Random) -> String {
    let k = &mut kernels[r.below(3) as usize];
    let (this, prev) = (r.cpu(), r.cpu());
    k.cx.this_cpu = this;
    let clamped = r.one_in(2);
    DemandSteps(k).turn_uclamp_key(clamped);
    let mut line = format!("{} {this} {prev} ", clamped as u8);
    let task = TaskId(1);
    draw_chain(k, r, &mut line);
    draw_domains(k, r, &mut line);
    let quiet = r.one_in(3);
    for cpu in k.cx.platform.device_tree.all_cpus().iter() {
        draw_cpu(k, cpu, quiet, r, &mut line);
    }
    draw_task(k, task, r, &mut line);
    let (mut computed, mut seen) = (0, DecisionLog::default());
    let choice = k.find_energy_efficient_cpu(task, prev, &mut computed, &mut seen);
    let cpu = choice.map_or(-1, |(cpu, _)| i32::from(cpu.0));
    write!(line, "= {cpu} {computed}").unwrap();
    for candidate in seen.candidates {
        if let Some(delta) = candidate.energy_delta {
            write!(line, " {}+{delta}", candidate.cpu).unwrap();
        }
    }
    line
}

fn placements(form: fn(&mut Config), seed: u64) -> Box<dyn FnMut() -> String> {
    let mut kernels = kernels(form);
    let mut r = Random::new(2_718_281_828_459_045, seed);
    Box::new(move || case(&mut kernels, &mut r))
}

fn as_6_1(config: &mut Config) {
    config.effective_cpu_util = EffectiveCpuUtil::HeadroomLast;
    config.em_cpu_energy = EmCpuEnergy::ByFrequency;
    config.util_est = UtilEstForm::EnqueuedAndEwma;
    config.runnable_boost = RunnableBoost::Off;
    config.capacity_pressure = CapacityPressure::Thermal;
}

fn as_5_19(config: &mut Config) {
    as_6_1(config);
    config.find_energy_efficient_cpu = FindEnergyEfficientCpu::Margin;
}

/// 6.18 before 6.18.40.
fn as_6_18(config: &mut Config) {
    config.runnable_boost = RunnableBoost::On;
}

/// 6.12.107 and later, and 7.3.
fn as_6_12_117(config: &mut Config) {
    config.runnable_boost = RunnableBoost::WithTask;
}

/// Declares the family of a form.
macro_rules! families {
    ($( $name:ident = $form:path; )*) => {
        $(
            #[allow(missing_docs, reason = "named after the kernel that the family is of")]
            pub const $name: &[Family] = &[
                Family { name: "", states: "placements", share: 1, start: |seed| placements($form, seed) },
            ];
        )*
    };
}

families! {
    LINUX_5_19 = as_5_19;
    LINUX_6_1 = as_6_1;
    LINUX_6_12 = as_6_12_117;
    LINUX_6_18 = as_6_18;
    LINUX_7_3 = as_6_12_117;
}
