// SPDX-License-Identifier: GPL-2.0-or-later
//! Random machines, as the text of a machine file.
//!
//! CPUs come in groups of one capacity and one type of core, in rising order; clocks are within groups. What is extreme is asked for often:
//! no latency at all, latencies of a tenth of a second, capacities of 1, hundreds of CPUs, a cost of nothing.

use crate::tape::Tape;
use schedtwin_machine::PATHS;
use std::fmt::Write;

/// CPUs of one kind.
struct Group {
    first: u64,
    last: u64,
    capacity: u64,
    /// Name and depth in silicon of the idle states.
    states: Vec<String>,
}

/// A machine: its text and how many CPUs it has.
pub struct Machine {
    pub text: String,
    pub nr_cpus: u64,
}

/// Counts of CPUs; small ones are as likely as they are telling.
const CPUS: [u64; 20] = [1, 2, 4, 8, 2, 3, 4, 6, 8, 8, 4, 5, 6, 12, 16, 24, 32, 64, 128, 256];

macro_rules! line {
    ($to:expr, $($what:tt)*) => { writeln!($to, $($what)*).expect("memory takes everything") };
}

pub fn machine(tape: &mut Tape) -> Machine {
    let mut text = String::new();
    let nr_cpus = *tape.pick(&CPUS);
    tape.mark(match nr_cpus {
        1 => "machine: 1 CPU",
        2..=16 => "machine: up to 16 CPUs",
        _ => "machine: up to 256 CPUs",
    });
    let mut groups = groups(tape, nr_cpus);
    let smt = nr_cpus >= 2
        && groups.iter().all(|group| (group.last - group.first + 1) % 2 == 0)
        && tape.percent(20);
    let heat = tape.percent(25);
    let kinds = tape.percent(15);
    top(tape, &mut text, heat, kinds);
    topology(tape, &mut text, &groups, nr_cpus, smt);
    let per_cpu: Vec<bool> = groups.iter().map(|_| tape.percent(25)).collect();
    cores(tape, &mut text, &mut groups, smt);
    for (index, group) in groups.iter().enumerate() {
        line!(text, "[cpu.g{index}]\ncpus = \"{}-{}\"", group.first, group.last);
        line!(text, "core = \"c{index}\"\ncapacity = {}\n", group.capacity);
    }
    let domains = domains(tape, &mut text, &groups, &per_cpu);
    coupled(tape, &mut text, &domains);
    power_domains(tape, &mut text, &groups, nr_cpus);
    if smt {
        tape.mark("machine: threads of a core");
        let second = tape.within(100, 1000);
        let speed = tape.within(300, 1000);
        line!(text, "[smt]\nsecond_permille = {second}\nspeed_permille = [1000, {speed}]");
        if tape.percent(50) {
            tape.mark("machine: pollers slow threads");
            line!(text, "polling_permille = {}", tape.below(1001));
        }
        line!(text, "");
    }
    if tape.percent(30) {
        tape.mark("machine: distances");
        distances(tape, &mut text);
    }
    if text.contains("local_timer_stops") && tape.percent(70) {
        tape.mark("machine: broadcast timer");
        line!(text, "[broadcast]");
        match tape.below(3) {
            0 => line!(text, "device = \"mmio\"\nmoves = true"),
            1 => line!(text, "device = \"mmio\"\ncpu = {}", tape.below(nr_cpus)),
            _ => line!(text, "device = \"hrtimer\""),
        }
        line!(text, "program_ns = {}\n", tape.magnitude(0, 100_000));
    }
    if kinds {
        tape.mark("machine: kinds of work");
        line!(text, "[work.rt-app]\nstall_permille = {}", tape.below(900));
        line!(text, "factor_permille = {{ c0 = {} }}\n", tape.within(300, 2000));
    }
    if heat {
        tape.mark("machine: heat");
        heat_tables(tape, &mut text, &domains);
    }
    if tape.percent(20) {
        tape.mark("machine: limits of power");
        power_limit(tape, &mut text, nr_cpus);
    }
    line!(text, "[interrupts]");
    for kind in ["ipi", "timer"] {
        let min = tape.magnitude(0, 100_000);
        line!(text, "{kind}_latency_min_ns = {min}");
        line!(text, "{kind}_latency_max_ns = {}", min + tape.magnitude(0, 100_000));
    }
    line!(text, "\n[path_costs]\nscale = \"{}\"", tape.pick(&["work", "time"]));
    line!(text, "percent = {}", tape.pick(&[100, 0, 1, 50, 233, 1000]));
    let odd = tape.percent(15);
    for (name, usual) in PATHS {
        let cost = if odd { tape.magnitude(0, 100_000) } else { usual };
        line!(text, "{name} = {cost}");
    }
    Machine { text, nr_cpus }
}

