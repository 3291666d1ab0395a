// SPDX-License-Identifier: GPL-2.0-or-later
//! Deliveries under way in devices: answers from outside of the CPUs, each after a time of its own.
//!
//! Unlike a GPU, which does one thing after the other, a network does all at once. One interrupt delivers all that has
//! come by then, as a network driver's poll does.

use super::script::Delivery;
use schedtwin_types::{NEVER, Ns};
use std::collections::VecDeque;

/// The most deliveries under way: enough for each user and each query of any script.
const UNDER_WAY_MAX: usize = 1 << 16;

/// Deliveries by their moment; those of one moment in the order in which they were asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Deliveries {
    under_way: VecDeque<(Ns, Delivery)>,
}

impl Deliveries {
    /// # Panics
    /// If more is under way than a script should have.
    pub fn push(&mut self, at: Ns, delivery: Delivery) {
        assert!(self.under_way.len() < UNDER_WAY_MAX, "a device has more to deliver than it can");
        let place = self.under_way.partition_point(|(other, _)| *other <= at);
        self.under_way.insert(place, (at, delivery));
    }

    /// When the next is due.
    pub fn next_at(&self) -> Ns {
        self.under_way.front().map_or(NEVER, |(at, _)| *at)
    }

    /// The next, if it is due.
    pub fn pop(&mut self, now: Ns) -> Option<Delivery> {
        let due = self.next_at() <= now;
        if due { self.under_way.pop_front().map(|(_, delivery)| delivery) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::Flag;
    use super::*;

    #[test]
    fn what_is_due_comes_in_order() {
        let delivery = |flag| Delivery { flag: Flag(flag), moment: None };
        let mut deliveries = Deliveries::default();
        for (at, flag) in [(30, 0), (10, 1), (20, 2), (10, 3)] {
            deliveries.push(at, delivery(flag));
        }
        assert_eq!((deliveries.next_at(), deliveries.pop(9)), (10, None));
        let mut due = Vec::new();
        while let Some(delivery) = deliveries.pop(20) {
            due.push(delivery.flag.0);
        }
        assert_eq!((due, deliveries.next_at()), (vec![1, 3, 2], 30));
    }
}
