// SPDX-License-Identifier: GPL-2.0-or-later
//! What a sweep is made of, as bytes: an engine sends them to a worker, which needs nothing else.
//!
//! Names that are paths stand there with the content of their file. Patches and files that a file extends stay paths; a worker
//! that reads something else there says so, because the bytes hold the sweep's identity too.

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::{Machine, Workload};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_types::Ns;
use serde_json::{Value, json};

use super::Sweep;
use super::choices::choices;
use crate::given::{Given, GivenKernel, GivenMachine, GivenWorkload, Input};

/// The `schema` of the bytes.
const SCHEMA: &str = "schedtwin.sweep/1";

/// One of the machines, kernels or workloads: what it is, and the settings that lists of choices gave it.
#[derive(Clone, Debug)]
pub(super) struct Choice<T> {
    pub given: Given<T>,
    pub settings: Vec<(String, String)>,
}

/// Machines, kernels, workloads, seeds.
#[derive(Clone, Debug)]
pub struct SweepSpec {
    pub(super) machines: Vec<Choice<Machine>>,
    pub(super) kernels: Vec<Choice<KernelFile>>,
    pub(super) workloads: Vec<Choice<Workload>>,
    pub(super) duration: Option<Ns>,
    pub(super) first_seed: u64,
    pub(super) seeds: u64,
}

impl SweepSpec {
    /// Every machine with every kernel with every workload, where each name may have lists of choices.
    pub fn new(
        machines: &[GivenMachine],
        kernels: &[GivenKernel],
        workloads: &[GivenWorkload],
        duration: Option<Ns>,
        (first_seed, seeds): (u64, u64),
    ) -> Result<SweepSpec, Diagnostics> {
        let mut faults = Diagnostics::new();
        let spec = SweepSpec {
            machines: expanded(machines, &mut faults),
            kernels: expanded(kernels, &mut faults),
            workloads: expanded(workloads, &mut faults),
            duration,
            first_seed,
            seeds,
        };
        faults.into_result(spec)
    }

    /// The bytes of a sweep that was made of this: for [`Sweep::from_bytes`], on any computer with the same version.
    pub(super) fn bytes(&self, identity: &str) -> Result<Vec<u8>, Diagnostics> {
        let mut faults = Diagnostics::new();
        let document = json!({
            "schema": SCHEMA,
            "identity": identity,
            "machines": entries(&self.machines, &mut faults),
            "kernels": entries(&self.kernels, &mut faults),
            "workloads": entries(&self.workloads, &mut faults),
            "duration_ns": self.duration,
            "first_seed": self.first_seed,
            "seeds": self.seeds,
        });
        faults.into_result(document.to_string().into_bytes())
    }

    /// The converse of [`SweepSpec::bytes`], with the identity.
    fn read(bytes: &[u8]) -> Option<(SweepSpec, String)> {
        let document: Value = serde_json::from_slice(bytes).ok()?;
        if document["schema"] != SCHEMA {
            return None;
        }
        let spec = SweepSpec {
            machines: choices_of(&document["machines"])?,
            kernels: choices_of(&document["kernels"])?,
            workloads: choices_of(&document["workloads"])?,
            duration: document["duration_ns"].as_u64(),
            first_seed: document["first_seed"].as_u64()?,
            seeds: document["seeds"].as_u64().filter(|seeds| *seeds > 0)?,
        };
        Some((spec, document["identity"].as_str()?.to_string()))
    }
}

impl Sweep {
    /// The sweep as bytes, for [`Sweep::from_bytes`] on any computer with the same version.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Diagnostics> {
        self.spec.bytes(&self.head()[0])
    }

    /// The sweep of some bytes. It is a fault if this version, or a file on this computer, makes another sweep of them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Sweep, Diagnostics> {
        let Some((spec, identity)) = SweepSpec::read(bytes) else {
            return Err(fault("these bytes are no sweep", "take what Sweep::to_bytes made"));
        };
        let sweep = Sweep::of(&spec)?;
        let own = &sweep.head()[0];
        if *own != identity {
            let message =
                format!("this computer makes another sweep of it: `{own}`, not `{identity}`");
            return Err(fault(
                &message,
                "install the same version everywhere, with the same files",
            ));
        }
        Ok(sweep)
    }
}

fn fault(message: &str, help: &str) -> Diagnostics {
    let mut faults = Diagnostics::new();
    faults.push_whole(&Source::new("sweep", ""), message, Some(help.to_string()));
    faults
}

/// What the names stand for, each once.
fn expanded<T: Input>(all: &[Given<T>], faults: &mut Diagnostics) -> Vec<Choice<T>> {
    let mut out: Vec<Choice<T>> = Vec::new();
    for given in all {
        for choice in faults.absorb(choices(given.name())).unwrap_or_default() {
            if !out.iter().any(|known| known.given.name() == choice.text) {
                let given = given.renamed(choice.text);
                out.push(Choice { given, settings: choice.settings });
            }
        }
    }
    out
}

fn entries<T: Input>(choices: &[Choice<T>], faults: &mut Diagnostics) -> Vec<Value> {
    let entry = |choice: &Choice<T>| {
        let given = faults.absorb(choice.given.embedded())?;
        let (name, text) = match &given {
            Given::Named(name) => (name, None),
            Given::Text { name, text } => (name, Some(text)),
            Given::Ready { name, .. } => {
                let message =
                    format!("{name} is neither a name nor a text, so it stays in its process");
                faults.absorb::<()>(Err(fault(&message, "run this sweep without an executor")));
                return None;
            }
        };
        Some(json!({ "name": name, "text": text, "settings": choice.settings }))
    };
    choices.iter().filter_map(entry).collect()
}

fn choices_of<T: Input>(entries: &Value) -> Option<Vec<Choice<T>>> {
    let text = |value: &Value| value.as_str().map(String::from);
    let pair = |pair: &Value| Some((text(&pair[0])?, text(&pair[1])?));
    let entry = |entry: &Value| {
        let name = text(&entry["name"])?;
        let given = match text(&entry["text"]) {
            Some(text) => Given::Text { name, text },
            None => Given::Named(name),
        };
        let settings = entry["settings"].as_array()?.iter().map(pair).collect::<Option<_>>()?;
        Some(Choice { given, settings })
    };
    entries.as_array()?.iter().map(entry).collect()
}
