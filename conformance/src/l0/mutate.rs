// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether the comparison notices a wrong token: mutations of our own code.
//!
//! Each mutation replaces one piece of text in a copy of our source. The copy and these very tests
//! are compiled ([`mutant`]), and must disagree with the golden vectors and with the oracle; those of the
//! fair class also with the model in fractions ([`crate::rational`]).
//!
//! A line is printed as each mutation ends. Its number in the list names it: `--mutations 7..12` runs these, `7..`
//! goes on where a run has been ended.

mod mutant;

use super::Subject;
use mutant::{Copy, Outcome};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// A replacement in a file of `crates/schedtwin-kernel/src`.
#[derive(Clone, Copy)]
pub struct Mutation {
    /// The file, from `src/` on.
    pub file: &'static str,
    /// The text that is there, exactly once.
    pub from: &'static str,
    /// The text that is put there.
    pub to: &'static str,
}

/// A mutation, in a short word because subjects have dozens.
pub const fn m(file: &'static str, from: &'static str, to: &'static str) -> Mutation {
    Mutation { file, from, to }
}

/// What forms share, and what one has besides; `N` in all.
pub const fn join<const N: usize>(shared: &[Mutation], own: &[Mutation]) -> [Mutation; N] {
    assert!(shared.len() + own.len() == N);
    let mut all = [m("", "", ""); N];
    let mut at = 0;
    while at < N {
        all[at] = if at < shared.len() { shared[at] } else { own[at - shared.len()] };
        at += 1;
    }
    all
}

/// The sources of ours from which the program with a wrong token in it is compiled.
pub struct Sources {
    /// The folders of `conformance/src` that the subject needs beside this one.
    pub modules: &'static [&'static str],
    /// The modules that it needs of the kernel crate; `None` for all of it, which takes longer to
    /// compile.
    pub kernel: Option<&'static KernelFiles>,
}

/// Files of the kernel crate that compile without the others.
pub struct KernelFiles {
    /// The `lib.rs` that names their modules.
    pub library: &'static str,
    /// Their paths, from `src/` on.
    pub files: &'static [&'static str],
}

/// A subject's mutations, and the program that judges each of them.
pub struct Plan<'a> {
    /// The subject.
    pub name: &'a str,
    /// Its sources.
    pub sources: &'a Sources,
    /// Its wrong tokens.
    pub mutations: &'a [Mutation],
    /// The judges. Each prints its name and "equal", or what it has noticed.
    pub judges: &'a [&'a str],
    /// The body of the program: `oracle`, `seed` and `cases` are its arguments.
    pub driver: String,
}

/// The plan of a subject of sequences. The fair class is also judged by exact fractions.
pub fn plan<S: Subject>() -> Plan<'static> {
    let fractions = S::SOURCES.modules.contains(&"rational");
    let world = path_in_driver::<S>();
    let mut driver = judge("golden", &format!("l0::golden::check::<{world}>"));
    if fractions {
        let compare =
            format!("|| rational::compare::<{world}, rational::{world}>(seed, cases / 50)");
        driver += &judge("fractions", &compare);
    }
    driver += &judge(
        "oracle",
        &format!(
            "|| match l0::compare::<{world}>(oracle, seed, cases, true)?.first_difference {{\n\
             None => Ok(()),\nSome(difference) => Err(difference),\n}}"
        ),
    );
    let judges: &[&str] = match fractions {
        true => &["golden", "oracle", "fractions"],
        false => &["golden", "oracle"],
    };
    Plan { name: S::NAME, sources: &S::SOURCES, mutations: S::MUTATIONS, judges, driver }
}

/// Returns a subject's type by its path, which is the same in the driver but for the name of this crate.
pub fn path_in_driver<S>() -> String {
    std::any::type_name::<S>().replace("schedtwin_conformance::", "")
}

/// Returns driver code by which `name` judges: `check` returns a result with a text as its error, or panics.
pub fn judge(name: &str, check: &str) -> String {
    format!(
        "let judged: std::thread::Result<Result<_, String>> = std::panic::catch_unwind({check});\n\
         match judged {{\n\
         Ok(Ok(_)) => println!(\"{name} equal\"),\n\
         Ok(Err(text)) => println!(\"{name} noticed: {{}}\", text.lines().next().unwrap_or_default()),\n\
         Err(_) => println!(\"{name} noticed: a panic\"),\n}}\n"
    )
}

/// The mutations that are asked for: numbers of the list, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub first: usize,
    /// The last.
    pub last: usize,
}

impl Default for Range {
    fn default() -> Range {
        Range { first: 1, last: usize::MAX }
    }
}

impl std::str::FromStr for Range {
    type Err = String;