/// Writes the costs of a refill and of an interrupt by distance: numbers that do not fall.
fn distances(tape: &mut Tape, text: &mut String) {
    line!(text, "[distance]\nrefill_lines = {}", tape.magnitude(0, 2_000));
    for (key, most) in [("line_ns", 200), ("ipi_ns", 50_000)] {
        let mut ns = 0;
        let mut told = Vec::new();
        for level in ["core", "cluster", "llc", "node", "package", "machine"] {
            if tape.percent(50) {
                ns += tape.below(most / 6);
                told.push(format!("{level} = {ns}"));
            }
        }
        line!(text, "{key} = {{ {} }}", told.join(", "));
    }
    line!(text, "");
}

fn groups(tape: &mut Tape, nr_cpus: u64) -> Vec<Group> {
    let count = 1 + tape.below(4.min(nr_cpus));
    let mut groups: Vec<Group> = Vec::new();
    let mut first = 0;
    let mut capacity = 0;
    for index in 0..count {
        let left = nr_cpus - first;
        let others = count - index - 1;
        let size = if others == 0 { left } else { 1 + tape.below(left - others) };
        capacity = if others == 0 || tape.percent(20) {
            1024
        } else {
            tape.magnitude(capacity.max(1), 1024)
        };
        groups.push(Group { first, last: first + size - 1, capacity, states: Vec::new() });
        first += size;
    }
    if groups.iter().any(|group| group.capacity < 1024) {
        tape.mark("machine: capacities differ");
    }
    groups
}

fn top(tape: &mut Tape, text: &mut String, heat: bool, kinds: bool) {
    line!(text, "name = \"random\"\ndescription = \"a random machine\"\ntopology = \"t\"");
    line!(text, "coupling = true\nkinds = {kinds}\nns_per_loop = {}", tape.within(1, 100));
    line!(text, "transition_latency_us = {}", tape.magnitude(0, 20_000));
    let settle = tape.magnitude(0, 20_000);
    line!(text, "settle_us = {settle}");
    if tape.percent(20) {
        tape.mark("machine: clocks that stall");
        line!(text, "stall_us = {}", tape.magnitude(0, settle));
    }
    if tape.percent(20) {
        let late = *tape.pick(&["wait", "queue", "overtake"]);
        tape.mark("machine: late requests");
        line!(text, "late_requests = \"{late}\"\nslew_uv_per_us = {}", tape.magnitude(0, 5_000));
    }
    let fast = !tape.percent(40);
    tape.mark(if fast { "machine: fast switch" } else { "machine: slow switch" });
    line!(text, "fast_switch = {fast}\ndvfs_possible_from_any_cpu = {}", !tape.percent(30));
    line!(text, "driver = \"{}\"", tape.pick(&["spins", "sleeps"]));
    line!(text, "driver_latency_us = {}", tape.magnitude(0, 20_000));
    if heat {
        line!(text, "heat = true\nambient_c = {}", tape.within(0, 40));
        line!(text, "start_above_k = {}\nheat_step_us = 5000", tape.below(50));
    }
    line!(text, "");
}

/// Cuts ranges of CPUs in two where `wanted` says, at even places where threads must stay together.
fn cut(ranges: &[(u64, u64)], tape: &mut Tape, percent: u64, even: bool) -> Vec<(u64, u64)> {
    let mut cut = Vec::new();
    for &(first, last) in ranges {
        let middle = first + (last - first) / 2;
        let middle = if even { middle | 1 } else { middle };
        if last > first && middle < last && tape.percent(percent) {
            cut.extend([(first, middle), (middle + 1, last)]);
        } else {
            cut.push((first, last));
        }
    }
    cut
}

