// SPDX-License-Identifier: GPL-2.0-or-later
//! `vm-guest-idle`: what the host sees of a virtual machine whose desktop does nothing much.
//!
//! A virtual CPU is a thread that runs the guest until it halts and then sleeps; a timer of the guest is a timer of the host,
//! a device's interrupt comes from the emulator's main loop.
//!
//! ```text
//! CPU n/KVM        ...timer|= tick, timers =|...main loop|= interrupt =|....
//! qemu-system-x86  ........poll timers|=|......
//! ```
//!
//! All numbers are estimates [E]: a published table only says that such a guest "isn't doing much" and that the host then draws
//! 1.8 W instead of 1.4 W. Each virtual CPU wakes up by timers of its own, independently of each other, and the
//! main loop wakes one of them in turn.

use super::amount::Amount;
use super::benchmark::Benchmark;
use super::measured::burst;
use super::options::{Values, WorkloadOption};
use super::script::{Script, Step, nice};
use crate::Host;
use schedtwin_types::Ns;

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_US: Ns = 1_000;

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::count(None, "vcpus", "", 4, (1, 64), "virtual CPUs"),
    WorkloadOption::count(None, "timers", "1/s", 50, (1, 1_000), "timers of a virtual CPU").free(),
    WorkloadOption::count(None, "work-us", "us", 40, (1, 1_000), "work of each, in the mean")
        .free(),
    WorkloadOption::count(None, "seconds", "s", 10, (1, 3600), "how long"),
];

/// A virtual machine whose desktop does nothing much.
#[derive(Debug)]
pub(super) struct VmGuestIdle;

impl Benchmark for VmGuestIdle {
    fn name(&self) -> &'static str {
        "vm-guest-idle"
    }

    fn description(&self) -> &'static str {
        "a virtual machine whose desktop does nothing much (10 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "\
CPU n/KVM: sleeps until a timer of the guest's, works; qemu-system-x86: 60 times a second, wakes CPU 0/KVM's I/O
"
    }

    fn duration(&self, values: &Values) -> Option<Ns> {
        Some(values.whole("seconds") * NS_PER_S)
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        build(values, host)
    }
}

fn build(values: &Values, host: &Host) -> Script {
    let mut script = Script::new(host.cpu_capacity.len());
    let every = Amount::Exponential(NS_PER_S / values.whole("timers"));
    let work = Step::Work(burst(values.whole("work-us") * NS_PER_US));
    for vcpu in 0..values.whole("vcpus") {
        let name = format!("CPU {vcpu}/KVM");
        let vcpu = script.thread(&name, nice(0)).group("CPU/KVM").of("qemu");
        vcpu.then(&[Step::Sleep(every), work]).for_ever();
    }
    let io = script.flag(0);
    let poll = Step::Sleep(Amount::Exponential(NS_PER_S / 60));
    let main = script.thread("qemu-system-x86", nice(0)).of("qemu");
    main.then(&[poll, work, Step::Post(io)]).for_ever();
    let io_thread = script.thread("IO mon_iothread", nice(0)).of("qemu");
    io_thread.then(&[Step::Wait(io), work]).for_ever();
    script
}
