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
//! `exit_nj` (0), `abort_nj` (`entry_nj`), `abort_ns`, `deep`, `polling`, `refuses_pending`, `local_timer_stops`,
//! `core`, `cluster`, `package` (false).
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

use crate::{CoreType, IdlePower, IdleState, MAX_IDLE_STATES, Shared};
use crate::{core_class, oddities};

/// The largest latency or residency: a second. Beyond it somebody confused the unit.
pub(crate) const MAX_LATENCY_NS: u64 = 1_000_000_000;

/// The largest energy of one entry or exit: a joule.
pub(crate) const MAX_ENTRY_NJ: u64 = 1_000_000_000;

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
    let name: Option<Located<String>> = row.required("name", faults);
    let entry = latency(&mut row, "entry_ns", faults);
    let exit = latency(&mut row, "exit_ns", faults);
    let residency: Option<Located<u64>> = row.required("residency_us", faults);
    let power: Option<Located<String>> = row.required("power", faults);
    let kernel_exit: Option<Located<u64>> = row.optional("kernel_exit_ns", faults);
    let exit_ipi = optional_latency(&mut row, "exit_ipi_ns", faults);
    let exit_device = optional_latency(&mut row, "exit_device_ns", faults);
    let abort = optional_latency(&mut row, "abort_ns", faults);
    let entry_nj = energy(&mut row, "entry_nj", faults);
    let exit_nj = energy(&mut row, "exit_nj", faults);
    let abort_nj = energy(&mut row, "abort_nj", faults);
    let deep: Option<bool> = row.optional("deep", faults);
    let polling: Option<Located<bool>> = row.optional("polling", faults);
    let refuses_pending: Option<bool> = row.optional("refuses_pending", faults);
    let local_timer_stops: Option<bool> = row.optional("local_timer_stops", faults);
    let core: Option<Located<bool>> = row.optional("core", faults);
    let cluster: Option<Located<bool>> = row.optional("cluster", faults);
    let package: Option<Located<bool>> = row.optional("package", faults);
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
    let entry_nj = entry_nj?.unwrap_or(0);
    Some(IdleState {
        name: name.value,
        entry_latency_ns: entry,
        exit_latency_ns: exit,
        exit_ipi_latency_ns: exit_ipi?.unwrap_or(exit),
        exit_device_latency_ns: exit_device?.unwrap_or(exit),
        abort_latency_ns: abort?,
        kernel_exit_latency_ns: kernel_exit,
        target_residency_ns: residency.value * 1000,
        power,
        energy_entry_nj: entry_nj,
        energy_exit_nj: exit_nj?.unwrap_or(0),
        energy_abort_nj: abort_nj?.unwrap_or(entry_nj),
        deep: deep.unwrap_or(false),
        polling,
        refuses_pending: refuses_pending.unwrap_or(false),
        local_timer_stops: local_timer_stops.unwrap_or(false),
        shared,
    })
}

fn latency(row: &mut TableReader<'_>, key: &str, faults: &mut Diagnostics) -> Option<u64> {
    let value: Located<u64> = row.required(key, faults)?;
    if value.value > MAX_LATENCY_NS {
        faults.push_at(&value.at, format!("`{key}` is more than a second"), None);
        return None;
    }
    Some(value.value)
}

/// A number that may be left out: `Some(None)` is that, `None` comes with a fault.
type Optional = Option<Option<u64>>;

fn optional_latency(row: &mut TableReader<'_>, key: &str, faults: &mut Diagnostics) -> Optional {
    optional_within(row, key, MAX_LATENCY_NS, "a second", faults)
}

fn energy(row: &mut TableReader<'_>, key: &str, faults: &mut Diagnostics) -> Optional {
    optional_within(row, key, MAX_ENTRY_NJ, "a joule", faults)
}

fn optional_within(
    row: &mut TableReader<'_>,
    key: &str,
    most: u64,
    most_in_words: &str,
    faults: &mut Diagnostics,
) -> Optional {
    let had = faults.0.len();
    let Some(value): Option<Located<u64>> = row.optional(key, faults) else {
        return (faults.0.len() == had).then_some(None);
    };
    if value.value > most {
        faults.push_at(&value.at, format!("`{key}` is more than {most_in_words}"), None);
        return None;
    }
    Some(Some(value.value))
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
