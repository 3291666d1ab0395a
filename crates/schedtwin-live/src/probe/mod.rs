// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures on this machine what communication between CPUs costs.
//!
//! **Idea.** A line that another CPU has written costs its transfer, and a transfer costs more the farther the CPU is.
//! For each class of pairs of CPUs ([`Distance`]) two threads, each bound to a CPU of its own, do one thing to each other
//! many times. Nothing needs root.
//!
//! | measurement | file | becomes |
//! |---|---|---|
//! | a word that goes to and fro, by store and load and by compare-and-swap | `line.rs` | `line_ns` (of store and load) |
//! | a chain of dependent loads of lines just written by the other CPU | `chain.rs` | `overlap_permille` |
//! | a copy of 4,000 bytes just written by the other CPU, less one of own data | `copy.rs` | `copy_permille` |
//! | a ticket lock between two CPUs, less the lock alone | `lock.rs` | `handover_lines` |
//! | messages to and fro: pipe, socket, futex, eventfd | `message.rs` | shown |
//! | a `write()` that wakes a reader on an idle CPU, and on one that is kept awake | `interrupt.rs` | shown |
//!
//! **Steps**
//! 1. CPUs that the process may use, and how busy they are (`surroundings.rs`).
//! 2. Of each class of pairs the first, the middle and the last (`pairs.rs`).
//! 3. A repetition is the median of a few batches. A batch takes a millisecond or two at most, those of lines much less, so
//!    that most of them run between two interruptions by other threads. The first repetition warms up and is dropped
//!    (`sample.rs`).
//! 4. A measurement whose repetitions are too far apart is made again, [`Effort::rounds`] times at most. What stays so is
//!    marked, and the round with the smallest spread is kept.
//! 5. The values of a machine file are medians over the repetitions of all pairs of a class (`values.rs`).
//!
//! In a guest, an interrupt to another CPU and the end of an idle state leave to the hypervisor, some 10 µs each: messages
//! between CPUs and wakeups say nothing of the hardware there, and are left out unless they are asked for.
//!
//! Memory is touched first by the first CPU of a pair, so its node is the home of the lines. On machines with several
//! sockets a pair in the other socket would pay for the way to the home, too; no pair here has a third CPU as home.
//!
//! References: "Non-scalable locks are dangerous" (Linux Symposium 2012) for the lock; nviennot/core-to-core-latency for
//! compare-and-swap.

mod chain;
mod copy;
mod interrupt;
mod line;
mod lock;
mod message;
mod pairs;
mod pinned;
mod sample;
mod surroundings;
mod values;

pub use message::Primitive;
pub use pairs::{DISTANCES, Pairs, choose, key};
pub use sample::{Effort, STEADY_WITHIN, Sample};
pub use surroundings::{Busy, Load, allowed_cpus, guest, quota};
pub use values::{LineValue, Value, Values, values};

use schedtwin_machine::{Distance, Machine};
use std::fmt;
use std::io;

/// A quantity that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Transfer of a line, by store and load over two lines, ns.
    Line,
    /// Transfer of a line, by compare-and-swap of one, ns.
    CompareAndSwap,
    /// A line of a chain of dependent loads, ns.
    Chain,
    /// The chain's line as a share of a transfer, ‰.
    Overlap,
    /// A line of 64 bytes of a copy from the other CPU, ns.
    Copy,
    /// A line of 64 bytes of a copy of own data, ns.
    CopyOwn,
    /// Time by which a copied line from the other CPU takes longer than an own one, as a share of a transfer, ‰.
    CopyShare,
    /// Time by which a lock's hand-over to the other CPU lengthens a section, ns.
    Handover,
    /// The hand-over in transfers.
    HandoverLines,
    /// Time of a message, ns.
    Message(Primitive),
    /// CPU time of a message, sender and reader, ns.
    MessageCpu(Primitive),
    /// Switches of a message, voluntary or not, sender and reader.
    MessageSwitches(Primitive),
    /// `write()` when nobody reads, ns.
    WriteAlone,
    /// `write()` that wakes a reader on an idle CPU, ns.
    WriteIdle,
    /// `write()` that wakes a reader on a CPU that a SCHED_IDLE thread keeps awake, ns.
    WriteAwake,
    /// Time from before the `write()` until the reader runs on an idle CPU, ns.
    RunsIdle,
    /// Time from before the `write()` until the reader runs on a CPU that is kept awake, ns.
    RunsAwake,
}

