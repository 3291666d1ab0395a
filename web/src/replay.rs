// SPDX-License-Identifier: GPL-2.0-or-later
//! A recorded trace, replayed on kernels: what `schedtwin replay` does.

use crate::Request;
use crate::playground::told_to_page;
use schedtwin::{Experiment, Given};
use schedtwin_engine::recording::read_trace_from;
use schedtwin_engine::{Machine, Scenario};
use schedtwin_lab::compare::Plan;
use schedtwin_lab::moment::moments;
use schedtwin_lab::replay::{Replayed, replay};
use schedtwin_lab::report;
use schedtwin_lab::stopping::Iterations;
use schedtwin_lab::timeline::timelines;
use schedtwin_lab::twin::{Column, joint_provenance};

/// The seed of which a page shows decisions.
const SEED: u64 = 1;

/// A replay, done.
pub(crate) struct Done {
    columns: Vec<Column>,
    pub(crate) replayed: Replayed,
}

impl Done {
    /// Replays the content of a trace file on the machine and the kernels of a request; its workload is not asked. Also returned: the
    /// experiment whose workload is the recording.
    pub(crate) fn of(
        content: &[u8],
        name: &str,
        request: &Request,
    ) -> Result<(Experiment, Done), String> {
        let machine: Machine = request.machine.given().load().map_err(|f| f.to_string())?;
        let trace = read_trace_from(content, name, &machine, &machine, None)
            .map_err(|faults| faults.to_string())?;
        let workload = trace.workload.clone();
        let recorded = Given::Ready { name: name.to_string(), value: Box::new(workload) };
        let experiment = request.experiment_of(recorded)?;
        let mut columns = Vec::new();
        let mut faults = Vec::new();
        for kernel in &request.kernels {
            let loaded = kernel.given().load().and_then(|file| {
                let machine = (request.machine.name(), machine.clone());
                Scenario::named(
                    machine,
                    (kernel.name(), file),
                    (name, trace.workload.clone()),
                    None,
                )
            });
            match loaded {
                Ok(scenario) => {
                    columns.push(Column { kernel: kernel.name().to_string(), scenario });
                }
                Err(fault) => faults.push(fault.to_string()),
            }
        }
        if !faults.is_empty() {
            return Err(faults.join("\n"));
        }
        let iterations = Iterations::Fixed(request.seeds as usize);
        let plan = Plan { first_seed: SEED, iterations };
        let provenance = joint_provenance(&columns);
        let replayed = replay(&columns, &trace, plan, provenance, &told_to_page());
        let replayed = replayed.map_err(|error| error.to_string())?;
        Ok((experiment, Done { columns, replayed }))
    }

    /// The page of the result.
    pub(crate) fn page(&self) -> String {
        let moments = moments(&self.columns, SEED);
        let runs = timelines(&self.columns, &moments, SEED);
        let domains: Vec<_> = self.columns.iter().map(|column| column.scenario.domains()).collect();
        report::html::replay(&self.replayed, &runs, &moments, &domains)
    }
}
