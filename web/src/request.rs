// SPDX-License-Identifier: GPL-2.0-or-later
//! An experiment as a page asks for it.

use schedtwin::{Duration, Experiment, Given, GivenWorkload};
use schedtwin_lab::given::Input;
use serde::{Deserialize, Serialize};

/// The most seeds of an experiment in a tab.
const SEEDS_MAX: u64 = 100;
/// The longest run, seconds.
const SECONDS_MAX: f64 = 600.0;
/// As many kernels as a page has letters and colours for.
const KERNELS_MAX: usize = 7;
/// The longest text of an input: what a link and a form can hold.
const TEXT_MAX: usize = 1 << 20;

/// A machine, kernels, a workload, seeds and a duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The machine.
    pub machine: Named,
    /// The kernels, the baseline first.
    pub kernels: Vec<Named>,
    /// The workload.
    pub workload: Named,
    /// Simulated seconds of a run; without them as long as the workload says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The number of seeds, from 1 on.
    pub seeds: u64,
}

/// A name as the command line takes it, or a text with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Named {
    /// Built in, with its settings and options.
    Name(String),
    /// The content of a file.
    Text {
        /// Its name.
        name: String,
        /// TOML of machines and kernels, rt-app's JSON of workloads.
        text: String,
    },
}

impl Named {
    pub(crate) fn given<T: Input>(&self) -> Given<T> {
        match self {
            Named::Name(name) => Given::Named(name.clone()),
            Named::Text { name, text } => Given::text(name.clone(), text.clone()),
        }
    }

    /// The name that results give it.
    pub fn name(&self) -> &str {
        match self {
            Named::Name(name) | Named::Text { name, .. } => name,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Named::Name(name) => name.len(),
            Named::Text { name, text } => name.len() + text.len(),
        }
    }
}

impl From<&str> for Named {
    fn from(name: &str) -> Named {
        Named::Name(name.to_string())
    }
}

impl Request {
    /// Reads one that a page wrote.
    ///
    /// # Errors
    /// If the text is no request, in words.
    pub fn parse(text: &str) -> Result<Request, String> {
        serde_json::from_str(text).map_err(|error| format!("this is no experiment: {error}"))
    }

    /// The experiment.
    ///
    /// # Errors
    /// What exceeds a bound, everything at once.
    pub fn experiment(&self) -> Result<Experiment, String> {
        self.experiment_of(self.workload.given())
    }

    /// The experiment with another workload.
    pub(crate) fn experiment_of(&self, workload: GivenWorkload) -> Result<Experiment, String> {
        let mut faults = Vec::new();
        if !(1..=SEEDS_MAX).contains(&self.seeds) {
            faults.push(format!("an experiment in a page has 1 to {SEEDS_MAX} seeds"));
        }
        if self.seconds.is_some_and(|s| !(s > 0.0 && s <= SECONDS_MAX)) {
            faults.push(format!("a run in a page has up to {SECONDS_MAX} seconds"));
        }
        if !(1..=KERNELS_MAX).contains(&self.kernels.len()) {
            faults.push(format!("an experiment in a page has 1 to {KERNELS_MAX} kernels"));
        }
        let inputs = self.kernels.iter().chain([&self.machine, &self.workload]);
        if inputs.map(Named::bytes).any(|bytes| bytes > TEXT_MAX) {
            faults.push(format!("a text in a page has at most {} KiB", TEXT_MAX >> 10));
        }
        if !faults.is_empty() {
            return Err(faults.join("\n"));
        }
        let experiment = Experiment::new()
            .machine(self.machine.given())
            .kernels(self.kernels.iter().map(Named::given))
            .workload(workload)
            .seeds(1..=self.seeds);
        Ok(match self.seconds {
            Some(seconds) => experiment.duration(Duration::from_ns((seconds * 1e9) as u64)),
            None => experiment,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_at_once() {
        let request = Request {
            machine: "pixel6".into(),
            kernels: Vec::new(),
            workload: "w1".into(),
            seconds: Some(f64::NAN),
            seeds: 1_000,
        };
        let text = request.experiment().expect_err("nothing of it fits");
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(Request::parse("{\"machine\": 3}").is_err_and(|e| e.contains("no experiment")));
    }

    #[test]
    fn a_request_is_what_its_text_says() {
        let text = r#"{"machine":"pixel6","kernels":["linux-7.3-gki"],"workload":{"name":"a.json","text":"{}"},"seeds":2}"#;
        let request = Request::parse(text).expect("a request");
        assert_eq!(serde_json::to_string(&request).expect("JSON"), text);
        assert_eq!(request.experiment().expect("it fits").runs(), 2);
    }
}
