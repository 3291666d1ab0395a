// SPDX-License-Identifier: GPL-2.0-or-later
//! Idle governors and what limits them.

macro_rules! cpuidle {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// Idle governor.
        cpuidle: choice IdleGovernor {
            linux "/sys/devices/system/cpu/cpuidle/current_governor";
            /// Timer events oriented: predicts from the next timer and from earlier wakeups before it.
            Teo = "teo", "5.1 and later";
            /// Correction factors and typical intervals.
            Menu = "menu", "any";
            /// One state deeper after four long sleeps, one shallower after a short one.
            Ladder = "ladder", "any";
            /// Polls for a while that adapts, then halts.
            Haltpoll = "haltpoll", "5.4 and later (in guests)";
            /// Always the shallowest state; the tick may stop. Not in Linux.
            Shallow = "shallow", "none (a reference)";
        }
        /// Release of teo's code, for `cpuidle` `teo`.
        teo: choice TeoForm {
            linux "drivers/cpuidle/governors/teo.c";
            /// Counts recent intercepts apart; always reads the sleep length, before the choice.
            V5_14 = "5.14", "5.14 to 6.5";
            /// Counts recent intercepts apart; reads the sleep length only where the choice needs it.
            V6_6 = "6.6", "6.6 to 6.10";
            /// Counts all intercepts alike; reads the sleep length late, but also where state 0 is already certain.
            V6_12 = "6.12", "6.11 to 6.13";
            /// As 6.12, but intercepts of a tick or longer are counted apart, and so are short sleeps.
            V6_18 = "6.18", "6.18.y from .3 on; 6.14 to 6.19 (assumed beside 6.18)";
            /// A sleep that ends before its timer is an intercept in any bin; wakeups by the tick and short sleeps
            /// are counted.
            V7_3 = "7.3", "7.1 and later; 7.0 (assumed)";
        }
        /// teo's choice for a CPU that is *utilised* when it goes idle (`sched_cpu_util()` above a threshold).
        teo_util: choice TeoUtil {
            linux "teo_cpu_is_utilized()";
            default_if_absent Off;
            /// teo does not read utilisation.
            Off = "off", "up to 6.2, 6.11 and later; 6.6.y from .40 on (assumed), 6.10.y from .1 on (assumed)";
            /// The shallowest enabled state, even a polling one; teo's counters do not learn from that sleep.
            Posted = "posted", "none (RFC, September 2022)", only TeoForm in [V5_14];
            /// On a machine with two states the shallowest, with more states one state shallower than the choice,
            /// even a polling one; the counters do not learn.
            V2 = "v2", "none (October 2022)", only TeoForm in [V5_14];
            /// State 0 in place of state 1 unless it polls; the counters do not learn.
            V3 = "v3", "none (October 2022)", only TeoForm in [V5_14];
            /// As v3, but the counters learn from every sleep.
            V4 = "v4", "none (November 2022)", only TeoForm in [V5_14];
            /// One state shallower than the choice, unless that polls; the counters learn.
            V6_3 = "6.3", "6.3 to 6.10", only TeoForm in [V5_14, V6_6];
            /// The number of the chosen state times the unused share of the CPU's capacity.
            Gradual = "gradual", "none (proposed in the discussion)";
        }
        /// A CPU is utilised above its capacity shifted right by this number; 6 in Linux, about 1.6 %.
        teo_util_threshold_shift: integer u32 {
            linux "UTIL_THRESHOLD_SHIFT: utilised above the capacity >> this";
            range 0..=10;
            default_if_absent 6;
        }
        /// Release of menu's code, for `cpuidle` `menu`.
        menu: choice MenuForm {
            linux "drivers/cpuidle/governors/menu.c";
            /// Twelve buckets of correction factors, I/O waiters count; always reads the sleep length.
            V4_20 = "4.20", "4.20 to 6.5 (seen in 5.19 and 6.3.8)";
            /// As 4.20; where the driver refuses a state, an interval that never counts is noted.
            V5_18 = "5.18", "6.1.y from .192 on (or earlier)";
            /// Six buckets; reads the sleep length only where the pattern of intervals does not decide.
            V6_12 = "6.12", "6.12 to 6.14; 6.6.y from .103 on; 6.6 to 6.11 (assumed: twelve buckets, I/O waiters count)";
            /// As 6.12, but outliers that are too short can be left out of the pattern of intervals, too.
            V6_18 = "6.18", "6.18.y from .14 on; 6.15 to 6.18 (assumed), 6.19 and 7.0";
            /// As 6.18; with a stopped tick, a prediction below a tick is kept if a timer comes within two ticks.
            V7_3 = "7.3", "7.1 and later";
        }
        /// haltpoll's polling window after it shrinks, for `cpuidle` `haltpoll`.
        haltpoll_shrink: choice HaltpollShrink {
            linux "adjust_poll_limit()";
            default_if_absent Closed;
            /// It is halved.
            Halved = "halved", "up to 6.1; 6.2 to 6.7 (assumed)";
            /// It is halved; below its first size it becomes 0.
            Closed = "closed", "6.8 and later (from memory; read in 6.12)";
        }
        /// The longest polling window of haltpoll, for `cpuidle` `haltpoll`; 0: it never polls.
        guest_halt_poll_ns: integer Ns {
            linux "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
            range 0..=1_000_000_000 ns;
            default_if_absent 200_000;
        }
        /// The decision on a CPU with a single idle state.
        single_idle_state: choice SingleIdleState {
            linux "cpuidle_idle_call()";
            default_if_absent Governor;
            /// The governor decides, also about the tick.
            Governor = "governor", "up to 6.19";
            /// No governor is called; the tick stops after the first tick that comes while the CPU is idle.
            Skipped = "skipped", "7.0 and later; 6.1.y from .192 on (or earlier), 6.12.y from .95 on (or earlier), 6.18.y from .20 on, 6.19.y from .9 on (or earlier)";
        }
        /// Idle states that are switched off on all CPUs, by name or number.
        cpuidle_disable: names {
            linux "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable";
            default_if_absent "none";
        }
        /// Limits on the exit latency of idle states.
        pm_qos: table PmQos {}
        }
    };
}
