// SPDX-License-Identifier: GPL-2.0-or-later
//! Devices of models that interrupt CPUs: a GPU that does one thing after the other, a network that answers.
//!
//! *Deliveries* are answers from outside of the CPUs, each after a time of its own.
//! Unlike a GPU, which does one thing after the other, a network does all at once. One interrupt delivers all that has
//! come by then, as a network driver's poll does.
//!
//! Difference: a device takes as many things to do as it is given, up to [`QUEUE_MAX`].

use super::Interpreter;
use super::code::{AmountId, Device, Flag, Queue};
use schedtwin_types::{CpuId, FutexId, NEVER, Ns};
use std::collections::VecDeque;

/// Things that a device can have to do.
const QUEUE_MAX: usize = 64;
/// The most deliveries under way: enough for each user and each query of any script.
const UNDER_WAY_MAX: usize = 1 << 16;

/// The semaphore that a device posts when it interrupts, and the queue that gets the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The semaphore that its handler posts.
    pub flag: Flag,
    /// Where the moment of the interrupt goes.
    pub moment: Option<Queue>,
}

/// A device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceCode {
    /// The CPU that its interrupt goes to.
    pub cpu: CpuId,
    /// The semaphores that its handler posts.
    pub posts: Vec<Flag>,
    /// When it comes again by itself.
    pub again: Option<AmountId>,
}

/// A device in a run.
#[derive(Clone, Debug)]
pub(super) struct DeviceState {
    /// When it will be through with each thing.
    due: VecDeque<Ns>,
    deliveries: Deliveries,
}

impl DeviceState {
    pub(super) fn new() -> DeviceState {
        let due = VecDeque::with_capacity(QUEUE_MAX);
        DeviceState { due, deliveries: Deliveries::default() }
    }

    /// When it interrupts next.
    pub(super) fn at(&self) -> Ns {
        self.due.front().copied().unwrap_or(NEVER).min(self.deliveries.next_at())
    }
}

impl Interpreter {
    /// Starts devices: those that come by themselves come for the first time after a part of their gap.
    pub(super) fn start_devices(&mut self, now: Ns) {
        let code = self.code.clone();
        for (device, after, delivery) in &code.arrivals {
            self.devices[usize::from(device.0)].deliveries.push(now + after, *delivery);
        }
        for (device, of) in code.devices.iter().enumerate() {
            self.comes_again(device, of.again, now);
        }
        self.devices_changed = true;
    }

    fn comes_again(&mut self, device: usize, again: Option<AmountId>, now: Ns) {
        if let Some(again) = again {
            let gap = self.amount(again).max(1);
            self.devices[device].due.push_back(now + gap);
        }
    }

    /// Gives a device something to do.
    pub(super) fn start_device(&mut self, device: Device, begin: Ns, work: Ns) {
        let due = &mut self.devices[usize::from(device.0)].due;
        assert!(due.len() < QUEUE_MAX, "a device has more to do than it can remember");
        let free = due.back().copied().unwrap_or(0).max(begin);
        due.push_back(free + work);
        self.devices_changed = true;
    }

    /// Has a device deliver at a moment.
    pub(super) fn deliver_at(&mut self, device: Device, at: Ns, delivery: Delivery) {
        self.devices[usize::from(device.0)].deliveries.push(at, delivery);
        self.devices_changed = true;
    }

    /// Handles the interrupt of a model's device: hands over what has come, and posts if the device is through with something.
    pub(super) fn model_interrupt(&mut self, device: usize, now: Ns, wakes: &mut Vec<FutexId>) {
        self.devices_changed = true;
        let is_through = self.devices[device].due.front().is_some_and(|due| *due <= now);
        while let Some(Delivery { flag, moment }) = self.devices[device].deliveries.pop(now) {
            if let Some(Queue(queue)) = moment {
                self.queues[queue as usize].push_back(now);
            }
            self.posted_by_device(flag, now, wakes);
        }
        if !is_through {
            return;
        }
        self.devices[device].due.pop_front();
        let code = self.code.clone();
        self.comes_again(device, code.devices[device].again, now);
        for flag in &code.devices[device].posts {
            self.posted_by_device(*flag, now, wakes);
        }
    }

    fn posted_by_device(&mut self, flag: Flag, now: Ns, wakes: &mut Vec<FutexId>) {
        if self.semaphores[flag.0 as usize].post(now) {
            wakes.push(self.semaphore_futex(flag.0));
        }
    }
}

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
