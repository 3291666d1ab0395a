// SPDX-License-Identifier: GPL-2.0-or-later
//! Block devices as hardware: when a request that the kernel has issued is done, and whom that interrupts.
//!
//! ```text
//!  issued ── waits for a server ── served: drawn ── waits for the link ── bytes / speed ── interrupt of the queue's CPU
//! ```
//!
//! The time of a service is drawn for each thread's own requests, by their ordinals: a kernel that issues them in another order
//! gets the same times. Requests take the link in the order in which they have been served; one without bytes (a flush) does not
//! take it.

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
    stage: Stage,
    /// The CPU that is interrupted when it is done.
    cpu: CpuId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It waits for a server or has one, until `at`; then it takes the link for `transfer`.
    Served { at: Ns, transfer: Ns },
    /// It waits for the link or has it, and is done at that time.
    Linked(Ns),
    /// It is done, and its interrupt waits at the CPU.
    Told,
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
            let is_told = request.stage == Stage::Told && request.cpu == cpu;
            if is_told {
                tell(request.id);
            }
            !is_told
        });
    }
}

impl Device {
    /// Gives a request a server: when it will be served.
    fn serve(&mut self, issued: Ns, service: Ns) -> Ns {
        let server = self.servers.iter_mut().min().expect("a device serves one at least");
        *server = issued.max(*server) + service;
        *server
    }

    /// The request for which something happens next, and when.
    fn next(&self) -> Option<(Ns, usize)> {
        let of = |(index, request): (usize, &InFlight)| match request.stage {
            Stage::Served { at, .. } | Stage::Linked(at) => Some((at, index)),
            Stage::Told => None,
        };
        self.in_flight.iter().enumerate().filter_map(of).min()
    }

    fn next_due(&self) -> Ns {
        self.next().map_or(NEVER, |(at, _)| at)
    }

    /// Takes note of a request that is done at `now`; the CPU that it interrupts.
    fn take_due(&mut self, now: Ns) -> Option<CpuId> {
        loop {
            let (_, index) = self.next().filter(|(at, _)| *at <= now)?;
            let request = &mut self.in_flight[index];
            match request.stage {
                Stage::Served { at, transfer } if transfer > 0 => {
                    self.link = at.max(self.link) + transfer;
                    request.stage = Stage::Linked(self.link);
                }
                _ => {
                    request.stage = Stage::Told;
                    return Some(request.cpu);
                }
            }
        }
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
        let served = device.serve(issued, service);
        let stage = Stage::Served { at: served, transfer: is.link_ns(op, bytes) };
        device.in_flight.push(InFlight { id, stage, cpu });
        let next = device.next_due().max(self.now + 1);
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
