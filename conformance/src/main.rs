// SPDX-License-Identifier: GPL-2.0-or-later
//! The program that compares schedtwin with the real kernel.

use clap::{Parser, Subcommand};
use schedtwin_conformance::cfs::Cfs;
use schedtwin_conformance::eevdf::Eevdf;
use schedtwin_conformance::l0::mutate::{Mutation, Range, say};
use schedtwin_conformance::l0::{Action, Asked};
use schedtwin_conformance::subjects::SUBJECTS;
use schedtwin_conformance::{l1, l2, rational};

/// Compares schedtwin with the real kernel.
#[derive(Parser)]
#[command(name = "schedtwin-conformance", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Arithmetic, with the kernel's own C, bit for bit
    ///
    /// SCHEDTWIN_KERNEL_TREE is the kernel tree, SCHEDTWIN_KERNEL_TREE_6_1 that of what is of Linux 6.1; likewise _7_3, _6_18, _5_19, _6_3, _6_6,
    /// _6_6_Y, _TEO_POSTED, _TEO_V2, _TEO_V3, _TEO_V4 and _UCLAMP_SUM. --golden needs none.
    L0(Arithmetic),
    /// The fair class, with its definitions in exact fractions
    Rational(Definitions),
    /// Averages, with recordings
    #[command(args_conflicts_with_subcommands = true)]
    L1(Averages),
    /// Every decision that recordings show
    ///
    /// Exit code: 0 every row keeps its bars, 1 one does not, 2 a recording cannot be read.
    Mechanisms(l1::mechanisms::Options),
    /// The decisions of sched_ext, with recordings under schedulers in BPF
    ///
    /// Exit code: 0 every decision keeps its bar, 1 one does not, 2 a recording cannot be read.
    SchedExt(l1::ext::Options),
    /// Executions, in the twin and recorded
    ///
    /// Exit code: 0 both bars are met, 1 one is missed, 2 something cannot be read.
    SideBySide(l2::Options),
    /// Differences between two settings, in the twin and recorded
    ///
    /// Exit code: 0 both bars are met, 1 one is missed, 2 something cannot be read.
    WhatIf(l2::what_if::Options),
    /// Costs of the kernel's paths, in the twin and recorded
    Paths(l2::paths::Options),
    /// Executions and decisions, with a kernel tree of your own
    Judge(l2::judge::Options),
}

