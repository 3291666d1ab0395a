// SPDX-License-Identifier: GPL-2.0-or-later
//! The abilities of the recorded device: its clusters, their capacities and full speeds.
//!
//! Work is time × capacity × frequency / full speed, so a wrong capacity makes every result wrong. A trace has
//! frequencies but no capacities; those come from the machine named. The rules, first match wins:
//!
//! 1. *No `cpu_frequency` at all*: the machine's CPUs, number by number.
//! 2. *The machine*: every recorded frequency of every CPU is in its table, and no CPUs with one clock
//!    lie in domains of different capacity.
//! 3. *Another device, or other numbers.* CPUs whose frequency always changed together are one cluster, those without any
//!    frequency one remaining cluster. A cluster is never split. Clusters and domains are matched
//!    - one to one by their frequency tables, if that is unambiguous: the same chips, numbered otherwise;
//!    - else one to one by their numbers of CPUs, if those are all different;
//!    - else by speed: the slowest cluster gets the smallest capacity; speeds within 10 % of each other say
//!      nothing, then the clusters' order is that of their numbers. With other numbers of clusters and
//!      domains, ranks are stretched: the fastest gets the largest capacity, and those in between what lies in between.
//!
//! ```text
//!   recorded  CPUs 0,3-5: 450..850 MHz    CPUs 1-2: 1100 MHz    (a Juno board with the big CPUs in the middle)
//!   juno-r2   CPUs 0-3: capacity 383      CPUs 4-5: 1024        by numbers of CPUs: 0,3-5 -> 383, 1-2 -> 1024
//! ```
//!
//! The user's values ([`Capacities`]) override capacities, not clocks. The highest recorded
//! frequency is the full speed of
//! clusters of another device.

use schedtwin_machine::Machine;
use schedtwin_types::{ClockDomainId, CpuId};
use schedtwin_workload::recorded::{Builder, RecordedCpu};
use std::str::FromStr;

/// A clock of which fewer frequencies were seen has hardly been seen at its highest.
pub const FEW_FREQUENCIES: usize = 5;

/// Clusters with few frequencies that are told one by one.
const FEW_LISTED: usize = 8;

/// Capacity of the largest CPU.
const FULL_CAPACITY: u32 = 1024;

/// Capacities of recorded CPUs, as the user knows them.
///
/// ```
/// use schedtwin_engine::recording::Capacities;
///
/// let given: Capacities = "0,3-5=383,1-2=1024".parse().unwrap();
/// assert_eq!((given.of(4), given.of(1), given.of(6)), (Some(383), Some(1024), None));
/// assert!("0-3=2000".parse::<Capacities>().is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacities {
    /// First and last CPU, and their capacity.
    ranges: Vec<(u16, u16, u32)>,
}

impl Capacities {
    /// The capacity of a CPU.
    pub fn of(&self, cpu: usize) -> Option<u32> {
        let holds = |(first, last, _): &&(u16, u16, u32)| {
            (usize::from(*first)..=usize::from(*last)).contains(&cpu)
        };
        self.ranges.iter().find(holds).map(|(_, _, capacity)| *capacity)
    }

    /// The highest CPU named.
    fn highest(&self) -> Option<u16> {
        self.ranges.iter().map(|(_, last, _)| *last).max()
    }
}

impl FromStr for Capacities {
    type Err = String;

    fn from_str(text: &str) -> Result<Capacities, String> {
        let mut given = Capacities::default();
        let mut pending = 0;
        for item in text.split(',') {
            let (cpus, capacity) = match item.split_once('=') {
                Some((cpus, capacity)) => (cpus, Some(capacity)),
                None => (item, None),
            };
            let number = |text: &str| {
                let form = || format!("`{text}` is no CPU; write 0-3=383,4-5=1024");
                text.trim().parse::<u16>().map_err(|_| form())
            };
            let (first, last) = cpus.split_once('-').unwrap_or((cpus, cpus));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("CPUs {first}-{last} go backwards"));
            }
            if given.ranges.iter().any(|(f, l, _)| first <= *l && *f <= last) {
                return Err(format!("CPUs of `{cpus}` are named twice"));
            }
            given.ranges.push((first, last, 0));
            let Some(capacity) = capacity else { continue };
            let known = capacity.trim().parse().ok().filter(|c| (1..=FULL_CAPACITY).contains(c));
            let known = known
                .ok_or_else(|| format!("`{capacity}` is no capacity: from 1 to {FULL_CAPACITY}"))?;
            given.ranges[pending..].iter_mut().for_each(|range| range.2 = known);
            pending = given.ranges.len();
        }
        match given.ranges.get(pending) {
            None => Ok(given),
            Some((first, ..)) => Err(format!("CPU {first} has no capacity")),
        }
    }
}

