// SPDX-License-Identifier: GPL-2.0-or-later
//! The activity of a phone besides the app: kernel threads, sensors, services.
//!
//! From the trace of the 60 Hz list app on an SM8150 phone (4.26 s): every thread that woke up more than five
//! times a second, or used a thousandth of a CPU, and belongs to the system. Rates, classes, priorities, who wakes whom
//! and the gaps between interrupts are measured [S]; work a burst is measured as in [`super::measured`]. Nothing here is a
//! parameter.
//!
//! Left out: what recording and USB did (adbd, atrace, ps, sh, logd, logcat, `kworker/u17`, transports), the app's
//! own threads, the touch panel and who waits for it, and the radio.
//!
//! ```text
//! jiffies (10 ms): rcu_preempt ── rcuop; kworker/u16: clocks and buses are looked at
//! frames: kworker/u16 ── bus monitors: irq at the end of a window of 4 ms ── irq/32, irq/33
//! sensor hub: irq ── qrtr_rx ── sensors ── sensors-hal ── HwBinder ── SensorService ── android.ui, PowerManagerSer
//! ```
//!
//! **What comes by itself comes together.** Wheel timers expire on jiffies: on each the kernel looks at the clocks of eight devices in
//! one work, and RCU at its CPUs. Bus monitors interrupt at the ends of windows, and only where something has changed: they
//! follow frames. Independent of each other, at mean rates, are only the rare ones.
//!
//! **What a Pixel 6 has not.** 300 interrupts a second of the trace, half of its devices', are answers of the power controller, each of which
//! wakes who asked; half come within 0.3 ms. A gs101's controller is asked with a loop that polls for 20 us [S: mainline's
//! exynos-acpm and its vendor's], so here an answer is nobody's wakeup but a part of the asker's work.
//!
//! Differences: jiffies of 10 ms are that phone's; its timer for clocks is deferrable (no idle governor sees it, no CPU wakes for it), here it is
//! one like others. What is neither frames nor jiffies comes at constant mean rates, of which an idle phone has fewer. A Pixel 6 has other
//! drivers than the phone of the trace [E].

use super::amount::{Amount, Quantiles};
use super::measured::burst;
use super::options::WorkloadOption;
use super::script::{Flag, Grid, Script, Step, fifo, nice};
use schedtwin_types::{CpuId, CpuMask, Ns, SchedAttr};

/// Whether there is any.
pub(super) const OPTION: WorkloadOption =
    WorkloadOption::count(None, "background", "", 1, (0, 1), "0: without the rest of the system");

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_MS: Ns = 1_000_000;
/// Of a table of microseconds, in the hundredths that [`Amount::Table`] multiplies with.
const US: u64 = 100_000;
/// Where wheel timers expire.
const JIFFIES: Grid = Grid { period: 10 * NS_PER_MS, phase: 0 };
/// Where the bus monitors' windows end.
const WINDOWS: Grid = Grid { period: 4 * NS_PER_MS, phase: NS_PER_MS };
/// Between two events of the sensor hub, us: two sensors, one ten times a second.
const SENSOR_GAPS: Quantiles = [
    15_219, 16_873, 17_153, 17_186, 17_549, 18_504, 20_960, 81_187, 82_571, 82_708, 82_944, 84_094,
    98_312, 99_884, 100_012, 100_076, 101_517,
];

/// The source that wakes a thread.
#[derive(Clone, Copy)]
enum By {
    /// Interrupts of a device to this CPU.
    Irq(u16),
    /// Timers, its own or the kernel's.
    Timer,
}

