// SPDX-License-Identifier: GPL-2.0-or-later
//! The change of a clock from one frequency to another.
//!
//! ```text
//!  request ── settle_us (and the voltage's way up) ──────────────┬── at work at the new frequency
//!                                     stall_us: CPUs stand still ┘
//! ```
//!
//! | key | meaning |
//! |---|---|
//! | `settle_us` | from the request to the new frequency |
//! | `stall_us` | may be left out (0); for how long, at the end of that, the clock's CPUs stand still: a PLL that locks |
//! | `slew_uv_per_us` | may be left out (0: no matter); how fast the regulator raises the voltage, for which the clock waits. Needs `uv` of all operating points |
//! | `late_requests` | may be left out (`"replace"`); what becomes of a request that comes while an earlier one is under way |
//!
//! | `late_requests` | |
//! |---|---|
//! | `"replace"` | it takes the place of the earlier one, and the switch begins anew |
//! | `"wait"` | the switch under way is completed; then the newest request begins |
//! | `"queue"` | every request is carried out, in order: a mailbox |
//! | `"overtake"` | every request takes its own time, so that one which lowers may be there before an earlier one that has to wait for its voltage, which then stays |
//!
//! They stand at the top of a file for all clocks, or in `[domain.NAME]` for one.
//!
//! Differences: the way of the voltage down takes no time and no energy. A mailbox holds [`MAILBOX`] requests; a further
//! one takes the place of the last.

use crate::OperatingPoint;
use crate::keys::{keys, upto, words};
use schedtwin_input::{Diagnostics, Located, did_you_mean};
use schedtwin_types::Ns;

/// Requests that may be under way or wait at the same time.
pub const MAILBOX: usize = 8;

/// The largest latency of a frequency switch: a second.
const MAX_LATENCY_US: u64 = 1_000_000;

/// The change of a clock from one frequency to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switching {
    /// From the request to the hardware running at the new frequency, without the voltage's way.
    pub settle_ns: Ns,
    /// For how long its CPUs stand still at the end of that; at most `settle_ns`.
    pub stall_ns: Ns,
    /// Speed at which the voltage rises, µV per µs; `None`: the clock does not wait for the voltage.
    pub slew_uv_per_us: Option<u64>,
    /// The fate of a request that comes while an earlier one is under way.
    pub late_requests: LateRequests,
}

/// The fate of a request that comes while an earlier one is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateRequests {
    /// It takes the earlier one's place, and the switch begins anew.
    Replace,
    /// The newest of them begins after the switch under way.
    Wait,
    /// All are carried out in order.
    Queue,
    /// Each takes its own time.
    Overtake,
}

impl LateRequests {
    const NAMED: [(&'static str, LateRequests); 4] = [
        ("replace", LateRequests::Replace),
        ("wait", LateRequests::Wait),
        ("queue", LateRequests::Queue),
        ("overtake", LateRequests::Overtake),
    ];

    /// All words of a file.
    fn words() -> [&'static str; 4] {
        Self::NAMED.map(|(word, _)| word)
    }

    /// The word of the file.
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.iter().find(|(_, late)| *late == self);
        named.expect("all have names").0
    }
}

impl Switching {
    /// A clock that is at work at the new frequency after `settle_ns`, whatever the step.
    pub const fn after(settle_ns: Ns) -> Switching {
        let late_requests = LateRequests::Replace;
        Switching { settle_ns, stall_ns: 0, slew_uv_per_us: None, late_requests }
    }

    /// Returns the time that a switch takes.
    ///
    /// ```
    /// use schedtwin_machine::{OperatingPoint, Switching};
    /// let opp = |microvolt| OperatingPoint {
    ///     khz: 0, microvolt, em_power_uw: 0, active_uw: 0, idle_wfi_uw: 0, static_uw: 0, idle_static_uw: 0,
    /// };
    /// let (low, high) = (opp(Some(600_000)), opp(Some(800_000)));
    /// let clock = Switching { slew_uv_per_us: Some(10_000), ..Switching::after(50_000) };
    /// assert_eq!((clock.switch_ns(&low, &high), clock.switch_ns(&high, &low)), (70_000, 50_000));
    /// ```
    #[inline]
    pub fn switch_ns(&self, from: &OperatingPoint, to: &OperatingPoint) -> Ns {
        let (Some(slew), Some(from), Some(to)) =
            (self.slew_uv_per_us, from.microvolt, to.microvolt)
        else {
            return self.settle_ns;
        };
        self.settle_ns + u64::from(to.saturating_sub(from)) * 1000 / slew
    }
}

keys! {
    /// how a clock changes, at the top of the file or of one clock
    struct ClockKeys in "domain.*" {
        /// transition latency that the cpufreq driver reports; the kernel derives schedutil's default rate limit
        /// from it
        transition_latency_us: Located<u64> = WithoutClass, upto(MAX_LATENCY_US);
        /// time from the request to the new clock
        settle_us: Located<u64> = WithoutClass, upto(MAX_LATENCY_US);
        /// time at the end of a change in which the clock's CPUs stand still; 0
        stall_us: Located<u64> = May, upto(MAX_LATENCY_US);
        /// speed at which the voltage rises before a higher clock; 0: the clock does not wait for the voltage
        slew_uv_per_us: Located<u64> = May, upto(i64::MAX as u64);
        /// a request during a change: the change begins anew; the newest request follows it; all follow in order;
        /// each request takes its own time
        late_requests: Located<String> = May, words(&LateRequests::words());
        /// the governor changes the clock in the scheduler's context; otherwise its thread calls the driver
        fast_switch: bool = WithoutClass, Switch;
        /// without fast switch: the driver's call sleeps or spins; spins
        driver: Located<String> = May, words(&["sleeps", "spins"]);
        /// without fast switch: length of the driver's call; 0
        driver_latency_us: Located<u64> = May, upto(MAX_LATENCY_US);
        /// a CPU outside of the clock's domain may change it
        dvfs_possible_from_any_cpu: bool = WithoutClass, Switch;
    }
}