/// The recorded device, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct Device<'a> {
    /// The machine that it is, or is most like.
    pub machine: &'a Machine,
    /// Capacities that are known better.
    pub capacities: Option<&'a Capacities>,
}

impl<'a> From<&'a Machine> for Device<'a> {
    fn from(machine: &'a Machine) -> Device<'a> {
        Device { machine, capacities: None }
    }
}

/// Recorded CPUs with one clock and one capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCluster {
    /// Ascending.
    pub cpus: Vec<u16>,
    /// That their work was counted with, 1..=1024.
    pub capacity: u32,
    /// The highest recorded frequency, kHz.
    pub highest_khz: Option<u32>,
    /// Different recorded frequencies; more than 64 are not told apart.
    pub frequencies: usize,
    /// The frequency that their work was counted against, kHz.
    pub full_speed_khz: u32,
}

/// `0,3-5`.
pub fn cpu_list(cpus: &[u16]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// A cluster in a sentence: `CPUs 0,3-5`, `CPU 7`.
pub fn cpus_text(cpus: &[u16]) -> String {
    format!("CPU{} {}", if cpus.len() == 1 { "" } else { "s" }, cpu_list(cpus))
}

/// The recorded CPUs, their clusters, and what was assumed of them.
pub(super) struct Silicon {
    pub cpus: Vec<RecordedCpu>,
    pub clusters: Vec<RecordedCluster>,
    pub assumptions: Vec<String>,
    /// The recorded CPUs have the numbers of the machine's.
    pub own_numbers: bool,
}

/// # Errors
/// Capacities of CPUs that the device has not.
pub(super) fn silicon(builder: &Builder, device: Device<'_>) -> Result<Silicon, String> {
    let machine = device.machine;
    let nr_cpus = builder.nr_cpus();
    if let Some(cpu) = device.capacities.and_then(Capacities::highest)
        && usize::from(cpu) >= machine.nr_cpus()
    {
        let has = machine.nr_cpus();
        return Err(format!(
            "--capacities names a CPU {cpu}, and {} has {has} CPUs",
            machine.identity
        ));
    }
    let any_known = (0..nr_cpus).any(|cpu| is_known(builder, cpu));
    let by_number: Vec<ClockDomainId> = (0..nr_cpus).map(|cpu| domain_of(machine, cpu)).collect();
    let observed = clusters(builder);
    let mut assumptions = Vec::new();
    let mut others_clock = false;
    let own_numbers = !any_known || is_the_machine(builder, machine, &observed);
    let domains = if !any_known {
        assumptions.push(format!(
            "no cpu_frequency is recorded: every CPU is taken to have run at the highest frequency of {}, \
             with its capacities CPU by CPU. How the recorded board numbers its CPUs is unknown: \
             if not so, say --capacities",
            machine.identity
        ));
        by_number
    } else if own_numbers {
        by_number
    } else {
        let (of_cluster, how) = matched(builder, machine, &observed);
        others_clock = how != How::Tables;
        assumptions.push(how.sentence(machine, observed.len()));
        let mut domains = by_number;
        for (cluster, domain) in observed.iter().zip(of_cluster) {
            cluster.iter().for_each(|cpu| domains[*cpu] = domain);
        }
        domains
    };
    let cpu_of = |cpu: usize| {
        let highest = builder.frequencies(cpu).khz.last().filter(|_| others_clock);
        let domain = &machine.domains[domains[cpu]];
        RecordedCpu {
            // By number the machine's own, for a domain may hold CPUs of two kinds.
            capacity: match domains[cpu] == domain_of(machine, cpu) {
                true => machine.cpus[cpu].capacity,
                false => machine.cpus[domain.cpus[0].index()].capacity,
            },
            max_khz: highest.map_or(domain.max_khz(), |highest| (*highest).max(1)),
        }
    };
    let mut cpus: Vec<RecordedCpu> = (0..nr_cpus).map(cpu_of).collect();
    // CPUs of one clock have one full speed, though a recording's end may cut what one of them did.
    for cluster in observed.iter().filter(|_| others_clock) {
        let highest = cluster.iter().map(|cpu| cpus[*cpu].max_khz).max().unwrap_or(1);
        // One capacity as well: that of the domain's first CPU.
        let first = machine.domains[domains[cluster[0]]].cpus[0];
        for cpu in cluster {
            let capacity = machine.cpus[first.index()].capacity;
            cpus[*cpu] = RecordedCpu { capacity, max_khz: highest };
        }
    }
    if let Some(given) = device.capacities {
        for (cpu, recorded) in cpus.iter_mut().enumerate() {
            recorded.capacity = given.of(cpu).unwrap_or(recorded.capacity);
        }
        assumptions.push("capacities are those of --capacities where it names the CPU".to_owned());
    }
    let clusters = told(builder, &cpus, &observed, &domains);
    let few = |cluster: &&RecordedCluster| {
        others_clock && (1..FEW_FREQUENCIES).contains(&cluster.frequencies)
    };
    let few: Vec<&RecordedCluster> = clusters.iter().filter(few).collect();
    if few.len() > FEW_LISTED {
        let mut numbers: Vec<u16> = few.iter().flat_map(|cluster| cluster.cpus.clone()).collect();
        numbers.sort_unstable();
        assumptions.push(format!(
            "of the {} clocks of {} fewer than {FEW_FREQUENCIES} different frequencies are recorded: their recorded \
             time counts as work at full speed there, too much if they can run faster",
            few.len(),
            cpus_text(&numbers)
        ));
        return Ok(Silicon { cpus, clusters, assumptions, own_numbers });
    }
    for cluster in few {
        assumptions.push(format!(
            "of {} only {} different frequenc{} recorded, at most {} MHz: its recorded time counts as work at \
             full speed there, too much if it can run faster",
            cpus_text(&cluster.cpus),
            cluster.frequencies,
            if cluster.frequencies == 1 { "y is" } else { "ies are" },
            cluster.full_speed_khz / 1000
        ));
    }
    Ok(Silicon { cpus, clusters, assumptions, own_numbers })
}

fn is_known(builder: &Builder, cpu: usize) -> bool {
    !builder.frequencies(cpu).khz.is_empty()
}

fn domain_of(machine: &Machine, cpu: usize) -> ClockDomainId {
    let holds =
        |domain: &schedtwin_machine::FrequencyDomain| domain.cpus.contains(&CpuId(cpu as u16));
    machine.domains.find(holds).expect("every CPU has a clock")
}

/// Capacity of a domain: that of its first CPU.
fn capacity(machine: &Machine, domain: ClockDomainId) -> u32 {
    machine.cpus[machine.domains[domain].cpus[0].index()].capacity
}

/// CPUs with one clock, in the order of their lowest; those without frequencies are one.
fn clusters(builder: &Builder) -> Vec<Vec<usize>> {
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    for cpu in 0..builder.nr_cpus() {
        let mine = builder.frequencies(cpu);
        let same = |other: &usize| builder.frequencies(*other).same_clock(mine);
        match clusters.iter_mut().find(|cluster| cluster.iter().any(same)) {
            Some(cluster) => cluster.push(cpu),
            None => clusters.push(vec![cpu]),
        }
    }
    clusters
}

/// Whether a domain has all the frequencies of a CPU.
fn fits(builder: &Builder, machine: &Machine, cpu: usize, domain: ClockDomainId) -> bool {
    let domain = &machine.domains[domain];
    builder.frequencies(cpu).khz.iter().all(|khz| domain.opp_of(*khz).is_some())
}

fn is_the_machine(builder: &Builder, machine: &Machine, observed: &[Vec<usize>]) -> bool {
    let one_capacity = |cluster: &Vec<usize>| {
        !is_known(builder, cluster[0])
            || cluster.iter().all(|c| {
                capacity(machine, domain_of(machine, *c))
                    == capacity(machine, domain_of(machine, cluster[0]))
            })
    };
    (0..builder.nr_cpus()).all(|cpu| fits(builder, machine, cpu, domain_of(machine, cpu)))
        && observed.iter().all(one_capacity)
}

/// Whether most of the recorded frequencies are no operating points of the machine, and its chip is not the machine's with other
/// numbers of CPUs either. Clocks that were hardly seen tell nothing.
pub(super) fn has_other_frequencies(builder: &Builder, machine: &Machine) -> bool {
    let observed = clusters(builder);
    let cpus = 0..builder.nr_cpus().min(machine.nr_cpus());
    let (mut all, mut others) = (0, 0);
    for cpu in cpus {
        let khz = &builder.frequencies(cpu).khz;
        if khz.len() < FEW_FREQUENCIES {
            continue;
        }
        let domain = &machine.domains[domain_of(machine, cpu)];
        all += khz.len();
        others += khz.iter().filter(|khz| domain.opp_of(**khz).is_none()).count();
    }
    2 * others > all && matched(builder, machine, &observed).1 != How::Tables
}

/// How clusters were matched with domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Tables,
    Sizes,
    Speed,
    Ranks,
    Numbers,
}