#[derive(clap::Args)]
struct Definitions {
    class: Class,
    /// How many sequences of operations
    #[arg(long, value_name = "N", default_value = "100000", value_parser = number)]
    cases: u64,
    /// With the number of a sequence it determines that sequence
    #[arg(long, value_name = "N", default_value = "1", value_parser = number)]
    seed: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Class {
    /// Since 6.6
    Eevdf,
    /// Before
    Cfs,
}

#[derive(clap::Args)]
struct Averages {
    #[command(subcommand)]
    of: Option<Of>,
    #[command(flatten)]
    options: l1::Options,
}

#[derive(Subcommand)]
enum Of {
    /// The fair class's decisions and virtual times
    Fair(l1::fair::Options),
}

#[derive(clap::Args)]
struct Arithmetic {
    #[arg(required_unless_present_any = ["list", "list_mutations"], value_parser = clap::builder::PossibleValuesParser::new(SUBJECTS.iter().map(|subject| subject.name)))]
    subject: Option<String>,
    /// Prints each subject, the variable that names its tree, and the number of its mutations
    #[arg(long, exclusive = true)]
    list: bool,
    /// Prints each mutation as a JSON array: subject, number, file, what is there, what is put there
    #[arg(long, exclusive = true)]
    list_mutations: bool,
    #[command(flatten)]
    action: Chosen,
    /// How many sequences of operations [default: 1000000, or 100000 for --coverage and --mutate]
    #[arg(long, value_name = "N", value_parser = number)]
    cases: Option<u64>,
    /// With the number of a sequence it determines that sequence
    #[arg(long, value_name = "N", default_value = "1", value_parser = number)]
    seed: u64,
    /// Of --mutate: the numbers of mutations, such as 7, 7..12 or 7.. [default: 1..]
    #[arg(long, value_name = "RANGE", requires = "mutate")]
    mutations: Option<Range>,
    /// Compares with what is written where we differ by declaration: pelt, eevdf-6.18
    #[arg(long)]
    as_written: bool,
}

/// Instead of a comparison.
#[derive(clap::Args)]
#[group(multiple = false)]
struct Chosen {
    /// Which branches of the kernel's file are taken
    #[arg(long)]
    coverage: bool,
    /// Whether wrong tokens in our code are noticed: a line for each, as it ends
    #[arg(long)]
    mutate: bool,
    /// Checks the golden vectors
    #[arg(long)]
    golden: bool,
    /// Writes them anew
    #[arg(long)]
    write_golden: bool,
    /// Counts the instructions of the kernel's functions while two tasks wake each other: cfs, eevdf
    #[arg(long)]
    instructions: bool,
}

/// Digits, which may be grouped: 1_000_000.
fn number(text: &str) -> Result<u64, std::num::ParseIntError> {
    text.replace('_', "").parse()
}

fn list_subjects(mutations: bool) -> i32 {
    for subject in SUBJECTS {
        if mutations {
            for (index, mutation) in subject.mutations.iter().enumerate() {
                let Mutation { file, from, to } = mutation;
                let entry = serde_json::json!([subject.name, index + 1, file, from, to]);
                say(&entry.to_string());
            }
            continue;
        }
        say(&format!("{} {} {}", subject.name, subject.tree, subject.mutations.len()));
    }
    0
}

fn arithmetic(chosen: &Arithmetic) -> i32 {
    let Some(name) = &chosen.subject else { return list_subjects(chosen.list_mutations) };
    let Chosen { coverage, mutate, golden, write_golden, instructions } = chosen.action;
    let action = match (coverage, mutate, golden, write_golden) {
        (true, ..) => Action::Coverage,
        (_, true, ..) => Action::Mutate,
        (_, _, true, _) => Action::Golden,
        (.., true) => Action::WriteGolden,
        _ if instructions => Action::Instructions,
        _ => Action::Compare,
    };
    let Arithmetic { cases, seed, as_written, mutations, .. } = *chosen;
    let mutations = mutations.unwrap_or_default();
    let asked = Asked { action, cases, seed, as_written, mutations };
    let subject = SUBJECTS.iter().find(|it| it.name == name).expect("a known subject");
    (subject.run)(&asked).unwrap_or_else(|error| {
        eprintln!("{error}");
        2
    })
}

fn main() {
    let code = match Arguments::parse().command {
        Command::L0(chosen) => arithmetic(&chosen),
        Command::Rational(Definitions { class, cases, seed }) => match class {
            Class::Eevdf => rational::tell::<Eevdf, rational::eevdf::Eevdf>(seed, cases),
            Class::Cfs => rational::tell::<Cfs, rational::cfs::Cfs>(seed, cases),
        },
        Command::L1(Averages { of: Some(Of::Fair(options)), .. }) => l1::fair::main(&options),
        Command::L1(Averages { of: None, options }) => l1::main(&options),
        Command::Mechanisms(options) => l1::mechanisms::main(&options),
        Command::SchedExt(options) => l1::ext::main(&options),
        Command::SideBySide(options) => l2::main(&options),
        Command::WhatIf(options) => l2::what_if::main(&options),
        Command::Paths(options) => l2::paths::main(&options),
        Command::Judge(options) => l2::judge::main(&options),
    };
    std::process::exit(code);
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
        for line in [
            "x l0 pelt --cases 1_000 --seed 2",
            "x l0 teo-6.3 --mutate --mutations 3..",
            "x l0 eevdf --instructions",
            "x l0 --list",
            "x rational eevdf",
            "x l1 --totals",
            "x l1 fair --misses a.trace.txt",
            "x side-by-side --seeds 3 --with linux-6.12:hz=1000 a.wl.txt",
            "x judge --boots 4 a.wl.txt",
            "x what-if --seeds 8 --rows folder",
            "x what-if --predict",
        ] {
            assert!(Arguments::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
        for line in [
            "x l0 nothing",
            "x l0 pelt --golden --mutate",
            "x l0 pelt --mutations 3",
            "x judge --boots 0 a.wl.txt",
        ] {
            assert!(Arguments::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
