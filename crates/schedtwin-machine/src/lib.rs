// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine: what silicon does, as opposed to what the kernel believes about it.
//!
//! A [`Machine`] is plain data read from TOML: CPUs and their topology, frequency domains with two
//! power curves (the kernel decides by its energy model, the meter reads the measured curve), idle
//! states with true latencies beside those the kernel is told, couplings between clocks, latencies
//! of interrupts, and the work that the kernel's own paths cost. It decides nothing and knows
//! nothing of kernel or workload; the twin joins them.
//!
//! | module | contents |
//! |---|---|
//! | `model` | the types |
//! | `costs` | what the kernel's paths cost, and how interrupts are delayed |
//! | `file` | from TOML to a machine, all faults at once; its parts `domain`, `core_type`, `topology` |
//! | `coupling` | which frequency one domain forces upon another |
//! | `speed` | work per nanosecond, and kinds of work |
//! | `power` | µW of every situation, energy as exact integers |
//! | `power_domain` | clusters and packages with power and idle states of their own |
//! | `heat` | nodes and resistances, thermal zones |
//! | `dependence` | power of one domain that depends on the clocks of others |
//! | `choices` | settings that change several values together |
//! | `settings` | the settings of a machine, to choose from |
//! | `smt` | what hardware threads of a core share |
//! | `l3` | accesses to the cache that all CPUs share |
//! | `turns` | CPUs that execute one at a time, as those of an emulator do |
//! | `distance` | what it costs that CPUs are apart: refills after migrations, interrupts |
//! | `describe` | the text of `show machine` |
//! | `block` | block devices |
//! | `broadcast` | the timer that wakes CPUs whose own timers stop |
//! | `core_class` | what stands for values that a file leaves out |
//! | `keys` | the keys of a file, declared: for the schema and the document |
//! | `oddities` | what a file may say but cannot mean: warnings |
//! | `builtin` | the machines compiled in |
//!
//! ```
//! use schedtwin_machine::Machine;
//! let machine = Machine::load("pixel6:coupling=false").unwrap();
//! assert_eq!(machine.cpus.len(), 8);
//! assert_eq!(machine.domains[schedtwin_types::ClockDomainId(1)].opps.last().unwrap().khz, 2_253_000);
//! assert!(machine.couplings.is_empty());
//! ```

mod block;
mod broadcast;
mod builtin;
mod choices;
mod core_class;
mod core_type;
mod costs;
mod coupling;
mod cpu_list;
mod dependence;
mod describe;
mod distance;
mod domain;
mod file;
mod heat;
pub mod keys;
mod l3;
mod model;
mod oddities;
mod power;
mod power_domain;
mod power_limit;
mod remarks;
mod settings;
mod smt;
mod speed;
mod switching;
mod topology;
mod turns;

pub use block::{BlockDevice, MAX_BLOCK_DEVICES, ServiceTime};
pub use broadcast::Broadcast;
#[doc(hidden)]
pub use builtin::keys_asked;
pub use builtin::{builtin_names, builtin_source};
pub use core_class::PATHS;
pub use costs::{CostScale, Interrupts, PathCosts};
pub use coupling::{Coupling, FloorStep};
pub use dependence::{DependenceTable, DependentPower, PowerDependence};
pub use describe::EnergyModelRow;
pub use distance::{Coherence, Distance, Distances};
pub use heat::{
    CoolingMap, Heat, HeatEdge, HeatNode, ThermalGovernor, ThermalZone, Trip, TripType,
};
pub use l3::L3;
pub use model::{
    CoreType, Cpu, DriverWait, FrequencyDomain, IdlePower, IdleState, MAX_IDLE_STATES, Machine,
    OperatingPoint, Shared,
};
pub use power::{FEMTOJOULES_PER_NANOJOULE, energy_fj};
pub use power_domain::{PowerDomain, PowerState};
pub use power_limit::{PowerBudget, PowerLimit};
pub use settings::{MachineSetting, settings};
pub use smt::Smt;
pub use speed::{
    PERMILLE, RATE_FULL, RATE_SHIFT, WorkKind, rate, rate_of_kind, time_for, work_done,
};
pub use switching::{LateRequests, MAILBOX, Switching};
pub use topology::{Architecture, KernelTopology};
pub use turns::Turns;
