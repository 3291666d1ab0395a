// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads `[core.NAME]`: a kind of core and its idle states.
//!
//! ```toml
//! [core.cortex-a55]
//! idle = [
//!   { name = "WFI", entry_ns = 0, exit_ns = 1_000, residency_us = 1, power = "wfi" },
//!   { name = "c2", entry_ns = 70_000, exit_ns = 160_000, residency_us = 2_000, power = "off",
//!     deep = true, entry_nj = 1_602, exit_nj = 0 },
//! ]
//! ```
//!
//! `power` is what the CPU draws: `"wfi"` (the WFI curve), `"30%"` or `"4.5%"` (of it), `"off"`, `"active"` (as if it
//! were busy) or `"46.3% active"`. May be left out: `kernel_exit_ns` (entry + exit, as the device tree's binding
//! has it), `exit_ipi_ns`, `exit_device_ns` (`exit_ns`: the way out after the CPU's own timer), `entry_nj`,
//! `exit_nj` (0), `abort_nj` (`entry_nj`), `abort_ns`, `deep`, `polling`, `mwait`, `refuses_pending`,
//! `local_timer_stops`, `core`, `cluster`, `package` (false).
//!
//! A polling state has no way in: `entry_ns` is 0.
//!
//! An interrupt during the entry aborts it: the CPU is back `abort_ns` later, at the latest when the entry would be
//! complete, and then without `abort_ns`.
//!
//! A state with `core = true` is one of all hardware threads of a core, one with `cluster = true` of the whole frequency
//! domain, one with `package = true` of the whole package: the
//! CPU asks for it, and gets it once all CPUs of those have asked. Such states are the deepest ones of a CPU, in that order.

use schedtwin_input::{Diagnostics, Located, TableReader};

use crate::keys::{keys, upto};
use crate::{CoreType, IdlePower, IdleState, MAX_IDLE_STATES, Shared};
use crate::{core_class, oddities};

/// The largest latency or residency: a second. Beyond it somebody confused the unit.
pub(crate) const MAX_LATENCY_NS: u64 = 1_000_000_000;

/// The largest energy of one entry or exit: a joule.
pub(crate) const MAX_ENTRY_NJ: u64 = 1_000_000_000;

keys! {
    /// idle states that CPUs ask for, at most 10
    struct StateKeys in "core.*.idle[]" {
        /// name of the state, 1 to 31 letters
        name: Located<String> = Always, Text;
        /// time from the instruction until the CPU is in the state
        entry_ns: Located<u64> = WithoutClass, upto(MAX_LATENCY_NS);
        /// time from the CPU's own timer to the first instruction
        exit_ns: Located<u64> = WithoutClass, upto(MAX_LATENCY_NS);
        /// `target_residency` in the kernel's table; for the first state at most 1
        residency_us: Located<u64> = Always, upto(MAX_LATENCY_NS / 1000);
        /// power in the state: `wfi`, a share of it (`30%`), `off`, `active` or a share of it (`46.3% active`)
        power: Located<String> = Always, Text;
        /// `exit_latency` in the kernel's table; the sum of entry and exit
        kernel_exit_ns: Located<u64> = May, upto(MAX_LATENCY_NS);
        /// exit time after another CPU's interrupt; `exit_ns`
        exit_ipi_ns: Located<u64> = May, upto(MAX_LATENCY_NS);
        /// exit time after a device's interrupt; `exit_ns`
        exit_device_ns: Located<u64> = May, upto(MAX_LATENCY_NS);
        /// time to return from an entry that an interrupt cuts short; left out, the entry is completed
        abort_ns: Located<u64> = May, upto(MAX_LATENCY_NS);
        /// energy of each entry; 0
        entry_nj: Located<u64> = May, upto(MAX_ENTRY_NJ);
        /// energy of each exit; 0
        exit_nj: Located<u64> = May, upto(MAX_ENTRY_NJ);
        /// energy of an aborted entry; `entry_nj`
        abort_nj: Located<u64> = May, upto(MAX_ENTRY_NJ);
        /// counts as off for the domain's static power; false
        deep: bool = May, Switch;
        /// the CPU spins (state 0 of x86); false
        polling: Located<bool> = May, Switch;
        /// the hardware refuses the entry while an interrupt waits; false
        refuses_pending: bool = May, Switch;
        /// the CPU sleeps on a flag of its idle task: another CPU wakes it by a write, without an interrupt; false
        mwait: bool = May, Switch;
        /// the CPU's timer stops (see `[broadcast]`); false
        local_timer_stops: bool = May, Switch;
        /// the state of a whole core, entered when all its threads have requested it; false
        core: Located<bool> = May, Switch;
        /// the state of the whole frequency domain; false
        cluster: Located<bool> = May, Switch;
        /// the state of the whole package; false
        package: Located<bool> = May, Switch;
    }
}