impl Quantity {
    /// Unit of the values; empty for counts.
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::Overlap | Quantity::CopyShare => "permille",
            Quantity::HandoverLines => "lines",
            Quantity::MessageSwitches(_) => "",
            _ => "ns",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Line => f.write_str("line, store and load"),
            Quantity::CompareAndSwap => f.write_str("line, compare-and-swap"),
            Quantity::Chain => f.write_str("line of a chain"),
            Quantity::Overlap => f.write_str("chain / line"),
            Quantity::Copy => f.write_str("line of a copy"),
            Quantity::CopyOwn => f.write_str("line of a copy, own data"),
            Quantity::CopyShare => f.write_str("copy - own, / line"),
            Quantity::Handover => f.write_str("lock hand-over"),
            Quantity::HandoverLines => f.write_str("lock hand-over / line"),
            Quantity::Message(primitive) => write!(f, "{primitive} message"),
            Quantity::MessageCpu(primitive) => write!(f, "{primitive} CPU time"),
            Quantity::MessageSwitches(primitive) => write!(f, "{primitive} switches"),
            Quantity::WriteAlone => f.write_str("write(), nobody reads"),
            Quantity::WriteIdle => f.write_str("write() to an idle CPU"),
            Quantity::WriteAwake => f.write_str("write() to an awake CPU"),
            Quantity::RunsIdle => f.write_str("until it runs, idle CPU"),
            Quantity::RunsAwake => f.write_str("until it runs, awake CPU"),
        }
    }
}

/// Quantities of one measurement; the first decides whether it is steady.
type Samples = Vec<(Quantity, Sample)>;

/// A quantity of a pair of CPUs.
#[derive(Clone, Debug)]
pub struct Row {
    /// Distance of the two CPUs; `None`: both threads are on one.
    pub distance: Option<Distance>,
    /// CPU of the first thread and of the second.
    pub cpus: [usize; 2],
    /// The quantity.
    pub quantity: Quantity,
    /// A value for each repetition.
    pub sample: Sample,
    /// Whether the measurement met the bound of its spread within its rounds.
    pub is_steady: bool,
}

impl Row {
    /// Class of the pair, as machine files spell it.
    pub fn class(&self) -> &'static str {
        self.distance.map_or("one CPU", key)
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Quantities in the order of their measurement.
    pub rows: Vec<Row>,
    /// Sentences that say what was not measured, and why.
    pub left_out: Vec<String>,
}

/// CPUs and length of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Description of this machine, for the distances of its CPUs.
    pub machine: &'a Machine,
    /// CPUs that may be used, rising.
    pub cpus: &'a [usize],
    /// Length of the measurements.
    pub effort: Effort,
    /// Signs that this is a guest; `None`: it is none, or guests are measured as if they were none.
    pub guest: Option<&'a str>,
}

/// Measures. `progress` gets a line before each step.
pub fn measure(request: &Request<'_>, progress: &mut dyn FnMut(&str)) -> io::Result<Findings> {
    let Request { machine, cpus, effort, guest } = *request;
    let mut findings = Findings::default();
    let classes = choose(machine, cpus);
    if classes.is_empty() {
        findings.left_out.push(
            "lines, chains, copies, locks and wakeups need two CPUs, and this process may use one: \
             widen its affinity (taskset) or its cpuset"
                .to_owned(),
        );
    }
    for Pairs { distance, pairs } in &classes {
        for &[one, other] in pairs {
            progress(&format!(
                "{}: lines, copies and a lock between CPUs {one} and {other}",
                key(*distance)
            ));
            lines(&mut findings, *distance, [one, other], &effort)?;
        }
    }
    let first = cpus.first().copied().unwrap_or(0);
    progress(&format!("messages on CPU {first}"));
    messages(&mut findings, None, [first; 2], &effort)?;
    if let Some(sign) = guest.filter(|_| !classes.is_empty()) {
        findings.left_out.push(format!(
            "messages between CPUs and wakeups of idle CPUs: this is a virtual machine ({sign}), where an interrupt to \
             another CPU and the end of an idle state leave to the hypervisor, some 10 us each; --in-guest measures them \
             nevertheless"
        ));
        return Ok(findings);
    }
    for Pairs { distance, pairs } in &classes {
        let Some(&[one, other]) = pairs.first() else { continue };
        progress(&format!(
            "{}: messages and wakeups between CPUs {one} and {other}",
            key(*distance)
        ));
        messages(&mut findings, Some(*distance), [one, other], &effort)?;
        wakeups(&mut findings, *distance, [one, other], &effort)?;
    }
    Ok(findings)
}

impl Findings {
    fn add(
        &mut self,
        distance: Option<Distance>,
        cpus: [usize; 2],
        (samples, is_steady): (Samples, bool),
    ) {
        let row = |(quantity, sample)| Row { distance, cpus, quantity, sample, is_steady };
        self.rows.extend(samples.into_iter().map(row));
    }
}

