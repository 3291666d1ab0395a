// SPDX-License-Identifier: GPL-2.0-or-later
//! Frames of a recording: the slices of atrace that draw one, and how long they take.
//!
//! A slice begins and ends at points of its thread's work. The replay passes the same points, so that the time between them is
//! that of the frame on the replaying kernel: waits for a CPU, for other threads and slower clocks included.
//!
//! Differences: a frame of Android goes through several threads, and its deadline is that of the frame timeline, which is no
//! part of a thread's work; here each slice is judged alone, by the recorded time from one of a thread to its next.

use schedtwin_types::Ns;

/// Beginnings of the names of slices that are frames: of applications (`Choreographer`, `DrawFrame` of the render thread) and
/// of the compositor.
pub const FRAME_SLICES: [&str; 7] = [
    "Choreographer#doFrame",
    "DrawFrame",
    "handleMessageInvalidate",
    "handleMessageRefresh",
    "onMessageInvalidate",
    "onMessageRefresh",
    "doFrame",
];

/// The number of a slice's name among [`FRAME_SLICES`], if it is a frame.
pub fn frame_slice(name: &str) -> Option<u8> {
    FRAME_SLICES.iter().position(|slice| name.starts_with(slice)).map(|slice| slice as u8)
}

/// Frames of one slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Its name in [`FRAME_SLICES`].
    pub slice: &'static str,
    /// How long each took, ns, ascending.
    pub ns: Vec<Ns>,
    /// From one to the next of the same thread in the recording, the median, ns; 0: unknown.
    pub period_ns: Ns,
}

impl Frames {
    /// Groups durations by their slices; slices without any are left out.
    pub(super) fn of(
        durations: impl Iterator<Item = (u8, Ns)>,
        periods: &[Ns; FRAME_SLICES.len()],
    ) -> Vec<Frames> {
        let mut all: [Vec<Ns>; FRAME_SLICES.len()] = Default::default();
        durations.for_each(|(slice, ns)| all[usize::from(slice)].push(ns));
        let mut frames = Vec::new();
        for (slice, mut ns) in all.into_iter().enumerate().filter(|(_, ns)| !ns.is_empty()) {
            ns.sort_unstable();
            frames.push(Frames { slice: FRAME_SLICES[slice], ns, period_ns: periods[slice] });
        }
        frames
    }

    /// That quantile, ms.
    pub fn quantile_ms(&self, percent: usize) -> f64 {
        self.ns[(self.ns.len() - 1) * percent / 100] as f64 / 1e6
    }

    /// Share of the frames that take longer than the period, %; `None` where that is unknown.
    pub fn jank_pct(&self) -> Option<f64> {
        let late = self.ns.iter().filter(|ns| **ns > self.period_ns).count();
        (self.period_ns > 0).then(|| 100.0 * late as f64 / self.ns.len() as f64)
    }
}

/// The median time from one frame to the next of the same thread, of all threads and the moments when their frames begin; 0
/// where none has two.
pub(super) fn period(begins: &mut [(u32, Ns)]) -> Ns {
    begins.sort_unstable();
    let pairs = begins.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let mut gaps: Vec<Ns> = pairs.map(|pair| pair[1].1 - pair[0].1).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied().unwrap_or(0)
}
