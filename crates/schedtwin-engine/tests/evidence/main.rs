// SPDX-License-Identifier: GPL-2.0-or-later
//! Evidence that the twin does what it promises, without the real kernel: what must be true of every
//! run, whatever the policies decide.
//!
//! | room | what must be true |
//! |---|---|
//! | `determinism` | the same digest twice, on threads, from a clone, while recording, from the reference twin |
//! | `invariants` | what facts alone say at every event: one CPU a task, no lost wakeup, unbroken chains |
//! | `read_back` | files that a run wrote hold what its result says, to the nanosecond |
//! | `metamorphic` | changes of the input whose effect is known: nothing, a shift, a share |
//! | `background` | timers of the wheel, works, softirqs and RCU come when Linux's would, and wake nobody else |
//! | `block_io` | requests complete where Linux completes them, and governors hear of those who wait |
//! | `machines` | idle states of clusters, kinds of work, power that depends on votes |
//! | `power_and_heat` | states of packages, ways out of idle, published idle powers, heat and throttling |
//! | `metrics` | what runs measure is what is declared, and what is declared is measured |
//! | `domains` | scheduling domains are those that Linux printed on machines that QEMU made |
//! | `benchmarks` | models of benchmarks have the threads, classes and wakeups of real phones |
//! | `bad_input` | whatever a user names is answered with a fault at its place, never with a panic |
//! | `daytrader` | requests are neither lost nor doubled, and their cost adds up |
//! | `coalescing` | timers within each other's slack share an interrupt |
//! | `broadcast` | a CPU that sleeps without a timer is woken by the device that the machine names, and no other CPU is |
//! | `governors` | drivers keep their delays and reach the top; which phase of the tick gives the published latency |
//! | `idle` | counts and lengths of stays add up under every governor; polling, refused entries, limits |
//! | `runnable_boost` | requests that contention raises, beside the same event without the patch |
//! | `smt` | threads of one core share its power, its speed and its idle states |
//! | `slow_path` | schedutil with threads looks as it does in the recordings |
//! | `once_fell_over` | scenarios that made the twin panic run to their end |
//! | `recordings` | traces of real devices are read without contradiction and replayed to their end |
//! | `releases` | the same of the older kernels |
//! | `published` | every published rt-app file that can run does so and is measured |
//!
//! No digest or number of a policy is written down here: policies change, these rules do not.

mod background;
mod bad_input;
mod benchmarks;
mod block_io;
mod broadcast;
mod clocks;
mod coalescing;
mod daytrader;
mod determinism;
mod distance;
mod domains;
mod governors;
mod idle;
mod invariants;
mod lines;
mod machines;
mod metamorphic;
mod metrics;
mod need;
mod once_fell_over;
mod power_and_heat;
mod published;
mod read_back;
mod recordings;
mod releases;
mod runnable_boost;
mod scenarios;
mod sched_cache;
mod slow_path;
mod smt;
mod task_groups;
mod turns;
