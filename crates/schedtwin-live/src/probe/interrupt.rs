// SPDX-License-Identifier: GPL-2.0-or-later
//! Cost of waking a thread on another CPU: what the sender pays, and when the thread runs.
//!
//! A reader sleeps in `read()` of an eventfd. The sender lets 200 µs pass, spinning, and writes. On an idle CPU that takes
//! an interrupt and the end of an idle state; on one that a SCHED_IDLE thread keeps awake it takes the interrupt alone, and
//! the reader preempts that thread at once. The difference until the reader runs is the idle state's exit.
//!
//! ```text
//! sender   |-- 200 µs --|write()|                      write(): the wakeup, queueing, the interrupt's sending
//! reader                    ...|runs                   from before write() until its clock is read
//! ```
//!
//! Differences: 200 µs tell the governor a length of idle time of its own; deeper states than it chooses for that are not
//! seen. A CPU that polls while idle gets no interrupt, and looks like one that is awake.

use super::pinned::{Line, on_two, pin};
use super::{Effort, Quantity, Sample, Samples};
use crate::runner::clock::{CLOCK, now};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::retry_on_intr;
use schedtwin_types::{Ns, Policy, SchedAttr};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// Time that the reader has to fall asleep, and its CPU to become idle.
const PAUSE: Ns = 200_000;

/// Measures with a reader on an idle CPU, and a `write()` that nobody reads.
pub(super) fn of_idle_cpu(cpus: [usize; 2], effort: &Effort) -> io::Result<Samples> {
    let [write, runs, alone] = measure(cpus, effort)?;
    Ok(vec![
        (Quantity::WriteIdle, write),
        (Quantity::RunsIdle, runs),
        (Quantity::WriteAlone, alone),
    ])
}

/// Measures with a reader on a CPU that a [`Spinner`] keeps awake.
pub(super) fn of_awake_cpu(cpus: [usize; 2], effort: &Effort) -> io::Result<Samples> {
    let [write, runs, _] = measure(cpus, effort)?;
    Ok(vec![(Quantity::WriteAwake, write), (Quantity::RunsAwake, runs)])
}

#[derive(Debug)]
struct Shared {
    read: OwnedFd,
    unread: OwnedFd,
    /// Time at which the reader ran; 0: not yet.
    ran_at: Line<AtomicU64>,
}

/// Times, ns: of the `write()` that wakes, until the reader runs, of a `write()` that nobody reads.
fn measure(cpus: [usize; 2], effort: &Effort) -> io::Result<[Sample; 3]> {
    let wakeups = effort.share(100);
    let wakeups_in_all = effort.batches_in_all() * wakeups;
    let make = || {
        Ok(Shared {
            read: eventfd(0, EventfdFlags::CLOEXEC)?,
            unread: eventfd(0, EventfdFlags::CLOEXEC)?,
            ran_at: Line::default(),
        })
    };
    let follow = |shared: &Shared| {
        for _ in 0..wakeups_in_all {
            let mut count = [0; 8];
            let got = retry_on_intr(|| rustix::io::read(&shared.read, &mut count));
            let ran_at = now(CLOCK);
            assert_eq!(got, Ok(8), "nobody closes it");
            shared.ran_at.store(ran_at, Ordering::Release);
        }
    };
    let lead = |shared: &Shared| {
        effort.repeat(|| {
            let mut times: [Vec<f64>; 3] = Default::default();
            for _ in 0..wakeups {
                shared.ran_at.store(0, Ordering::Relaxed);
                let until = now(CLOCK) + PAUSE;
                while now(CLOCK) < until {}
                let began = now(CLOCK);
                write(&shared.unread);
                let between = now(CLOCK);
                write(&shared.read);
                let ended = now(CLOCK);
                let ran_at = loop {
                    match shared.ran_at.load(Ordering::Acquire) {
                        0 => {}
                        ran_at => break ran_at,
                    }
                };
                let of_each = [ended - between, ran_at.saturating_sub(between), between - began];
                for (times, ns) in times.iter_mut().zip(of_each) {
                    times.push(ns as f64);
                }
            }
            times.map(|times| Sample::of(times).median())
        })
    };
    on_two(cpus, make, lead, follow)
}

fn write(event: &OwnedFd) {
    let wrote = retry_on_intr(|| rustix::io::write(event, &1_u64.to_ne_bytes()));
    assert_eq!(wrote, Ok(8), "its counter is far from full");
}

/// A thread of SCHED_IDLE that keeps a CPU awake until it is dropped.
#[derive(Debug)]
pub(super) struct Spinner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    pub(super) fn start(cpu: usize) -> io::Result<Spinner> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let told = stop.clone();
        let thread = thread::Builder::new().spawn(move || {
            let idle = SchedAttr { policy: Policy::Idle, ..SchedAttr::default() };
            let set = pin(cpu).and_then(|()| schedtwin_attributes::set_exactly(0, &idle));
            let can_spin = set.is_ok();
            let _ = ready.send(set);
            while can_spin && !told.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })?;
        // From here on an error drops it, which ends the thread.
        let spinner = Spinner { stop, thread: Some(thread) };
        is_ready.recv().map_err(io::Error::other)??;
        Ok(spinner)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
