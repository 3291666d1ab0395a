// SPDX-License-Identifier: GPL-2.0-or-later
//! The text of `show machine NAME`, for a terminal of 100 columns.
//!
//! Topology as a tree, then a table for each clock with what the kernel believes beside what is
//! measured, then idle states, couplings, interrupts and path costs. Numbers are exact (a power of
//! 22 890 µW prints as 22.890 mW), so the text can be compared with a source by eye.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use schedtwin_types::{CpuId, CpuMask, printable};

use crate::{
    CostScale, Cpu, DriverWait, FrequencyDomain, IdlePower, LateRequests, Machine, OperatingPoint,
    Shared,
};

/// Columns of a line.
const TERMINAL: usize = 100;

/// A level of the topology: its name, and the number of a CPU's part of it.
type LevelOf = (&'static str, fn(&Cpu) -> Option<u16>);

/// An operating point in the kernel's energy model, to show and to compare: the kernel makes its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnergyModelRow {
    /// Capacity at this frequency.
    pub performance: u64,
    /// Power for each unit of it, in tenths of the power's unit; `None` where performance is 0.
    pub cost: Option<u64>,
    /// Whether a higher frequency costs no more.
    pub inefficient: bool,
}

impl Machine {
    /// Everything about the machine.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        let [identity, description] =
            [&self.identity, &self.description].map(|text| printable::line(text));
        let _ = writeln!(out, "{identity}: {description}");
        self.describe_topology(&mut out);
        for (index, domain) in self.domains.iter().enumerate() {
            // Domains made by `per_cpu` are alike: the first stands for all.
            let like = self.domains.iter().position(|d| d.opps == domain.opps && d.cpus.len() == 1);
            if domain.cpus.len() == 1 && like.is_some_and(|first| first < index) {
                continue;
            }
            self.describe_domain(domain, &mut out);
        }
        self.describe_idle(&mut out);
        self.describe_smt(&mut out);
        self.describe_block(&mut out);
        self.describe_distances(&mut out);
        self.describe_turns(&mut out);
        self.describe_power_domains(&mut out);
        self.describe_power_limits(&mut out);
        self.describe_heat(&mut out);
        self.describe_couplings(&mut out);
        self.describe_dependences(&mut out);
        self.describe_costs(&mut out);
        self.describe_estimates(&mut out);
        for remark in self.remarks() {
            let mut column = TERMINAL;
            for word in format!("note: {remark}").split(' ') {
                let fits = column + 1 + word.chars().count() <= TERMINAL;
                column = word.chars().count() + if fits { column + 1 } else { 0 };
                out.push_str(if fits { " " } else { "\n" });
                out.push_str(word);
            }
            out.push('\n');
        }
        out
    }

    /// Returns the kernel's energy model of a domain's powers.
    ///
    /// Kernel: 6.12, kernel/power/energy_model.c: em_init_performance(), em_compute_costs().
    /// A frequency that costs no less than a higher one is inefficient, and cpufreq passes over it.
    pub fn energy_model(&self, domain: &FrequencyDomain) -> Vec<EnergyModelRow> {
        let capacity = u64::from(self.cpus[domain.cpus[0].index()].capacity);
        let max = u64::from(domain.max_khz());
        let mut least = u64::MAX;
        let row = |opp: &OperatingPoint| {
            let performance = capacity * u64::from(opp.khz) / max;
            let cost = (opp.em_power_uw * 10).checked_div(performance);
            let inefficient = cost.is_some_and(|cost| cost >= least);
            least = least.min(cost.unwrap_or(u64::MAX));
            EnergyModelRow { performance, cost, inefficient }
        };
        let mut rows: Vec<EnergyModelRow> = domain.opps.iter().rev().map(row).collect();
        rows.reverse();
        rows
    }

    /// Describes the values that the file marks as estimates, by the paths of their keys, and those
    /// that it leaves out.
    fn describe_estimates(&self, out: &mut String) {
        describe_paths("estimates (the file says why)", &self.estimates, out);
        describe_paths("measured by schedtwin calibrate machine", &self.measured, out);
        describe_paths("fitted to published values (the file says which)", &self.fitted, out);
        let left_out = "left out: estimates by the class of the cores (docs/machine-files.md)";
        describe_paths(left_out, &self.left_out, out);
    }

    fn describe_topology(&self, out: &mut String) {
        let _ = writeln!(out, "\ntopology `{}`: {} CPUs", self.topology, self.nr_cpus());
        // Each level splits the CPUs of the one above by the number they have there.
        let levels: [LevelOf; 6] = [
            ("node", |cpu| Some(cpu.node)),
            ("package", |cpu| Some(cpu.package)),
            ("hemisphere", |cpu| cpu.hemisphere),
            ("cache", |cpu| Some(cpu.llc)),
            ("cluster", |cpu| cpu.cluster),
            ("L2", |cpu| cpu.l2),
        ];
        // A node that is the only one tells nothing.
        let first = usize::from(self.cpus.iter().all(|cpu| cpu.node == self.cpus[0].node));
        let everything = CpuMask::first(self.nr_cpus());
        self.draw(&everything, &levels[first..], "  ", out);
        self.describe_kernel_topology(out);
    }

    /// Describes what the kernel is told beside the places of CPUs, where there is something to
    /// tell.
    fn describe_kernel_topology(&self, out: &mut String) {
        let told = &self.kernel_topology;
        if self.smt.is_some() {
            let threads = if told.smt { "knows" } else { "does not know" };
            let levels = told.architecture.name();
            let _ =
                writeln!(out, "  the kernel {threads} the threads of a core; levels of {levels}");
        }
        for (from, row) in told.distances.iter().enumerate() {
            let row: Vec<String> = row.iter().map(|distance| format!("{distance:>3}")).collect();
            let _ = writeln!(out, "  distances from node {from}: {}", row.join(" "));
        }
    }

    fn draw(&self, cpus: &CpuMask, levels: &[LevelOf], indent: &str, out: &mut String) {
        let Some(((name, number), below)) = levels.split_first() else {
            return self.draw_cpus(cpus, indent, out);
        };
        let mut parts: Vec<(Option<u16>, CpuMask)> = Vec::new();
        for cpu in cpus.iter() {
            let key = number(&self.cpus[cpu.index()]);
            match parts.iter_mut().find(|part| part.0 == key) {
                Some(part) => part.1.insert(cpu),
                None => parts.push((key, CpuMask::of(cpu))),
            }
        }
        for (key, part) in parts {
            match key {
                Some(key) => {
                    let _ = writeln!(out, "{indent}{name} {key}: CPU {part}");
                    self.draw(&part, below, &format!("{indent}  "), out);
                }
                None => self.draw(&part, below, indent, out),
            }
        }
    }

    /// One line for each run of equal CPUs.
    fn draw_cpus(&self, cpus: &CpuMask, indent: &str, out: &mut String) {
        let own = |cpu: &Cpu| self.domains[cpu.domain].cpus.len() == 1;
        let alike = |a: CpuId, b: CpuId| {
            let (a, b) = (&self.cpus[a.index()], &self.cpus[b.index()]);
            let one_clock = a.domain == b.domain;
            let like_clocks =
                own(a) && own(b) && self.domains[a.domain].opps == self.domains[b.domain].opps;
            (a.core_type, a.capacity) == (b.core_type, b.capacity) && (one_clock || like_clocks)
        };
        let mut rest = *cpus;
        while let Some(first) = rest.lowest() {
            let run: CpuMask = rest.iter().filter(|cpu| alike(first, *cpu)).collect();
            rest = rest.and_not(&run);
            let cpu = &self.cpus[first.index()];
            let domain = &self.domains[cpu.domain];
            let each = if run.weight() > 1 && own(cpu) { " each, as" } else { "" };
            let _ = writeln!(
                out,
                "{indent}CPU {:<8} {:<16} capacity {:>4}   clock{each} {} (policy{})",
                run.to_string(),
                self.core_types[cpu.core_type].name,
                cpu.capacity,
                domain.name,
                domain.cpus[0],
            );
        }
    }

    fn describe_domain(&self, domain: &FrequencyDomain, out: &mut String) {
        let cpus = CpuMask::from_cpus(domain.cpus.iter().copied());
        let way = match (domain.fast_switch, domain.driver) {
            (true, _) => "fast switch".to_string(),
            (false, wait) => {
                let does = if wait == DriverWait::Sleeps { "sleeps" } else { "spins" };
                format!(
                    "slow path (sugov thread; driver {does} {})",
                    span(domain.driver_latency_ns)
                )
            }
        };
        let _ = writeln!(
            out,
            "\nclock {} (policy{}, CPU {cpus}): {way},\n  kernel's transition latency {}, takes {}",
            domain.name,
            domain.cpus[0],
            span(domain.kernel_transition_latency_ns),
            self.switching_in_words(domain),
        );
        let mut table = table(&[
            "kHz",
            "mV",
            "capacity",
            "EM mW",
            "EM cost",
            "busy mW",
            "WFI mW",
            "domain mW",
            "",
        ]);
        for (opp, em) in domain.opps.iter().zip(self.energy_model(domain)) {
            table.add_row(vec![
                opp.khz.to_string(),
                opp.microvolt.map_or("-".into(), |uv| thousandths(uv.into())),
                em.performance.to_string(),
                thousandths(opp.em_power_uw),
                em.cost.map_or("-".into(), |cost| cost.to_string()),
                thousandths(opp.active_uw),
                thousandths(opp.idle_wfi_uw),
                if opp.idle_static_uw == opp.static_uw {
                    thousandths(opp.static_uw)
                } else {
                    format!(
                        "{}, idle {}",
                        thousandths(opp.static_uw),
                        thousandths(opp.idle_static_uw)
                    )
                },
                if em.inefficient { "inefficient: not chosen".into() } else { String::new() },
            ]);
        }
        finish(table, out);
        if domain.off_uw > 0 {
            let _ = writeln!(out, "  all in deep states: {} mW", thousandths(domain.off_uw));
        }
    }

    /// The time that a switch of a clock takes, and the state of its CPUs meanwhile.
    fn switching_in_words(&self, domain: &FrequencyDomain) -> String {
        let switching = &domain.switching;
        let mut words = span(switching.settle_ns);
        if let Some(slew) = switching.slew_uv_per_us {
            let _ = write!(words, " and the voltage's way up at {slew} uV/us");
        }
        if switching.stall_ns > 0 {
            let _ = write!(words, ", of which CPUs stand still {}", span(switching.stall_ns));
        }
        if switching.late_requests != LateRequests::Replace {
            let _ = write!(words, "; late requests {}", switching.late_requests.name());
        }
        words
    }

    fn describe_power_limits(&self, out: &mut String) {
        for limit in &self.power_limits {
            let cpus = CpuMask::from_cpus(limit.cpus.iter().copied());
            let told = if limit.tells_kernel { "; tells the kernel" } else { "" };
            let _ = writeln!(
                out,
                "\npower limit {} (CPU {cpus}): firmware looks each {}{told}",
                limit.name,
                span(limit.step_ns),
            );
            if !limit.awake_khz.is_empty() {
                let _ = writeln!(out, "  kHz by cores awake: {:?}", limit.awake_khz);
            }
            if let Some(budget) = &limit.budget {
                let _ = writeln!(
                    out,
                    "  {} mW for long (average over {}), {} mW until then",
                    thousandths(budget.sustained_uw),
                    span(budget.tau_ns),
                    thousandths(budget.burst_uw),
                );
            }
        }
    }

    fn describe_idle(&self, out: &mut String) {
        let _ = writeln!(out, "\nidle states (\"told\": the kernel's table)");
        let mut table = table(&[
            "core",
            "state",
            "entry",
            "exit",
            "told exit",
            "residency",
            "power",
            "entry nJ",
            "exit nJ",
        ]);
        let mut remarks = String::new();
        for core in &self.core_types {
            for state in &core.idle_states {
                let mut notes = Vec::new();
                for (set, note) in [
                    (state.deep, "deep"),
                    (state.polling, "polls"),
                    (state.mwait, "watches a flag"),
                    (state.refuses_pending, "refuses pending interrupts"),
                    (state.local_timer_stops, "timer stops"),
                    (state.shared == Shared::Core, "of the whole core"),
                    (state.shared == Shared::Cluster, "of the whole cluster"),
                    (state.shared == Shared::Package, "of the whole package"),
                ] {
                    if set {
                        notes.push(note);
                    }
                }
                table.add_row(vec![
                    core.name.clone(),
                    state.name.clone(),
                    span(state.entry_latency_ns),
                    span(state.exit_latency_ns),
                    span(state.kernel_exit_latency_ns),
                    span(state.target_residency_ns),
                    match state.power {
                        IdlePower::ActivePermille(1000) => "busy".into(),
                        IdlePower::ActivePermille(share) => {
                            format!("{}.{}% busy", share / 10, share % 10)
                        }
                        IdlePower::WfiPermille(0) => "off".into(),
                        IdlePower::WfiPermille(1000) => "WFI".into(),
                        IdlePower::WfiPermille(share) => format!("{}% of WFI", share / 10),
                    },
                    state.energy_entry_nj.to_string(),
                    state.energy_exit_nj.to_string(),
                ]);
                if !notes.is_empty() {
                    let _ = writeln!(
                        remarks,
                        "  {} of {}: {}",
                        state.name,
                        core.name,
                        notes.join(", ")
                    );
                }
            }
        }
        finish(table, out);
        out.push_str(&remarks);
        if let Some(timer) = &self.broadcast {
            let to = match (timer.hrtimer, timer.moves) {
                (true, _) => "a CPU that stays out of those".to_string(),
                (_, true) => "interrupts the CPU with the earliest event".to_string(),
                _ => format!("interrupts CPU {}", timer.cpu),
            };
            let _ = writeln!(out, "  where the timer stops: {}, {to}", timer.device);
        }
    }

    fn describe_block(&self, out: &mut String) {
        for device in &self.block {
            let of = |time: &crate::ServiceTime| time.0[1] / 1000;
            let [read, write, flush] = [0, 1, 2].map(|op: usize| of(&device.service[op]));
            let to = match device.queues {
                1 => format!("1 queue, interrupts CPU {}", device.irq_cpu),
                queues => format!("{queues} queues"),
            };
            let _ = writeln!(
                out,
                "block device {}: {to}, {} tags each;\n  medians: read {read} us, write {write} us, flush {flush} us",
                device.name, device.depth
            );
        }
    }

    fn describe_smt(&self, out: &mut String) {
        let Some(smt) = &self.smt else { return };
        let speeds: Vec<String> = smt.speed_permille.iter().map(|s| thousandths(*s)).collect();
        let _ = writeln!(
            out,
            "\nhardware threads of a core: a further one adds {} of its power;\n  speed of each, by how many work: {}",
            thousandths(smt.second_permille),
            speeds.join(", ")
        );
        if smt.polling_permille > 0 {
            let share = thousandths(smt.polling_permille);
            let _ = writeln!(out, "  one that polls slows the others as {share} of a working one");
        }
    }

    fn describe_distances(&self, out: &mut String) {
        let Some(distances) = &self.distances else { return };
        let _ = writeln!(out, "\ndistances: the least that two CPUs share");
        let mut table = table(&["share", "refill us", "interrupt ns", "kernel's line ns"]);
        for (key, refill, ipi, line) in distances.rows() {
            let line = format!("+{line}");
            table.add_row(vec![key.to_string(), thousandths(refill), format!("+{ipi}"), line]);
        }
        let _ = writeln!(out, "{table}");
    }

    fn describe_turns(&self, out: &mut String) {
        let Some(turns) = &self.turns else { return };
        let measure = if turns.work_by_clock { "the clock" } else { "its own turns" };
        let _ = writeln!(
            out,
            "\nCPUs execute in turns, one at a time: a program passes the turn after {} us of work,\n  which it measures by {measure}",
            thousandths(turns.piece_ns)
        );
    }

    fn describe_power_domains(&self, out: &mut String) {
        if self.power_domains.is_empty() {
            return;
        }
        let _ = writeln!(out, "\npower domains, which firmware puts into states by itself");
        let mut table = table(&["domain", "CPUs", "state", "CPUs in", "quiet", "exit", "mW"]);
        for domain in &self.power_domains {
            let cpus = CpuMask::from_cpus(domain.cpus.iter().copied()).to_string();
            let mut row = vec![domain.name.clone(), cpus, "on".into()];
            row.extend([String::new(), String::new(), String::new(), thousandths(domain.uw)]);
            table.add_row(row);
            for state in &domain.states {
                let idle = &self.idle_states(domain.cpus[0])[state.cpus_in[0] as usize].name;
                let mut row = vec![String::new(), String::new(), state.name.clone(), idle.clone()];
                row.extend([
                    span(state.residency_ns),
                    span(state.exit_latency_ns),
                    thousandths(state.uw),
                ]);
                table.add_row(row);
            }
        }
        finish(table, out);
    }

    fn describe_heat(&self, out: &mut String) {
        let Some(heat) = &self.heat else { return };
        let celsius = |mc: i64| format!("{} C", mc / 1000);
        let (air, start) = (celsius(heat.ambient_mc), celsius(heat.start_mc));
        let _ =
            writeln!(out, "\nheat: air {air}, start {start}, a step each {}", span(heat.step_ns));
        for (index, node) in heat.nodes.iter().enumerate() {
            let edges = heat.edges.iter().filter(|edge| edge.from == index);
            let to = edges.map(|edge| {
                let to = edge.to.map_or("the air", |to| heat.nodes[to].name.as_str());
                format!("{} mK/W to {to}", edge.mk_per_w)
            });
            let to: Vec<String> = to.collect();
            let _ = writeln!(
                out,
                "  {}: {} mJ/K, {}",
                node.name,
                node.capacity_mj_per_k,
                to.join(", ")
            );
        }
        for zone in &heat.zones {
            let trips = zone.trips.iter().map(|trip| {
                let held = trip.cools.iter().map(|map| self.domains[map.domain].name.as_str());
                let held: Vec<&str> = held.collect();
                let holds = if held.is_empty() { "" } else { " holds back " };
                format!("{}{holds}{}", celsius(trip.mc), held.join(", "))
            });
            let trips: Vec<String> = trips.collect();
            let _ =
                writeln!(out, "  zone {} ({:?}): {}", zone.name, zone.governor, trips.join(", "));
        }
    }

    fn describe_couplings(&self, out: &mut String) {
        for coupling in &self.couplings {
            let (from, to) = (&self.domains[coupling.from].name, &self.domains[coupling.to].name);
            let _ = writeln!(
                out,
                "\ncoupling: while {from} runs at least at ..., {to} runs at least at ..."
            );
            let mut line = String::from(" ");
            for step in &coupling.steps {
                let piece = format!(" {}: {}", step.at_khz, step.min_khz);
                if line.len() + piece.len() > 99 {
                    let _ = writeln!(out, "{}", line.trim_end());
                    line = String::from(" ");
                }
                line.push_str(&piece);
                line.push(' ');
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }

    /// Busy power of one CPU only, in a shortened form: the whole table is in the file.
    fn describe_dependences(&self, out: &mut String) {
        for dependence in &self.power_dependences {
            let domain = &self.domains[dependence.domain];
            for part in &dependence.tables {
                let on = &self.domains[part.on];
                let _ = writeln!(
                    out,
                    "\nbusy mW of one {} CPU while {} has the largest vote, at ... kHz",
                    domain.name, on.name
                );
                // As many columns as fit on a terminal, the first and the last among them.
                let count = on.opps.len();
                let shown = count.min(8);
                let columns: Vec<usize> =
                    (0..shown).map(|i| i * (count - 1) / (shown - 1).max(1)).collect();
                let header = |column: &usize| on.opps[*column].khz.to_string();
                let header: Vec<String> =
                    std::iter::once("kHz".into()).chain(columns.iter().map(header)).collect();
                let mut table = table(&header.iter().map(String::as_str).collect::<Vec<_>>());
                for (opp, row) in domain.opps.iter().zip(&part.rows) {
                    let cells = columns.iter().map(|column| thousandths(row[*column].active_uw));
                    table.add_row(std::iter::once(opp.khz.to_string()).chain(cells));
                }
                finish(table, out);
            }
        }
    }

    fn describe_costs(&self, out: &mut String) {
        let irq = &self.interrupts;
        let _ = writeln!(
            out,
            "\ninterrupts arrive after: IPI {} to {}, timer {} to {}",
            span(irq.ipi_latency_min_ns),
            span(irq.ipi_latency_max_ns),
            span(irq.timer_latency_min_ns),
            span(irq.timer_latency_max_ns),
        );
        let unit = match self.path_costs.scale {
            CostScale::Work => "ns of work at capacity 1024 and full speed",
            CostScale::Time => "ns on every CPU at every frequency",
        };
        let _ = writeln!(out, "\nkernel paths cost ({unit})");
        let mut table = table(&["path", "ns", "what"]);
        for (name, value, meaning) in self.path_costs.entries() {
            let name = name.trim_end_matches("_ns").to_string();
            table.add_row(vec![name, value.to_string(), meaning.to_string()]);
        }
        if let Some(column) = table.column_mut(2) {
            column.set_cell_alignment(CellAlignment::Left);
        }
        finish(table, out);
        let _ = writeln!(out, "\nrt-app's loop: {} ns of work", self.ns_per_loop);
        for kind in &self.kinds {
            let factors = self.core_types.iter().zip(&kind.factor_permille);
            let factors: Vec<String> = factors
                .map(|(core, factor)| format!("{} {}", core.name, thousandths(*factor)))
                .collect();
            let _ = writeln!(
                out,
                "work `{}`: stalls {} per mille; faster than capacity says by {}",
                kind.name,
                kind.stall_permille,
                factors.join(", "),
            );
        }
    }
}

/// A headline, and paths in as few lines as they fit in.
fn describe_paths(headline: &str, paths: &[String], out: &mut String) {
    if paths.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{headline}");
    let mut line = String::new();
    for path in paths {
        let path = printable::line(path);
        if line.len() + path.len() > 90 && !line.is_empty() {
            let _ = writeln!(out, "  {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push_str("  ");
        }
        line.push_str(&path);
    }
    let _ = writeln!(out, "  {line}");
}

/// An empty table: names to the left, numbers to the right.
fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header.iter().copied());
    for (index, name) in header.iter().enumerate() {
        let left =
            ["core", "domain", "CPUs", "state", "CPUs in", "power", "path", "what"].contains(name);
        let alignment = if left { CellAlignment::Left } else { CellAlignment::Right };
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(alignment);
        }
    }
    table
}

fn finish(table: Table, out: &mut String) {
    for line in table.lines() {
        let _ = writeln!(out, " {}", line.trim_end());
    }
}

/// `value` thousandths as a decimal number: 22890 is 22.890.
fn thousandths(value: u64) -> String {
    format!("{}.{:03}", value / 1000, value % 1000)
}

/// A span of time in the largest unit that divides it.
fn span(ns: u64) -> String {
    match ns {
        0 => "0".into(),
        _ if ns.is_multiple_of(1_000_000) => format!("{} ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{} us", ns / 1_000),
        _ => format!("{ns} ns"),
    }
}