/// Reads one kind of core; `warnings` gets what is odd.
pub(crate) fn read(
    name: &Located<String>,
    mut table: TableReader<'_>,
    warnings: &mut Diagnostics,
    faults: &mut Diagnostics,
) -> Option<CoreType> {
    core_class::check(&mut table, faults);
    let at = table.location_of("idle");
    let had = faults.0.len();
    let mut rows = table.tables("idle", faults);
    if rows.is_empty() && faults.0.len() == had {
        faults.push_at(&at, format!("core `{}` has no idle state", name.value), None);
    }
    if rows.len() > MAX_IDLE_STATES {
        let message = format!("{} idle states: Linux takes at most {MAX_IDLE_STATES}", rows.len());
        faults.push_at(&at, message, None);
        rows.truncate(MAX_IDLE_STATES);
    }
    let mut states: Vec<IdleState> = Vec::new();
    let mut complete = true;
    for row in rows {
        let at = row.location().clone();
        let Some(state) = read_state(row, states.len(), faults) else {
            complete = false;
            continue;
        };
        if states.iter().any(|s| s.name == state.name) {
            faults.push_at(&at, format!("two idle states are called `{}`", state.name), None);
        }
        if let Some(previous) = states.last() {
            check_order(previous, &state, &at, faults);
            if state.shared < previous.shared {
                let (whose, key) = match previous.shared {
                    Shared::Package => ("package", "package = true"),
                    Shared::Core => ("core", "core = true"),
                    _ => ("cluster", "cluster = true"),
                };
                let message = format!("`{}` is deeper than a state of the {whose}", state.name);
                let help = format!("write `{key}`, or put it before those of the {whose}");
                faults.push_at(&at, message, Some(help));
            }
        } else if complete && state.target_residency_ns > 1_000 {
            let message = "the first idle state must be worth entering at once";
            faults.push_at(&at, message, Some("its `residency_us` is 0 or 1".into()));
        }
        oddities::of_state(states.last(), &state, &at, warnings);
        states.push(state);
    }
    table.finish(faults);
    complete.then(|| CoreType { name: name.value.clone(), idle_states: states })
}

fn check_order(
    previous: &IdleState,
    state: &IdleState,
    at: &schedtwin_input::Location,
    faults: &mut Diagnostics,
) {
    for (what, before, now) in [
        ("residency_us", previous.target_residency_ns, state.target_residency_ns),
        ("kernel_exit_ns", previous.kernel_exit_latency_ns, state.kernel_exit_latency_ns),
        ("entry_ns", previous.entry_latency_ns, state.entry_latency_ns),
        ("exit_ns", previous.exit_latency_ns, state.exit_latency_ns),
    ] {
        if now < before {
            let message = format!(
                "idle states go from shallow to deep: `{what}` of `{}` is below that of `{}`",
                state.name, previous.name
            );
            faults.push_at(at, message, None);
        }
    }
}

