// SPDX-License-Identifier: GPL-2.0-or-later
//! The rt-app language: a JSON file that says what each thread of a workload does.
//!
//! ```text
//! { "global": { "duration": 2, "calibration": "CPU0" },
//!   "tasks": { "worker": { "instance": 4, "loop": -1,        four threads, for ever:
//!                          "run": 1000,                      1 ms of work at CPU0's full speed
//!                          "timer": { "ref": "unique", "period": 16000 } } } }   until the next 16 ms
//! ```
//!
//! Terms: a *task* is an entry of `tasks`, of which any number of threads are made; a *phase* is a
//! list of *events* that is repeated; an event is one thing that a thread does. Events are matched
//! by the beginning of their key, so `run0`, `run_b` and a second `run` are all `run`.
//!
//! `overlay` changes tasks by their names, `numbers` tells a form which numbers a file has. `json` reads the text, `reader` and `task` and `event` check it into a [`model::Model`],
//! [`compile`] turns that into the instructions that `crate::program` interprets.
//!
//! The facts are rt-app's own (its tutorial and, where that is silent or wrong, the behaviour of
//! `rt-app.c` and `rt-app_parse_config.c`). Where we differ:
//!
//! * `suspend` waits on the condition named by its string, not on its task's name: that is what
//!   rt-app does although its tutorial says that the string is ignored, and its own examples
//!   (`"suspend": "BrowserSub"` in task BrowserSub1) need it. Without a value it is the task's name,
//!   as `workgen` fills it in.
//! * Unknown keys are faults; rt-app ignores them silently.
//! * A loop of 0 or below -1 is a fault; rt-app would repeat such a phase for ever.
//! * Two tasks of one name: the later ones get a number appended, as `workgen` does.

pub(crate) mod compile;
mod event;
mod json;
pub(crate) mod model;
pub(crate) mod numbers;
mod overlay;
pub(crate) mod reader;
mod task;
pub(crate) mod taskgroups;

use crate::program::Interpreter;
use crate::program::code::Code;
use crate::workload::{Changed, Checked};
use crate::{Host, Programs, ThreadSetting};
use model::{Attributes, Loops, Model, PolicyName};
use schedtwin_input::Diagnostics;
use schedtwin_types::Ns;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Model {
    /// Whether any task, or any phase of one, asks for such scheduling parameters.
    fn any_attributes(&self, such: impl Fn(&Attributes) -> bool) -> bool {
        self.tasks.iter().any(|task| {
            let phases = task.phases.iter().filter_map(|phase| phase.attributes.as_ref());
            phases.chain([&task.attributes]).any(&such)
        })
    }
}

impl Checked for Model {
    fn describe(&self) -> String {
        format!("{}\n", self.source.text.trim_end())
    }

    fn notices(&self) -> &[String] {
        &self.notices
    }

    fn pending(&self) -> &Diagnostics {
        &self.pending
    }

    fn endless(&self) -> Diagnostics {
        let endless = |task: &&model::Task| {
            let phases = task.phases.iter().map(|phase| phase.loops);
            phases.chain([task.loops]).any(|loops| loops == Loops::Forever)
        };
        let mut faults = Diagnostics::new();
        if let Some(task) = self.tasks.iter().find(endless) {
            let message =
                format!("\"{}\" runs for ever, and nothing says how long the run is", task.name);
            let help = "give --duration 10s, or \"duration\": 10 in \"global\"".to_owned();
            faults.push_whole(&self.source, message, Some(help));
        }
        faults
    }

    fn gives_clamps(&self) -> bool {
        self.any_attributes(|of| of.clamps.iter().any(Option::is_some))
    }

    fn has_rt_tasks(&self, _host: &Host) -> bool {
        self.any_attributes(|of| matches!(of.policy, PolicyName::Fifo | PolicyName::Rr))
    }

    fn bytes(&self) -> &[u8] {
        self.identity.as_bytes()
    }

    fn with_thread_settings(
        &self,
        settings: &[ThreadSetting],
        _pids: Option<&BTreeSet<u32>>,
    ) -> Option<Changed> {
        Some(self.overlaid(settings).map(|model| Arc::new(model) as Arc<dyn Checked>))
    }

    fn code(&self, host: &Host, duration: Option<Ns>) -> Option<Result<Code, Diagnostics>> {
        Some(compile::compile(self, host, duration))
    }

    /// Nothing in rt-app's language is random, so the seed does not matter.
    fn instantiate(
        &self,
        host: &Host,
        _seed: u64,
        duration: Option<Ns>,
    ) -> Result<Programs, Diagnostics> {
        let code = compile::compile(self, host, duration)?;
        Ok(Interpreter::new(Arc::new(code), host.cpu_capacity.len()).into())
    }
}
