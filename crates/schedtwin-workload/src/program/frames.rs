// SPDX-License-Identifier: GPL-2.0-or-later
//! Frames under way, their length, and which of them an app calls jank.
//!
//! # Terms
//!
//! * *duration*: as FrameMetrics.TOTAL_DURATION has it: from the vsync that the frame was intended for until the GPU is
//!   through with it. A wait for the UI thread counts.
//! * *period* of the rule: whole milliseconds, 1000 / refresh rate rounded down (16 at 60 Hz).
//! * *jank*, as Jankbench counts it: not *armed*, a frame longer than one period is a jank and arms; armed, only a frame longer
//!   than two periods is one, and disarms. The idea is that a late frame makes the display queue one buffer more, which later
//!   late frames hide behind. The rule starts anew with each test.
//!
//! ```text
//! duration ms   12   18   17   20   35   14   17
//! jank           .    J    .    .    J    .    J
//! armed              on             off       on
//! ```
//!
//! gfxinfo's rule: each frame has a *swap deadline*, a period after the one before or after its intended vsync, whichever is
//! later. A frame that is done later, and took longer than a period, is jank, and the deadline moves to the vsync after the
//! frame is done: what follows a late frame may be late by as much.
//!
//! Sources: `UiBenchmarkResult` of the app (JankBenchX); `JankTracker::finishFrame` of Android's HWUI, its "missed deadline" [S].
//! Android 12 and later take the deadline that SurfaceFlinger gave the frame instead [E]; then what is late by one vsync again and again
//! is jank each time.

use schedtwin_types::Ns;

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_MS: Ns = 1_000_000;

/// Frames that can be under way: the UI thread has one, RenderThread one, and the display's buffers are few.
const UNDER_WAY_MAX: usize = 16;

/// The rule that decides which frames are jank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Jankbench.
    #[default]
    Armed,
    /// gfxinfo.
    SwapDeadline,
}

/// Jankbench's rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JankRule {
    armed: bool,
}

impl JankRule {
    /// Whether the next frame, which took `duration`, is a jank.
    pub fn judge(&mut self, duration: Ns, period: Ns) -> bool {
        let limit = if self.armed { 2 * period } else { period };
        let jank = duration > limit;
        self.armed ^= jank;
        jank
    }
}

/// gfxinfo's rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwapDeadline {
    deadline: Ns,
}

impl SwapDeadline {
    /// Whether the next frame is a jank, `interval` being the display's.
    pub fn judge(&mut self, intended: Ns, done: Ns, interval: Ns) -> bool {
        self.deadline = (self.deadline + interval).max(intended + interval);
        if done < self.deadline || done - intended < interval {
            return false;
        }
        // From the next vsync after it was done on, frames have a period more.
        let late = (done - intended) % interval;
        self.deadline = done - late + interval;
        true
    }
}

/// The period of the rule.
pub(crate) fn rule_period(refresh: Ns) -> Ns {
    let hz = (NS_PER_S + refresh / 2) / refresh;
    1000 / hz * NS_PER_MS
}

/// Frames of one test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCount {
    /// Frames that ended.
    pub frames: u64,
    /// Of these: longer than one period.
    pub over_period: u64,
    /// Of these: jank.
    pub janks: u64,
}

/// A frame that is not on its way to the display yet.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    intended: Ns,
    test: Option<u16>,
}

/// All frames of a run.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    under_way: std::collections::VecDeque<UnderWay>,
    /// Frames that begin count for it.
    test: Option<u16>,
    rule: Rule,
    armed: JankRule,
    deadline: SwapDeadline,
    refresh: Ns,
    period: Ns,
    pub tests: Vec<FrameCount>,
}

impl Frames {
    pub fn new(tests: usize, refresh: Ns, rule: Rule) -> Frames {
        Frames {
            under_way: std::collections::VecDeque::with_capacity(UNDER_WAY_MAX),
            test: None,
            rule,
            armed: JankRule::default(),
            deadline: SwapDeadline::default(),
            refresh,
            period: if refresh == 0 { 0 } else { rule_period(refresh) },
            tests: vec![FrameCount::default(); tests],
        }
    }