fn lists(ranges: &[(u64, u64)]) -> String {
    let texts: Vec<String> = ranges.iter().map(|(a, b)| format!("\"{a}-{b}\"")).collect();
    texts.join(", ")
}

fn topology(tape: &mut Tape, text: &mut String, groups: &[Group], nr_cpus: u64, smt: bool) {
    let of_groups: Vec<(u64, u64)> = groups.iter().map(|g| (g.first, g.last)).collect();
    let packages = cut(&[(0, nr_cpus - 1)], tape, 20, smt);
    if packages.len() > 1 {
        tape.mark("machine: several packages");
    }
    let mut llcs = packages.clone();
    if packages.len() == 1 && tape.percent(30) {
        llcs = of_groups;
    }
    llcs = cut(&llcs, tape, 20, smt);
    if llcs.len() > 1 {
        tape.mark("machine: several caches");
    }
    line!(text, "[topologies.t]\npackage = [{}]\nllc = [{}]", lists(&packages), lists(&llcs));
    if tape.percent(30) {
        tape.mark("machine: clusters");
        line!(text, "cluster = [{}]", lists(&cut(&llcs, tape, 60, smt)));
    }
    if smt {
        let cores: Vec<(u64, u64)> = (0..nr_cpus / 2).map(|c| (2 * c, 2 * c + 1)).collect();
        line!(text, "core = [{}]", lists(&cores));
        line!(text, "kernel_smt = {}", tape.percent(60));
    }
    line!(text, "architecture = \"{}\"", tape.pick(&["arm64", "x86", "powerpc"]));
    if tape.percent(15) {
        tape.mark("machine: preferred CPUs");
        line!(text, "sd_asym_packing = true");
        if tape.percent(60) {
            let of_each: Vec<String> = (0..nr_cpus).map(|_| tape.below(4).to_string()).collect();
            line!(text, "asym_priority = [{}]", of_each.join(", "));
        }
    }
    line!(text, "");
}

/// Latencies: mostly those of silicon, sometimes none, sometimes absurd.
fn latency_ns(tape: &mut Tape) -> u64 {
    match tape.below(10) {
        0..=2 => 0,
        3..=8 => tape.magnitude(0, 2_000_000),
        _ => tape.magnitude(0, 100_000_000),
    }
}

