// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin bisect` between two commits of a tree: which one is the first that is bad.
//!
//! Commits between are asked in halves, as git bisect does, in the order in which git lists them. Each is a run of its own, of
//! this program: a tree's C is compiled before its worker begins. What does not compile is passed over, and told.

use std::process::{Command, Stdio};

use schedtwin_engine::{Fault, Tree};
use schedtwin_types::metric::{Better, declared};
use schedtwin_types::printable;
use serde_json::Value;

use crate::arguments::Bisect;
use crate::failure::Failure;
use crate::output;
use crate::output::tell;
use crate::settings::own_program;

/// Two kernels that differ in the commit of a tree alone.
pub struct Commits {
    before: String,
    folder: String,
    revisions: [String; 2],
    after: String,
}

impl Commits {
    /// If that is what the kernels differ in: `NAME:...tree=PATH@GOOD...` and the same with `@BAD`.
    pub fn of(kernels: &[String]) -> Option<Commits> {
        let [good, bad] = kernels else { return None };
        let parts = |spelled: &str| {
            let at = spelled.find("tree=")? + "tree=".len();
            let (before, rest) = spelled.split_at(at);
            let (tree, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            let (folder, revision) = tree.rsplit_once('@')?;
            Some([before, folder, revision, after].map(str::to_string))
        };
        let ([before, folder, first, after], other) = (parts(good)?, parts(bad)?);
        let same = [&before, &folder, &after] == [&other[0], &other[1], &other[3]];
        let [_, _, last, _] = other;
        (same && first != last).then_some(Commits {
            before,
            folder,
            revisions: [first, last],
            after,
        })
    }

    fn kernel(&self, revision: &str) -> String {
        format!("{}{}@{revision}{}", self.before, self.folder, self.after)
    }
}

/// The answer of a commit.
enum Said {
    /// A mean, with half the width of its 95 % interval; none from one run.
    Number(f64, Option<f64>),
    /// The properties that it breaks, with their words.
    Broken(Vec<String>),
    /// It does not compile, or its run does not end as it should.
    Nothing(String),
}

/// Whether what a commit says is bad.
type IsBad = Box<dyn Fn(&Said) -> bool>;

/// Runs one commit.
fn ask(arguments: &Bisect, kernel: &str) -> Result<Said, Failure> {
    let Bisect { subject, metric, iterations, searched, seed, .. } = arguments;
    let mut command = Command::new(own_program()?);
    command.args(["run", "--quiet", "-m", &subject.machine, "-w", &subject.workload, "-k", kernel]);
    command.args(["--seed", &seed.to_string()]);
    if let Some(duration) = subject.duration {
        command.args(["--duration", &duration.word()]);
    }
    for bound in &searched.bounds.bounds {
        command.args(["--bound", bound]);
    }
    match metric {
        Some(metric) => command.args(["--value", metric, "-n", &iterations.to_string()]),
        None => command.args(["--format", "json"]),
    };
    let done =
        command.stdin(Stdio::null()).output().map_err(|why| Failure::bad(why.to_string()))?;
    let (text, said) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if !done.status.success() {
        let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
        return Ok(Said::Nothing(printable::line(line).into_owned()));
    }
    let unread = || Failure::bad("a run printed something else than its result");
    if metric.is_some() {
        let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
        let mean = numbers.next().ok_or_else(unread)?;
        return Ok(Said::Number(mean, numbers.next()));
    }
    let result: Value = serde_json::from_str(&text).map_err(|_| unread())?;
    let broken = result["broken"].as_array().ok_or_else(unread)?;
    let property = |breach: &Value| breach["property"].as_str().map(str::to_string);
    Ok(Said::Broken(broken.iter().filter_map(property).collect()))
}

/// Whether a metric is better at `to` than at `from`; `None`: it has no better direction.
fn better_of(metric: &str, from: f64, to: f64) -> Option<bool> {
    let name = metric.split(['.', ',', '{', ' ']).next().unwrap_or_default();
    match declared(name)?.better {
        Better::Higher => Some(to > from),
        Better::Lower => Some(to < from),
        Better::Neutral => None,
    }
}

/// Finds the first bad commit.
pub fn bisect(arguments: &Bisect, commits: &Commits) -> Result<(), Failure> {
    let metric = &arguments.metric;
    let [good, bad] = &commits.revisions;
    let fault = |fault: Fault| Failure::bad(fault.message);
    let between = Tree::commits_between(&commits.folder, good, bad).map_err(fault)?;
    let ends = [good, bad].map(|revision| ask(arguments, &commits.kernel(revision)));
    let [of_good, of_bad] = ends;
    let (of_good, of_bad) = (of_good?, of_bad?);
    let failed = |text: String| Err(Failure::Failed(vec![text]));
    let asked = arguments.searched.property.as_deref();
    // What makes a commit bad, and what is said of that.
    let (is_bad, what): (IsBad, String) = match (&of_good, &of_bad) {
        (Said::Nothing(why), _) => return failed(format!("nothing is known of {good}: {why}")),
        (_, Said::Nothing(why)) => return failed(format!("nothing is known of {bad}: {why}")),
        (Said::Number(from, _), Said::Number(to, _)) if from == to => {
            return failed(format!("it is {from} at both commits"));
        }
        (Said::Number(from, from_half), Said::Number(to, to_half)) => {
            let (from, to) = (*from, *to);
            let nearer = move |said: &Said| matches!(said, Said::Number(of, _) if (of - to).abs() < (of - from).abs());
            let what = format!("it is {from} at {good}, and {to} at {bad}");
            let halves = from_half.zip(*to_half);
            if halves.is_some_and(|(one, other)| (from - to).abs() <= one + other) {
                return failed(format!(
                    "{what}: their 95 % intervals overlap, so the difference may be chance and there is nothing to \
                     explain; ask for more runs (-n)"
                ));
            }
            let better = match better_of(metric.as_deref().unwrap_or_default(), from, to) {
                Some(true) => format!("; {bad}, given as the bad one, is better"),
                Some(false) => format!("; {good} is better"),
                None => String::new(),
            };
            let chance = if halves.is_none() {
                ". One run of each has no interval: chance may have made the difference"
            } else {
                ""
            };
            (Box::new(nearer), format!("{what}{better}{chance}"))
        }
        (Said::Broken(kept), Said::Broken(broken)) => {
            let new = broken.iter().find(|property| {
                !kept.contains(property) && asked.is_none_or(|asked| asked == *property)
            });
            let Some(new) = new.cloned() else {
                return failed(format!("{bad} breaks nothing that {good} keeps"));
            };
            let what = format!("{bad} breaks {new}, which {good} keeps");
            (Box::new(move |said| matches!(said, Said::Broken(all) if all.contains(&new))), what)
        }
        _ => return failed("a run printed something else than its result".to_string()),
    };
    // Of `between` everything before `first` is good, and that at `last` is bad, as far as it is known.
    let (mut first, mut last) = (0, between.len().saturating_sub(1));
    let (mut runs, mut passed_over) = (2, Vec::new());
    while first < last {
        let known = |at: &usize| !passed_over.contains(at);
        let middle = (first + last) / 2;
        // The nearest to the middle that compiles; the last one does.
        let candidates = (0..2 * (last - first)).map(|step: usize| {
            let half = step.div_ceil(2);
            if step.is_multiple_of(2) { middle.saturating_sub(half) } else { middle + half }
        });
        let Some(at) = candidates.filter(|at| (first..last).contains(at)).find(known) else {
            break;
        };
        tell(&format!("asks {} ({} commits are left)", between[at], last - first + 1));
        runs += 1;
        match ask(arguments, &commits.kernel(&between[at]))? {
            Said::Nothing(_) => passed_over.push(at),
            said if is_bad(&said) => last = at,
            _ => first = at + 1,
        }
    }
    let line = |at: usize| {
        let tree = Tree::find(&format!("{}@{}", commits.folder, between[at]));
        let line = tree.ok().and_then(|tree| tree.commit_line());
        printable::line(&line.unwrap_or_else(|| between[at].clone())).into_owned()
    };
    let mut text = format!("{what}.\n\nOf {} commits {runs} were run.\n", between.len());
    match last - first {
        0 => text.push_str(&format!("The first bad one is\n  {}\n", line(last))),
        _ => {
            text.push_str(
                "The first bad one is one of these, most of which do not compile or run:\n",
            );
            (first..=last).for_each(|at| text.push_str(&format!("  {}\n", line(at))));
        }
    }
    output::print_fit(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_differ_in_the_commit_alone() {
        let spelled = |revision: &str| format!("linux-6.12:tree=/l@{revision},cpuidle=tree/teo.c");
        let of = |good: &str, bad: &str| Commits::of(&[good.to_string(), bad.to_string()]);
        let found = of(&spelled("v6.12"), &spelled("main")).expect("they do");
        assert_eq!(found.revisions, ["v6.12", "main"]);
        assert_eq!(found.kernel("abc"), spelled("abc"));
        assert!(of(&spelled("a"), &spelled("a")).is_none());
        assert!(of(&spelled("a"), "linux-6.12:tree=/l@b").is_none());
        assert!(of("linux-6.12", "linux-7.3").is_none());
    }
}