    /// Frames that begin from now on count for `test`, or for none. A test starts with the rule disarmed.
    pub fn count(&mut self, test: Option<u16>) {
        if test.is_some() {
            self.armed = JankRule::default();
            self.deadline = SwapDeadline::default();
        }
        self.test = test;
    }

    pub fn begin(&mut self, intended: Ns) {
        assert!(self.under_way.len() < UNDER_WAY_MAX, "more frames under way than buffers");
        self.under_way.push_back(UnderWay { intended, test: self.test });
    }

    /// The oldest ends: for which moment it was intended, if it counts.
    pub fn end(&mut self, now: Ns) -> Option<Ns> {
        let frame = self.under_way.pop_front().expect("a frame ends that has begun");
        let count = &mut self.tests[usize::from(frame.test?)];
        let duration = now.saturating_sub(frame.intended);
        count.frames += 1;
        count.over_period += u64::from(duration > self.period);
        let jank = match self.rule {
            Rule::Armed => self.armed.judge(duration, self.period),
            Rule::SwapDeadline => self.deadline.judge(frame.intended, now, self.refresh),
        };
        count.janks += u64::from(jank);
        Some(frame.intended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_apps_rule() {
        // Durations in ms, and the frames that are jank: period 16.
        for (durations, expected) in [
            (&[12, 18, 17, 20, 35, 14, 17][..], ".J..J.J".to_owned()),
            // Exactly a period is no jank, nor exactly two.
            (&[16, 17, 32, 33, 16], ".J.J.".to_owned()),
            // Armed it stays for as long as nothing is longer than two periods.
            (&[17, 17, 17, 17, 17], "J....".to_owned()),
            // Every second of very long ones arms, the others disarm: all are jank.
            (&[40, 40, 40], "JJJ".to_owned()),
            (&[5, 9, 15], "...".to_owned()),
        ] {
            let mut rule = JankRule::default();
            let judged: String = durations
                .iter()
                .map(|ms| if rule.judge(ms * NS_PER_MS, 16 * NS_PER_MS) { 'J' } else { '.' })
                .collect();
            assert_eq!(judged, expected, "{durations:?}");
        }
    }

    #[test]
    fn gfxinfos_rule() {
        // Intended and done, in tenths of a period.
        for (frames, expected) in [
            // On time; late; as late as the one before, so not again; on time.
            (&[(0, 8), (10, 25), (20, 35), (30, 38)][..], ".J.."),
            // Later than the one before: jank again.
            (&[(0, 15), (10, 35), (20, 36)], "JJ."),
            // Longer than a period by itself, but the deadline has moved.
            (&[(0, 21), (10, 24), (20, 34)], "J.."),
        ] {
            let mut rule = SwapDeadline::default();
            let judged: String = frames
                .iter()
                .map(
                    |(intended, done)| {
                        if rule.judge(intended * 1_000, done * 1_000, 10_000) { 'J' } else { '.' }
                    },
                )
                .collect();
            assert_eq!(judged, expected, "{frames:?}");
        }
    }

    #[test]
    fn the_period_is_whole_milliseconds() {
        for (hz, ms) in [(60, 16), (90, 11), (120, 8)] {
            assert_eq!(rule_period(NS_PER_S / hz), ms * NS_PER_MS, "{hz} Hz");
        }
    }

    #[test]
    fn frames_end_in_order_and_count_for_the_test_they_began_in() {
        let mut frames = Frames::new(2, NS_PER_S / 60, Rule::Armed);
        let ms = |ms: u64| ms * NS_PER_MS;
        frames.begin(ms(0));
        frames.count(Some(0));
        frames.begin(ms(10));
        frames.begin(ms(20));
        frames.count(Some(1));
        frames.begin(ms(30));
        assert_eq!(frames.end(ms(40)), None, "of no test");
        assert_eq!(frames.end(ms(40)), Some(ms(10)));
        assert_eq!(frames.end(ms(41)), Some(ms(20)));
        assert_eq!(frames.end(ms(42)), Some(ms(30)));
        assert_eq!(frames.tests[0], FrameCount { frames: 2, over_period: 2, janks: 1 });
        assert_eq!(frames.tests[1], FrameCount { frames: 1, over_period: 0, janks: 0 });
    }
}
