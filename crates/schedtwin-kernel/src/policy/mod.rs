// SPDX-License-Identifier: GPL-2.0-or-later
//! The interface for users' own policies, which place tasks and choose idle states and frequencies.
//!
//! | mechanism | trait | asked | takes the place of |
//! |---|---|---|---|
//! | idle state | [`IdleGovernor`] | when a CPU goes idle, and when it has slept | the governor of `cpuidle =` |
//! | idle state | [`MachineIdleGovernor`] | likewise, one instance for all CPUs | the governor of `cpuidle =` |
//! | frequency | [`FrequencyGovernor`] | at each `cpufreq_update_util()` | schedutil's decision |
//! | frequency | [`MachineFrequencyGovernor`] | likewise, one instance for all domains, which asks for what it wants to know | schedutil, up to the driver |
//! | scheduling class | [`ExtScheduler`] | at each step of a task's life | the fair class, by sched_ext |
//! | placement | [`Placement`] | when a fair task wakes up, starts or executes | `select_task_rq_fair()`, where it wants |
//!
//! **Idea.** A policy is asked with values and answers with a decision and its rule; it never holds the
//! kernel. What carries the decision out (tick, driver, run queues) stays the built-in code. The built-in
//! policies do not come this way: they are arms of enums, so that nothing is dispatched dynamically
//! unless a user's policy is there.
//!
//! A [`Policies`] says which of the three are the user's. It is handed to [`crate::Kernel::boot_with`] beside the
//! configuration, which names built-in forms only. Each CPU (idle) or frequency domain gets an instance
//! of its own, made at boot; a [`MachineIdleGovernor`] is one for all CPUs. Instances are cloned with the kernel, so a snapshot remembers what its
//! policies have learnt, and runs are repeatable as long as a policy looks at nothing but its inputs:
//! no clock, no randomness of its own.
//!
//! Rules are texts ([`schedtwin_types::IdleRule::Custom`] and the like), and records and `explain` show them.
//! A decision that cannot be carried out (a state or CPU that there is not) is a bug of the policy: an
//! assertion names the policy.

mod ext;
mod frequency;
mod idle;
mod machine_frequency;
mod placement;
mod random;
mod simple;

pub use ext::*;
pub use frequency::{CpuDemand, FrequencyDecision, FrequencyDomain, FrequencyGovernor, PolicyView};
pub use idle::{IdleCpu, IdleDecision, IdleGovernor, MachineIdleGovernor};
pub use machine_frequency::{
    CpuPerformance, EffectiveDemand, GovernedDomain, GovernorView, HookCall,
    MachineFrequencyGovernor,
};
pub use placement::{
    Placement, PlacementDecision, PlacementKind, PlacementTask, WakeupCpu, WakeupView,
};

pub use random::{Fault, Random};
pub use simple::Simple;

pub use schedtwin_types::{CpuId, CpuMask, TaskId};

pub use crate::cpuidle::states::{IdleStateParams, Reflection, SelectInput, SleepLength};

pub(crate) use frequency::CustomFrequency;
pub(crate) use idle::{CustomIdle, CustomMachineIdle};
pub(crate) use machine_frequency::CustomMachineFrequency;
pub(crate) use placement::CustomPlacement;

use schedtwin_types::Ns;
use std::fmt;
use std::sync::Arc;

/// Makes an instance from the place where it is to work.
type Factory<Place, Instance> = Arc<dyn Fn(&Place) -> Instance + Send + Sync>;

/// A policy's name and how instances of it are made.
pub(crate) struct Named<Place, Instance> {
    pub(crate) name: Arc<str>,
    pub(crate) make: Factory<Place, Instance>,
}

impl<Place, Instance> Clone for Named<Place, Instance> {
    fn clone(&self) -> Self {
        Named { name: self.name.clone(), make: self.make.clone() }
    }
}

/// The user's policies of a kernel; where there is none, the configuration decides. Of the two kinds of idle
/// governors the one set last counts.
#[derive(Clone, Default)]
pub struct Policies {
    pub(crate) idle: Option<Named<IdleCpu, Box<dyn IdleGovernor>>>,
    pub(crate) idle_of_machine: Option<Named<Vec<IdleCpu>, Box<dyn MachineIdleGovernor>>>,
    pub(crate) frequency: Option<Named<FrequencyDomain, Box<dyn FrequencyGovernor>>>,
    pub(crate) frequency_of_machine:
        Option<Named<Vec<GovernedDomain>, Box<dyn MachineFrequencyGovernor>>>,
    pub(crate) placement: Option<Named<(), Box<dyn Placement>>>,
    pub(crate) ext: Option<Named<(), Box<dyn ExtScheduler>>>,
    pub(crate) ext_loading: ExtLoading,
}

impl Policies {
    /// Whether every policy is the kernel's own.
    pub fn is_empty(&self) -> bool {
        self.idle.is_none()
            && self.idle_of_machine.is_none()
            && self.frequency.is_none()
            && self.frequency_of_machine.is_none()
            && self.placement.is_none()
            && self.ext.is_none()
    }

