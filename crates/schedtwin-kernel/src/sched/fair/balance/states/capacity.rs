// SPDX-License-Identifier: GPL-2.0-or-later
//! Random refreshes of capacities, and the answers of our code: `update_group_capacity` of domains of a CPU, from the
//! lowest up or of a single one.
//!
//! A state is a machine with all its domains, those of NUMA nodes that overlap among them, and what other
//! classes, interrupts and limits of frequencies leave of its CPUs. A line has every CPU's capacity and those of
//! all groups afterwards.

use super::*;
use crate::config::CapacityPressure;
use crate::sched::fair::states::write_domains;
use crate::sched::topology::Topology;
use crate::sched::topology::parts::machine;

/// One cache; four; clusters; cores of two threads in two caches; four nodes of which two are far from each other.
pub(in crate::sched::fair) fn hierarchies(form: fn(&mut Config)) -> Vec<Kernel> {
    let llc = |count, llc| Part::of(count, 1024).llc(llc);
    let cluster = |count, cluster| Part::of(count, 1024).cluster(cluster);
    let machines: [Vec<Part>; 5] = [
        vec![llc(8, 0)],
        vec![llc(2, 0), llc(2, 1), llc(2, 2), llc(2, 3)],
        vec![cluster(2, 0), cluster(2, 1), cluster(4, 2)],
        (0..4).map(|n| llc(2, n / 2).core(n)).collect(),
        (0..4).map(|n| llc(2, n).node(n)).collect(),
    ];
    let kernel = |parts: &Vec<Part>| {
        let mut kernel = parts::boot(parts, false);
        form(&mut kernel.cx.config);
        let config = Config { sched_cluster: true, ..(*kernel.cx.config).clone() };
        let mut machine = machine(parts);
        let ring = [[10, 16, 22, 16], [16, 10, 16, 22], [22, 16, 10, 16], [16, 22, 16, 10]];
        machine.topology.distances = ring.iter().map(|row| row.to_vec()).collect();
        kernel.sched.topology = Topology::build(&machine, &config);
        kernel.sched.set_capacity_pressure(&config);
        kernel
    };
    machines.iter().map(kernel).collect()
}

/// What leaves a CPU less than its capacity.
fn draw_pressures(k: &mut Kernel, cpu: CpuId, r: &mut Random, line: &mut String) {
    let arch = if r.one_in(2) { 1024 } else { 100 + r.below(925) };
    let part = |r: &mut Random| match r.below(5) {
        0 => r.below(arch + 100),
        1 => r.below(arch / 8),
        _ => 0,
    };
    let (rt, dl, irq) = (part(r), part(r), part(r));
    let (hw, pressure) = (part(r).min(arch), part(r).min(arch));
    let left = 1 + r.below(arch);
    let rq = &mut k.sched.rq[cpu];
    (rq.arch_capacity, rq.cpu_capacity) = (arch, left);
    (rq.avg_rt.util_avg, rq.avg_dl.util_avg, rq.avg_irq.util_avg) = (rt, dl, irq);
    rq.avg_hw.load_avg = hw;
    k.sched.set_cpufreq_pressure(cpu, pressure);
    write!(line, "{arch} {left} {rt} {dl} {irq} {hw} {pressure} ").unwrap();
}

fn case(kernels: &mut [Kernel], r: &mut Random) -> String {
    let k = &mut kernels[r.below(5) as usize];
    k.cx.now = (100 + r.below(1000)) * 4_000_000;
    for sgc in &mut k.sched.topology.capacities {
        sgc.min_capacity = r.below(1025);
        sgc.max_capacity = sgc.min_capacity + r.below(500);
        sgc.capacity = sgc.max_capacity + r.below(3000);
        sgc.next_update = r.below(400);
    }
    for domain in &mut k.sched.topology.domains {
        domain.balance_interval = r.of(&[0, 1, 8, 16, 64, 512, 5000]);
    }
    let cpu = r.cpu();
    let chain: Vec<DomainId> = k.sched.topology.domains_of(cpu).collect();
    let only = r.one_in(2).then(|| r.below(chain.len() as u64) as usize);
    let mut line = format!("{} {cpu} {} ", k.cx.jiffies(), only.map_or(-1, |level| level as i32));
    write_domains(k, &mut line);
    for cpu in k.cx.platform.device_tree.all_cpus().iter() {
        draw_pressures(k, cpu, r, &mut line);
    }
    for (level, sd) in chain.into_iter().enumerate() {
        if only.is_none_or(|only| only == level) {
            k.sched.update_group_capacity(sd, cpu, &k.cx);
        }
    }
    line += "=";
    for cpu in k.cx.platform.device_tree.all_cpus().iter() {
        write!(line, " {}", k.sched.rq[cpu].cpu_capacity).unwrap();
    }
    for sgc in &k.sched.topology.capacities {
        let (capacity, min, max) = (sgc.capacity, sgc.min_capacity, sgc.max_capacity);
        write!(line, " {capacity},{min},{max},{}", sgc.next_update).unwrap();
    }
    line
}

fn refreshes(form: fn(&mut Config), seed: u64) -> Lines {
    let mut kernels = hierarchies(form);
    let mut r = Random::new(1_732_050_807_568_877, seed);
    Box::new(move || case(&mut kernels, &mut r))
}

/// Declares the family of a form.
macro_rules! families {
    ($( $name:ident = $form:path; )*) => {
        $(
            #[allow(missing_docs, reason = "named after the kernel that the family is of")]
            pub const $name: &[Family] = &[
                Family { name: "", states: "refreshes", share: 1, start: |seed| refreshes($form, seed) },
            ];
        )*
    };
}

fn as_6_1(config: &mut Config) {
    balance_as_6_1(config);
    config.capacity_pressure = CapacityPressure::Thermal;
}

families! {
    LINUX_6_1 = as_6_1;
    LINUX_6_12 = balance_as_6_12;
}
