// SPDX-License-Identifier: GPL-2.0-or-later
//! A machine as far as a description of it goes, and the short machine file that it becomes: the class of each core
//! fills in the rest as estimates (docs/machine-files.md).

use schedtwin_engine::recording::cpu_list;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// An idle state behind the shallowest one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    pub name: String,
    pub entry_us: u64,
    pub exit_us: u64,
    pub residency_us: u64,
    pub local_timer_stops: bool,
}

/// CPUs of one kind: with one capacity and the same idle states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    pub cpus: Vec<u16>,
    pub capacity: u64,
    /// `little`, `mid`, `big`, `desktop` or `server`.
    pub class: &'static str,
    pub idle: Vec<IdleState>,
}

/// An operating point; 0: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    pub khz: u64,
    pub uv: u64,
    pub em_uw: u64,
}

/// CPUs with one clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    pub cpus: Vec<u16>,
    pub points: Vec<Point>,
}

/// CPUs with idle states that they have together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub cpus: Vec<u16>,
    pub states: Vec<IdleState>,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    pub name: String,
    pub description: String,
    pub cores: Vec<Core>,
    pub domains: Vec<Domain>,
    /// CPUs that share their last cache; none: nobody says.
    pub caches: Vec<Vec<u16>>,
    /// Clusters with idle states, which nest or are disjoint.
    pub clusters: Vec<Cluster>,
    /// Values that the description does not have, a clause each.
    pub missing: Vec<String>,
}

/// The class of cores of that capacity, where the strongest have 1024.
pub fn class_of(capacity: u64) -> &'static str {
    match capacity {
        ..=450 => "little",
        451..=900 => "mid",
        _ => "big",
    }
}

impl Outline {
    pub fn nr_cpus(&self) -> usize {
        self.domains.iter().map(|domain| domain.cpus.len()).sum()
    }

    /// A name for each kind of core: its class, with a number where a class has several.
    fn names(&self) -> Vec<String> {
        let name = |(at, core): (usize, &Core)| {
            let before = self.cores[..at].iter().filter(|other| other.class == core.class).count();
            match before {
                0 => core.class.to_owned(),
                before => format!("{}{}", core.class, before + 1),
            }
        };
        self.cores.iter().enumerate().map(name).collect()
    }

    /// The machine file.
    pub fn text(&self, from: &str) -> String {
        let known = self.domains.iter().flat_map(|domain| &domain.points).all(|at| at.em_uw > 0);
        let mut text = format!(
            "# Made by `schedtwin import` of {}. What it does not have is estimated by the class of each core.\n\
             name = {}\ndescription = {}\n",
            from.escape_default(),
            quoted(&self.name),
            quoted(&self.description)
        );
        if !known {
            text.push_str("# No power is known: give em_uw, or take powers of Perfetto's Wattson (`schedtwin import wattson`).\n");
            text.push_str("power_unknown = true\n");
        }
        if !self.caches.is_empty() {
            let all: Vec<u16> = self.caches.iter().flatten().copied().collect();
            let list = |cpus: &[u16]| format!("\"{}\"", cpu_list(&sorted(cpus)));
            let caches: Vec<String> = self.caches.iter().map(|cpus| list(cpus)).collect();
            let _ = write!(
                text,
                "topology = \"described\"\n\n[topologies.described]\npackage = [{}]\nllc = [{}]\n",
                list(&all),
                caches.join(", ")
            );
        }
        for (name, core) in self.names().iter().zip(&self.cores) {
            let _ = write!(text, "\n[core.{name}]\nclass = \"{}\"\n", core.class);
            if !core.idle.is_empty() {
                text.push_str(&idle(&core.idle));
            }
        }
        for (name, core) in self.names().iter().zip(&self.cores) {
            let cpus = cpu_list(&core.cpus);
            let _ = write!(
                text,
                "\n[cpu.{name}]\ncpus = \"{cpus}\"\ncore = \"{name}\"\ncapacity = {}\n",
                core.capacity
            );
        }
        for (at, domain) in self.domains.iter().enumerate() {
            let _ = write!(
                text,
                "\n[domain.policy{}]\n",
                domain.cpus.first().copied().unwrap_or(at as u16)
            );
            let _ = write!(text, "cpus = \"{}\"\nopp = [\n", cpu_list(&domain.cpus));
            for point in &domain.points {
                let uv = if point.uv > 0 { format!("uv = {}, ", point.uv) } else { String::new() };
                let em_uw = if known { point.em_uw } else { 0 };
                let _ = writeln!(text, "  {{ khz = {}, {uv}em_uw = {em_uw} }},", point.khz);
            }
            text.push_str("]\n");
        }
        for (at, cluster) in self.clusters.iter().enumerate() {
            let Some(deepest) = self.deepest_of(&cluster.cpus) else { continue };
            let cpus = cpu_list(&cluster.cpus);
            let _ = write!(
                text,
                "\n[power.cluster{at}]\ncpus = \"{cpus}\"\nuw = 0 # not known\nstates = [\n"
            );
            for state in &cluster.states {
                let _ = writeln!(
                    text,
                    "  {{ name = {}, cpus_in = {}, uw = 0, residency_us = {}, exit_ns = {} }},",
                    quoted(&state.name),
                    quoted(deepest),
                    state.residency_us,
                    state.exit_us * 1000
                );
            }
            text.push_str("]\n");
        }
        text
    }

    /// Gives the deepest idle states of these CPUs one name, of all that they have, if each has such a state.
    pub fn give_one_name(&mut self, cpus: &[u16]) {
        let of_them = |core: &&Core| core.cpus.iter().any(|cpu| cpus.contains(cpu));
        let names = self.cores.iter().filter(of_them);
        let names = names.map(|core| Some(core.idle.last()?.name.clone()));
        let Some(names) = names.collect::<Option<BTreeSet<String>>>() else { return };
        let one = names.iter().map(String::as_str).collect::<Vec<_>>().join("/");
        // Also those of other CPUs: the domains around them have the name, too.
        for state in self.cores.iter_mut().filter_map(|core| core.idle.last_mut()) {
            if names.contains(&state.name) {
                state.name.clone_from(&one);
            }
        }
    }

    /// The deepest idle state of these CPUs; `None`: theirs differ, or are not known.
    pub fn deepest_of(&self, cpus: &[u16]) -> Option<&str> {
        let has_some = |core: &&Core| core.cpus.iter().any(|cpu| cpus.contains(cpu));
        let mut names = self.cores.iter().filter(has_some).map(|core| core.idle.last());
        let first = names.next()??;
        names
            .all(|state| state.is_some_and(|s| s.name == first.name))
            .then_some(first.name.as_str())
    }
}

fn sorted(cpus: &[u16]) -> Vec<u16> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus
}

fn idle(states: &[IdleState]) -> String {
    let mut text =
        "idle = [\n  { name = \"WFI\", residency_us = 1, exit_ns = 1_000, power = \"wfi\" },\n"
            .to_owned();
    for state in states {
        let stops = if state.local_timer_stops { ", local_timer_stops = true" } else { "" };
        let _ = writeln!(
            text,
            "  {{ name = {}, residency_us = {}, entry_ns = {}, exit_ns = {}, power = \"off\"{stops} }},",
            quoted(&state.name),
            state.residency_us,
            state.entry_us * 1000,
            state.exit_us * 1000
        );
    }
    text + "]\n"
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string().trim().to_owned()
}