impl How {
    fn sentence(self, machine: &Machine, clusters: usize) -> String {
        let id = &machine.identity;
        let recorded = match clusters {
            1 => "1 recorded cluster is".to_owned(),
            n => format!("{n} recorded clusters are"),
        };
        let has = machine.domains.len();
        let (what, how) = match self {
            How::Tables => {
                return format!(
                    "its frequencies are those of {id} with other CPU numbers: clusters are told by their frequencies"
                );
            }
            How::Sizes => ("", "by their numbers of CPUs".to_owned()),
            How::Speed => ("", "by speed, the slowest as the smallest".to_owned()),
            How::Numbers => (
                "WARNING, a guess: ",
                "by their numbers, the first as the smallest, for their recorded speeds hardly differ"
                    .to_owned(),
            ),
            How::Ranks => (
                "WARNING, a guess: ",
                format!(
                    "by speed, although {id} has {has}: from the slowest as the smallest to the fastest as the largest"
                ),
            ),
        };
        format!(
            "{what}its frequencies are not those of {id}, so it comes from another device: its {recorded} taken for \
             those of {id} {how}; the highest recorded frequency of a cluster counts as its highest. \
             --capacities says it better"
        )
    }
}

/// The domain of each cluster.
fn matched(
    builder: &Builder,
    machine: &Machine,
    observed: &[Vec<usize>],
) -> (Vec<ClockDomainId>, How) {
    let nr_domains = machine.domains.len();
    if observed.len() == nr_domains {
        if let Some(by_tables) = by_tables(builder, machine, observed) {
            return (by_tables, How::Tables);
        }
        if let Some(by_sizes) = by_sizes(machine, observed) {
            return (by_sizes, How::Sizes);
        }
    }
    let mut smallest_first: Vec<ClockDomainId> = machine.domains.ids().collect();
    smallest_first.sort_by_key(|domain| capacity(machine, *domain));
    let highest = |cluster: &usize| {
        let of = |cpu: &usize| builder.frequencies(*cpu).khz.last().copied();
        observed[*cluster].iter().filter_map(of).max()
    };
    let (mut slowest_first, silent): (Vec<usize>, Vec<usize>) =
        (0..observed.len()).partition(|cluster| highest(cluster).is_some());
    let mut speeds: Vec<u32> = slowest_first.iter().filter_map(highest).collect();
    speeds.sort_unstable();
    let told_apart =
        speeds.windows(2).all(|pair| u64::from(pair[1]) * 10 > u64::from(pair[0]) * 11);
    if told_apart {
        slowest_first.sort_by_key(highest);
    }
    for cluster in silent {
        // Nothing is known of its speed: where its number puts it.
        slowest_first.insert(cluster.min(slowest_first.len()), cluster);
    }
    let (last, top) = (observed.len() - 1, nr_domains - 1);
    let mut domains = vec![ClockDomainId(0); observed.len()];
    for (rank, cluster) in slowest_first.into_iter().enumerate() {
        // One cluster alone is the largest, for somebody has to have capacity 1024.
        let stretched = (rank * top + last / 2).checked_div(last).unwrap_or(top);
        domains[cluster] = smallest_first[stretched];
    }
    let how = match (told_apart, observed.len() == nr_domains) {
        (true, true) => How::Speed,
        (true, false) => How::Ranks,
        (false, _) => How::Numbers,
    };
    (domains, how)
}

