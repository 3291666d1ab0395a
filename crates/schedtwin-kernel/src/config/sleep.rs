// SPDX-License-Identifier: GPL-2.0-or-later
//! What tasks sleep on: timers, pipes.

macro_rules! sleep {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// On which CPU a timer is queued that code on an idle CPU arms.
        hrtimer_target: choice HrtimerTarget {
            linux "hrtimer_prefer_local()";
            unnamed NohzTarget;
            /// The nearest busy one.
            NohzTarget = "nohz-target", "up to 6.18";
            /// The same CPU if the timer was there before and the tick runs or a task waits, else the nearest busy one.
            TickRunning = "tick-running", "7.3";
        }
        /// What becomes of a sleep whose end has passed already, slack left out.
        expired_sleep: choice ExpiredSleep {
            linux "hrtimer_start_range_ns_user()";
            unnamed Armed;
            /// The timer is armed, and fires at once if the slack has passed, too.
            Armed = "armed", "up to 6.18";
            /// The task does not sleep if its timer would be the CPU's next event.
            Refused = "refused", "7.3";
        }
        /// Which reads of a pipe wake a writer, and whether a poll makes each write wake a reader.
        pipe_wakes: choice PipeWakes {
            linux "anon_pipe_read(), pipe_poll()";
            unnamed WasFull;
            /// Any read of a full pipe; once polled, each write.
            WasFull = "was-full", "5.11 to 6.12";
            /// Reads that free a page of a full pipe; once polled, each write.
            PageFreedOrPolled = "page-freed-or-polled", "6.18";
            /// Reads that free a page of a full pipe; polls without EPOLLET change nothing.
            PageFreed = "page-freed", "7.3";
        }
        }
    };
}
