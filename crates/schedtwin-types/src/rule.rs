// SPDX-License-Identifier: GPL-2.0-or-later
//! Rules: why a decision came out as it did.
//!
//! Each mechanism has an enum of its own, whose arms are named after what decided and have a text for
//! records and `explain`. Code compares arms; only readers see texts. Mechanisms that have an
//! interface for users' own policies (placement, frequency, idle) have an arm `Custom` with the
//! policy's own words.

/// Declares a mechanism's rules: each arm once, with its doc and its text.
macro_rules! rules {
    (
        $(#[$doc:meta])*
        $name:ident {
            $( $(#[$arm_doc:meta])* $arm:ident = $text:literal, )*
        }
        $( wraps { $( $(#[$wrap_doc:meta])* $wrap:ident($inner:ty), )* } )?
        $( custom { $(#[$custom_doc:meta])* $custom:ident } )?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[$arm_doc])* $arm, )*
            $( $( $(#[$wrap_doc])* $wrap($inner), )* )?
            $( $(#[$custom_doc])* $custom(&'static str), )?
        }

        impl $name {
            /// All of its own arms, in the order of declaration: neither what it wraps nor users' rules.
            pub const OWN: &[$name] = &[ $( $name::$arm, )* ];

            /// In words.
            pub const fn text(self) -> &'static str {
                match self {
                    $( $name::$arm => $text, )*
                    $( $( $name::$wrap(inner) => inner.text(), )* )?
                    $( $name::$custom(text) => text, )?
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.text())
            }
        }
    };
}

rules! {
    /// Why a waking, forked or executing task goes to that CPU.
    PlacementRule {
        /// No domain wanted a decision: prev.
        Stays = "stays",
        /// EAS: a task of no utilisation costs nothing anywhere.
        FeecNoUtilisation = "feec: the task has no utilisation",
        /// EAS: adding the task lowered the estimate. On a real machine another CPU's signals have changed
        /// meanwhile.
        FeecRaced = "feec: the estimate fell with the task (raced)",
        /// EAS: it fits on another CPU, and not on prev.
        FeecFitsBetter = "feec: fits where prev does not",
        /// EAS since 6.1.y: the candidate costs less than prev.
        FeecLeastEnergy = "feec: least energy",
        /// EAS: no CPU meets the task's minimum, and the chosen one comes nearer than prev.
        FeecFasterThanPrev = "feec: as fast as the minimum nowhere, faster than prev",
        /// EAS: no candidate costs less than prev.
        FeecPrevCostsNoMore = "feec: prev costs no more",
        /// EAS: no CPU has room.
        FeecFitsNowhere = "feec: fits nowhere, stays",
        /// EAS of 5.14 to 5.19: the candidate saves enough.
        FeecSavesSixteenth = "feec: saves more than a sixteenth",
        /// EAS of 5.14 to 5.19: the candidate saves too little.
        FeecSavesTooLittle = "feec: saves no more than a sixteenth",
        /// `wake_affine_idle()`: the waker's CPU and prev are idle and share a cache.
        WaIdleBothIdle = "WA_IDLE: both idle, prev",
        /// `wake_affine_idle()`: the waker's CPU is idle and shares prev's cache.
        WaIdleWakerIdle = "WA_IDLE: the waker's CPU is idle",
        /// `wake_affine_idle()`: a synchronous wakeup by the only task there.
        WaIdleSync = "WA_IDLE: sync, the waker is about to sleep",
        /// `wake_affine_idle()`: prev is idle.
        WaIdlePrevIdle = "WA_IDLE: prev is idle",
        /// `prefer_idler_llc()`: the waker's cache has room for one more.
        WaWaker = "WA_WAKER: the waker's cache has an idle CPU",
        /// `prefer_idler_llc()`: a smaller share of the waker's cache is busy.
        WaIdlerLlcWaker = "WA_IDLER_LLC: the waker's cache is idler",
        /// `prefer_idler_llc()`: a smaller share of prev's cache is busy.
        WaIdlerLlcPrev = "WA_IDLER_LLC: prev's cache is idler",
        /// `wake_affine_idler_llc()`: the waker's CPU or prev is idle, whose cache is asked in this order.
        WaIdlerLlcIdle = "WA_IDLER_LLC: the CPU is idle",
        /// `wake_affine_idler_llc()`: a core of that CPU's cache is known to be idle as a whole.
        WaIdlerLlcCore = "WA_IDLER_LLC: an idle core of its cache",
        /// `wake_affine_weight()`: the waker's CPU has less load.
        WaWeight = "WA_WEIGHT: the waker's CPU has less load",
        /// Nothing spoke for the waker's CPU.
        WakeAffinePrev = "wake_affine: prev",
        /// `select_idle_sibling()`, step 1.
        SisTargetIdle = "select_idle_sibling: target is idle",
        /// Step 2.
        SisPrevIdle = "select_idle_sibling: prev is idle",
        /// Step 4.
        SisRecentIdle = "select_idle_sibling: recently used CPU is idle",
        /// Step 5: an idle CPU of an asymmetric machine.
        SelectIdleCapacity = "select_idle_capacity: idle, fits or the largest",
        /// Step 5: no CPU of an asymmetric machine is idle.
        SelectIdleCapacityNone = "select_idle_capacity: no idle CPU, target",
        /// There is nothing to scan.
        SisNoSharedCache = "select_idle_sibling: no shared cache, target",
        /// `wake_affine_idler_llc()` has counted all CPUs of both caches as busy.
        SisAllBusy = "select_idle_sibling: both caches are busy, target",
        /// Step 6: an idle thread of prev's core, as no core is idle as a whole.
        SelectIdleSmt = "select_idle_smt: idle thread of prev's core",
        /// Up to 5.11, after the scan: an idle thread of the target's core.
        SelectIdleSmtTarget = "select_idle_smt: idle thread of the target's core",
        /// Step 7: a core that is idle as a whole.
        SelectIdleCore = "select_idle_core: idle core of the LLC",
        /// Step 7: no core is idle as a whole any more.
        SelectIdleCoreThread = "select_idle_core: no idle core, first idle thread",
        /// Step 7.
        SelectIdleCpu = "select_idle_cpu: first idle CPU of the LLC scan",
        /// Step 8.
        SisPrevIdleOtherCluster = "select_idle_sibling: prev is idle, other cluster",
        /// Step 9.
        SisRecentIdleOtherCluster = "select_idle_sibling: recently used CPU is idle, other cluster",
        /// Step 10.
        SisNoIdleCpu = "select_idle_sibling: no idle CPU found, target",
        /// Step 7 has looked at no CPU: it may scan 0 of them (SIS_UTIL, SIS_PROP), or the task's mask has none there.
        SisNotSearched = "select_idle_sibling: no CPU of the LLC was looked at, target",
        /// The slow path.
        FindDstCpu = "sched_balance_find_dst_cpu: idlest group and CPU",
        /// DEADLINE: it runs first on prev, or prev has no deadline task, and prev is large enough.
        DlStays = "select_task_rq_dl: prev",
        /// DEADLINE: a CPU without deadline tasks that is large enough, the nearest.
        DlFreeCpu = "find_later_rq: no deadline task there",
        /// DEADLINE: none of those is large enough for the density.
        DlLargestFreeCpu = "find_later_rq: no deadline task there, the largest",
        /// DEADLINE: all CPUs have deadline tasks.
        DlLatestDeadline = "find_later_rq: the latest of the earliest deadlines",
        /// DEADLINE: it would be the earliest nowhere.
        DlNoLaterRq = "find_later_rq: earliest nowhere, prev",
    }
    custom {
        /// A user's placement, in its words.
        Custom
    }
}

rules! {
    /// The outcome of a request for a frequency.
    FrequencyRule {
        /// Another frequency than before.
        Changed = "changed",
        /// The frequency that is set already.
        Unchanged = "unchanged",
        /// schedutil: too soon after the last change.
        RateLimit = "rate limit",
        /// schedutil: a domain's only CPU has not counted an idle call (`idle_calls`) since the last request, so it does not slow
        /// down.
        Held = "held: no idle call of the CPU since the last request",
        /// schedutil: code on a CPU of another domain, where only a domain's own CPUs may change it.
        NotFromHere = "not from a CPU of another domain",
    }
    custom {
        /// A user's governor, in its words.
        Custom
    }
}

rules! {
    /// Why that idle state.
    IdleRule {
        /// teo's gradual utilisation awareness took a share of what teo chose.
        UnusedShare = "teo: the unused share of the CPU",
        /// ladder.
        Ladder = "ladder: as long as the last sleeps",
        /// haltpoll polls.
        HaltpollPoll = "haltpoll: poll first",
        /// haltpoll sleeps.
        HaltpollHalt = "haltpoll: halt",
        /// The reference governor.
        Shallowest = "always the shallowest",
        /// Since 7.3: no governor is asked where there is one state.
        OnlyState = "the only state",
    }
    wraps {
        /// teo.
        Teo(TeoRule),
        /// menu.
        Menu(MenuRule),
    }
    custom {
        /// A user's governor, in its words.
        Custom
    }
}

rules! {
    /// Why teo chose that state.
    TeoRule {
        /// There are fewer than two states.
        NoChoice = "teo: fewer than two states",
        /// All states are disabled: state 0 all the same.
        NoneEnabled = "teo: no state is enabled",
        /// Only one state is enabled.
        OneEnabled = "teo: only one state is enabled",
        /// The deepest enabled state: nothing spoke against it.
        Deepest = "teo: deepest enabled state",
        /// Wakeups before the deeper states' residency prevail: the state that half of them reached.
        Intercepts = "teo: early wakeups prevail",
        /// Early wakeups prevail, but the tick is stopped: no state that pays for less than a tick comes into question.
        TickStopped = "teo: early wakeups prevail, but the tick is stopped: deep all the same",
        /// A deeper state would take too long to leave.
        LatencyLimit = "teo: latency limit",
        /// The next timer comes before the residency of a deeper state.
        Timer = "teo: next timer comes before a deeper state's residency",
        /// The CPU is utilised: a shallower state, in favour of latency.
        Utilised = "teo: the CPU is utilised",
        /// The tick goes on and comes before the residency of a deeper state.
        Tick = "teo: the tick goes on and comes before a deeper state's residency",
        /// The tick is stopped and the timer far away: the deepest state that pays, in place of a shallow one.
        NotStuck = "teo: deeper, not to be stuck without tick",
    }
}

rules! {
    /// Why teo lets the tick stop, or not.
    TickRule {
        /// A sleep of a tick or more is expected: may stop.
        LongSleep = "a sleep of a tick or more is expected",
        /// It is stopped already and may remain so.
        AlreadyStopped = "it is stopped already",
        /// The next timer, or the residency of the only state, is less than a tick away: keep.
        ShortSleep = "less than a tick until the next timer or expected wakeup",
        /// The chosen state spins: keep.
        Polling = "the state spins",
        /// Most wakeups come before a tick has passed: keep.
        Intercepts = "most wakeups come before a tick has passed",
        /// A short stay is expected and the timers were not looked at, or not for this: keep.
        Shallow = "a short stay is expected, whatever the timers say",
    }
}

rules! {
    /// Why menu chose that state.
    MenuRule {
        /// There are fewer than two states.
        NoChoice = "menu: fewer than two states",
        /// All states are disabled: state 0 all the same.
        NoneEnabled = "menu: no state is enabled",
        /// The next timer comes before state 1 pays.
        TimerTooSoon = "menu: next timer comes before state 1 pays",
        /// A deeper state would take too long to leave.
        LatencyLimit = "menu: latency limit",
        /// Before 6.6: a deeper state would take longer to leave than the CPU is expected to sleep, or than
        /// an eleventh (21st, ...) of that with one (two, ...) I/O waiters.
        Interactivity = "menu: a deeper state takes too long to leave for this sleep",
        /// The deepest state that pays within the typical interval.
        Typical = "menu: typical interval",
        /// The deepest state that pays within the corrected time to the next timer.
        Timer = "menu: next timer by its correction factor",
        /// The tick is stopped, so the CPU may sleep long: the deepest state that pays until the next timer.
        TickStopped = "menu: next timer, as the tick is stopped",
        /// The tick is stopped and the state would be shallow: the next deeper one, which pays.
        NotStuck = "menu: deeper, not to be stuck without tick",
        /// A state that sleeps, as the predicted one spins.
        NoPolling = "menu: sleep rather than poll",
        /// The tick goes on and comes before the residency of a deeper state.
        Tick = "menu: the tick goes on and comes before a deeper state's residency",
    }
}

rules! {
    /// Why a pass of load balancing ended as it did.
    BalanceRule {
        /// Another CPU balances this domain.
        NotResponsible = "should_we_balance: another CPU of the group does",
        /// No group has a task to give away.
        NobodyToPull = "find_src_group: nobody has a task to pull",
        /// The busiest group is busier, but there is nothing that moving would improve.
        NoImbalance = "calculate_imbalance: none",
        /// A task of the busiest group does not fit its CPU.
        Misfit = "find_src_group: misfit task",
        /// Energy-aware placement is in charge.
        EasPlaces = "find_src_group: EAS places tasks, not overutilized",
        /// The destination is preferred to the busiest group's CPUs.
        AsymPacking = "find_src_group: asymmetric packing",
        /// A core without siblings relieves one whose threads share it.
        SmtBalance = "find_src_group: threads share a core there, not here",
        /// Affinity keeps the busiest group from balancing itself.
        ImbalancedByAffinity = "find_src_group: imbalanced by affinity",
        /// The local group is busier.
        LocalBusier = "find_src_group: the local group is busier",
        /// Both groups are overloaded, the local one more.
        LocalMoreLoad = "find_src_group: the local group has more load",
        /// Both groups are overloaded, and the local one more than the domain is.
        LocalAboveAverage = "find_src_group: the local group has more load than the average",
        /// Both groups are overloaded about equally.
        WithinImbalancePct = "find_src_group: load differs by less than imbalance_pct",
        /// The local group has fewer tasks than its sibling.
        SiblingsHaveFewer = "find_src_group: siblings have fewer tasks",
        /// The busiest group has tasks that prefer the last-level cache here.
        LlcBalance = "find_src_group: tasks prefer the cache here",
        /// A busy CPU leaves a group that is not overloaded alone.
        LeaveToIdle = "find_src_group: not overloaded, leave it to an idle CPU",
        /// The local group has no more idle CPUs than the busiest.
        AsManyIdle = "find_src_group: as many idle CPUs",
        /// The busiest group's only task runs.
        NobodyWaits = "find_src_group: nobody waits",
        /// The local group has more idle CPUs.
        MoreIdleHere = "find_src_group: more idle CPUs here",
        /// The busiest group is overloaded.
        Overloaded = "find_src_group: overloaded",
        /// No queue of the busiest group is worth pulling from.
        NoQueue = "find_src_rq: no queue to pull from",
        /// No task may run on the destination.
        AllPinned = "all tasks are pinned",
        /// The source's running task is to be pushed, and may not run on the destination.
        ActivePinned = "active balance: the running task is pinned",
        /// The source's running task is pushed: too many passes have failed.
        ActiveFailed = "active balance: failed too often",
        /// The source's running task is pushed: interrupts and other classes take much of its CPU.
        ActiveReducedCapacity = "active balance: the source's capacity is reduced",
        /// The source's running task is pushed: the destination is preferred.
        ActiveAsymPacking = "active balance: asymmetric packing",
        /// The source's running task is pushed: it does not fit its CPU.
        ActiveMisfit = "active balance: misfit",
        /// The source's running task is pushed: it prefers the destination's last-level cache.
        ActiveLlcBalance = "active balance: it prefers the cache there",
    }
}

rules! {
    /// Why a waking fair task preempts the running one, or not.
    PreemptionRule {
        /// The running task gives way anyway.
        ReschedulePending = "a reschedule is already pending",
        /// The waking task's group has used up its `cpu.max`.
        Throttled = "its group is throttled by cpu.max",
        /// The feature is off.
        FeatureOff = "WAKEUP_PREEMPTION is off",
        /// The running task is `SCHED_IDLE`, the waking one is not.
        IdleGivesWay = "SCHED_IDLE gives way",
        /// The waking task is `SCHED_IDLE`, the running one is not.
        IdleDoesNotPreempt = "SCHED_IDLE does not preempt",
        /// Only `SCHED_NORMAL` preempts.
        BatchDoesNotPreempt = "SCHED_BATCH and SCHED_IDLE do not preempt",
        /// EEVDF: a shorter slice broke the running task's protection.
        PreemptShort = "PREEMPT_SHORT: shorter slice, earliest eligible deadline",
        /// EEVDF of 7.3: so did a shorter slice that is eligible, though another task would be picked.
        PreemptShortEligible = "PREEMPT_SHORT: shorter slice, eligible",
        /// EEVDF of 7.3: a new task waits.
        ForkDoesNotPreempt = "a new task does not preempt",
        /// EEVDF of 7.3: the task is not eligible and about to leave.
        DelayedDoesNotPreempt = "its dequeue is delayed",
        /// EEVDF: the waking task would be picked.
        EarliestDeadline = "earliest eligible deadline",
        /// EEVDF: it would not.
        NotEarliestDeadline = "not the earliest eligible deadline",
        /// EEVDF: the running task would be picked, as its slice is protected (`RUN_TO_PARITY`).
        SliceProtected = "RUN_TO_PARITY: curr's slice is protected",
        /// CFS: far enough behind.
        Behind = "behind by more than wakeup_granularity",
        /// CFS: not far enough behind.
        BehindTooLittle = "behind by less than wakeup_granularity",
        /// CFS: ahead of the running task.
        NotBehind = "not behind",
    }
}

rules! {
    /// Why that task runs next.
    PickRule {
        /// Nothing is runnable.
        Idle = "nothing is runnable",
        /// The stopper has work, and comes before all others.
        Stop = "stop class: the stopper has work",
        /// The earliest deadline of the DEADLINE class.
        Deadline = "DEADLINE: earliest deadline",
        /// The head of the highest priority's list.
        Rt = "RT: first of the highest priority",
        /// The only entity of its queue.
        OnlyEntity = "only entity of the queue",
        /// EEVDF: the next buddy, which is eligible.
        NextBuddyEligible = "pick_next_entity: next buddy, eligible",
        /// EEVDF: the running entity's slice is protected.
        RunToParity = "pick_eevdf: RUN_TO_PARITY, curr's slice is protected",
        /// EEVDF: the running entity has the earliest deadline of all that are eligible.
        CurrEarliestDeadline = "pick_eevdf: curr has the earliest eligible deadline",
        /// EEVDF: a waiting entity has the earliest deadline of all that are eligible.
        EarliestDeadline = "pick_eevdf: earliest eligible deadline",
        /// CFS: a wakee that has preempted, or whom a task yielded to.
        NextBuddy = "pick_next_entity: next buddy",
        /// CFS: the task that a wakee has preempted.
        LastBuddy = "pick_next_entity: last buddy",
        /// CFS: the second, since the first has yielded.
        AfterSkipBuddy = "pick_next_entity: second, the first has yielded",
        /// CFS: the smallest virtual runtime.
        SmallestVruntime = "pick_next_entity: smallest vruntime",
        /// sched_ext: the running task has slice left.
        ExtKeepPrev = "scx: prev has slice left",
        /// sched_ext: something waits in the CPU's local DSQ.
        ExtLocal = "scx: head of the local DSQ",
        /// sched_ext: something waits in the node's global DSQ.
        ExtGlobal = "scx: from the global DSQ",
        /// sched_ext: the scheduler is bypassed, and something waits in the CPU's queue for that.
        ExtBypass = "scx: from the bypass DSQ",
        /// sched_ext: `ops.dispatch()` has inserted something into the local DSQ.
        ExtDispatch = "scx: inserted by ops.dispatch()",
        /// sched_ext: `ops.dispatch()` has moved something from a user DSQ.
        ExtMoved = "scx: moved from a user DSQ by ops.dispatch()",
        /// sched_ext: `ops.dispatch()` has given the running task a slice.
        ExtSlice = "scx: ops.dispatch() gave prev a slice",
        /// sched_ext: there is nothing else, so the running task gets a new slice.
        ExtKeepLast = "scx: nothing else, prev goes on",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn texts() -> Vec<&'static str> {
        let mut all = Vec::new();
        all.extend(PlacementRule::OWN.iter().map(|rule| rule.text()));
        all.extend(FrequencyRule::OWN.iter().map(|rule| rule.text()));
        all.extend(IdleRule::OWN.iter().map(|rule| rule.text()));
        all.extend(TeoRule::OWN.iter().map(|rule| IdleRule::Teo(*rule).text()));
        all.extend(MenuRule::OWN.iter().map(|rule| IdleRule::Menu(*rule).text()));
        all.extend(BalanceRule::OWN.iter().map(|rule| rule.text()));
        all.extend(PreemptionRule::OWN.iter().map(|rule| rule.text()));
        all.extend(PickRule::OWN.iter().map(|rule| rule.text()));
        all
    }

    /// A record is read by its texts: two rules with one text could not be told apart.
    #[test]
    fn no_two_rules_have_one_text() {
        let all = texts();
        let distinct: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len());
        assert!(!distinct.contains(""));
    }

    #[test]
    fn users_rules_speak_for_themselves() {
        assert_eq!(IdleRule::Custom("coin: heads").to_string(), "coin: heads");
        assert_eq!(PlacementRule::Custom("packs").text(), "packs");
        assert_eq!(FrequencyRule::Custom("ondemand: up").text(), "ondemand: up");
    }
}