    /// With this idle governor; `make` is asked once for each CPU.
    pub fn with_idle_governor<G: IdleGovernor + 'static>(
        mut self,
        name: &str,
        make: impl Fn(&IdleCpu) -> G + Send + Sync + 'static,
    ) -> Policies {
        let make = Arc::new(move |cpu: &IdleCpu| Box::new(make(cpu)) as Box<dyn IdleGovernor>);
        self.idle = Some(Named { name: name.into(), make });
        self.idle_of_machine = None;
        self
    }

    /// With one idle governor for all CPUs; `make` is asked once, with the CPUs in ascending order.
    pub fn with_machine_idle_governor(
        mut self,
        name: &str,
        make: impl Fn(&[IdleCpu]) -> Box<dyn MachineIdleGovernor> + Send + Sync + 'static,
    ) -> Policies {
        let make = Arc::new(move |cpus: &Vec<IdleCpu>| make(cpus));
        self.idle_of_machine = Some(Named { name: name.into(), make });
        self.idle = None;
        self
    }

    /// With this frequency governor; `make` is asked once for each frequency domain.
    pub fn with_frequency_governor<G: FrequencyGovernor + 'static>(
        mut self,
        name: &str,
        make: impl Fn(&FrequencyDomain) -> G + Send + Sync + 'static,
    ) -> Policies {
        let make = Arc::new(move |domain: &FrequencyDomain| {
            Box::new(make(domain)) as Box<dyn FrequencyGovernor>
        });
        self.frequency = Some(Named { name: name.into(), make });
        self.frequency_of_machine = None;
        self
    }

    /// With one frequency governor for all domains; `make` is asked once, with the domains in ascending order.
    pub fn with_machine_frequency_governor(
        mut self,
        name: &str,
        make: impl Fn(&[GovernedDomain]) -> Box<dyn MachineFrequencyGovernor> + Send + Sync + 'static,
    ) -> Policies {
        let make = Arc::new(move |domains: &Vec<GovernedDomain>| make(domains));
        self.frequency_of_machine = Some(Named { name: name.into(), make });
        self.frequency = None;
        self
    }

    /// With this placement; `make` is asked once for the machine.
    pub fn with_placement<P: Placement + 'static>(
        mut self,
        name: &str,
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Policies {
        let make = Arc::new(move |(): &()| Box::new(make()) as Box<dyn Placement>);
        self.placement = Some(Named { name: name.into(), make });
        self
    }

    /// With this scheduler of sched_ext; `make` is asked once for the machine.
    pub fn with_ext_scheduler(
        mut self,
        name: &str,
        make: impl Fn() -> Box<dyn ExtScheduler> + Send + Sync + 'static,
    ) -> Policies {
        let make = Arc::new(move |(): &()| make());
        self.ext = Some(Named { name: name.into(), make });
        self
    }

    /// When the scheduler of sched_ext is there.
    pub fn with_ext_loading(mut self, loading: ExtLoading) -> Policies {
        self.ext_loading = loading;
        self
    }

    /// Whether it is said how long the watchdog of sched_ext waits.
    pub fn has_watchdog(&self) -> bool {
        self.ext_loading.watchdog_most.is_some()
    }

    /// The watchdog of sched_ext waits no longer than this, unless the user has said how long.
    pub fn with_watchdog_at_most(mut self, most: Ns) -> Policies {
        self.ext_loading.watchdog_most = Some(most);
        self
    }

    /// When the scheduler of sched_ext is loaded and unloaded, in words; `None`: it is always there.
    pub fn ext_loading_text(&self) -> Option<String> {
        let ExtLoading { at, until, .. } = self.ext_loading;
        let ms = |at: u64| format!("{} ms", at / 1_000_000);
        let until = until.map(|until| format!("unloaded at {}", ms(until)));
        let loaded = (at > 0).then(|| format!("loaded at {}", ms(at)));
        let told: Vec<String> = loaded.into_iter().chain(until).collect();
        (!told.is_empty()).then(|| format!("sched_ext scheduler: {}", told.join(", ")))
    }

    /// The name of the scheduler of sched_ext; empty: there is none.
    pub fn ext_name(&self) -> &str {
        self.ext.as_ref().map_or("", |ext| &ext.name)
    }

    /// Mechanism and name of each, in a fixed order.
    pub fn names(&self) -> Vec<(&'static str, &str)> {
        let of_cpus = self.idle.iter().map(|named| &*named.name);
        let of_machine = self.idle_of_machine.iter().map(|named| &*named.name);
        let idle = of_cpus.chain(of_machine).map(|name| ("idle governor", name));
        let of_domains = self.frequency.iter().map(|named| &*named.name);
        let of_machine = self.frequency_of_machine.iter().map(|named| &*named.name);
        let frequency = of_domains.chain(of_machine).map(|name| ("frequency governor", name));
        let placement = self.placement.iter().map(|named| ("placement", &*named.name));
        let ext = self.ext.iter().map(|named| ("sched_ext scheduler", &*named.name));
        idle.chain(frequency).chain(placement).chain(ext).collect()
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.names()).finish()
    }
}

