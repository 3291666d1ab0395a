// SPDX-License-Identifier: GPL-2.0-or-later
//! Hints of an app's work to the power HAL, as Android's performance hints (ADPF) bring them: clamps that follow frame times.
//!
//! A *session* is a few threads that make a frame together, with a *target*: how long that may take. When a frame is done, its work
//! duration is reported, and a controller moves the session's `uclamp_min`. Frames that take too long raise it at once;
//! frames that are through early lower it slowly.
//!
//! ```text
//! frame        |====|    |====|    |==========|    |====| ...  |====|
//! target       |------|  |------|  |------|        |------|    |------|
//! uclamp_min        480       208            480        470 ...     410
//!              reset                 too long       lowered, at most once in ten frames
//! ```
//!
//! **Algorithm** (Pixel's power HAL, `PowerHintSession`; the batching is the framework's, `APerformanceHintSession`):
//! 1. A frame that begins after more than 100 ms without one resets the load: until its report, at most 7.5 targets, the clamp
//!    is [`LOAD_RESET`], and what the controller goes on from is at least [`INIT`].
//! 2. The work duration is the time from the UI thread's beginning until RenderThread has queued the buffer, without the wait for a
//!    free buffer.
//! 3. A frame that misses its target is reported at once. Once targets have been met for ten periods, one frame in ten periods is.
//! 4. `error` is the duration less the target, in 100 us. `output` is [`P_OVER`] times the error if it is above 0, else [`p_under`] of it;
//!    more than that by [`D_OVER`] times its rise since the frame before, by the target. What comes of `clamp + output` is kept between
//!    [`LOW`] and [`HIGH`].
//! 5. A clamp that no report renewed for 15 targets is 0.
//!
//! **Example**, at 60 Hz (target 16.67 ms, 166 units). A frame of 20 ms after one of 12: the error is 33, the rise 79, the output
//! 2 * 33 + 500 * 79 / 166 = 303. One of 12 ms after that: the error is -46, the output -23.
//!
//! Numbers: the 60, 90 and 120 Hz profiles of a Pixel 9 [S: device_google_caimito, powerhint-tokay.json]; its integral gain is 0. The
//! 100 ms are HWUI's [S: HintSessionWrapper].
//!
//! Differences:
//! - A thread of the session takes its clamp over itself, when it begins or ends its part of a frame; the HAL sets it from outside. The
//!   UI thread is through before the frame is, so its clamp is a frame older. Who could notice: the first frames of an animation.
//! - The target is a period; HWUI's is 70 % of the app's time to its deadline where the device says nothing else, and the time that
//!   RenderThread waits for the UI thread is not taken off. With a lower target more frames would raise the clamp.
//! - Reports cost nothing but the call that sets the clamp; the binder calls and the HAL's threads are left out.
//! - The HAL's boost after eight missed frames (up to 722), its hint for the first frame of an app, the sessions of SurfaceFlinger
//!   and the boosts of the GPU are left out.

use schedtwin_types::Ns;
use std::collections::VecDeque;

const NS_PER_MS: Ns = 1_000_000;
/// The unit of errors.
const UNIT: Ns = 100_000;
/// The least and the greatest clamp of the controller, and what it begins with after a pause.
const LOW: i64 = 2;
const HIGH: i64 = 480;
const INIT: i64 = 231;
/// The clamp of a frame that begins after a pause.
const LOAD_RESET: u16 = 480;
/// Proportional gain of an error above 0.
const P_OVER: i64 = 2;
/// Derivative gain of an error that rises; one that falls has none.
const D_OVER: i64 = 500;
/// From no frame for so long on, the next one resets the load.
const RESET_AFTER: Ns = 100 * NS_PER_MS;
/// Without a report for so many targets the clamp is 0.
const STALE_TARGETS: Ns = 15;
/// Frames that met their target are reported once in so many targets.
const REPORT_TARGETS: Ns = 10;
/// Frames that a session can have under way: as many as there are buffers, and one.
const UNDER_WAY_MAX: usize = 16;

/// A session of hints.
#[derive(Clone, Debug)]
pub(crate) struct Hints {
    target: Ns,
    /// Frames under way: when each began, and how much of it does not count.
    under_way: VecDeque<(Ns, Ns)>,
    /// The control value from which the controller continues.
    control: i64,
    previous_error: i64,
    /// The clamp, and until when it is one.
    vote: (u16, Ns),
    /// When the last frame began.
    last_frame: Option<Ns>,
    /// Since when, and when last, a target was met and told.
    first_met: Option<Ns>,
    last_met: Option<Ns>,
}

/// Returns the share that is taken of an error below 0: thousandths, by the profile for the
/// display's period.
fn p_under(error: i64, target: Ns) -> i64 {
    let thousandths = match target / NS_PER_MS {
        ..10 => 600,
        10..15 => 700,
        _ => 500,
    };
    error * thousandths / 1000
}

impl Hints {
    /// A session whose frames may take `target`, ns.
    pub fn new(target: Ns) -> Hints {
        Hints {
            target,
            under_way: VecDeque::with_capacity(UNDER_WAY_MAX),
            control: 0,
            previous_error: 0,
            vote: (0, 0),
            last_frame: None,
            first_met: None,
            last_met: None,
        }
    }

    /// `uclamp_min` of the session's threads.
    pub fn clamp(&self, now: Ns) -> u16 {
        let (clamp, until) = self.vote;
        if now < until { clamp } else { 0 }
    }

