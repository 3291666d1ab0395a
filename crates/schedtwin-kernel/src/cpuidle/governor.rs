//! Which governor chooses idle states, and in which form: the only file that knows all of them.
//!
//! A CPU keeps the memory of its governor and nothing of the others. Every governor answers two calls:
//! *select*, when the CPU goes idle, and *reflect*, when it has slept.
//!
//! | governor | rule | `cpuidle =` |
//! |---|---|---|
//! | teo | hits and intercepts per state: [`teo`] | `"teo"` |
//! | menu | corrected timer or typical interval: [`menu`] | `"menu"` |
//! | shallow | the shallowest enabled state, the tick may stop | `"shallow"` |
//!
//! Kernel: `struct cpuidle_governor`. shallow is no governor of Linux, but the reference that teo's
//! utilisation awareness was first compared with; its code was not published.

use super::menu::{self, MenuCpu};
use super::states::{SelectInput, SleepLength};
use super::teo;
use crate::config::{Config, IdleGovernor, MenuForm, TeoForm};

/// A CPU's governor with its memory.
#[derive(Clone, Debug)]
pub enum Governor {
    /// teo of 6.12.
    Teo(teo::v6_12::TeoCpu),
    /// teo with recent intercepts: of 5.14, or of 6.3 with a threshold of utilisation.
    TeoRecent(teo::v5_14::TeoCpu),
    /// menu of 5.18.
    MenuWaiters(MenuCpu),
    /// menu of 6.12.
    Menu(MenuCpu),
    /// Always the shallowest enabled state.
    Shallow,
}

/// What a governor answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the state to enter.
    pub state: u8,
    /// Whether the tick may be stopped.
    pub stop_tick: bool,
    /// The answer of the timers, if they were asked, ns.
    pub sleep_length_ns: Option<i64>,
    /// Why this state.
    pub rule: &'static str,
}

impl Governor {
    /// As after enabling the governor of `config` on a CPU of that capacity (0..=1024).
    pub fn new(config: &Config, capacity: u64) -> Governor {
        match (config.cpuidle, config.teo, config.menu) {
            (IdleGovernor::Teo, TeoForm::V5_14, _) => {
                Governor::TeoRecent(teo::v5_14::TeoCpu::new(None))
            }
            (IdleGovernor::Teo, TeoForm::V6_3, _) => {
                Governor::TeoRecent(teo::v5_14::TeoCpu::new(Some(capacity)))
            }
            (IdleGovernor::Teo, TeoForm::V6_12, _) => Governor::Teo(Default::default()),
            (IdleGovernor::Menu, _, MenuForm::V5_18) => Governor::MenuWaiters(Default::default()),
            (IdleGovernor::Menu, _, MenuForm::V6_12) => Governor::Menu(Default::default()),
            (IdleGovernor::Shallow, ..) => Governor::Shallow,
        }
    }

    /// Whether [`SelectInput::cpu_util`] must be computed.
    #[inline]
    pub fn reads_util(&self) -> bool {
        matches!(self, Governor::TeoRecent(teo) if teo.util_threshold.is_some())
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
            rule: s.rule.text(),
        };
        let of_menu = |s: menu::Selection| Choice {
            state: s.idx as u8,
            stop_tick: s.stop_tick,
            sleep_length_ns: s.sleep_length_ns,
            rule: s.rule.text(),
        };
        match self {
            Governor::Teo(teo) => of_teo(teo.select(input, sleep_length)),
            Governor::TeoRecent(teo) => of_teo(teo.select(input, sleep_length)),
            Governor::MenuWaiters(menu) => of_menu(menu::v5_18::select(menu, input, sleep_length)),
            Governor::Menu(menu) => of_menu(menu::v6_12::select(menu, input, sleep_length)),
            Governor::Shallow => Choice {
                state: input.states.iter().position(|state| !state.disabled).unwrap_or(0) as u8,
                stop_tick: true,
                sleep_length_ns: None,
                rule: "always the shallowest",
            },
        }
    }

    /// A stay in `state` has ended. `got_tick`: the tick's handler ran meanwhile. `poll_time_limit`: the
    /// polling state gave up. `now` is `local_clock()`.
    #[inline]
    pub fn reflect(
        &mut self,
        state: usize,
        got_tick: bool,
        poll_time_limit: bool,
        now: u64,
        tick_nsec: i64,
    ) {
        match self {
            Governor::Teo(teo) => teo.reflect(state, got_tick, poll_time_limit, now, tick_nsec),
            Governor::TeoRecent(teo) => {
                teo.reflect(state, got_tick, poll_time_limit, now, tick_nsec);
            }
            Governor::MenuWaiters(menu) | Governor::Menu(menu) => {
                menu.reflect(state, got_tick, poll_time_limit);
            }
            Governor::Shallow => {}
        }
    }

    /// Asserts that what is counted twice agrees.
    pub(crate) fn verify(&self) {
        match self {
            Governor::Teo(teo) => {
                let sum: u32 = teo.state_bins.iter().map(|bin| bin.hits + bin.intercepts).sum();
                assert_eq!(teo.total, sum + teo.tick_hits, "teo: total");
            }
            Governor::TeoRecent(teo) => {
                let sum: u32 = teo.state_bins.iter().map(|bin| bin.hits + bin.intercepts).sum();
                assert_eq!(teo.total, sum, "teo: total");
                for (i, bin) in teo.state_bins.iter().enumerate() {
                    let recent = teo.recent_idx.iter().filter(|idx| **idx == Some(i as u8));
                    assert_eq!(bin.recent as usize, recent.count(), "teo: recent of bin {i}");
                }
            }
            Governor::MenuWaiters(menu) | Governor::Menu(menu) => {
                let most = (menu::RESOLUTION * menu::DECAY) as u32;
                let factors = menu.correction_factor;
                assert!(factors.iter().all(|f| (1..=most).contains(f)), "menu: {factors:?}");
            }
            Governor::Shallow => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpuidle::states::IdleStateParams;

    #[test]
    fn a_kernel_file_chooses_governor_and_form() {
        use {IdleGovernor as G, MenuForm as M, TeoForm as T};
        let of = |cpuidle, teo, menu| {
            Governor::new(&Config { cpuidle, teo, menu, ..Config::linux_6_12() }, 124)
        };
        assert!(matches!(of(G::Teo, T::V6_12, M::V5_18), Governor::Teo(_)));
        let old = of(G::Teo, T::V5_14, M::V5_18);
        assert!(matches!(&old, Governor::TeoRecent(teo) if teo.util_threshold.is_none()));
        let util_aware = of(G::Teo, T::V6_3, M::V5_18);
        assert!(matches!(&util_aware, Governor::TeoRecent(teo) if teo.util_threshold == Some(1)));
        assert!(util_aware.reads_util() && !old.reads_util());
        assert!(matches!(of(G::Menu, T::V6_12, M::V5_18), Governor::MenuWaiters(_)));
        assert!(matches!(of(G::Menu, T::V6_12, M::V6_12), Governor::Menu(_)));
        assert!(matches!(of(G::Shallow, T::V6_12, M::V6_12), Governor::Shallow));
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
