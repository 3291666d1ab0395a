// SPDX-License-Identifier: GPL-2.0-or-later
//! Policies written in Python: for experiments. Each decision takes the interpreter's lock and some microseconds, so a run is
//! 3 to 16 times slower, and runs do not scale with CPUs.
//!
//! An exception in a policy, or a decision that is none, ends its run; [`raise`] hands it to the caller after the others have
//! ended: a `PolicyError` with the policy's class and method, whose cause is the exception.

use crate::errors;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use schedtwin::{Given, GivenKernel, KernelFile};
use schedtwin_engine::policy::{
    FrequencyDecision, FrequencyDomain, FrequencyGovernor, IdleCpu, IdleDecision, IdleGovernor,
    IdleStateParams, Placement, PlacementDecision, PlacementKind, PolicyView, Reflection,
    SelectInput, SleepLength, WakeupView,
};
use schedtwin_types::CpuId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The exception that a policy raised first.
pub type Failure = Arc<Mutex<Option<PyErr>>>;

/// Raises what a policy failed with.
pub fn raise(failures: &[Failure]) -> PyResult<()> {
    let taken = |failure: &Failure| failure.lock().expect("nobody panics with it").take();
    failures.iter().find_map(taken).map_or(Ok(()), Err)
}

/// A kernel with policies written in Python.
#[pyclass(frozen, module = "schedtwin._native")]
pub struct OwnKernel {
    kernel: KernelFile,
    failure: Failure,
}

impl OwnKernel {
    pub fn kernel(&self) -> GivenKernel {
        Given::from(self.kernel.clone())
    }

    pub fn failure(&self) -> Failure {
        self.failure.clone()
    }
}

#[pymethods]
impl OwnKernel {
    /// The kernel, and for each mechanism a name and a callable that makes the policy of a place.
    #[new]
    #[pyo3(signature = (kernel, idle=None, frequency=None, placement=None))]
    fn new(
        py: Python<'_>,
        kernel: &Bound<'_, PyAny>,
        idle: Option<(String, Py<PyAny>)>,
        frequency: Option<(String, Py<PyAny>)>,
        placement: Option<(String, Py<PyAny>)>,
    ) -> PyResult<OwnKernel> {
        let kernel = crate::given::kernel(kernel)?.load();
        let mut kernel = kernel.map_err(|faults| errors::input(py, &faults))?;
        let failure = Failure::default();
        if let Some((name, make)) = idle {
            let own = Own { object: Arc::new(make), failure: failure.clone() };
            kernel = kernel.with_idle_governor(&name, move |cpu| own.at(|py| idle_cpu(py, cpu)));
        }
        if let Some((name, make)) = frequency {
            let own = Own { object: Arc::new(make), failure: failure.clone() };
            let make = move |domain: &FrequencyDomain| own.at(|py| frequency_domain(py, domain));
            let with = kernel.with_frequency_governor(&name, make);
            kernel = with.map_err(|faults| errors::input(py, &faults))?;
        }
        if let Some((name, make)) = placement {
            let own = Own { object: Arc::new(make), failure: failure.clone() };
            kernel = kernel.with_placement(&name, move || own.at(|py| Ok(PyDict::new(py))));
        }
        Ok(OwnKernel { kernel, failure })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.kernel.identity
    }
}

/// A Python object that makes policies, or is one.
struct Own {
    object: Arc<Py<PyAny>>,
    failure: Failure,
}

impl Clone for Own {
    /// A policy has a state of its own: it is copied with everything in it.
    fn clone(&self) -> Own {
        let copy = Python::attach(|py| {
            let copied = py.import("copy")?.call_method1("deepcopy", (self.object.bind(py),))?;
            Ok(copied.unbind())
        });
        Own { object: Arc::new(self.checked(copy)), failure: self.failure.clone() }
    }
}

