//! What a phone does besides the app: kernel threads, sensors, services.
//!
//! From the trace of the 60 Hz list app on an SM8150 phone (4.26 s): every thread that woke up more than five
//! times a second, or used a thousandth of a CPU, and belongs to the system. Rates, classes, priorities and who wakes
//! whom are measured [S]; work a burst is measured as in [`super::measured`]. Nothing here is a
//! parameter.
//!
//! Left out: what recording and USB did (adbd, atrace, ps, sh, logd, logcat, `kworker/u17`, transports), the app's
//! own threads, the touch panel and who waits for it, and the radio.
//!
//! ```text
//! sensor hub: irq ── qrtr_rx ── sensors ── sensors-hal ── HwBinder ── SensorService ── android.ui, PowerManagerSer
//! bus monitors: irq ── irq/32, irq/33          power controller: irq ── kworker/u16
//! ```
//!
//! Differences: interrupts come independently of each other at a constant mean rate, where real ones follow what
//! the phone does: an idle phone has fewer. A Pixel 6 has other drivers than the phone of the trace [E].

use super::amount::Amount;
use super::measured::burst;
use super::script::{Flag, Script, Step, fifo, nice};
use schedtwin_types::{CpuId, CpuMask, Ns, SchedAttr};

const NS_PER_S: Ns = 1_000_000_000;

/// What wakes a thread.
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

fn rows() -> [Row; 13] {
    [
        ("kworker/u16:12", nice(0), None, By::Irq(2), 1394, 13_900),
        ("kworker/u16:10", nice(0), None, By::Irq(2), 910, 14_100),
        ("kworker/u16:3", nice(0), None, By::Irq(2), 767, 11_000),
        ("kworker/0:2", nice(0), Some(0), By::Timer, 136, 6_700),
        ("kworker/1:4", nice(0), Some(1), By::Irq(1), 134, 4_600),
        ("ksoftirqd/2", nice(0), Some(2), By::Irq(2), 286, 5_200),
        ("irq/32-bwmon", fifo(50), None, By::Irq(2), 657, 7_600),
        ("irq/33-llccbw", fifo(50), None, By::Irq(3), 479, 8_000),
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
    rcu(script);
    sensors(script);
}

/// `rcu_preempt` and the threads that run callbacks: 90 wakeups a second, of which every fourth has callbacks for CPU 0
/// and every fourth for CPU 2; two of three go on to the neighbour's.
fn rcu(script: &mut Script) {
    let [first, second, third, fourth] = std::array::from_fn(|_| script.flag(0));
    let wake = Step::Sleep(Amount::Exponential(10 * NS_PER_S / 900));
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
    script.source("irq sensors", 1, &[irq], Amount::Exponential(100 * NS_PER_S / 1570));
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
