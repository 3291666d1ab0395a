// SPDX-License-Identifier: GPL-2.0-or-later
//! A bar with an ETA on stderr, for work that takes more than a second and has somebody watching; a line now and then where
//! nobody does.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use schedtwin_engine::worker;
use schedtwin_lab::Progress;

use crate::output::tell;

/// Work that is done sooner shows nothing.
const APPEARS_AFTER: Duration = Duration::from_secs(1);

/// The time between two drawings.
const PERIOD: Duration = Duration::from_millis(100);

/// The time between two lines that tell of it where stderr is no terminal: a log, a pipe.
const PERIOD_OF_LINES: Duration = Duration::from_secs(20);

/// Steps of the bar: finer than a wide terminal shows.
const STEPS: u64 = 10_000;

/// Watches a [`Progress`] until it is dropped.
pub struct Bar {
    /// Dropping it ends the thread. `None` when nothing is drawn.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bar {
    /// Starts to watch, unless `quiet`. A worker tells its supervisor, which knows whether stderr is a terminal.
    pub fn watch(progress: &Arc<Progress>, quiet: bool) -> Bar {
        if quiet {
            return Bar { stop: None, thread: None };
        }
        let (stop, stopped) = mpsc::channel::<()>();
        let (progress, started) = (progress.clone(), Instant::now());
        let lines = !(io::stderr().is_terminal() || worker::is_worker());
        let watch = move || {
            if lines {
                while stopped.recv_timeout(PERIOD_OF_LINES) == Err(RecvTimeoutError::Timeout) {
                    tell(State::of(&progress, started.elapsed()).message().trim_start());
                }
                return;
            }
            if stopped.recv_timeout(APPEARS_AFTER) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let mut drawn = Drawn::new();
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let state = State::of(&progress, started.elapsed());
                match worker::is_worker() {
                    true => worker::progress(&state.bytes()),
                    false => drawn.show(&state),
                }
            }
            drawn.clear();
            worker::progress(&[]);
        };
        // Without a thread nothing is drawn.
        let thread = std::thread::Builder::new().spawn(watch).ok();
        Bar { stop: Some(stop), thread }
    }
}

/// How far the work is.
struct State {
    /// In [`STEPS`].
    position: u64,
    done: u64,
    expected: u64,
    written: u64,
    elapsed_ms: u64,
}

impl State {
    fn of(progress: &Progress, elapsed: Duration) -> State {
        State {
            position: (progress.fraction() * STEPS as f64) as u64,
            done: progress.done_runs(),
            expected: progress.expected_runs(),
            written: progress.written().load(Ordering::Relaxed),
            elapsed_ms: elapsed.as_millis() as u64,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let State { position, done, expected, written, elapsed_ms } = *self;
        [position, done, expected, written, elapsed_ms]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    fn read(bytes: &[u8]) -> Option<State> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let [position, done, expected, written, elapsed_ms] = numbers[..] else { return None };
        Some(State { position: position.min(STEPS), done, expected, written, elapsed_ms })
    }

    /// `13%  52/400 runs  ETA 8s`. The ETA assumes that the rest goes as what is done: runs are alike.
    fn message(&self) -> String {
        let fraction = self.position as f64 / STEPS as f64;
        let eta = match fraction {
            ..0.001 => "ETA unknown".to_string(),
            _ => {
                let elapsed_s = self.elapsed_ms as f64 / 1e3;
                format!("ETA {:.0}s", elapsed_s * (1.0 - fraction) / fraction)
            }
        };
        let written = match self.written {
            0 => String::new(),
            bytes => format!("  {} written", ByteSize::b(bytes).display().si()),
        };
        let (done, expected) = (self.done, self.expected);
        format!("{:>3.0}%  {done}/{expected} runs{written}  {eta}", 100.0 * fraction)
    }
}

/// The bar on the terminal, from its first drawing on.
pub struct Drawn(Option<ProgressBar>);

impl Drawn {
    /// Nothing is drawn yet.
    pub fn new() -> Drawn {
        Drawn(None)
    }

    /// Draws what a worker tells; nothing: it has ended.
    pub fn draw(&mut self, bytes: &[u8]) {
        match State::read(bytes) {
            Some(state) if io::stderr().is_terminal() => self.show(&state),
            _ => self.clear(),
        }
    }

    fn show(&mut self, state: &State) {
        let bar = self.0.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{bar:40} {msg}")
                .expect("the template is well formed");
            ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr())
                .with_style(style)
        });
        bar.set_message(state.message());
        bar.set_position(state.position);
    }

    fn clear(&mut self) {
        if let Some(bar) = self.0.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A bar that failed to draw must not fail the work.
            let _ = thread.join();
        }
    }
}
