// SPDX-License-Identifier: GPL-2.0-or-later
//! `[[block]]`: block devices, as the kernel drives them and as they serve requests.
//!
//! ```toml
//! [[block]]
//! name = "sda"                        # workloads ask for it by this name; the first one is the default
//! queues = 1                          # hardware queues; CPUs are spread over them evenly
//! depth = 31                          # requests of a queue at a time
//! irq_cpu = 0                         # with one queue: the CPU that the device interrupts (0)
//! parallel = 8                        # requests that the device serves at a time
//! read_us = [460, 600, 820, 5900]     # 10th, 50th, 90th, 99th percentile of a small request alone; or one number
//! write_us = [350, 500, 1200, 5900]
//! flush_us = [1800]
//! read_mb_per_s = 2000                # what goes over the device's link
//! write_mb_per_s = 1200
//! submit_ns = 4000                    # kernel paths, in the unit of [path_costs]
//! complete_ns = 2500
//! ```
//!
//! A request waits until one of the `parallel` servers is free, is served for a time that is drawn, and then crosses the link,
//! which carries one at a time. With several queues, queue `i` interrupts the first of its CPUs.
//!
//! ```text
//!  issued ── waits for a server ── served: drawn ── waits for the link ── bytes / speed ── interrupt
//! ```
//!
//! Differences: service times of two requests do not depend on each other, on addresses, on the size beyond the link, or on how
//! long the device was left alone: no clock gating, no garbage collection. The device draws no power.

use schedtwin_input::{Diagnostics, Located, TableReader};
use schedtwin_types::draw::from_quantiles;
use schedtwin_types::{BlockOp, CpuId, Ns, Work};

use crate::keys::{keys, list, upto};

/// The most devices of a machine.
pub const MAX_BLOCK_DEVICES: usize = 8;
/// The most tags of a queue (`BLK_MQ_MAX_DEPTH`).
const MAX_DEPTH: u64 = 10_240;
/// The longest service, µs.
const MAX_SERVICE_US: u64 = 10_000_000;
/// The fastest link, MB/s.
const MAX_MB_PER_S: u64 = 1_000_000;
/// The largest cost of a path, ns.
const MAX_COST_NS: u64 = 10_000_000;

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its name.
    pub name: String,
    /// Hardware queues: at least 1, at most as many as CPUs.
    pub queues: u16,
    /// Tags of each.
    pub depth: u32,
    /// The CPU that it interrupts, if it has one queue.
    pub irq_cpu: CpuId,
    /// Requests that it serves at a time.
    pub parallel: u32,
    /// Service times by operation.
    pub service: [ServiceTime; BlockOp::ALL.len()],
    /// Bytes per second of its link: reading, writing.
    pub link: [u64; 2],
    /// The cost of submitting a request, in the unit of path costs.
    pub submit_ns: Work,
    /// The cost of completing one.
    pub complete_ns: Work,
}

impl BlockDevice {
    /// The CPU that a queue interrupts.
    pub fn queue_cpu(&self, queue: u16, nr_cpus: usize) -> CpuId {
        match self.queues {
            1 => self.irq_cpu,
            // The first CPU whose share of the queues begins in this one.
            queues => CpuId((usize::from(queue) * nr_cpus).div_ceil(usize::from(queues)) as u16),
        }
    }

    /// How long bytes take on the link.
    pub fn link_ns(&self, op: BlockOp, bytes: u32) -> Ns {
        let per_s = match op {
            BlockOp::Read => self.link[0],
            BlockOp::Write => self.link[1],
            BlockOp::Flush => return 0,
        };
        u64::from(bytes) * 1_000_000_000 / per_s
    }
}

/// The time of a service: its 10th, 50th, 90th and 99th percentile, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceTime(pub [Ns; 4]);

impl ServiceTime {
    /// A time drawn from the distribution: linear between the quantiles, flat beyond them.
    ///
    /// ```
    /// use schedtwin_machine::ServiceTime;
    /// let drawn = |word| ServiceTime([100, 200, 400, 4000]).draw(word);
    /// assert_eq!([0, u64::MAX / 2, u64::MAX].map(drawn), [100, 199, 4000]);
    /// ```
    pub fn draw(&self, word: u64) -> Ns {
        from_quantiles(self.0, word)
    }
}