/// The user's own policies at work, as far as one serves several CPUs.
#[derive(Clone)]
pub struct OwnPolicies {
    /// The user's placement, if there is one.
    placement: Option<Box<CustomPlacement>>,
    /// The scheduler of sched_ext, if there is one; absent while it is called.
    ext: Option<Box<CustomExt>>,
    ext_loading: ExtLoading,
    /// The frequency governor that is one for all domains, if there is one.
    machine_frequency: Option<Box<CustomMachineFrequency>>,
    /// The demand of each CPU as that governor was told last; right where the demand is not stale. Empty without it.
    machine_demands: Vec<EffectiveDemand>,
    /// The idle governor that is one for all CPUs, if there is one.
    machine_idle: Option<Box<CustomMachineIdle>>,
}

impl OwnPolicies {
    /// Makes an instance of each policy that serves the whole machine.
    pub(crate) fn new(
        policies: &Policies,
        idle: &Vec<IdleCpu>,
        governed: &Vec<GovernedDomain>,
    ) -> OwnPolicies {
        let placement = policies.placement.as_ref().map(|named| {
            Box::new(CustomPlacement { name: named.name.clone(), policy: (named.make)(&()) })
        });
        let machine_frequency = policies.frequency_of_machine.as_ref().map(|named| {
            Box::new(CustomMachineFrequency {
                name: named.name.clone(),
                policy: (named.make)(governed),
            })
        });
        let machine_idle = policies.idle_of_machine.as_ref().map(|named| {
            Box::new(CustomMachineIdle { name: named.name.clone(), policy: (named.make)(idle) })
        });
        let machine_demands = match machine_frequency {
            Some(_) => vec![Default::default(); idle.len()],
            None => Vec::new(),
        };
        let ext = policies.ext.as_ref().map(|named| {
            Box::new(CustomExt { name: named.name.clone(), policy: (named.make)(&()) })
        });
        let ext_loading = policies.ext_loading;
        OwnPolicies {
            placement,
            ext,
            ext_loading,
            machine_frequency,
            machine_demands,
            machine_idle,
        }
    }

    /// Whether the user places fair tasks.
    #[inline(always)]
    pub(crate) fn has_placement(&self) -> bool {
        self.placement.is_some()
    }

    /// What the scheduler of sched_ext says of itself; `None`: there is none.
    pub(crate) fn ext_properties(&self, nr_nodes: usize) -> Option<ExtProperties> {
        self.ext.as_ref().map(|ext| ext.policy.properties_on(nr_nodes))
    }

    /// When it is there.
    pub(crate) fn ext_loading(&self) -> ExtLoading {
        self.ext_loading
    }

    /// Whether the scheduler of sched_ext can be called: it is not being called.
    pub(crate) fn has_ext(&self) -> bool {
        self.ext.is_some()
    }

    /// Takes the scheduler of sched_ext out for a call.
    #[inline]
    pub(crate) fn take_ext(&mut self) -> Box<CustomExt> {
        self.ext.take().expect("a scheduler is not called within its own call")
    }

    /// Puts it back.
    #[inline]
    pub(crate) fn put_ext(&mut self, ext: Box<CustomExt>) {
        self.ext = Some(ext);
    }

    /// The idle governor of the whole machine.
    #[inline(always)]
    pub(crate) fn machine_idle_mut(&mut self) -> &mut Option<Box<CustomMachineIdle>> {
        &mut self.machine_idle
    }

    /// Whether the idle governor of the whole machine reads utilisation; `None`: there is no such governor.
    pub(crate) fn machine_idle_reads_util(&self) -> Option<bool> {
        self.machine_idle.as_ref().map(|machine| machine.policy.reads_util())
    }
}

/// Declares the supertrait by which boxed policies are cloned, which `Clone` itself cannot be, and the
/// named instance that the kernel keeps.
macro_rules! boxed {
    ($policy:ident, $clone:ident, $custom:ident) => {
        /// Clones a boxed policy: every policy that is `Clone` has it.
        pub trait $clone {
            /// A clone, boxed.
            fn clone_box(&self) -> Box<dyn $policy>;
        }

        impl<T: $policy + Clone + 'static> $clone for T {
            fn clone_box(&self) -> Box<dyn $policy> {
                Box::new(self.clone())
            }
        }

        /// An instance at work.
        pub struct $custom {
            pub(crate) name: std::sync::Arc<str>,
            pub(crate) policy: Box<dyn $policy>,
        }

        impl Clone for $custom {
            fn clone(&self) -> $custom {
                // The trait object's own, not the one that boxes have by being `Clone` themselves.
                let policy = (*self.policy).clone_box();
                $custom { name: self.name.clone(), policy }
            }
        }

        impl std::fmt::Debug for $custom {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($custom)).field(&self.name).finish()
            }
        }
    };
}
use boxed;
