// SPDX-License-Identifier: GPL-2.0-or-later
//! An experiment and what its runs measured.

use crate::{Request, page, replay};
use schedtwin::{Experiment, Progress, Table};
use schedtwin_engine::scenario::shell_word;
use schedtwin_lab::report::{self, Extent, Format};
use wasm_bindgen::prelude::wasm_bindgen;

/// An experiment that has been run.
#[wasm_bindgen]
pub struct Playground {
    request: Request,
    experiment: Experiment,
    outcome: Outcome,
}

/// The outcome.
enum Outcome {
    /// Runs of a workload.
    Ran(Table),
    /// A recording of this name, replayed.
    Replayed(String, Box<replay::Done>),
}

#[wasm_bindgen]
impl Playground {
    /// Runs an experiment, given as JSON; the page hears of each completed run.
    ///
    /// # Errors
    /// All faults of the experiment, each with its place.
    pub fn run(request: &str) -> Result<Playground, String> {
        Playground::of(Request::parse(request)?)
    }

    /// Replays the content of a trace file on the machine and the kernels of an experiment, given as JSON; its workload is not asked.
    ///
    /// # Errors
    /// All faults of the trace and of the experiment, each with its place.
    pub fn replay(content: &[u8], name: &str, request: &str) -> Result<Playground, String> {
        let request = Request::parse(request)?;
        let (experiment, done) = replay::Done::of(content, name, &request)?;
        let outcome = Outcome::Replayed(name.to_string(), Box::new(done));
        Ok(Playground { request, experiment, outcome })
    }

    /// Returns the result as `schedtwin compare`, `run` or `replay` prints it.
    ///
    /// # Errors
    /// If a kernel cannot be run again.
    pub fn text(&self) -> Result<String, String> {
        match (&self.outcome, self.comparison()) {
            (Outcome::Replayed(_, done), _) => {
                Ok(report::replay(&done.replayed, Format::Text, Extent::Headlines))
            }
            (_, Some(comparison)) => Ok(comparison.text(Format::Text, Extent::Headlines)),
            (_, None) => self.experiment.run_text().map_err(|error| error.to_string()),
        }
    }

    /// Returns the page of the result: verdict, tables, figures, timeline.
    ///
    /// # Errors
    /// If a kernel cannot be run again.
    pub fn page(&self) -> Result<String, String> {
        match &self.outcome {
            Outcome::Ran(table) => self.experiment.page(table).map_err(|error| error.to_string()),
            Outcome::Replayed(_, done) => Ok(done.page()),
        }
    }

    /// Returns what a kernel decided in a window of time of the first seed, as a JSON list of `[microseconds, cpu, words]`.
    ///
    /// # Errors
    /// If there is no such kernel.
    pub fn decisions(&self, kernel: usize, from_us: f64, to_us: f64) -> Result<String, String> {
        let ns = |us: f64| (us.max(0.0) * 1e3) as u64;
        let told = self.experiment.decisions(kernel, [ns(from_us), ns(to_us)]);
        let told = told.map_err(|error| error.to_string())?;
        let list: Vec<_> = told
            .iter()
            .map(|told| (told.at_ns as f64 / 1e3, told.cpu, told.words.as_str()))
            .collect();
        serde_json::to_string(&list).map_err(|error| error.to_string())
    }

    /// Returns where the first two kernels part and why, in words.
    ///
    /// # Errors
    /// If there is one kernel only.
    pub fn first_difference(&self) -> Result<String, String> {
        let found = self.experiment.first_difference().map_err(|error| error.to_string())?;
        Ok(match found {
            Some(explanation) => explanation.to_string(),
            None => "both kernels do the same from the beginning to the end\n".to_string(),
        })
    }