/// Each cluster's only domain with all its frequencies; a silent one gets what is left.
fn by_tables(
    builder: &Builder,
    machine: &Machine,
    observed: &[Vec<usize>],
) -> Option<Vec<ClockDomainId>> {
    let mut left: Vec<ClockDomainId> = machine.domains.ids().collect();
    let mut domains: Vec<Option<ClockDomainId>> = vec![None; observed.len()];
    for (cluster, cpus) in observed.iter().enumerate() {
        if !is_known(builder, cpus[0]) {
            continue;
        }
        let fitting =
            |domain: &ClockDomainId| cpus.iter().all(|cpu| fits(builder, machine, *cpu, *domain));
        let mut all = machine.domains.ids().filter(fitting);
        let (domain, None) = (all.next()?, all.next()) else { return None };
        domains[cluster] = Some(left.remove(left.iter().position(|free| *free == domain)?));
    }
    let silent = |domain: Option<ClockDomainId>| {
        domain.unwrap_or_else(|| left.pop().expect("as many domains as clusters"))
    };
    Some(domains.into_iter().map(silent).collect())
}

/// Each cluster's domain with as many CPUs, where all numbers are different.
fn by_sizes(machine: &Machine, observed: &[Vec<usize>]) -> Option<Vec<ClockDomainId>> {
    let mut domains = Vec::with_capacity(observed.len());
    for cluster in observed {
        let as_large = |d: &ClockDomainId| machine.domains[*d].cpus.len() == cluster.len();
        let mut all = machine.domains.ids().filter(as_large);
        let (domain, None) = (all.next()?, all.next()) else { return None };
        if domains.contains(&domain) {
            return None;
        }
        domains.push(domain);
    }
    Some(domains)
}