keys! {
    /// a block device; the first one is the default of workloads
    struct BlockKeys in "block[]" {
        /// name by which workloads ask for it
        name: Located<String> = Always, Text;
        /// hardware queues; CPUs are spread over them evenly
        queues: Located<u64> = Always, Whole(1, 65_535);
        /// requests of a queue at a time
        depth: Located<u64> = Always, Whole(1, MAX_DEPTH as i64);
        /// with one queue: the CPU that the device interrupts; 0
        irq_cpu: Located<u64> = May, Whole(0, 65_535);
        /// requests that the device serves at a time
        parallel: Located<u64> = Always, Whole(1, 1024);
        /// service of a small read alone: one number, or its 10th, 50th, 90th and 99th percentile
        read_us: Located<Vec<u64>> = Always, list(upto(MAX_SERVICE_US));
        /// service of a small write alone, likewise
        write_us: Located<Vec<u64>> = Always, list(upto(MAX_SERVICE_US));
        /// service of a flush, likewise
        flush_us: Located<Vec<u64>> = Always, list(upto(MAX_SERVICE_US));
        /// speed of the link when reading, in 10^6 bytes a second
        read_mb_per_s: Located<u64> = Always, Whole(1, MAX_MB_PER_S as i64);
        /// speed of the link when writing
        write_mb_per_s: Located<u64> = Always, Whole(1, MAX_MB_PER_S as i64);
        /// cost of submitting a request, in the unit of `[path_costs]`
        submit_ns: Located<u64> = Always, upto(MAX_COST_NS);
        /// cost of completing a request
        complete_ns: Located<u64> = Always, upto(MAX_COST_NS);
    }
}

/// Reads the tables.
pub(crate) fn read(
    tables: Vec<TableReader<'_>>,
    nr_cpus: usize,
    faults: &mut Diagnostics,
) -> Vec<BlockDevice> {
    let mut devices: Vec<BlockDevice> = Vec::new();
    for (index, table) in tables.into_iter().enumerate() {
        if index >= MAX_BLOCK_DEVICES {
            let message = format!("a machine has at most {MAX_BLOCK_DEVICES} block devices");
            faults.push_at(table.location(), message, None);
            break;
        }
        let Some((device, at)) = read_one(table, nr_cpus, faults) else { continue };
        if devices.iter().any(|other| other.name == device.name) {
            let message = format!("there are two block devices `{}`", device.name);
            faults.push_at(&at, message, None);
        }
        devices.push(device);
    }
    devices
}

fn read_one(
    mut table: TableReader<'_>,
    nr_cpus: usize,
    faults: &mut Diagnostics,
) -> Option<(BlockDevice, schedtwin_input::Location)> {
    let keys = BlockKeys::read(&mut table, faults);
    table.finish(faults);
    let most = nr_cpus.max(1) as u64;
    let queues = within(keys.queues, 1..=most, "queues", faults);
    let irq_cpu = within(keys.irq_cpu, 0..=most - 1, "irq_cpu", faults);
    let depth = within(keys.depth, 1..=MAX_DEPTH, "depth", faults);
    let parallel = within(keys.parallel, 1..=1024, "parallel", faults);
    let service = [
        service_time(keys.read_us, "read_us", faults),
        service_time(keys.write_us, "write_us", faults),
        service_time(keys.flush_us, "flush_us", faults),
    ];
    let link = [
        within(keys.read_mb_per_s, 1..=MAX_MB_PER_S, "read_mb_per_s", faults),
        within(keys.write_mb_per_s, 1..=MAX_MB_PER_S, "write_mb_per_s", faults),
    ];
    let submit = within(keys.submit_ns, 0..=MAX_COST_NS, "submit_ns", faults);
    let complete = within(keys.complete_ns, 0..=MAX_COST_NS, "complete_ns", faults);
    let [read, write, flush] = service;
    let [reading, writing] = link;
    let name = keys.name?;
    let device = BlockDevice {
        name: name.value,
        queues: queues? as u16,
        depth: depth? as u32,
        irq_cpu: CpuId(irq_cpu.unwrap_or(0) as u16),
        parallel: parallel? as u32,
        service: [read?, write?, flush?],
        link: [reading? * 1_000_000, writing? * 1_000_000],
        submit_ns: submit?,
        complete_ns: complete?,
    };
    Some((device, name.at))
}