fn read_state(
    mut row: TableReader<'_>,
    index: usize,
    faults: &mut Diagnostics,
) -> Option<IdleState> {
    let keys = StateKeys::read(&mut row, faults);
    let StateKeys { name, residency_us: residency, power, kernel_exit_ns: kernel_exit, .. } = keys;
    let StateKeys { deep, polling, mwait, refuses_pending, local_timer_stops, .. } = keys;
    let StateKeys { core, cluster, package, .. } = keys;
    let second = |key: &str, value: Option<Located<u64>>, faults: &mut Diagnostics| {
        within(key, value, MAX_LATENCY_NS, "a second", faults)
    };
    let entry = second("entry_ns", keys.entry_ns, faults);
    let exit = second("exit_ns", keys.exit_ns, faults);
    let had = faults.0.len();
    let exit_ipi = second("exit_ipi_ns", keys.exit_ipi_ns, faults);
    let exit_device = second("exit_device_ns", keys.exit_device_ns, faults);
    let abort = second("abort_ns", keys.abort_ns, faults);
    let joule = |key: &str, value: Option<Located<u64>>, faults: &mut Diagnostics| {
        within(key, value, MAX_ENTRY_NJ, "a joule", faults)
    };
    let entry_nj = joule("entry_nj", keys.entry_nj, faults);
    let exit_nj = joule("exit_nj", keys.exit_nj, faults);
    let abort_nj = joule("abort_nj", keys.abort_nj, faults);
    let all_within = faults.0.len() == had;
    row.finish(faults);

    let power = power.and_then(|power| read_power(&power, faults));
    let name = name.filter(|name| {
        let good = !name.value.trim().is_empty()
            && name.value.len() < 32
            && !name.value.contains(char::is_control);
        if !good {
            faults.push_at(&name.at, "the name of an idle state has 1 to 31 letters", None);
        }
        good
    });
    let residency = residency.filter(|us| {
        let good = us.value <= MAX_LATENCY_NS / 1000;
        if !good {
            faults.push_at(&us.at, "`residency_us` is more than a second", None);
        }
        good
    });
    if let Some(polling) = polling.as_ref().filter(|p| p.value && index > 0) {
        faults.push_at(&polling.at, "only the first idle state may poll", None);
    }
    if let Some(at) = polling.as_ref().filter(|p| p.value).map(|p| &p.at) {
        if entry.unwrap_or(0) > 0 {
            faults.push_at(at, "a polling state has no way in: `entry_ns` is 0", None);
        }
        if matches!(power, Some(IdlePower::WfiPermille(_))) {
            let help = Some("write a share of busy power, such as \"50% active\"".to_string());
            faults.push_at(at, "a CPU that polls does not wait with its clock stopped", help);
        }
    }
    let polling = polling.is_some_and(|p| p.value);
    let mut shared = Shared::Own;
    for (flag, level, whose) in [
        (&core, Shared::Core, "core"),
        (&cluster, Shared::Cluster, "cluster"),
        (&package, Shared::Package, "package"),
    ] {
        let Some(flag) = flag.as_ref().filter(|flag| flag.value) else { continue };
        if shared != Shared::Own {
            let narrower = if shared == Shared::Core { "core" } else { "cluster" };
            let message = format!("a state of the {whose} is not one of the {narrower}, too");
            faults.push_at(&flag.at, message, None);
        }
        if index == 0 {
            let help = "a CPU needs a state of its own to wait in for the others".to_string();
            let message = format!("the first idle state cannot be the {whose}'s");
            faults.push_at(&flag.at, message, Some(help));
        }
        shared = level;
    }
    let (name, entry, exit, residency, power) = (name?, entry?, exit?, residency?, power?);
    let kernel_exit = match kernel_exit {
        Some(told) if told.value > MAX_LATENCY_NS => {
            faults.push_at(&told.at, "`kernel_exit_ns` is more than a second", None);
            return None;
        }
        Some(told) => told.value,
        None => entry + exit,
    };
    if !all_within {
        return None;
    }
    let entry_nj = entry_nj.unwrap_or(0);
    Some(IdleState {
        name: name.value,
        entry_latency_ns: entry,
        exit_latency_ns: exit,
        exit_ipi_latency_ns: exit_ipi.unwrap_or(exit),
        exit_device_latency_ns: exit_device.unwrap_or(exit),
        abort_latency_ns: abort,
        kernel_exit_latency_ns: kernel_exit,
        target_residency_ns: residency.value * 1000,
        power,
        energy_entry_nj: entry_nj,
        energy_exit_nj: exit_nj.unwrap_or(0),
        energy_abort_nj: abort_nj.unwrap_or(entry_nj),
        deep: deep.unwrap_or(false),
        polling,
        refuses_pending: refuses_pending.unwrap_or(false),
        mwait: mwait.unwrap_or(false),
        local_timer_stops: local_timer_stops.unwrap_or(false),
        shared,
    })
}

/// A number that is at most `most`; the fault of a larger one is told.
fn within(
    key: &str,
    value: Option<Located<u64>>,
    most: u64,
    most_in_words: &str,
    faults: &mut Diagnostics,
) -> Option<u64> {
    let value = value?;
    if value.value > most {
        faults.push_at(&value.at, format!("`{key}` is more than {most_in_words}"), None);
        return None;
    }
    Some(value.value)
}

fn read_power(power: &Located<String>, faults: &mut Diagnostics) -> Option<IdlePower> {
    let text = power.value.trim();
    let read = match text {
        "wfi" => Some(IdlePower::WfiPermille(1000)),
        "off" => Some(IdlePower::WfiPermille(0)),
        _ => match text.strip_suffix("active").map(str::trim) {
            Some("") => Some(IdlePower::ActivePermille(1000)),
            Some(share) => permille(share).map(IdlePower::ActivePermille),
            None => permille(text).map(IdlePower::WfiPermille),
        },
    };
    if read.is_none() {
        let help = "known: \"wfi\", \"off\", \"active\", a share of the WFI curve such as \"30%\", or one of \
                    busy power such as \"50% active\"";
        let message = format!("`{}` is no power of an idle state", power.value);
        faults.push_at(&power.at, message, Some(help.into()));
    }
    read
}

/// `46.3%` is 463; at most 100 %, at most one decimal.
fn permille(text: &str) -> Option<u16> {
    let number = text.strip_suffix('%')?.trim();
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(tenth) || tenth.len() != 1 {
        return None;
    }
    let share = whole.parse::<u16>().ok()?.checked_mul(10)? + tenth.parse::<u16>().ok()?;
    (share <= 1000).then_some(share)
}