/// Measures lines, chain, copy and lock of a pair.
fn lines(
    findings: &mut Findings,
    distance: Distance,
    cpus: [usize; 2],
    effort: &Effort,
) -> io::Result<()> {
    let steadily = |measure: fn([usize; 2], &Effort) -> io::Result<Samples>| {
        sample::steadily(effort, || measure(cpus, effort))
    };
    let (line, is_steady) = steadily(line::store_and_load)?;
    let line_ns = line[0].1.median();
    findings.add(Some(distance), cpus, (line, is_steady));
    findings.add(Some(distance), cpus, steadily(line::compare_and_swap)?);
    let (mut chain, chain_steady) = steadily(chain::measure)?;
    let overlap = chain[0].1.map(|ns| 1000.0 * ns / line_ns);
    chain.push((Quantity::Overlap, overlap));
    findings.add(Some(distance), cpus, (chain, chain_steady && is_steady));
    let (mut copy, copy_steady) = steadily(copy::measure)?;
    for (_, sample) in copy.iter_mut().filter(|(quantity, _)| *quantity == Quantity::CopyShare) {
        *sample = sample.map(|ns| 1000.0 * ns / line_ns);
    }
    findings.add(Some(distance), cpus, (copy, copy_steady && is_steady));
    let (mut lock, lock_steady) = steadily(lock::measure)?;
    let handover = lock[0].1.map(|ns| ns / line_ns);
    lock.push((Quantity::HandoverLines, handover));
    findings.add(Some(distance), cpus, (lock, lock_steady && is_steady));
    Ok(())
}

/// Measures messages of all primitives between two CPUs, or on one.
fn messages(
    findings: &mut Findings,
    distance: Option<Distance>,
    cpus: [usize; 2],
    effort: &Effort,
) -> io::Result<()> {
    for primitive in Primitive::ALL {
        let measured = sample::steadily(effort, || message::measure(primitive, cpus, effort))?;
        findings.add(distance, cpus, measured);
    }
    Ok(())
}

/// Measures wakeups of an idle CPU and of one that is kept awake.
fn wakeups(
    findings: &mut Findings,
    distance: Distance,
    cpus: [usize; 2],
    effort: &Effort,
) -> io::Result<()> {
    let idle = sample::steadily(effort, || interrupt::of_idle_cpu(cpus, effort))?;
    findings.add(Some(distance), cpus, idle);
    match interrupt::Spinner::start(cpus[1]) {
        Ok(spinner) => {
            let awake = sample::steadily(effort, || interrupt::of_awake_cpu(cpus, effort))?;
            findings.add(Some(distance), cpus, awake);
            drop(spinner);
        }
        Err(error) => findings.left_out.push(format!(
            "wakeups of CPU {} that is kept awake: failed to start a thread of SCHED_IDLE: {error}",
            cpus[1]
        )),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(cpus: &[usize], guest: Option<&str>) -> Findings {
        let machine = Machine::load("uniform8").unwrap();
        let request = Request { machine: &machine, cpus, effort: Effort::TINY, guest };
        let mut steps = 0;
        let findings = measure(&request, &mut |_| steps += 1).unwrap();
        assert!(steps > 0);
        for row in &findings.rows {
            assert_eq!(row.sample.len(), Effort::TINY.repetitions as usize, "{row:?}");
            assert!(row.sample.min() <= row.sample.median(), "{row:?}");
            assert!(row.sample.median() <= row.sample.max(), "{row:?}");
            assert!(cpus.contains(&row.cpus[0]) && cpus.contains(&row.cpus[1]), "{row:?}");
        }
        findings
    }

    /// Shapes, not times: a test shares its CPUs with others.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_tiny_probe_has_every_row_once() {
        let cpus = allowed_cpus().unwrap();
        let alone = shapes(&cpus[..1], None);
        assert_eq!(alone.rows.len(), 3 * Primitive::ALL.len());
        assert!(alone.rows.iter().all(|row| row.class() == "one CPU"));
        assert!(alone.left_out[0].contains("need two CPUs"), "{:?}", alone.left_out);

        let two: Vec<usize> = cpus.iter().copied().filter(|cpu| *cpu < 8).take(2).collect();
        if two.len() < 2 {
            eprintln!("SKIPPED: this process may use one CPU");
            return;
        }
        let guest = shapes(&two, Some("made up"));
        let lines = [
            Quantity::Line,
            Quantity::CompareAndSwap,
            Quantity::Chain,
            Quantity::Overlap,
            Quantity::Copy,
            Quantity::CopyOwn,
            Quantity::CopyShare,
            Quantity::Handover,
            Quantity::HandoverLines,
        ];
        let of_pair = |findings: &Findings| -> Vec<Quantity> {
            let apart = findings.rows.iter().filter(|row| row.distance.is_some());
            apart.map(|row| row.quantity).collect()
        };
        assert_eq!(of_pair(&guest), lines);
        assert!(guest.left_out[0].contains("--in-guest"), "{:?}", guest.left_out);

        let native = shapes(&two, None);
        let all = of_pair(&native);
        assert_eq!(all[..lines.len()], lines);
        assert!(
            all.contains(&Quantity::Message(Primitive::Futex))
                && all.contains(&Quantity::WriteIdle)
        );
        assert!(all.contains(&Quantity::RunsAwake) || native.left_out.len() == 1);
        let values = values(&native.rows);
        assert_eq!(values.line_ns.len(), 1);
        assert!(values.overlap_permille.is_some() && values.handover_lines.is_some());
    }
}
