//! What the two forms of load balancing differ in.
//!
//! They share nearly all lines, so a form is a list of answers, and each question is asked where it
//! matters: `if self.config.balance.form().misfit_counts_as_failure { .. }`.
//!
//! An example. Two caches of four CPUs, one with three running tasks, the other with one. Both forms move
//! one over, since the domain below prefers siblings; but 6.12 leaves it to an idle CPU to do so, while
//! in 6.1 a busy one may as well.
//!
//! Kernel: 6.1.192 and 6.12.95 kernel/sched/fair.c.
//! Differences: what lies between the two (6.2 to 6.11) came in steps and is not modelled. 5.18 is taken
//! to be 6.1.192, but had no group_misfit_task for CPUs whose capacity other classes take on machines
//! without asymmetric capacities (6.0), and told `adjust_numa_imbalance` apart from its threshold (6.0).

use crate::config::Balance;

/// Answers to the questions in which the forms differ.
pub(crate) struct BalanceForm {
    /// Whether siblings share tasks out evenly is asked of the domain below the pass's own one, not of
    /// the one below the busiest group.
    pub child_prefers_sibling: bool,
    /// The excess of a sibling's tasks is in proportion to the cores of both, and counts for idle CPUs
    /// only; else it is the plain difference.
    pub excess_in_proportion: bool,
    /// A group of bigger CPUs without waiting tasks is left alone in any case; else only if it is of the
    /// same type as the busiest so far.
    pub spares_bigger_first: bool,
    /// Of fully busy groups the last one counts as the busiest; else the first.
    pub last_fully_busy: bool,
    /// Of groups with equal misfits the last one counts as the busiest; else the first.
    pub last_misfit: bool,
    /// A misfit that could not be pulled makes `nr_balance_failed` grow, and a pass that looked for one
    /// the interval.
    pub misfit_counts_as_failure: bool,
    /// A misfit on the biggest CPU is no reason to kick an idle one, unless its capacity is reduced.
    pub kicks_for_bigger_only: bool,
    /// A CPU that has run out of fair tasks balances also while tasks of a higher class wait for it (6.12).
    pub newidle_beside_higher: bool,
    /// Wakeups look for an idle CPU in the target's cluster first (6.8 and later).
    pub wakeups_know_clusters: bool,
}

static V6_1: BalanceForm = BalanceForm {
    child_prefers_sibling: true,
    excess_in_proportion: false,
    spares_bigger_first: true,
    last_fully_busy: false,
    last_misfit: true,
    misfit_counts_as_failure: true,
    kicks_for_bigger_only: true,
    newidle_beside_higher: false,
    wakeups_know_clusters: false,
};

static V6_12: BalanceForm = BalanceForm {
    child_prefers_sibling: false,
    excess_in_proportion: true,
    spares_bigger_first: false,
    last_fully_busy: true,
    last_misfit: false,
    misfit_counts_as_failure: false,
    kicks_for_bigger_only: false,
    newidle_beside_higher: true,
    wakeups_know_clusters: true,
};

impl Balance {
    /// The answers of this form.
    #[inline]
    pub(crate) fn form(self) -> &'static BalanceForm {
        match self {
            Balance::V6_1 => &V6_1,
            Balance::V6_12 => &V6_12,
        }
    }
}