    /// `7`, `7..12` or `7..`.
    fn from_str(text: &str) -> Result<Range, String> {
        let number = |text: &str| {
            text.parse().map_err(|_| format!("'{text}' is no number; write 7, 7..12 or 7.."))
        };
        let range = match text.split_once("..") {
            None => Range { first: number(text)?, last: number(text)? },
            Some((first, "")) => Range { first: number(first)?, last: usize::MAX },
            Some((first, last)) => Range { first: number(first)?, last: number(last)? },
        };
        match range.first {
            0 => Err("the first mutation is 1".to_string()),
            first if first > range.last => Err(format!("{first} is after {}", range.last)),
            _ => Ok(range),
        }
    }
}

/// Applies the mutations one after the other, runs the checks on each and prints what came of it. Returns how many are not caught by all
/// judges.
pub fn report(
    plan: &Plan<'_>,
    oracle: &Path,
    build_dir: &Path,
    (seed, cases): (u64, u64),
    range: Range,
) -> Result<usize, String> {
    let count = plan.mutations.len();
    if range.first > count {
        return Err(format!("{} has {count} mutations", plan.name));
    }
    let started = Instant::now();
    let mut copy = Copy::new(plan, oracle, build_dir, (seed, cases))?;
    // Unchanged code must pass, or a failure would mean nothing.
    match copy.judge(None)? {
        Outcome::Judged(noticed) if noticed.iter().all(Option::is_none) => {}
        outcome => return Err(format!("the unchanged code does not pass: {outcome:?}")),
    }
    say(&format!(
        "{count} mutations of our {}; the unchanged code passes{}",
        plan.name,
        took(started)
    ));
    let mut tally = [0; 3];
    let chosen = range.first..=range.last.min(count);
    for number in chosen.clone() {
        let mutation = &plan.mutations[number - 1];
        let started = Instant::now();
        let outcome = copy.judge(Some(mutation))?;
        let (verdict, kind) = verdict(plan, &outcome);
        tally[kind] += 1;
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        say(&format!(
            "{number:>3}/{count} {verdict}{}; {}: {} -> {}",
            took(started),
            mutation.file,
            one_line(mutation.from),
            one_line(mutation.to)
        ));
    }
    let [caught, partly, not] = tally;
    say(&format!(
        "{caught} of {} caught by all, {partly} by some, {not} not{}",
        chosen.count(),
        took(started)
    ));
    Ok(partly + not)
}

/// Words for an outcome; 0: all judges have noticed it, 1: some, 2: none, or it does not compile.
fn verdict(plan: &Plan<'_>, outcome: &Outcome) -> (String, usize) {
    let noticed = match outcome {
        Outcome::Refused(why) => return (format!("DOES NOT COMPILE ({why})"), 2),
        Outcome::Judged(noticed) => noticed,
    };
    let each = plan.judges.iter().zip(noticed).map(|(judge, noticed)| match noticed {
        Some(noticed) => format!("{judge}: {noticed}"),
        None => format!("{judge}: EQUAL"),
    });
    let each = each.collect::<Vec<_>>().join("; ");
    match (noticed.iter().all(Option::is_some), noticed.iter().any(Option::is_some)) {
        (true, _) => (format!("caught ({each})"), 0),
        (_, true) => (format!("PARTLY CAUGHT ({each})"), 1),
        _ => (format!("SURVIVED ({each})"), 2),
    }
}

fn took(since: Instant) -> String {
    format!(", {:.1} s", since.elapsed().as_secs_f64())
}

/// Prints a line at once, also where standard output is a file.
pub fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // Nobody may be reading any more; the exit code still tells.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::teo::Teo;
    use std::time::Duration;

    /// The driver builds, and the golden vectors alone tell a wrong token from none.
    #[test]
    fn a_wrong_token_is_noticed_without_a_tree() {
        let dir = super::super::BuildDir::new("mutate-test").unwrap();
        let plan = plan::<Teo>();
        let mut copy = Copy::new(&plan, Path::new("/no/oracle"), dir.path(), (1, 1)).unwrap();
        let mut golden = |mutation| match copy.judge(mutation).unwrap() {
            Outcome::Judged(noticed) => noticed[0].clone(),
            refused => panic!("{refused:?}"),
        };
        assert_eq!(golden(None), None);
        assert!(golden(Some(&Teo::MUTATIONS[0])).is_some());
        // It has been taken out again.
        assert_eq!(golden(None), None);
        let wrong = m(Teo::MUTATIONS[0].file, Teo::MUTATIONS[0].from, "§");
        assert!(matches!(copy.judge(Some(&wrong)), Ok(Outcome::Refused(_))));
        // Judges that do not answer within the limit have noticed it.
        copy.limit = Some(Duration::ZERO);
        let outcome = copy.judge(None).unwrap();
        assert_eq!(outcome, Outcome::Judged(vec![Some("no answer in time".to_string()); 2]));
    }

    #[test]
    fn ranges_are_read() {
        let read = |text: &str| text.parse::<Range>().map(|range| (range.first, range.last));
        assert_eq!(read("7"), Ok((7, 7)));
        assert_eq!(read("7..12"), Ok((7, 12)));
        assert_eq!(read("7.."), Ok((7, usize::MAX)));
        for wrong in ["", "0", "x", "..", "..4", "9..3", "1..x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