/// A number that must be within bounds.
fn within(
    given: Option<Located<u64>>,
    range: std::ops::RangeInclusive<u64>,
    key: &str,
    faults: &mut Diagnostics,
) -> Option<u64> {
    let given = given?;
    if !range.contains(&given.value) {
        let (least, most) = (range.start(), range.end());
        let message = format!("`{key}` is {}, outside {least}..={most}", given.value);
        faults.push_at(&given.at, message, None);
        return None;
    }
    Some(given.value)
}

fn service_time(
    given: Option<Located<Vec<u64>>>,
    key: &str,
    faults: &mut Diagnostics,
) -> Option<ServiceTime> {
    let Located { value, at } = given?;
    let times = match value[..] {
        [us] => Some([us; 4]),
        [p10, p50, p90, p99] => Some([p10, p50, p90, p99]),
        _ => None,
    };
    let good = |times: &[u64; 4]| times.is_sorted() && times[3] <= MAX_SERVICE_US && times[3] > 0;
    let Some(times) = times.filter(good) else {
        let help = "one number, or the 10th, 50th, 90th and 99th percentile, up to 10 s";
        faults.push_at(&at, format!("`{key}` is no time of service"), Some(help.into()));
        return None;
    };
    Some(ServiceTime(times.map(|us| us * 1000)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;
    use schedtwin_input::Source;

    const TABLE: &str = "[[block]]\nname = \"vda\"\nqueues = 3\ndepth = 4\nparallel = 2\nread_us = [70, 90, 120, 900]\n\
                         write_us = [20]\nflush_us = [500]\nread_mb_per_s = 1000\nwrite_mb_per_s = 500\n\
                         submit_ns = 3000\ncomplete_ns = 2000\n";

    fn read(table: &str) -> Result<Machine, String> {
        let text = include_str!("../machines/uniform8.toml");
        let source = Source::new("disks.toml", format!("{text}\n{table}"));
        Machine::from_source(&source, &[]).map_err(|faults| faults.to_string())
    }

    #[test]
    fn queues_have_cpus_and_links_take_time() {
        let machine = read(TABLE).unwrap();
        let disk = &machine.block[0];
        let cpus: Vec<u16> = (0..3).map(|queue| disk.queue_cpu(queue, 8).0).collect();
        // CPUs 0 to 2, 3 to 5, 6 and 7: cpu * 3 / 8.
        assert_eq!(cpus, [0, 3, 6]);
        for (queue, first) in cpus.iter().enumerate() {
            assert_eq!(usize::from(*first) * 3 / 8, queue);
            assert!(*first == 0 || usize::from(*first - 1) * 3 / 8 < queue);
        }
        assert_eq!(disk.link_ns(BlockOp::Read, 1_000_000), 1_000_000);
        assert_eq!(disk.link_ns(BlockOp::Write, 1_000_000), 2_000_000);
        assert_eq!(disk.link_ns(BlockOp::Flush, 0), 0);
        assert_eq!(disk.service[1], ServiceTime([20_000; 4]));
    }

    #[test]
    fn faults_are_told_where_they_are() {
        let two = format!("{TABLE}{TABLE}");
        for (table, complaint) in [
            (TABLE.replace("queues = 3", "queues = 9"), "`queues` is 9, outside 1..=8"),
            (TABLE.replace("depth = 4", "depth = 0"), "`depth` is 0"),
            (TABLE.replace("[70, 90", "[70, 60"), "`read_us` is no time of service"),
            (TABLE.replace("[20]", "[]"), "`write_us` is no time of service"),
            (TABLE.replace("[500]", "[0]"), "`flush_us` is no time of service"),
            (TABLE.replace("depth", "dept"), "dept"),
            (format!("{TABLE}irq_cpu = 8\n"), "`irq_cpu` is 8, outside 0..=7"),
            (two, "two block devices `vda`"),
        ] {
            let faults = read(&table).unwrap_err();
            assert!(faults.contains(complaint), "{complaint}: {faults}");
        }
    }
}
