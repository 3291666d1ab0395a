// SPDX-License-Identifier: GPL-2.0-or-later
//! A bar with an ETA on stderr, for work that takes more than a second and has somebody watching.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use schedtwin_lab::Progress;

/// Work that is done sooner shows nothing.
const APPEARS_AFTER: Duration = Duration::from_secs(1);

/// How often it is redrawn.
const PERIOD: Duration = Duration::from_millis(100);

/// Steps of the bar: finer than a wide terminal shows.
const STEPS: u64 = 10_000;

/// Watches a [`Progress`] until it is dropped.
pub struct Bar {
    /// Dropping it ends the thread. `None` when nothing is drawn.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bar {
    /// Starts to watch, unless `quiet` or stderr is no terminal.
    pub fn watch(progress: &Arc<Progress>, quiet: bool) -> Bar {
        if quiet || !io::stderr().is_terminal() {
            return Bar { stop: None, thread: None };
        }
        let (stop, stopped) = mpsc::channel::<()>();
        let (progress, started) = (progress.clone(), Instant::now());
        let thread = std::thread::spawn(move || {
            if stopped.recv_timeout(APPEARS_AFTER) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let style = ProgressStyle::with_template("{bar:40} {msg}")
                .expect("the template is well formed");
            let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr())
                .with_style(style);
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                bar.set_message(message(&progress, started.elapsed()));
                bar.set_position((progress.fraction() * STEPS as f64) as u64);
            }
            bar.finish_and_clear();
        });
        Bar { stop: Some(stop), thread: Some(thread) }
    }
}

/// `13%  52/400 runs  ETA 8s`. The ETA assumes that the rest goes as what is done: runs are alike.
fn message(progress: &Progress, elapsed: Duration) -> String {
    let fraction = progress.fraction();
    let eta = match fraction {
        ..0.001 => "ETA unknown".to_string(),
        _ => format!("ETA {:.0}s", elapsed.as_secs_f64() * (1.0 - fraction) / fraction),
    };
    let (done, expected) = (progress.done_runs(), progress.expected_runs());
    let written = match progress.written().load(Ordering::Relaxed) {
        0 => String::new(),
        bytes => format!("  {} written", ByteSize::b(bytes).display().si()),
    };
    format!("{:>3.0}%  {done}/{expected} runs{written}  {eta}", 100.0 * fraction)
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