fn cores(tape: &mut Tape, text: &mut String, groups: &mut [Group], smt: bool) {
    for (index, group) in groups.iter_mut().enumerate() {
        line!(text, "[core.c{index}]\nidle = [");
        let count = 1 + *tape.pick(&[0, 1, 2, 2, 3, 4, 7]);
        if count == 8 {
            tape.mark("machine: 8 idle states");
        }
        let polling = tape.percent(15);
        // What is asked of a state rises from shallow to deep.
        let (mut residency_us, mut entry, mut exit, mut shared) = (0, 0, 0, 0);
        let told_otherwise = tape.percent(10);
        let (mut kernel_exit, mut exit_ipi, mut exit_device) = (0, 0, 0);
        for state in 0..count {
            let name = format!("s{state}");
            if state == 0 && polling {
                tape.mark("machine: polling state");
                exit = tape.magnitude(0, 2_000);
                line!(
                    text,
                    "  {{ name = \"{name}\", entry_ns = 0, exit_ns = {exit}, residency_us = 0, power = \"50% active\", polling = true }},"
                );
                group.states.push(name);
                continue;
            }
            let first = state == u64::from(polling);
            residency_us = if first { 1 } else { residency_us + tape.magnitude(1, 5_000) };
            entry += latency_ns(tape);
            exit += latency_ns(tape);
            let power = match state {
                0 => "wfi".to_string(),
                _ => tape.pick(&["off", "30%", "wfi"]).to_string(),
            };
            let mut more = String::new();
            let deepest = state + 1 == count;
            if state > 0 || (count == 1 && tape.percent(20)) {
                if tape.percent(30) {
                    more.push_str(", deep = true");
                }
                if tape.percent(25) {
                    tape.mark("machine: timers stop");
                    more.push_str(", local_timer_stops = true");
                }
                if shared > 0 || tape.percent(30) {
                    // What is shared by more comes later.
                    shared = shared.max(tape.below(4)).max(u64::from(!smt));
                    let kind = ["core", "core", "cluster", "package"][shared as usize];
                    if kind == "core" && !smt {
                        shared = 0;
                    } else {
                        tape.mark("machine: shared idle states");
                        write!(more, ", {kind} = true").expect("memory");
                    }
                }
                if tape.percent(15) {
                    write!(
                        more,
                        ", entry_nj = {}, exit_nj = {}",
                        tape.magnitude(0, 9_000),
                        tape.magnitude(0, 9_000)
                    )
                    .expect("memory");
                }
            }
            exit_ipi += latency_ns(tape);
            exit_device += latency_ns(tape);
            kernel_exit = (kernel_exit + latency_ns(tape)).max(1_000);
            if told_otherwise {
                write!(more, ", exit_ipi_ns = {exit_ipi}, exit_device_ns = {exit_device}, kernel_exit_ns = {kernel_exit}").expect("memory");
            }
            if entry > 0 && tape.percent(15) {
                tape.mark("machine: aborted entries");
                write!(more, ", abort_ns = {}", tape.below(entry + 1)).expect("memory");
            }
            if deepest && tape.percent(10) {
                tape.mark("machine: refused entries");
                more.push_str(", refuses_pending = true");
            }
            line!(
                text,
                "  {{ name = \"{name}\", entry_ns = {entry}, exit_ns = {exit}, residency_us = {residency_us}, power = \"{power}\"{more} }},"
            );
            group.states.push(name);
        }
        line!(text, "]\n");
    }
}

/// A clock's name and how many operating points it has, and its slowest and fastest.
struct Clock {
    name: String,
    per_cpu: bool,
    khz: Vec<u64>,
}

fn domains(tape: &mut Tape, text: &mut String, groups: &[Group], per_cpu: &[bool]) -> Vec<Clock> {
    let mut ranges: Vec<(u64, u64, bool)> = Vec::new();
    for (group, per_cpu) in groups.iter().zip(per_cpu) {
        let halves = cut(&[(group.first, group.last)], tape, 15, true);
        ranges.extend(halves.iter().map(|(a, b)| (*a, *b, *per_cpu)));
    }
    let mut clocks = Vec::new();
    for (index, (first, last, per_cpu)) in ranges.into_iter().enumerate() {
        let per_cpu = per_cpu && last > first;
        if per_cpu {
            tape.mark("machine: a clock for each CPU");
        }
        line!(text, "[domain.d{index}]\ncpus = \"{first}-{last}\"");
        if per_cpu {
            line!(text, "per_cpu = true");
        }
        if tape.percent(30) {
            line!(text, "off_uw = {}", tape.magnitude(0, 20_000));
        }
        line!(text, "opp = [");
        let (mut khz, mut uw) = (0, 0);
        let mut all = Vec::new();
        for _ in 0..1 + *tape.pick(&[3, 0, 1, 2, 7, 15]) {
            khz += tape.within(100_000, 700_000);
            uw += tape.within(1_000, 400_000);
            let active = tape.within(uw, 2 * uw);
            let wfi = tape.magnitude(0, uw);
            let leak = tape.magnitude(0, 100_000);
            line!(
                text,
                "  {{ khz = {khz}, uv = {}, em_uw = {uw}, active_uw = {active}, wfi_uw = {wfi}, static_uw = {leak}, idle_static_uw = {} }},",
                500_000 + khz / 10,
                leak / 2
            );
            all.push(khz);
        }
        line!(text, "]\n");
        clocks.push(Clock { name: format!("d{index}"), per_cpu, khz: all });
    }
    clocks
}

