// SPDX-License-Identifier: GPL-2.0-or-later
//! Which governor chooses idle states, and in which form: the only file that knows all of them.
//!
//! A CPU keeps the memory of its governor and nothing of the others. Every governor answers two calls:
//! *select*, when the CPU goes idle, and *reflect*, when it has slept.
//!
//! | governor | rule | `cpuidle =` |
//! |---|---|---|
//! | teo | hits and intercepts per state: [`teo`] | `"teo"` |
//! | menu | corrected timer or typical interval: [`menu`] | `"menu"` |
//! | ladder | a state deeper after long sleeps, shallower after a short one: [`ladder`](super::ladder) | `"ladder"` |
//! | haltpoll | poll for a while, then halt: [`haltpoll`](super::haltpoll) | `"haltpoll"` |
//! | shallow | the shallowest enabled state, the tick may stop | `"shallow"` |
//!
//! A user's own stands beside them: [`crate::policy`].
//!
//! teo's utilisation awareness comes in forms of its own, [`teo::util`]; the gradual one wraps any form.
//!
//! Kernel: `struct cpuidle_governor`. shallow is no governor of Linux, but the reference that teo's
//! utilisation awareness was first compared with; its code was not published.

use super::haltpoll::HaltpollCpu;
use super::ladder::LadderCpu;
use super::menu::{self, MenuCpu};
use super::states::{IdleStateParams, Reflection, SelectInput, SleepLength};
use super::teo;
use super::teo::util::{Gradual, UtilAware};
use crate::config::{Config, IdleGovernor, MenuForm, TeoForm};
use crate::policy::{CustomIdle, CustomMachineIdle};
use schedtwin_types::{CpuId, IdleInput, IdleRule, TickRule};

/// A CPU's governor with its memory.
#[derive(Clone, Debug)]
pub enum Governor {
    /// teo of 6.12.
    Teo(teo::v6_12::TeoCpu),
    /// teo of 6.18.
    TeoTickIntercepts(teo::v6_18::TeoCpu),
    /// teo of 7.3.
    TeoTimers(teo::v7_3::TeoCpu),
    /// teo with recent intercepts, of 5.14.
    TeoRecent(teo::v5_14::TeoCpu),
    /// teo with recent intercepts, of 6.6.
    TeoRecentLate(teo::v6_6::TeoCpu),
    /// Some teo, and a share of what it chooses.
    Gradual(Gradual, Box<Governor>),
    /// menu of 4.20.
    MenuWaitersEarly(MenuCpu),
    /// menu of 6.1.192.
    MenuWaiters(MenuCpu),
    /// menu of 6.12.
    Menu(MenuCpu),
    /// menu of 6.18.
    MenuShortOutliers(MenuCpu),
    /// menu of 7.3.
    MenuOutliers(MenuCpu),
    /// ladder.
    Ladder(LadderCpu),
    /// haltpoll.
    Haltpoll(HaltpollCpu),
    /// Always the shallowest enabled state.
    Shallow,
    /// A user's.
    Custom(CustomIdle),
    /// A user's that is one for all CPUs: the kernel keeps it, and asks it itself.
    OfMachine {
        /// Whether it reads utilisation.
        reads_util: bool,
    },
}

/// The answer of a governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the state to enter.
    pub state: u8,
    /// Whether the tick may be stopped.
    pub stop_tick: bool,
    /// The answer of the timers, if they were asked, ns.
    pub sleep_length_ns: Option<i64>,
    /// Why this state.
    pub rule: IdleRule,
    /// teo: why the tick stops, or not.
    pub tick_rule: Option<TickRule>,
}

impl Governor {
    /// As after enabling the governor of `config` on a CPU of that capacity (0..=1024).
    pub fn new(config: &Config, capacity: u64, states: &[IdleStateParams]) -> Governor {
        match config.cpuidle {
            IdleGovernor::Teo => {
                let util = UtilAware::of(config, capacity);
                let teo = match config.teo {
                    TeoForm::V5_14 => Governor::TeoRecent(teo::v5_14::TeoCpu::new(util)),
                    TeoForm::V6_6 => Governor::TeoRecentLate(teo::v6_6::TeoCpu::new(util)),
                    TeoForm::V6_12 => Governor::Teo(Default::default()),
                    TeoForm::V6_18 => Governor::TeoTickIntercepts(Default::default()),
                    TeoForm::V7_3 => Governor::TeoTimers(Default::default()),
                };
                match Gradual::of(config, capacity) {
                    Some(gradual) => Governor::Gradual(gradual, Box::new(teo)),
                    None => teo,
                }
            }
            IdleGovernor::Menu => {
                let drops_polling = config.bugs.menu_drops_polling;
                let menu = MenuCpu { drops_polling, ..MenuCpu::default() };
                match config.menu {
                    MenuForm::V4_20 => Governor::MenuWaitersEarly(menu),
                    MenuForm::V5_18 => Governor::MenuWaiters(menu),
                    MenuForm::V6_12 => Governor::Menu(menu),
                    MenuForm::V6_18 => Governor::MenuShortOutliers(menu),
                    MenuForm::V7_3 => Governor::MenuOutliers(menu),
                }
            }
            IdleGovernor::Ladder => Governor::Ladder(LadderCpu::new(states)),
            IdleGovernor::Haltpoll => Governor::Haltpoll(HaltpollCpu::of(config)),
            IdleGovernor::Shallow => Governor::Shallow,
        }
    }

