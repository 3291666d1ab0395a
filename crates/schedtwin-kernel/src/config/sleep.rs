// SPDX-License-Identifier: GPL-2.0-or-later
//! Timers, pipes and block devices.

macro_rules! sleep {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// The CPU for a timer that code on an idle CPU arms.
        hrtimer_target: choice HrtimerTarget {
            linux "hrtimer_prefer_local()";
            default_if_absent NohzTarget;
            /// The nearest busy one.
            NohzTarget = "nohz-target", "up to 7.0";
            /// The same CPU if the timer was there before and the tick runs or a task waits, else the nearest busy one.
            TickRunning = "tick-running", "7.1 and later";
        }
        /// The place of a queued timer that is started again, among timers of the same expiry.
        hrtimer_restart: choice HrtimerRestart {
            linux "hrtimer_can_update_in_place()";
            default_if_absent Behind;
            /// Behind them.
            Behind = "behind", "up to 7.0";
            /// Its own, if that is between an earlier or equal and a later or equal expiry.
            InPlace = "in-place", "7.1 and later";
        }
        /// The CPU that expires a timer of the wheel which is not pinned.
        timer_migration: choice TimerTarget {
            linux "get_nohz_timer_target(); timer_migration.c";
            default_if_absent Hierarchy;
            /// The CPU that armed it, or the nearest busy one if that was idle.
            BusyCpu = "busy-cpu", "up to 6.8";
            /// The CPU that armed it; while that is idle another one, if any is awake.
            Hierarchy = "hierarchy", "6.9 and later";
        }
        /// A sleep whose end, without slack, has already passed.
        expired_sleep: choice ExpiredSleep {
            linux "hrtimer_start_range_ns_user()";
            default_if_absent Armed;
            /// The timer is armed, and fires at once if the slack has passed, too.
            Armed = "armed", "up to 7.1";
            /// The task does not sleep if its timer would be the CPU's next event.
            Refused = "refused", "7.3";
        }
        /// The reads of a pipe that wake a writer, and the effect of a poll on later writes.
        pipe_wakes: choice PipeWakes {
            linux "anon_pipe_read(), pipe_poll()";
            default_if_absent WasFull;
            /// Every read of a full pipe. After a poll each write wakes a reader.
            WasFull = "was-full", "5.11 to 6.13";
            /// Reads that free a page of a full pipe. After a poll each write wakes a reader.
            PageFreedOrPolled = "page-freed-or-polled", "6.14 to 7.1";
            /// Reads that free a page of a full pipe. A poll without EPOLLET has no effect.
            PageFreed = "page-freed", "7.3";
        }
        /// The CPUs on which a request of a block device completes without a call to the CPU that submitted it.
        blk_complete: choice BlkComplete {
            linux "blk_mq_complete_need_ipi()";
            default_if_absent SharesCacheAndCapacity;
            /// Those that share its last-level cache.
            SharesCache = "shares-cache", "up to 6.8";
            /// Those that share its last-level cache and have its capacity.
            SharesCacheAndCapacity = "shares-cache-and-capacity", "6.9 and later";
        }
        /// Where requests of block devices complete: 0 on the interrupted CPU, 1 near the CPU that submitted them, 2 on that CPU.
        rq_affinity: integer u32 {
            linux "/sys/block/*/queue/rq_affinity";
            range 0..=2;
            default_if_absent 1;
        }
        }
    };
}