    /// A frame begins.
    pub fn begin(&mut self, now: Ns) {
        assert!(self.under_way.len() < UNDER_WAY_MAX, "more frames under way than buffers");
        if self.last_frame.replace(now).is_none_or(|last| now - last > RESET_AFTER) {
            self.control = self.control.max(INIT);
            self.vote = (LOAD_RESET, now + self.target * STALE_TARGETS / 2);
        }
        self.under_way.push_back((now, 0));
    }

    /// The oldest frame under way has waited for a buffer for so long.
    pub fn waited(&mut self, duration: Ns) {
        self.under_way.front_mut().expect("a frame waits that has begun").1 += duration;
    }

    /// The oldest frame under way is done.
    pub fn end(&mut self, now: Ns) {
        let (begun, waited) = self.under_way.pop_front().expect("a frame ends that has begun");
        let units =
            |duration: Ns| i64::try_from(duration / UNIT).expect("a frame of a few seconds");
        let duration = now - begun - waited;
        let error = match duration.checked_sub(self.target) {
            Some(over) => units(over),
            None => -units(self.target - duration),
        };
        let rise = error - self.previous_error;
        self.previous_error = error;
        if !self.tells(duration, now) {
            return;
        }
        let proportional = if error > 0 { P_OVER * error } else { p_under(error, self.target) };
        let derivative = if rise > 0 { D_OVER * rise / units(self.target).max(1) } else { 0 };
        self.control = (self.control + proportional + derivative).clamp(LOW, HIGH);
        self.vote = (self.control as u16, now + self.target * STALE_TARGETS);
    }

    /// Whether the framework reports a frame.
    fn tells(&mut self, duration: Ns, now: Ns) -> bool {
        if duration >= self.target {
            self.first_met = None;
            return true;
        }
        let rate = self.target * REPORT_TARGETS;
        let since = |moment: Option<Ns>| moment.map(|moment| now - moment);
        if self.first_met.is_none() || since(self.last_met).is_none_or(|since| since > 2 * rate) {
            self.first_met = Some(now);
        }
        let for_long = since(self.first_met).is_some_and(|since| since > rate);
        if for_long && since(self.last_met).is_some_and(|since| since <= rate) {
            return false;
        }
        self.last_met = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Ns = 16_666_666;

    /// Frames of these durations in ms, one a period: the clamp after each.
    fn clamps(hints: &mut Hints, from: Ns, durations_ms: &[Ns]) -> Vec<u16> {
        let after = |(number, ms): (usize, &Ns)| {
            let begin = from + number as Ns * PERIOD;
            hints.begin(begin);
            hints.end(begin + ms * NS_PER_MS);
            hints.clamp(begin + ms * NS_PER_MS)
        };
        durations_ms.iter().enumerate().map(after).collect()
    }

    #[test]
    fn late_frames_raise_at_once_and_early_ones_lower_slowly() {
        let mut hints = Hints::new(PERIOD);
        // Errors -46, -46, 33 (a rise of 79), -46: see the example above.
        assert_eq!(clamps(&mut hints, 0, &[12, 12, 20, 12]), [208, 185, 480, 457]);
        let mut hints = Hints::new(PERIOD);
        clamps(&mut hints, 0, &[12]);
        hints.control = 100;
        // 2 x 33 + 500 x 79 / 166.
        assert_eq!(clamps(&mut hints, PERIOD, &[20]), [100 + 66 + 237]);
    }

    #[test]
    fn the_clamp_stays_within_its_bounds() {
        let mut hints = Hints::new(PERIOD);
        assert_eq!(clamps(&mut hints, 0, &[60, 60, 60]), [480; 3]);
        let low = clamps(&mut hints, 6 * PERIOD, &[1; 200]);
        assert_eq!(low.last(), Some(&2));
    }

    #[test]
    fn targets_that_are_met_are_told_once_in_ten_periods() {
        let mut hints = Hints::new(PERIOD);
        let clamps = clamps(&mut hints, 0, &[16; 60]);
        // The error is -6: each report lowers by 3.
        let reports = clamps.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(clamps[..10], [228, 225, 222, 219, 216, 213, 210, 207, 204, 201]);
        assert!((13..=15).contains(&reports), "{reports} reports: {clamps:?}");
    }

    #[test]
    fn a_pause_ends_the_clamp_and_the_next_frame_resets_it() {
        let mut hints = Hints::new(PERIOD);
        clamps(&mut hints, 0, &[10; 5]);
        let end = 4 * PERIOD + 10 * NS_PER_MS;
        assert!(hints.clamp(end + 15 * PERIOD - 1) > 0);
        assert_eq!(hints.clamp(end + 15 * PERIOD), 0);
        hints.begin(end + 20 * PERIOD);
        assert_eq!(hints.clamp(end + 20 * PERIOD), 480);
        // Within 100 ms there is no reset.
        hints.end(end + 20 * PERIOD + 10 * NS_PER_MS);
        let clamp = hints.clamp(end + 21 * PERIOD);
        assert!(clamp < 231, "{clamp}");
        hints.begin(end + 25 * PERIOD);
        assert_eq!(hints.clamp(end + 25 * PERIOD), clamp);
    }

    #[test]
    fn waits_for_buffers_are_no_work() {
        let (mut plain, mut waits) = (Hints::new(PERIOD), Hints::new(PERIOD));
        plain.begin(0);
        plain.end(12 * NS_PER_MS);
        waits.begin(0);
        waits.waited(30 * NS_PER_MS);
        waits.end(42 * NS_PER_MS);
        assert_eq!(plain.control, waits.control);
    }
}