/// A thread that depends on nobody: name, parameters, the CPU it is bound to, what wakes it, wakeups in ten
/// seconds, ns of work a burst.
type Row = (&'static str, SchedAttr, Option<u16>, By, u64, u64);

fn rows() -> [Row; 8] {
    [
        ("kworker/0:2", nice(0), Some(0), By::Timer, 136, 6_700),
        ("kworker/1:4", nice(0), Some(1), By::Irq(1), 134, 4_600),
        ("ksoftirqd/2", nice(0), Some(2), By::Irq(2), 286, 5_200),
        ("SDM_EventThread", nice(-9), None, By::Irq(1), 108, 13_900),
        ("perf-hal", nice(-10), None, By::Timer, 106, 62_900),
        ("system_server", nice(-2), None, By::Timer, 54, 15_000),
        ("Binder:system_C", nice(0), None, By::Timer, 28, 145_600),
        ("cnss_diag", nice(0), None, By::Timer, 14, 110_900),
    ]
}

/// Adds the system's threads to a script.
pub(super) fn add(script: &mut Script) {
    for (name, attributes, cpu, by, in_ten_seconds, work) in rows() {
        let every = Amount::Exponential(10 * NS_PER_S / in_ten_seconds);
        let wait = match by {
            By::Irq(to) => {
                let flag = script.flag(0);
                script.source(&format!("irq {name}"), to, &[flag], every);
                Step::Wait(flag)
            }
            By::Timer => Step::Sleep(every),
        };
        let bound = cpu.filter(|cpu| usize::from(*cpu) < script.nr_cpus);
        let thread = script.thread(name, attributes);
        let thread = match bound {
            Some(cpu) => thread.cpus(CpuMask::of(CpuId(cpu))),
            None => thread,
        };
        thread.then(&[wait, Step::Work(burst(work))]).for_ever();
    }
    clocks(script);
    monitors(script);
    rcu(script);
    sensors(script);
}

/// Where the workers that are bound to no CPU run: on the little ones, in both phones' traces, all of 6,748 times.
fn unbound(script: &Script) -> CpuMask {
    CpuMask::first(script.nr_cpus.min(4))
}

/// `devfreq_monitor` of eight devices a jiffy, in one worker; and the worker of something that polls with
/// hrtimers: every 0.1 s five times at once.
fn clocks(script: &mut Script) {
    let cpus = unbound(script);
    script
        .thread("kworker/u16:12", nice(0))
        .cpus(cpus)
        .then(&[Step::Until(JIFFIES), Step::Work(burst(44_000))])
        .for_ever();
    let polls = script.register(0);
    let nap = Step::Sleep(Amount::Uniform(150_000, 300_000));
    script
        .thread("kworker/u16:10", nice(0))
        .cpus(cpus)
        .then(&[Step::Sleep(Amount::Uniform(65 * NS_PER_MS, 130 * NS_PER_MS))])
        .repeat(polls, (5, [nap, Step::Work(burst(4_500))]))
        .for_ever();
}

/// Bus monitors: two of three frames make the one between CPUs and cache interrupt, every second that between cache and
/// memory (33 and 24 times a second of 48 frames).
fn monitors(script: &mut Script) {
    let mut monitors = Vec::new();
    for (name, cpu, work) in [("irq/32-bwmon", 2, 15_200), ("irq/33-llccbw", 3, 16_000)] {
        let irq = script.flag(0);
        monitors.push(script.device(&format!("irq {name}"), cpu, &[irq]));
        let steps = [Step::Wait(irq), Step::Work(burst(work))];
        script.thread(name, fifo(50)).then(&steps).for_ever();
    }
    let (cpus, Some(frame)) = (unbound(script), script.frame_done) else { return };
    let of_frame = [Step::Wait(frame), Step::Work(burst(4_500))];
    let ends = |monitor: usize| Step::StartUntil(monitors[monitor], WINDOWS);
    let (first, second, both) = ([ends(0)], [ends(1)], [ends(0), ends(1)]);
    let six: [&[Step]; 6] = [&both, &first, &second, &first, &both, &[]];
    let thread = script.thread("kworker/u16:3", nice(0)).cpus(cpus);
    six.iter().fold(thread, |steps, windows| steps.then(&of_frame).then(windows)).for_ever();
}

/// `rcu_preempt` and the threads that run callbacks: a wakeup a jiffy (95 a second), of which every fourth has callbacks for CPU 0
/// and every fourth for CPU 2; two of three go on to the neighbour's.
fn rcu(script: &mut Script) {
    let [first, second, third, fourth] = std::array::from_fn(|_| script.flag(0));
    let wake = Step::Until(JIFFIES);
    let work = Step::Work(burst(4_600));
    script
        .thread("rcu_preempt", nice(0))
        .then(&[wake, work, wake, work, Step::Post(first)])
        .then(&[wake, work, wake, work, Step::Post(second)])
        .for_ever();
    for (name, wait, next) in [("rcuop/0", first, third), ("rcuop/2", second, fourth)] {
        let once = [Step::Wait(wait), Step::Work(burst(5_600))];
        let and_on = [once[0], once[1], Step::Post(next)];
        script.thread(name, nice(0)).then(&once).then(&and_on).then(&and_on).for_ever();
    }
    for (name, wait) in [("rcuop/1", third), ("rcuop/3", fourth)] {
        let steps = [Step::Wait(wait), Step::Work(burst(5_000))];
        script.thread(name, nice(0)).then(&steps).for_ever();
    }
}

/// The way of a sensor's event: 15.7 a second.
fn sensors(script: &mut Script) {
    let [irq, hub, hal, binder, service, ui, power] = std::array::from_fn(|_| script.flag(0));
    script.source("irq sensors", 1, &[irq], Amount::Table(&SENSOR_GAPS, US));
    let chain: [(&str, SchedAttr, Flag, u64, &[Flag]); 7] = [
        ("qrtr_rx", nice(0), irq, 5_700, &[hub]),
        ("sensors", nice(0), hub, 23_500, &[hal]),
        ("sensors-hal", fifo(10), hal, 12_200, &[binder]),
        ("HwBinder:sensor", fifo(10), binder, 12_300, &[service]),
        ("SensorService", fifo(10), service, 27_900, &[ui, power]),
        ("android.ui", nice(-2), ui, 39_600, &[]),
        ("PowerManagerSer", nice(-4), power, 124_900, &[]),
    ];
    for (name, attributes, wait, work, posts) in chain {
        let steps = [Step::Wait(wait), Step::Work(burst(work))];
        let posts: Vec<Step> = posts.iter().map(|flag| Step::Post(*flag)).collect();
        script.thread(name, attributes).then(&steps).then(&posts).for_ever();
    }
}