impl Own {
    /// The policy for a place that `place` describes.
    fn at(&self, place: impl Fn(Python<'_>) -> PyResult<Bound<'_, PyDict>>) -> Own {
        let made = Python::attach(|py| {
            let made = place(py).and_then(|place| self.object.call(py, (), Some(&place)));
            made.map_err(|error| failed(self.object.bind(py), "__call__", error))
        });
        Own { object: Arc::new(self.checked(made)), failure: self.failure.clone() }
    }

    /// The value, or the end of this run. No panic: that would be told as a bug.
    fn checked<T>(&self, result: PyResult<T>) -> T {
        result.unwrap_or_else(|error| {
            let said = format!("a policy written in Python failed: {error}");
            self.failure.lock().expect("nobody panics with it").get_or_insert(error);
            std::panic::resume_unwind(Box::new(said))
        })
    }

    /// What a method of the policy answers.
    fn asked<T>(
        &self,
        method: &str,
        ask: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> T {
        self.checked(Python::attach(|py| {
            let policy = self.object.bind(py);
            ask(py, policy).map_err(|error| failed(policy, method, error))
        }))
    }
}

/// The package's exception for what a policy raised.
fn failed(policy: &Bound<'_, PyAny>, method: &str, error: PyErr) -> PyErr {
    let py = policy.py();
    let name = |of: &Bound<'_, PyAny>| of.getattr("__qualname__")?.extract::<String>();
    // What makes policies is a class or a function, and has a name of its own.
    let class = name(policy).or_else(|_| name(policy.get_type().as_any()));
    let class = class.unwrap_or_else(|_| "policy".to_owned());
    let told = errors::made(py, "PolicyError", (class, method, error.to_string()));
    told.set_cause(py, Some(error));
    told
}

/// A decision of that type, or what it should have been.
fn decided<'py, T: FromPyObjectOwned<'py>>(
    decision: &Bound<'py, PyAny>,
    returns: &str,
) -> PyResult<T> {
    decision.extract::<T>().map_err(|_| {
        let shown = decision.repr().map_or_else(|_| "?".to_owned(), |repr| repr.to_string());
        PyTypeError::new_err(format!("it returned {shown}; it has to return {returns}"))
    })
}

/// A rule as the kernel keeps it: for ever, and each once.
fn kept(rule: &str) -> &'static str {
    /// A policy that makes up a new text for each decision gets this many.
    const RULES_MAX: usize = 4096;
    static RULES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut rules = RULES.lock().expect("nobody panics with it");
    if let Some(known) = rules.get(rule) {
        return known;
    }
    if rules.len() == RULES_MAX {
        return "own";
    }
    let rule: &'static str = Box::leak(rule.to_string().into_boxed_str());
    rules.insert(rule);
    rule
}

fn states<'py>(py: Python<'py>, states: &[IdleStateParams]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for state in states {
        let dict = PyDict::new(py);
        dict.set_item("exit_latency_ns", state.exit_latency_ns)?;
        dict.set_item("target_residency_ns", state.target_residency_ns)?;
        dict.set_item("polling", state.polling)?;
        dict.set_item("disabled", state.disabled)?;
        list.append(dict)?;
    }
    Ok(list)
}

fn idle_cpu<'py>(py: Python<'py>, cpu: &IdleCpu) -> PyResult<Bound<'py, PyDict>> {
    let place = PyDict::new(py);
    place.set_item("cpu", cpu.cpu.0)?;
    place.set_item("capacity", cpu.capacity)?;
    place.set_item("states", states(py, &cpu.states)?)?;
    Ok(place)
}

fn frequency_domain<'py>(
    py: Python<'py>,
    domain: &FrequencyDomain,
) -> PyResult<Bound<'py, PyDict>> {
    let place = PyDict::new(py);
    place.set_item("domain", domain.policy.0)?;
    place.set_item("cpus", domain.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>())?;
    place.set_item("table_khz", domain.table.clone())?;
    place.set_item("rate_limit_ns", domain.rate_limit_ns)?;
    Ok(place)
}

impl IdleGovernor for Own {
    fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut dyn FnMut() -> SleepLength,
    ) -> IdleDecision {
        let timer = sleep_length();
        let (state, stop_tick, rule) = self.asked("select", |py, policy| {
            let told = PyDict::new(py);
            told.set_item("states", states(py, input.states)?)?;
            told.set_item("sleep_length_ns", timer.sleep_length_ns)?;
            told.set_item("delta_tick_ns", timer.delta_tick_ns)?;
            told.set_item("latency_req_ns", input.latency_req_ns)?;
            told.set_item("tick_stopped", input.tick_stopped)?;
            told.set_item("tick_nsec", input.tick_nsec)?;
            told.set_item("now_ns", input.now)?;
            told.set_item("last_residency_ns", input.last_residency_ns)?;
            let decision = policy.call_method1("select", (told,))?;
            let returns = "(index of a state, whether the tick may stop, why)";
            let decision: (usize, bool, String) = decided(&decision, returns)?;
            match input.states.len() {
                count if decision.0 < count => Ok(decision),
                count => {
                    let last = count.saturating_sub(1);
                    let why = format!("there is no state {}: there are 0 to {last}", decision.0);
                    Err(PyValueError::new_err(why))
                }
            }
        });
        IdleDecision { state, stop_tick, rule: kept(&rule) }
    }

    fn reflect(&mut self, stay: &Reflection) {
        self.asked("reflect", |py, policy| {
            if !policy.hasattr("reflect")? {
                return Ok(());
            }
            let told = PyDict::new(py);
            told.set_item("state", stay.state)?;
            told.set_item("got_tick", stay.got_tick)?;
            told.set_item("now_ns", stay.now)?;
            told.set_item("last_residency_ns", stay.last_residency_ns)?;
            policy.call_method1("reflect", (told,)).map(drop)
        });
    }
}