    /// Whether [`SelectInput::cpu_util`] must be computed.
    #[inline]
    pub fn reads_util(&self) -> bool {
        match self {
            Governor::TeoRecent(teo) => teo.util.is_some(),
            Governor::TeoRecentLate(teo) => teo.util.is_some(),
            Governor::Gradual(..) => true,
            Governor::Custom(custom) => custom.policy.reads_util(),
            Governor::OfMachine { reads_util } => *reads_util,
            _ => false,
        }
    }

    /// The device's poll limit, where the governor sets it; 0: none.
    pub(super) fn poll_limit_ns(&mut self) -> Option<&mut u64> {
        match self {
            Governor::Haltpoll(haltpoll) => Some(&mut haltpoll.poll_limit_ns),
            _ => None,
        }
    }

    /// Chooses a state for a CPU that goes idle. `sleep_length` asks the timers.
    #[inline]
    pub fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> Choice {
        let of_teo = |s: teo::Selection| Choice {
            state: s.idx as u8,
            stop_tick: s.stop_tick,
            sleep_length_ns: s.sleep_length_ns,
            rule: IdleRule::Teo(s.rule),
            tick_rule: Some(s.tick_rule),
        };
        let of_menu = |s: menu::Selection| Choice {
            state: s.idx as u8,
            stop_tick: s.stop_tick,
            sleep_length_ns: s.sleep_length_ns,
            rule: IdleRule::Menu(s.rule),
            tick_rule: None,
        };
        match self {
            Governor::Teo(teo) => of_teo(teo.select(input, sleep_length)),
            Governor::TeoTickIntercepts(teo) => of_teo(teo.select(input, sleep_length)),
            Governor::TeoTimers(teo) => of_teo(teo.select(input, sleep_length)),
            Governor::TeoRecent(teo) => of_teo(teo.select(input, sleep_length)),
            Governor::TeoRecentLate(teo) => of_teo(teo.select(input, sleep_length)),
            Governor::Gradual(gradual, teo) => {
                let choice = teo.select(input, sleep_length);
                let state = gradual.scale(choice.state.into(), input.cpu_util) as u8;
                let rule = if state == choice.state { choice.rule } else { IdleRule::UnusedShare };
                Choice { state, rule, ..choice }
            }
            Governor::MenuWaitersEarly(menu) => {
                of_menu(menu::v4_20::select(menu, input, sleep_length))
            }
            Governor::MenuWaiters(menu) => of_menu(menu::v5_18::select(menu, input, sleep_length)),
            Governor::Menu(menu) => of_menu(menu::v6_12::select(menu, input, sleep_length)),
            Governor::MenuShortOutliers(menu) => {
                of_menu(menu::v6_18::select(menu, input, sleep_length))
            }
            Governor::MenuOutliers(menu) => of_menu(menu::v7_3::select(menu, input, sleep_length)),
            Governor::Ladder(ladder) => Choice {
                state: ladder.select(input) as u8,
                stop_tick: true,
                sleep_length_ns: None,
                rule: IdleRule::Ladder,
                tick_rule: None,
            },
            Governor::Haltpoll(haltpoll) => {
                let (state, stop_tick) = haltpoll.select(input);
                let rule = if state == 0 { IdleRule::HaltpollPoll } else { IdleRule::HaltpollHalt };
                Choice {
                    state: state as u8,
                    stop_tick,
                    sleep_length_ns: None,
                    rule,
                    tick_rule: None,
                }
            }
            Governor::Shallow => Choice {
                state: input.states.iter().position(|state| !state.disabled).unwrap_or(0) as u8,
                stop_tick: true,
                sleep_length_ns: None,
                rule: IdleRule::Shallowest,
                tick_rule: None,
            },
            Governor::Custom(custom) => custom.select(input, sleep_length),
            Governor::OfMachine { .. } => unreachable!("the kernel asks the machine's governor"),
        }
    }

