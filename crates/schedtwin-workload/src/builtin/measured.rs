// SPDX-License-Identifier: GPL-2.0-or-later
//! Distributions measured in traces of real phones, as work: nanoseconds at capacity 1024.
//!
//! Of two traces of 60 Hz lists on an SM8150 phone (a list app under plain schedutil, the launcher with boosted
//! frequencies). A slice's work is its time on a CPU × frequency / highest frequency × the capacity of such a core [D]: a
//! Cortex-A55 at 1.79 GHz is 0.120 of a Pixel 6's largest core, a Cortex-A76 at 2.42 and 2.84 GHz 0.448 and 0.526, for so say that phone's
//! own capacities of the same cores (124 at 1.80 GHz, 427 at 2.25 GHz), which the twin runs it with. By the capacities
//! of the traced phone, and 0.70 of its largest core for a Cortex-X1 [E], it would be 1.4 to 1.8 times as much: there the
//! small cores count for more.
//!
//! Where both traces have a slice, each counts half: the list app's rows are light (UI thread and RenderThread 0.63 ms
//! in the mean), the launcher's icons heavy (1.39 ms); the mean, 1.01 ms, is at the lower end of the "1-2 ms at max" that was said of
//! Jankbench on Pixel 6 [S].
//!
//! A burst is what a thread does between two sleeps. Bursts have a mean of their own and one shape: of a lognormal
//! distribution with sigma 0.62, whose median and 90th percentile (0.83 and 1.7 of the mean) are about those of the traces' threads [D].
//!
//! Differences: the recorded time holds the kernel's own paths (wakeup, switch, system call), which the twin charges again: a
//! burst of 10 us is some 3 us too long, a frame of a millisecond no more than that. Time in interrupts counts as the thread's.

use super::amount::{Amount, Quantiles};

/// UI thread, `Choreographer#doFrame` of frames that draw. Mean 403 us.
pub(super) const DO_FRAME: Quantiles = [
    39_700, 73_100, 115_600, 192_600, 256_600, 304_300, 395_400, 433_600, 459_300, 473_400,
    492_300, 511_600, 522_100, 561_400, 603_800, 643_600, 776_700,
];
/// RenderThread, `DrawFrame`. Mean 615 us.
pub(super) const DRAW_FRAME: Quantiles = [
    147_700, 243_800, 268_800, 298_000, 327_300, 349_300, 366_600, 415_300, 589_300, 739_400,
    785_000, 848_400, 885_000, 898_100, 923_800, 1_015_400, 1_634_400,
];
/// surfaceflinger, `handleMessageInvalidate`. Mean 40 us.
pub(super) const INVALIDATE: Quantiles = [
    5_200, 8_700, 22_200, 33_000, 36_900, 38_900, 40_100, 41_300, 41_700, 43_300, 43_700, 44_900,
    46_500, 49_600, 53_200, 58_000, 73_100,
];
/// surfaceflinger, `handleMessageRefresh`. Mean 118 us.
pub(super) const REFRESH: Quantiles = [
    65_500, 84_600, 94_900, 103_200, 107_600, 110_800, 112_800, 114_400, 118_300, 119_900, 123_900,
    125_500, 128_700, 131_400, 135_800, 146_100, 183_900,
];

/// The shape of bursts, of mean 1000.
const BURST: Quantiles =
    [220, 323, 409, 482, 550, 617, 685, 758, 835, 920, 1018, 1131, 1268, 1447, 1703, 2161, 3167];
/// The shape's mean in the hundredths that [`Amount::Table`] multiplies with.
const BURST_MEAN_PER_PERCENT: u64 = 10;

/// A thread's burst of this mean, ns.
pub(super) const fn burst(mean_ns: u64) -> Amount {
    Amount::Table(&BURST, mean_ns / BURST_MEAN_PER_PERCENT)
}