impl FrequencyGovernor for Own {
    fn update_util(&mut self, view: &PolicyView) -> Option<FrequencyDecision> {
        let decision = self.asked("update_util", |py, policy| {
            let told = PyDict::new(py);
            told.set_item("now_ns", view.now)?;
            told.set_item("cpu", view.cpu.0)?;
            told.set_item("iowait", view.iowait)?;
            told.set_item("limits_changed", view.limits_changed)?;
            told.set_item("table_khz", view.table.to_vec())?;
            told.set_item("max_khz", view.max_khz)?;
            told.set_item("current_khz", view.current_khz)?;
            let cpus = PyList::empty(py);
            for seen in view.cpus {
                let cpu = PyDict::new(py);
                cpu.set_item("cpu", seen.cpu.0)?;
                cpu.set_item("demand", seen.demand)?;
                cpu.set_item("util", seen.util)?;
                cpu.set_item("capacity", seen.capacity)?;
                cpu.set_item("nr_running", seen.nr_running)?;
                cpu.set_item("idle_ns", seen.idle_ns)?;
                cpu.set_item("khz", view.khz_for(seen))?;
                cpus.append(cpu)?;
            }
            told.set_item("cpus", cpus)?;
            let decision = policy.call_method1("update_util", (told,))?;
            decided::<Option<(_, String)>>(&decision, "(kHz, why) or None")
        });
        decision.map(|(khz, rule)| FrequencyDecision { khz, rule: kept(&rule) })
    }
}

impl Placement for Own {
    fn select_task_rq(&mut self, view: &WakeupView) -> Option<PlacementDecision> {
        let decision = self.asked("select_task_rq", |py, policy| {
            let told = PyDict::new(py);
            let kind = match view.kind {
                PlacementKind::Wakeup => "wakeup",
                PlacementKind::Fork => "fork",
                PlacementKind::Exec => "exec",
            };
            told.set_item("kind", kind)?;
            told.set_item("task", view.task.task.0)?;
            told.set_item("prev", view.task.prev.0)?;
            told.set_item("util_avg", view.task.util_avg)?;
            told.set_item("util_est", view.task.util_est)?;
            told.set_item("nice", view.task.nice)?;
            told.set_item("this_cpu", view.this_cpu.0)?;
            told.set_item("sync", view.sync)?;
            told.set_item("overutilized", view.overutilized())?;
            let cpus = PyList::empty(py);
            for seen in view.cpus() {
                let cpu = PyDict::new(py);
                cpu.set_item("cpu", seen.cpu.0)?;
                cpu.set_item("idle", seen.idle)?;
                cpu.set_item("idle_state", seen.idle_state.map(|(state, _)| state))?;
                cpu.set_item("nr_running", seen.nr_running)?;
                cpu.set_item("util", seen.util)?;
                cpu.set_item("capacity", seen.capacity)?;
                cpu.set_item("capacity_max", seen.capacity_max)?;
                cpus.append(cpu)?;
            }
            told.set_item("cpus", cpus)?;
            let decision = policy.call_method1("select_task_rq", (told,))?;
            let decision: Option<(u16, String)> = decided(&decision, "(CPU, why) or None")?;
            match &decision {
                Some((cpu, _)) if view.cpus().all(|seen| seen.cpu.0 != *cpu) => {
                    Err(PyValueError::new_err(format!("the task may not use a CPU {cpu}")))
                }
                _ => Ok(decision),
            }
        });
        decision.map(|(cpu, rule)| PlacementDecision { cpu: CpuId(cpu), rule: kept(&rule) })
    }
}