    /// Returns the command that does the same without a page.
    pub fn command(&self) -> String {
        let Request { machine, kernels, workload, seconds, seeds } = &self.request;
        let mut words = vec!["schedtwin".to_string()];
        match (&self.outcome, kernels.as_slice()) {
            (Outcome::Replayed(name, _), _) => {
                words.extend(["replay".to_string(), shell_word(name)])
            }
            (Outcome::Ran(_), [_]) => words.push("run".to_string()),
            (Outcome::Ran(_), _) => words.push("compare".to_string()),
        }
        words.push(format!("-m {}", shell_word(machine.name())));
        words.extend(kernels.iter().map(|kernel| format!("-k {}", shell_word(kernel.name()))));
        if let Outcome::Ran(_) = &self.outcome {
            words.push(format!("-w {}", shell_word(workload.name())));
            words.extend(seconds.map(|seconds| format!("--duration {seconds}s")));
        }
        if words[1] != "run" {
            words.push(format!("-n {seeds}"));
        }
        words.join(" ")
    }
}

impl Playground {
    /// Runs an experiment.
    ///
    /// # Errors
    /// As [`Playground::run`].
    pub fn of(request: Request) -> Result<Playground, String> {
        let experiment = request.experiment()?;
        let table = experiment.run_with(&told_to_page()).map_err(|error| error.to_string())?;
        Ok(Playground { request, experiment, outcome: Outcome::Ran(table) })
    }

    /// The comparison; `None`: there is one kernel, or a recording was replayed.
    pub fn comparison(&self) -> Option<schedtwin::Comparison> {
        let Request { machine, workload, kernels, .. } = &self.request;
        match &self.outcome {
            Outcome::Ran(table) if kernels.len() > 1 => {
                table.comparison(machine.name(), workload.name())
            }
            _ => None,
        }
    }
}

/// Progress of which the page hears.
pub(crate) fn told_to_page() -> Progress {
    Progress::told_to(|progress| {
        page::progressed(progress.done_runs() as f64, progress.expected_runs() as f64);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kernels: &[&str]) -> Request {
        Request {
            machine: "uniform8".into(),
            kernels: kernels.iter().map(|kernel| (*kernel).into()).collect(),
            workload: "w1".into(),
            seconds: Some(0.1),
            seeds: 2,
        }
    }

    #[test]
    fn two_kernels_are_compared() {
        let two = Playground::of(request(&["linux-6.12", "linux-6.12:hz=1000"])).expect("it runs");
        assert!(two.text().expect("a table").contains("power"));
        assert!(two.page().expect("a page").contains("class=\"timeline\""));
        assert!(two.first_difference().expect("two kernels").starts_with("first difference at"));
        let decisions = two.decisions(1, 0.0, 20_000.0).expect("there is a kernel 1");
        assert!(decisions.contains("placement"), "{decisions}");
        assert!(two.decisions(2, 0.0, 1.0).is_err());
        assert_eq!(
            two.command(),
            "schedtwin compare -m uniform8 -k linux-6.12 -k linux-6.12:hz=1000 -w w1 --duration 0.1s -n 2"
        );
    }

    #[test]
    fn one_kernel_is_run() {
        let one = Playground::of(request(&["linux-6.12"])).expect("it runs");
        assert!(one.comparison().is_none() && one.text().expect("a table").contains("power"));
        assert!(one.page().expect("a page").contains("schedtwin run"));
    }

    #[test]
    fn a_trace_is_replayed() {
        let trace = include_bytes!("../../crates/schedtwin-cli/tests/replay/pipeline.txt");
        let request = serde_json::to_string(&request(&["linux-6.12", "linux-7.3"])).expect("JSON");
        let done = Playground::replay(trace, "pipeline.txt", &request).expect("it is replayed");
        assert!(done.text().expect("a table").contains("trust"));
        assert!(done.page().expect("a page").contains("How far the replays are the recording"));
        assert!(done.decisions(1, 0.0, 1e6).expect("kernel 1").contains("placement"));
        let command = "schedtwin replay pipeline.txt -m uniform8 -k linux-6.12 -k linux-7.3 -n 2";
        assert_eq!(done.command(), command);
        let none = Playground::replay(b"no trace", "x.txt", &request).err().expect("it is none");
        assert!(none.contains("x.txt"), "{none}");
    }

    #[test]
    fn faults_have_their_place() {
        let fault = Playground::of(request(&["linux-6.12:hz=0"])).err().expect("no such frequency");
        assert!(fault.contains("`hz` is 0"), "{fault}");
    }
}