/// The keys of a table, as far as they are there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    settle_us: Option<Located<u64>>,
    stall_us: Option<Located<u64>>,
    slew_uv_per_us: Option<Located<u64>>,
    late_requests: Option<LateRequests>,
}

impl Keys {
    /// Checks what a table says; `None`: something is wrong.
    pub(crate) fn of(keys: &ClockKeys, faults: &mut Diagnostics) -> Option<Keys> {
        let had = faults.0.len();
        let ClockKeys { settle_us, stall_us, slew_uv_per_us, late_requests, .. } = keys.clone();
        for us in [&settle_us, &stall_us].into_iter().flatten() {
            checked_latency(us, faults);
        }
        let late_requests = late_requests.and_then(|word| {
            let named = LateRequests::NAMED.iter().find(|(name, _)| *name == word.value);
            if named.is_none() {
                let names = || LateRequests::NAMED.iter().map(|(name, _)| *name);
                let known = names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let near = did_you_mean(&word.value, names());
                let help = near.map_or(format!("known: {known}"), |near| {
                    format!("did you mean `{near}`? known: {known}")
                });
                let message = format!("`late_requests` is no `{}`", word.value);
                faults.push_at(&word.at, message, Some(help));
            }
            named.map(|(_, late)| *late)
        });
        (faults.0.len() == had).then_some(Keys {
            settle_us,
            stall_us,
            slew_uv_per_us,
            late_requests,
        })
    }

    /// These where they are there, else those of `defaults`.
    pub(crate) fn or(self, defaults: &Keys) -> Keys {
        Keys {
            settle_us: self.settle_us.or_else(|| defaults.settle_us.clone()),
            stall_us: self.stall_us.or_else(|| defaults.stall_us.clone()),
            slew_uv_per_us: self.slew_uv_per_us.or_else(|| defaults.slew_uv_per_us.clone()),
            late_requests: self.late_requests.or(defaults.late_requests),
        }
    }

    /// Returns the switching that they give a clock with these operating points.
    pub(crate) fn build(
        &self,
        opps: &[OperatingPoint],
        faults: &mut Diagnostics,
    ) -> Option<Switching> {
        let settle_us = self.settle_us.as_ref()?.value;
        let stall_us = self.stall_us.as_ref().map_or(0, |us| us.value);
        let mut good = true;
        if let Some(us) = self.stall_us.as_ref().filter(|us| us.value > settle_us) {
            let message =
                format!("CPUs stand still for longer than the switch takes: {settle_us} us");
            faults.push_at(&us.at, message, None);
            good = false;
        }
        let slew = self.slew_uv_per_us.as_ref().filter(|slew| slew.value > 0);
        if let Some(slew) = slew
            && let Some(opp) = opps.iter().find(|opp| opp.microvolt.is_none())
        {
            let message = format!("the operating point at {} kHz has no voltage", opp.khz);
            faults.push_at(&slew.at, message, Some("write its `uv`".into()));
            good = false;
        }
        good.then_some(Switching {
            settle_ns: settle_us * 1000,
            stall_ns: stall_us * 1000,
            slew_uv_per_us: slew.map(|slew| slew.value),
            late_requests: self.late_requests.unwrap_or(LateRequests::Replace),
        })
    }
}

/// A latency of at most a second, µs.
pub(crate) fn checked_latency(us: &Located<u64>, faults: &mut Diagnostics) -> Option<u64> {
    if us.value > MAX_LATENCY_US {
        faults.push_at(&us.at, "a frequency switch takes more than a second", None);
        return None;
    }
    Some(us.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;

    fn read(settings: &str) -> Result<Machine, String> {
        Machine::load(&format!("juno-r2:{settings}")).map_err(|faults| faults.to_string())
    }

    #[test]
    fn keys_at_the_top_are_of_all_clocks() {
        let machine = read("stall_us=3,late_requests=queue").unwrap();
        for domain in machine.domains.iter() {
            let late = LateRequests::Queue;
            assert_eq!((domain.switching.stall_ns, domain.switching.late_requests), (3_000, late));
        }
        let plain = read("stall_us=0").unwrap();
        assert!(
            plain.domains.iter().all(|d| d.switching == Switching::after(d.switching.settle_ns))
        );
    }

    #[test]
    fn what_cannot_be() {
        for (top, complaint) in [
            ("stall_us=900", "longer than the switch takes"),
            ("stall_us=1000001", "more than a second"),
            ("late_requests=quue", "did you mean `queue`"),
        ] {
            let faults = read(top).unwrap_err();
            assert!(faults.contains(complaint), "{top}: {faults}");
        }
    }
}
