// SPDX-License-Identifier: GPL-2.0-or-later
//! Idle governors and what limits them.

macro_rules! cpuidle {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// Idle governor.
        cpuidle: choice IdleGovernor {
            linux "/sys/devices/system/cpu/cpuidle/current_governor";
            /// Timer events oriented.
            Teo = "teo", "5.1 and later";
            /// Correction factors and typical intervals.
            Menu = "menu", "any";
            /// One state deeper after four long sleeps, one shallower after a short one.
            Ladder = "ladder", "any";
            /// Polls for a while that adapts, then halts.
            Haltpoll = "haltpoll", "5.4 and later, in guests";
            /// Always the shallowest state; the tick may stop.
            Shallow = "shallow", "none (a reference)";
        }
        /// Form of teo, where teo is chosen.
        teo: choice TeoForm {
            linux "drivers/cpuidle/governors/teo.c";
            /// With recent intercepts; asks for the sleep length first.
            V5_14 = "5.14", "5.14 to 6.5";
            /// With recent intercepts; asks for the sleep length late.
            V6_6 = "6.6", "6.6 to 6.10";
            /// All intercepts alike; asks late, and looks at the timers also where state 0 is certain.
            V6_12 = "6.12", "6.11 and 6.12";
            /// As 6.12's, with intercepts of a tick and more counted by themselves; short sleeps count, not the clock's time.
            V6_18 = "6.18", "6.18.y from .3 on";
            /// A sleep that ended before the timer is an intercept whatever its bin; tick wakeups and short sleeps count.
            V7_3 = "7.3", "7.3";
        }
        /// What teo makes of a CPU that is *utilised* (`sched_cpu_util()` above the threshold) while it goes idle.
        teo_util: choice TeoUtil {
            linux "teo_cpu_is_utilized()";
            unnamed Off;
            /// Nothing: teo does not look at utilisation.
            Off = "off", "up to 6.2, 6.11 and later; 6.6.y, 6.10.y since the revert";
            /// The shallowest enabled state, also one that polls; the counters do not learn from it.
            Posted = "posted", "none (RFC, September 2022)", only TeoForm in [V5_14];
            /// Of two states the shallowest, of more the one below the choice, also one that polls; the counters do not
            /// learn.
            V2 = "v2", "none (October 2022)", only TeoForm in [V5_14];
            /// State 0 in place of state 1 unless it polls; the counters do not learn.
            V3 = "v3", "none (October 2022)", only TeoForm in [V5_14];
            /// As v3, but the counters learn from every sleep.
            V4 = "v4", "none (November 2022)", only TeoForm in [V5_14];
            /// A state shallower, whichever was chosen, but none that polls; the counters learn.
            V6_3 = "6.3", "6.3 to 6.10", only TeoForm in [V5_14, V6_6];
            /// The number of the state times the share of the capacity that is unused, whatever is chosen before.
            Gradual = "gradual", "none (proposed in the discussion)";
        }
        /// A CPU is utilised above its capacity shifted right by this; 6 in Linux, about 1.6 %.
        teo_util_threshold_shift: integer u32 {
            linux "UTIL_THRESHOLD_SHIFT: utilised above the capacity >> this";
            range 0..=10;
            unnamed 6;
        }
        /// Form of menu, where menu is chosen.
        menu: choice MenuForm {
            linux "drivers/cpuidle/governors/menu.c";
            /// Twelve buckets, I/O waiters count; asks for the sleep length first.
            V5_18 = "5.18", "4.20 to 6.5";
            /// Six buckets; asks for the sleep length only where the interval pattern leaves it open.
            V6_12 = "6.12", "6.6 to 6.12";
            /// Short sleeps can be left out of the interval pattern, too.
            V6_18 = "6.18", "6.18.y from .14 on";
            /// Short sleeps can be left out of the interval pattern, too; a near timer is a safety net.
            V7_3 = "7.3", "7.3";
        }
        /// What becomes of haltpoll's window when it shrinks, where haltpoll is chosen.
        haltpoll_shrink: choice HaltpollShrink {
            linux "adjust_poll_limit()";
            unnamed Closed;
            /// It is halved.
            Halved = "halved", "up to 6.1";
            /// It is halved, and closed below its first size.
            Closed = "closed", "6.12 (from 6.8 on, from memory)";
        }
        /// Who decides where a CPU has one idle state.
        single_idle_state: choice SingleIdleState {
            linux "cpuidle_idle_call()";
            unnamed Governor;
            /// The governor, also about the tick.
            Governor = "governor", "before the fix in 6.1.192, 6.12.117, 6.18.20 and 7.3";
            /// Nobody: the tick stops once it has come while the CPU was idle.
            Skipped = "skipped", "6.1.192, 6.12.117, 6.18.y from .20 on, 7.3";
        }
        /// Idle states that are switched off on all CPUs, by name or number.
        cpuidle_disable: names {
            linux "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable";
            unnamed "none";
        }
        /// Limits on the exit latency of idle states.
        pm_qos: table PmQos {}
        }
    };
}
