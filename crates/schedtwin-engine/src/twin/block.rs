// SPDX-License-Identifier: GPL-2.0-or-later
//! Block devices as hardware: when a request that the kernel has issued is done, and whom that interrupts.
//!
//! ```text
//!  issued ── waits for a server ── served: drawn ── waits for the link ── bytes / speed ── interrupt of the queue's CPU
//! ```
//!
//! The time of a service is drawn for each thread's own requests, by their ordinals: a kernel that issues them in another order
//! gets the same times.

use super::Twin;
use crate::board::Board;
use crate::twin::Observer;
use schedtwin_kernel::hardware::{self, IssuedRequest, RequestId};
use schedtwin_machine::{BlockDevice, Machine};
use schedtwin_types::draw::Draws;
use schedtwin_types::metric::{self, Metric};
use schedtwin_types::{CpuId, IrqLine, NEVER, Ns, ThreadId};

/// The devices of a run whose workload uses them.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockDevices {
    devices: Vec<Device>,
    /// Of each thread: how many requests it has made.
    requests: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Device {
    draws: Draws,
    /// When each of its servers is free.
    servers: Vec<Ns>,
    /// When its link is free.
    link: Ns,
    in_flight: Vec<InFlight>,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    id: RequestId,
    /// When it is done.
    due: Ns,
    /// The CPU that is interrupted then.
    cpu: CpuId,
    /// It is done, and its interrupt waits at the CPU.
    told: bool,
}

impl BlockDevices {
    pub(super) fn new(machine: &Machine, seed: u64, nr_threads: usize) -> BlockDevices {
        let device = |is: &BlockDevice| Device {
            draws: Draws::new(seed, &is.name, "service"),
            servers: vec![0; is.parallel as usize],
            link: 0,
            in_flight: Vec::with_capacity(nr_threads),
        };
        let devices = machine.block.iter().map(device).collect();
        BlockDevices { devices, requests: vec![0; nr_threads] }
    }

    pub(super) fn len(&self) -> usize {
        self.devices.len()
    }

    /// The ordinal of a thread's next request.
    fn ordinal(&mut self, thread: ThreadId) -> u64 {
        if self.requests.len() <= thread.index() {
            self.requests.resize(thread.index() + 1, 0);
        }
        let of = &mut self.requests[thread.index()];
        *of = of.wrapping_add(1);
        u64::from(*of)
    }

    /// Moves the requests that are done and interrupt `cpu` to `tell`.
    pub(super) fn interrupt(&mut self, at: usize, cpu: CpuId, mut tell: impl FnMut(RequestId)) {
        self.devices[at].in_flight.retain(|request| {
            let is_told = request.told && request.cpu == cpu;
            if is_told {
                tell(request.id);
            }
            !is_told
        });
    }
}

impl Device {
    /// When a request that takes `service` and then `transfer` on the link is done.
    fn serve(&mut self, issued: Ns, service: Ns, transfer: Ns) -> Ns {
        let server = self.servers.iter_mut().min().expect("a device serves one at least");
        let served = issued.max(*server) + service;
        *server = served;
        self.link = served.max(self.link) + transfer;
        self.link
    }

    /// When the next request is done that has not told so.
    fn next_due(&self) -> Ns {
        let waiting = self.in_flight.iter().filter(|request| !request.told);
        waiting.map(|request| request.due).min().unwrap_or(NEVER)
    }

    /// Takes note of a request that is done at `now`; the CPU that it interrupts.
    fn take_due(&mut self, now: Ns) -> Option<CpuId> {
        let due = self.in_flight.iter_mut().find(|request| !request.told && request.due <= now)?;
        due.told = true;
        Some(due.cpu)
    }
}

/// The devices as the kernel drives them.
pub(super) fn drivers(machine: &Machine) -> Vec<hardware::BlockDevice> {
    let driver = |is: &BlockDevice| hardware::BlockDevice {
        nr_hw_queues: is.queues,
        queue_depth: is.depth,
        submit: is.submit_ns,
        complete: is.complete_ns,
    };
    machine.block.iter().map(driver).collect()
}

impl<B: Board> Twin<B> {
    /// Takes what the kernel has just issued.
    #[inline(always)]
    pub(super) fn sync_block_devices(&mut self) {
        if let Some(request) = self.kernel.take_block_request() {
            self.take_request(request);
        }
    }

    #[inline(never)]
    fn take_request(&mut self, request: IssuedRequest) {
        let at = usize::from(request.device.0);
        let IssuedRequest { id, queue, task, op, bytes, at: issued, .. } = request;
        let thread = self.tasks[task.index()].thread.expect("only programs make requests");
        let ordinal = self.block.ordinal(thread);
        let is = &self.machine.block[at];
        let cpu = is.queue_cpu(queue, self.cpus.len());
        let device = &mut self.block.devices[at];
        let word = device.draws.nth(u64::from(thread.0) << 32 | ordinal);
        let service = is.service[op as usize].draw(word);
        let due = device.serve(issued, service, is.link_ns(op, bytes)).max(self.now + 1);
        device.in_flight.push(InFlight { id, due, cpu, told: false });
        let next = device.next_due();
        self.board.set(self.block_slot(at), next);
    }

    fn block_slot(&self, at: usize) -> usize {
        self.slots.device(self.programs.nr_devices() + self.system.devices.len() + at)
    }

    /// Requests of a device are done: each interrupts the CPU of its queue.
    pub(super) fn block_device_fires(
        &mut self,
        device: usize,
        at: usize,
        observer: &mut impl Observer,
    ) {
        let slot = self.block_slot(at);
        while let Some(cpu) = self.block.devices[at].take_due(self.now) {
            self.cpus[cpu].pending_devices |= 1 << device;
            self.interrupt_arrives(cpu, IrqLine::Peripheral, slot, observer);
        }
        self.board.set(slot, self.block.devices[at].next_due());
    }

    /// The share of time that CPUs were idle while a task that slept there waited for I/O.
    pub(super) fn iowait_metric(&self, simulated_ns: Ns) -> Option<Metric> {
        let of = |c: usize| self.kernel.hardware().iowait(CpuId(c as u16));
        let all: Option<u64> = (0..self.cpus.len()).map(of).sum();
        let whole = simulated_ns.max(1) as f64 * self.cpus.len() as f64;
        Some(metric::IOWAIT.value("mean", vec![], Some(all? as f64 / whole * 100.0)))
    }
}
