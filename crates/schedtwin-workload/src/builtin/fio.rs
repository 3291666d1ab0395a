// SPDX-License-Identifier: GPL-2.0-or-later
//! `fio`: threads that read and write a block device, one request after the other (`ioengine=psync`, `direct=1`).
//!
//! Each of `numjobs` threads makes a request of `bs` KiB, sleeps until it is done, accounts for it, and waits for `thinktime`
//! before the next. `rwmixread` per cent of the requests are reads; which ones are, is drawn. After `fsync` requests, if that is not
//! 0, comes a flush.
//!
//! ```text
//! thread   work | request ~~~~~~~ done | work | thinktime ...... | work | request ~~~~~~~
//!               |<---- a job --------->|
//! ```
//!
//! A job is a request: `throughput` is requests a second, `frame_duration` is fio's completion latency with the call around it.
//!
//! Differences: requests of one thread never overlap (an `iodepth` of 1), and where on the device they are does not matter: `randread`
//! is `read`. fio's own work for a request is an estimate [E: 2 µs at capacity 1024].

use super::amount::Amount;
use super::benchmark::Benchmark;
use super::options::{Values, WorkloadOption};
use super::script::{Script, Step};
use crate::{Host, NO_BLOCK_DEVICE};
use schedtwin_types::{BlockDeviceId, Ns, SchedAttr};

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_US: Ns = 1_000;

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::count(None, "bs", "KiB", 4, (1, 4096), "size of a request"),
    WorkloadOption::count(None, "numjobs", "", 1, (1, 1024), "threads"),
    WorkloadOption::count(None, "rwmixread", "%", 100, (0, 100), "share of reads"),
    WorkloadOption::count(
        None,
        "fsync",
        "",
        0,
        (0, 1000),
        "a flush after so many requests; 0: none",
    ),
    WorkloadOption::count(None, "thinktime", "us", 0, (0, 10_000_000), "sleep after a request"),
    WorkloadOption::decimal(None, "work", "us", 2_000, (0, 1_000_000), "fio's own work for one"),
    WorkloadOption::count(None, "device", "", 0, (0, 7), "which of the machine's block devices"),
    WorkloadOption::count(None, "runtime", "s", 10, (1, 3600), "how long"),
];

/// Threads that read and write a block device.
#[derive(Debug)]
pub(super) struct Fio;

impl Benchmark for Fio {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn description(&self) -> &'static str {
        "threads that read and write a block device; by default --numjobs 1 --rwmixread 100 (10 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "thread N: work; a request, asleep until it is done; thinktime; again\n"
    }

    fn misses(&self, values: &Values, host: &Host) -> Option<(String, &'static str)> {
        let (device, known) = (values.whole("device") as usize, host.block_devices.len());
        let message = match known {
            0 => "the machine has no block device".to_string(),
            _ => format!("the machine has no block device {device}: it has {known}, from 0"),
        };
        (device >= known).then_some((message, NO_BLOCK_DEVICE))
    }

    fn duration(&self, values: &Values) -> Option<Ns> {
        Some(values.whole("runtime") * NS_PER_S)
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        build(values, host)
    }
}

fn build(values: &Values, host: &Host) -> Script {
    let mut script = Script::new(host.cpu_capacity.len());
    let device = BlockDeviceId(values.whole("device") as u16);
    let bytes = values.whole("bs") as u32 * 1024;
    let work = Amount::Fixed(values.thousandths("work") * NS_PER_US / 1000);
    let think = values.whole("thinktime") * NS_PER_US;
    let flush_after = values.whole("fsync");
    for thread in 0..values.whole("numjobs") {
        let begun = script.register(0);
        let mut request = vec![
            Step::Clock(begun),
            Step::BlockIo(device, bytes, values.whole("rwmixread")),
            Step::Job(begun),
            Step::Work(work),
        ];
        if think > 0 {
            request.push(Step::Sleep(Amount::Fixed(think)));
        }
        let mut steps: Vec<Step> = Vec::new();
        for _ in 0..flush_after.max(1) {
            steps.extend(&request);
        }
        if flush_after > 0 {
            steps.push(Step::Flush(device));
        }
        let name = format!("fio-{thread}");
        script.thread(&name, SchedAttr::default()).group("fio").of("fio").then(&steps).for_ever();
    }
    script
}