/// The clusters as they were taken: parts with one clock, domain and capacity.
fn told(
    builder: &Builder,
    cpus: &[RecordedCpu],
    observed: &[Vec<usize>],
    domains: &[ClockDomainId],
) -> Vec<RecordedCluster> {
    type Key = (usize, Option<ClockDomainId>);
    let mut told: Vec<(Key, RecordedCluster)> = Vec::new();
    for (cluster, members) in observed.iter().enumerate() {
        for &cpu in members {
            let known = builder.frequencies(cpu);
            // CPUs without a clock are told apart by the domain that they were taken for.
            let key = (cluster, known.khz.is_empty().then_some(domains[cpu]));
            let RecordedCpu { capacity, max_khz } = cpus[cpu];
            let same = |(k, part): &&mut (Key, RecordedCluster)| {
                *k == key && (part.capacity, part.full_speed_khz) == (capacity, max_khz)
            };
            match told.iter_mut().find(same) {
                Some((_, part)) => {
                    part.cpus.push(cpu as u16);
                    part.highest_khz = part.highest_khz.max(known.khz.last().copied());
                    part.frequencies = part.frequencies.max(known.khz.len());
                }
                None => {
                    let part = RecordedCluster {
                        cpus: vec![cpu as u16],
                        capacity,
                        highest_khz: known.khz.last().copied(),
                        frequencies: known.khz.len(),
                        full_speed_khz: max_khz,
                    };
                    told.push((key, part));
                }
            }
        }
    }
    told.sort_by_key(|(_, part)| part.cpus[0]);
    told.into_iter().map(|(_, part)| part).collect()
}
