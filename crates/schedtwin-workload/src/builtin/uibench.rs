// SPDX-License-Identifier: GPL-2.0-or-later
//! `uibench`: Android's UiBench, activities that each stress one part of the user interface.
//!
//! The jank tests of UiBench start an activity, do something with it for a while (flings up and down, or an animation
//! that runs by itself) and ask the system how many of its frames were late [S: the tests' sources]. The parts are those of
//! [`super::jankbench`]: the same way of a frame, the same input, other activities.
//!
//! `jank` is what gfxinfo counts ([`super::frames`], rule of the swap deadline), per cent of all frames.
//!
//! Work of a frame by activity, in per cent of a list's, is an estimate [E], and so is the choice of activities: those
//! that do not need a video decoder, a web view or a GL thread of their own.
//!
//! Differences: uiautomator injects the flings in the real tests, here the app's own thread; 16 motion events a fling [E].

use super::benchmark::{Benchmark, Counted};
use super::jankbench::{
    Activity, FRAME_WORK, GPU_US, HZ, ITERATIONS, Input, activity, build_activities,
};
use super::options::{Values, WorkloadOption};
use super::script::Script;
use super::{background, benchmark, cpusets, display, frames};
use crate::Host;
use schedtwin_types::metric::{DeclaredMetric, Metric};

const ACTIVITIES: [Activity; 12] = [
    activity("trivial_list_view", Input::Flings, 60, 70, 70),
    activity("trivial_recycler_view", Input::Flings, 60, 70, 70),
    activity("slow_bind_recycler_view", Input::Flings, 180, 80, 80),
    activity("dialog_list", Input::Flings, 80, 80, 90),
    activity("inflating_list_view", Input::Flings, 200, 100, 80),
    activity("shadow_grid", Input::Flings, 100, 140, 130),
    activity("layout_cache_high_hitrate", Input::Flings, 100, 90, 80),
    activity("layout_cache_low_hitrate", Input::Flings, 140, 110, 80),
    activity("trivial_animation", Input::Animation, 30, 40, 60),
    activity("fullscreen_overdraw", Input::Animation, 40, 50, 200),
    activity("bitmap_upload", Input::Animation, 60, 60, 150).fills(1),
    activity("invalidate", Input::Animation, 120, 60, 60),
];

const NAMES: [&str; ACTIVITIES.len()] = super::jankbench::names(&ACTIVITIES);

const OPTIONS: &[WorkloadOption] = &[
    ITERATIONS,
    WorkloadOption::words("tests", &NAMES, "which activities"),
    WorkloadOption::count(None, "flings", "", 6, (1, 20), "flings of an activity that scrolls"),
    WorkloadOption::decimal(
        None,
        "animation-s",
        "s",
        5_000,
        (100, 60_000),
        "how long the others animate",
    ),
    HZ,
    FRAME_WORK,
    GPU_US,
    background::OPTION,
    cpusets::OPTION,
    display::HINTS,
];

/// UiBench.
#[derive(Debug)]
pub(super) struct UiBench;

impl Benchmark for UiBench {
    fn name(&self) -> &'static str {
        "uibench"
    }

    fn description(&self) -> &'static str {
        "UiBench: twelve activities that scroll or animate, late frames by gfxinfo's rule (169 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "\
per activity: a second; its launch; flings with their frames and pauses, or an animation
jank: gfxinfo's rule: not done by the swap deadline, which a late frame moves by a period for those that follow
"
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        benchmark::OF_FRAMES
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        build(values, host)
    }

    fn results(&self, counted: &Counted) -> Vec<Metric> {
        benchmark::frames_by_test(counted)
    }
}

fn build(values: &Values, host: &Host) -> Script {
    let hints = values.whole("hints") == 1;
    let mut script = build_activities(values, host, "android.uibench", &ACTIVITIES, 16, hints);
    script.jank = frames::Rule::SwapDeadline;
    script
}