fn coupled(tape: &mut Tape, text: &mut String, clocks: &[Clock]) {
    let shared: Vec<&Clock> = clocks.iter().filter(|clock| !clock.per_cpu).collect();
    if shared.len() < 2 || !tape.percent(25) {
        return;
    }
    tape.mark("machine: coupled clocks");
    let (from, to) = (shared[0], shared[1]);
    line!(text, "[[coupled]]\nfrom = \"{}\"\nto = \"{}\"", from.name, to.name);
    let (at, min) = (tape.pick(&from.khz), tape.pick(&to.khz));
    line!(text, "floor = [{{ at_khz = {at}, min_khz = {min} }}]\n");
}

fn power_domains(tape: &mut Tape, text: &mut String, groups: &[Group], nr_cpus: u64) {
    if groups.len() > 1 || !tape.percent(20) {
        return;
    }
    tape.mark("machine: power domains");
    let states = &groups[0].states;
    line!(
        text,
        "[power.package]\ncpus = \"0-{}\"\nuw = {}",
        nr_cpus - 1,
        tape.within(10_000, 900_000)
    );
    line!(text, "states = [");
    let from = states.len() - 1 - tape.below(states.len() as u64) as usize;
    for (at, name) in states.iter().enumerate().skip(from).take(4) {
        let (exit, residency) = (latency_ns(tape), tape.magnitude(0, 5_000));
        line!(
            text,
            "  {{ name = \"P{at}\", cpus_in = \"{name}\", uw = {}, exit_ns = {exit}, residency_us = {residency}, entry_nj = {} }},",
            9_000 - 1_000 * at,
            tape.magnitude(0, 5_000)
        );
    }
    line!(text, "]\n");
}

fn heat_tables(tape: &mut Tape, text: &mut String, clocks: &[Clock]) {
    let zones = tape.percent(80);
    for clock in clocks.iter().filter(|clock| !clock.per_cpu).take(30) {
        let name = &clock.name;
        line!(text, "[heat_node.{name}]\ncapacity_mj_per_k = {}", tape.within(10, 200));
        line!(
            text,
            "heated_by = [\"{name}\"]\nto = [{{ node = \"case\", mk_per_w = {} }}]\n",
            tape.within(4_000, 20_000)
        );
        if !zones {
            continue;
        }
        line!(text, "[thermal_zone.{name}]\nnode = \"{name}\"");
        let governor = *tape.pick(&["step_wise", "power_allocator"]);
        tape.mark(if governor == "step_wise" {
            "machine: step_wise"
        } else {
            "machine: power_allocator"
        });
        line!(text, "governor = \"{governor}\"\npolling_delay_ms = {}", tape.magnitude(0, 100));
        line!(text, "passive_delay_ms = {}\ntrips = [", tape.magnitude(1, 100));
        let first = tape.within(25, 70);
        let warm = first + tape.within(1, 20);
        line!(text, "  {{ c = {first}, hysteresis_c = {}, type = \"passive\" }},", tape.below(6));
        line!(
            text,
            "  {{ c = {warm}, hysteresis_c = {}, type = \"passive\", cools = [\"{name}\"] }},",
            tape.below(6)
        );
        line!(text, "]\n");
    }
    line!(text, "[heat_node.case]\ncapacity_mj_per_k = {}", tape.within(50, 2_000));
    line!(text, "to = [{{ node = \"ambient\", mk_per_w = {} }}]\n", tape.within(2_000, 20_000));
}

/// Firmware that holds all clocks back, by cores awake, by a budget, or both.
fn power_limit(tape: &mut Tape, text: &mut String, nr_cpus: u64) {
    line!(text, "[power_limit.all]\ncpus = \"0-{}\"", nr_cpus - 1);
    line!(text, "step_us = {}\ntells_kernel = {}", tape.within(50, 10_000), tape.percent(60));
    let by_cores = tape.percent(50);
    if by_cores {
        let most = tape.within(300_000, 3_000_000);
        line!(text, "awake_khz = [{most}, {}]", tape.within(100_000, most));
    }
    if !by_cores || tape.percent(50) {
        let sustained = tape.magnitude(1_000, 5_000_000);
        line!(text, "sustained_uw = {sustained}\nburst_uw = {}", sustained * tape.within(1, 4));
        line!(text, "tau_ms = {}", tape.within(10, 500));
    }
    line!(text, "");
}