    /// Returns what it looked at when it chose, beside the timers. `cpu_util`: as it was told.
    #[cold]
    pub fn looked_at(&self, cpu_util: u64) -> IdleInput {
        let teo = |bins: &[[u32; 2]], total, util: Option<&UtilAware>| IdleInput {
            bins: bins.to_vec(),
            total: Some(total),
            util: util.map(|aware| [cpu_util, aware.threshold]),
            ..IdleInput::default()
        };
        match self {
            Governor::Teo(of) => {
                teo(&of.state_bins.map(|b| [b.hits, b.intercepts]), of.total, None)
            }
            Governor::TeoTickIntercepts(of) => {
                teo(&of.state_bins.map(|b| [b.hits, b.intercepts]), of.total, None)
            }
            Governor::TeoTimers(of) => {
                teo(&of.state_bins.map(|b| [b.hits, b.intercepts]), of.total, None)
            }
            Governor::TeoRecent(of) => {
                teo(&of.state_bins.map(|b| [b.hits, b.intercepts]), of.total, of.util.as_ref())
            }
            Governor::TeoRecentLate(of) => {
                teo(&of.state_bins.map(|b| [b.hits, b.intercepts]), of.total, of.util.as_ref())
            }
            Governor::Gradual(_, teo) => teo.looked_at(cpu_util),
            Governor::MenuWaitersEarly(of)
            | Governor::MenuWaiters(of)
            | Governor::Menu(of)
            | Governor::MenuShortOutliers(of)
            | Governor::MenuOutliers(of) => IdleInput {
                intervals_us: of.intervals.to_vec(),
                correction_permille: Some(of.correction_permille()),
                ..IdleInput::default()
            },
            Governor::Ladder(_)
            | Governor::Haltpoll(_)
            | Governor::Shallow
            | Governor::Custom(_)
            | Governor::OfMachine { .. } => IdleInput::default(),
        }
    }

    /// A stay has ended.
    #[inline]
    pub fn reflect(&mut self, stay: &Reflection) {
        match self {
            Governor::Teo(teo) => teo.reflect(stay),
            Governor::TeoTickIntercepts(teo) => teo.reflect(stay),
            Governor::TeoTimers(teo) => teo.reflect(stay),
            Governor::TeoRecent(teo) => teo.reflect(stay),
            Governor::TeoRecentLate(teo) => teo.reflect(stay),
            Governor::Gradual(_, teo) => teo.reflect(stay),
            Governor::MenuWaitersEarly(menu)
            | Governor::MenuWaiters(menu)
            | Governor::Menu(menu)
            | Governor::MenuShortOutliers(menu)
            | Governor::MenuOutliers(menu) => {
                menu.reflect(stay.state, stay.got_tick, stay.poll_time_limit);
            }
            Governor::Ladder(ladder) => ladder.reflect(stay.state),
            Governor::Haltpoll(haltpoll) => {
                haltpoll.reflect(stay.state, stay.last_residency_ns, stay.poll_time_limit);
            }
            Governor::Shallow => {}
            Governor::Custom(custom) => custom.policy.reflect(stay),
            Governor::OfMachine { .. } => unreachable!("the kernel tells the machine's governor"),
        }
    }

