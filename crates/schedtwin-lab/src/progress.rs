// SPDX-License-Identifier: GPL-2.0-or-later
//! The progress of many runs: the runs count it, and a progress bar reads it. It also keeps which
//! runs panicked, so that no
//! command can end without saying so.
//!
//! Progress only reports; nothing that is computed depends on it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use schedtwin_engine::result::RunResult;
use schedtwin_types::Ns;

use crate::compare::Subject;
use crate::crash::{self, Crash};

/// A run under way: simulated ns so far, and the whole duration where it is known.
type Active = (Arc<AtomicU64>, Option<Ns>);

/// Counters of a piece of work, shared between its runs and a watcher.
///
/// ```
/// let progress = schedtwin_lab::Progress::new();
/// progress.expect_runs(20);
/// assert_eq!((progress.done_runs(), progress.expected_runs()), (0, 20));
/// assert_eq!(progress.fraction(), 0.0);
/// ```
#[derive(Debug, Default)]
pub struct Progress {
    expected: AtomicU64,
    done: AtomicU64,
    /// Runs under way, by start number.
    active: Mutex<BTreeMap<u64, Active>>,
    started: AtomicU64,
    crashes: Mutex<Vec<Crash>>,
    cancelled: AtomicBool,
    written: Arc<AtomicU64>,
    listener: Option<Listener>,
}

/// Somebody who is told of each completed run.
struct Listener(Box<dyn Fn(&Progress) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl Progress {
    /// Nothing expected, nothing done.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Calls `listener` after each completed run, on the thread that performed it: for a program without a second thread to watch.
    pub fn told_to(listener: impl Fn(&Progress) + Send + Sync + 'static) -> Progress {
        Progress { listener: Some(Listener(Box::new(listener))), ..Progress::default() }
    }

    /// Announces further runs.
    pub fn expect_runs(&self, runs: u64) {
        self.expected.fetch_add(runs, Ordering::Relaxed);
    }

    /// Runs announced so far.
    pub fn expected_runs(&self) -> u64 {
        self.expected.load(Ordering::Relaxed)
    }

    /// Runs completed.
    pub fn done_runs(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// The completed share of what is announced, 0 to 1; runs under way count by simulated time
    /// where their duration is known.
    pub fn fraction(&self) -> f64 {
        let active = self.active();
        let partial: f64 = active
            .values()
            .filter_map(|(simulated, duration)| {
                let duration = duration.filter(|d| *d > 0)?;
                Some((simulated.load(Ordering::Relaxed) as f64 / duration as f64).min(1.0))
            })
            .sum();
        let expected = self.expected_runs().max(1) as f64;
        ((self.done_runs() as f64 + partial) / expected).min(1.0)
    }

    /// Performs one run; `run` stores the simulated time so far into the counter it is given.
    pub fn one_run<T>(&self, duration: Option<Ns>, run: impl FnOnce(Arc<AtomicU64>) -> T) -> T {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let simulated = Arc::new(AtomicU64::new(0));
        self.active().insert(number, (simulated.clone(), duration));
        let result = run(simulated);
        self.active().remove(&number);
        self.done.fetch_add(1, Ordering::Relaxed);
        if let Some(Listener(tell)) = &self.listener {
            tell(self);
        }
        result
    }

    /// The size of the files that a run under way writes, bytes: the run stores it.
    pub fn written(&self) -> Arc<AtomicU64> {
        self.written.clone()
    }

    /// Begins no further run: [`Progress::attempt`] fails from now on.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether that was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// So many runs are complete, as another process with a copy of this has counted.
    pub fn done_elsewhere(&self, runs: u64) {
        self.done.fetch_max(runs.min(self.expected_runs()), Ordering::Relaxed);
    }

    /// Runs that panicked in another process.
    pub fn crashed_elsewhere(&self, crashes: Vec<Crash>) {
        let mut known = self.crashes.lock().expect("nobody panics while adding one");
        for crash in crashes {
            if !known.contains(&crash) {
                known.push(crash);
            }
        }
    }

    /// Performs one run of a subject. A run that panics is kept among the crashes, too.
    pub fn attempt<S: Subject + ?Sized>(
        &self,
        subject: &S,
        seed: u64,
    ) -> io::Result<Result<RunResult, Crash>> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "it was cancelled"));
        }
        let done = self.one_run(subject.duration(), |simulated| {
            crash::caught(|| subject.run(seed, simulated))
        });
        match done {
            Ok(result) => result.map(Ok),
            Err(message) => {
                let (kernel, command) = (subject.name().to_string(), subject.command(seed));
                let crash = Crash { seed, kernel, message, command };
                self.crashes.lock().expect("nobody panics while adding one").push(crash.clone());
                Ok(Err(crash))
            }
        }
    }

    /// The runs that panicked so far, in an order that does not depend on the threads.
    pub fn crashes(&self) -> Vec<Crash> {
        let mut crashes = self.crashes.lock().expect("nobody panics while adding one").clone();
        crashes.sort();
        crashes
    }

    fn active(&self) -> MutexGuard<'_, BTreeMap<u64, Active>> {
        self.active.lock().expect("no run panics while it holds the list")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_under_way_counts_by_its_simulated_time() {
        let progress = Progress::new();
        progress.expect_runs(2);
        progress.one_run(Some(1000), |simulated| {
            simulated.store(500, Ordering::Relaxed);
            assert_eq!(progress.fraction(), 0.25);
            simulated.store(5000, Ordering::Relaxed);
            assert_eq!(progress.fraction(), 0.5, "an overshooting run counts as one");
        });
        assert_eq!((progress.fraction(), progress.done_runs()), (0.5, 1));
        progress.one_run(None, |_| assert_eq!(progress.fraction(), 0.5));
        assert_eq!(progress.fraction(), 1.0);
    }

    #[test]
    fn a_listener_hears_of_each_run() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let list = heard.clone();
        let progress = Progress::told_to(move |progress| {
            list.lock().unwrap().push((progress.done_runs(), progress.expected_runs()));
        });
        progress.expect_runs(2);
        progress.one_run(None, |_| ());
        progress.one_run(None, |_| ());
        assert_eq!(*heard.lock().unwrap(), [(1, 2), (2, 2)]);
    }
}