    /// As [`Governor::select`], also where one governor chooses for the whole machine.
    #[inline]
    pub(crate) fn select_on(
        &mut self,
        cpu: CpuId,
        of_machine: &mut Option<Box<CustomMachineIdle>>,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> Choice {
        match (&*self, of_machine) {
            (Governor::OfMachine { .. }, Some(of_machine)) => {
                of_machine.select(cpu, input, sleep_length)
            }
            _ => self.select(input, sleep_length),
        }
    }

    /// As [`Governor::reflect`], also where one governor chooses for the whole machine.
    #[inline]
    pub(crate) fn reflect_on(
        &mut self,
        cpu: CpuId,
        of_machine: &mut Option<Box<CustomMachineIdle>>,
        stay: &Reflection,
    ) {
        match (&*self, of_machine) {
            (Governor::OfMachine { .. }, Some(of_machine)) => of_machine.policy.reflect(cpu, stay),
            _ => self.reflect(stay),
        }
    }

    /// Asserts that what is counted twice agrees.
    pub(crate) fn verify(&self) {
        match self {
            Governor::Teo(teo) => {
                let sum: u32 = teo.state_bins.iter().map(|bin| bin.hits + bin.intercepts).sum();
                assert_eq!(teo.total, sum + teo.tick_hits, "teo: total");
            }
            // Its total decays by itself: no sum of bins.
            Governor::TeoTickIntercepts(_) => {}
            Governor::TeoTimers(teo) => {
                let sum: u32 = teo.state_bins.iter().map(|bin| bin.hits + bin.intercepts).sum();
                assert_eq!(teo.total, sum, "teo: total");
            }
            Governor::TeoRecent(teo) => {
                let sum: u32 = teo.state_bins.iter().map(|bin| bin.hits + bin.intercepts).sum();
                assert_eq!(teo.total, sum, "teo: total");
                for (i, bin) in teo.state_bins.iter().enumerate() {
                    let recent = teo.recent_idx.iter().filter(|idx| **idx == Some(i as u8));
                    assert_eq!(bin.recent as usize, recent.count(), "teo: recent of bin {i}");
                }
            }
            Governor::TeoRecentLate(teo) => {
                let sum: u32 = teo.state_bins.iter().map(|bin| bin.hits + bin.intercepts).sum();
                assert_eq!(teo.total, sum + teo.tick_hits, "teo: total");
            }
            Governor::Gradual(_, teo) => teo.verify(),
            Governor::Ladder(ladder) => {
                let most = super::ladder::PROMOTION_COUNT;
                assert!(
                    ladder.stats.iter().all(|s| s.promotion_count < most),
                    "ladder: {ladder:?}"
                );
            }
            Governor::Haltpoll(_) => {}
            Governor::MenuWaitersEarly(menu)
            | Governor::MenuWaiters(menu)
            | Governor::Menu(menu)
            | Governor::MenuShortOutliers(menu)
            | Governor::MenuOutliers(menu) => {
                let most = (menu::RESOLUTION * menu::DECAY) as u32;
                let factors = menu.correction_factor;
                assert!(factors.iter().all(|f| (1..=most).contains(f)), "menu: {factors:?}");
            }
            Governor::Shallow | Governor::Custom(_) | Governor::OfMachine { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TeoUtil;

    #[test]
    fn a_kernel_file_chooses_governor_and_form() {
        use {IdleGovernor as G, MenuForm as M, TeoForm as T, TeoUtil as U};
        let states = [IdleStateParams::default(); 2];
        let of = |cpuidle, teo, teo_util, menu| {
            let config = Config { cpuidle, teo, teo_util, menu, ..Config::linux_6_12() };
            Governor::new(&config, 124, &states)
        };
        let (plain, old) = (M::V6_12, M::V5_18);
        assert!(matches!(of(G::Teo, T::V6_12, U::Off, old), Governor::Teo(_)));
        assert!(matches!(of(G::Teo, T::V6_18, U::Off, old), Governor::TeoTickIntercepts(_)));
        assert!(matches!(of(G::Teo, T::V7_3, U::Off, old), Governor::TeoTimers(_)));
        let recent = of(G::Teo, T::V5_14, U::Off, old);
        assert!(matches!(&recent, Governor::TeoRecent(teo) if teo.util.is_none()));
        let util_aware = of(G::Teo, T::V5_14, U::V6_3, old);
        assert!(
            matches!(&util_aware, Governor::TeoRecent(teo) if teo.util.unwrap().threshold == 1)
        );
        assert!(util_aware.reads_util() && !recent.reads_util());
        assert!(of(G::Teo, T::V6_6, U::V6_3, old).reads_util());
        assert!(matches!(of(G::Teo, T::V6_6, U::Off, old), Governor::TeoRecentLate(_)));
        let gradual = of(G::Teo, T::V6_12, U::Gradual, old);
        assert!(matches!(&gradual, Governor::Gradual(_, teo) if matches!(**teo, Governor::Teo(_))));
        assert!(matches!(of(G::Menu, T::V6_12, U::Off, old), Governor::MenuWaiters(_)));
        let early = of(G::Menu, T::V6_12, U::Off, M::V4_20);
        assert!(matches!(early, Governor::MenuWaitersEarly(_)));
        assert!(matches!(of(G::Menu, T::V6_12, U::Off, plain), Governor::Menu(_)));
        let short = of(G::Menu, T::V6_12, U::Off, M::V6_18);
        assert!(matches!(short, Governor::MenuShortOutliers(_)));
        assert!(matches!(of(G::Menu, T::V6_12, U::Off, M::V7_3), Governor::MenuOutliers(_)));
        assert!(matches!(of(G::Ladder, T::V6_12, U::Off, plain), Governor::Ladder(_)));
        assert!(matches!(of(G::Haltpoll, T::V6_12, U::Off, plain), Governor::Haltpoll(_)));
        assert!(matches!(of(G::Shallow, T::V6_12, U::Off, plain), Governor::Shallow));
    }

    #[test]
    fn shallow_takes_the_shallowest_that_is_enabled() {
        let on = IdleStateParams::default();
        let off = IdleStateParams { disabled: true, ..on };
        for (states, chosen) in [([on, on], 0), ([off, on], 1), ([off, off], 0)] {
            let input = SelectInput {
                states: &states,
                latency_req_ns: i64::MAX,
                tick_stopped: false,
                tick_nsec: 4_000_000,
                now: 0,
                last_residency_ns: 0,
                nr_iowaiters: 0,
                cpu_util: 0,
            };
            let choice = Governor::Shallow.select(&input, &mut || unreachable!("nobody asks"));
            assert_eq!((choice.state, choice.stop_tick), (chosen, true));
        }
    }
}
