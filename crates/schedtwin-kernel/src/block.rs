// SPDX-License-Identifier: GPL-2.0-or-later
//! Block I/O as the scheduler sees it: who sleeps for a request, where it completes, who is woken there.
//!
//! # Terms
//!
//! * *request*: one read, write or flush of a task, which sleeps until it is done.
//! * *hardware queue*: what a driver sends requests to. CPUs are mapped to the queues evenly, in their order.
//! * *tag*: each queue has so many; a task that finds none sleeps until one comes back.
//!
//! # Algorithm
//!
//! 1. The task takes a tag of its CPU's queue, hands the request to the device, and sleeps in `io_schedule()`: while it is off
//!    the queue it counts in the CPU's `nr_iowait`.
//! 2. The device interrupts the CPU of the queue. `blk_mq_complete_request_remote()` says where the request completes:
//!    1. on the CPU that submitted it, by a function call, if the two CPUs share no cache, or (6.9 and later) have different
//!       capacities;
//!    2. else here: in the BLOCK softirq if the device has one queue, in the interrupt if it has several.
//! 3. There the tag comes back, the first task that waits for one is woken, and then the request's own task.
//!
//! ```text
//!  task     submit | io_schedule() ...............................| runs: enqueued with SCHED_CPUFREQ_IOWAIT
//!  device          |==== service ====> interrupt (queue's CPU)    ^
//!  queue's CPU                         complete here? BLOCK ──────┤ wakeup
//!  submitter's CPU                     else: function call, BLOCK ┘
//! ```
//!
//! An idle CPU's time is `iowait` while a task that went to sleep there waits ([`crate::hardware::HardwareView::iowait`]).
//!
//! Kernel: 6.12 block/blk-mq.c `blk_mq_complete_request_remote`, `blk_mq_complete_need_ipi`, `blk_mq_get_tag`,
//! kernel/sched/core.c `io_schedule`, kernel/time/tick-sched.c `tick_nohz_stop_idle`.
//! Differences: one request for a call, whatever its size; no merging, no plug, no I/O scheduler, no polled I/O. A tag that comes
//! back wakes one waiter, not a batch. Requests go to the device from the task itself, never from kblockd.

use crate::config::BlkComplete;
use crate::softirq::Softirq;
use crate::sync::wait::{Blocked, Resume};
use crate::{Context, Kernel};
use schedtwin_types::{
    BlockDeviceId, BlockOp, CpuId, FactKind, IpiKind, Ns, Outcome, Syscall, TaskId, TaskState,
    WakeSource, Work,
};
use std::collections::VecDeque;

/// A block device as its driver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// `nr_hw_queues`: at least 1, at most as many as CPUs.
    pub nr_hw_queues: u16,
    /// Tags of each queue, at least 1.
    pub queue_depth: u32,
    /// The cost of submitting a request, in the unit of path costs.
    pub submit: Work,
    /// The cost of completing one.
    pub complete: Work,
}

/// A request that is on its way, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(pub u32);

/// A request that a device has just been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuedRequest {
    /// Its number until it is complete.
    pub id: RequestId,
    /// Where it goes.
    pub device: BlockDeviceId,
    /// The hardware queue.
    pub queue: u16,
    /// The task that waits for it.
    pub task: TaskId,
    /// What is asked for.
    pub op: BlockOp,
    /// How many bytes.
    pub bytes: u32,
    /// When the device has it.
    pub at: Ns,
}

#[derive(Clone, Debug)]
struct HwQueue {
    free_tags: u32,
    /// Who sleeps for a tag.
    waiters: VecDeque<TaskId>,
}

#[derive(Clone, Debug)]
struct Device {
    is: BlockDevice,
    queues: Vec<HwQueue>,
}

/// A request that completes on a CPU (`blk_cpu_done`), from a time on.
#[derive(Clone, Copy, Debug)]
struct Done {
    at: Ns,
    id: RequestId,
}

/// Block devices and what is asked of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    devices: Vec<Device>,
    /// Requests by number, and the CPU that submitted each; free ones are listed in `free`.
    requests: Vec<(IssuedRequest, CpuId)>,
    free: Vec<RequestId>,
    /// What hardware has yet to be told.
    issued: Vec<IssuedRequest>,
    /// What devices have done, and say so in the entry that follows.
    interrupts: Vec<RequestId>,
    /// Per CPU: `blk_cpu_done`.
    done: Vec<Vec<Done>>,
    /// Per CPU: `iowait_sleeptime`.
    iowait: Vec<Ns>,
    /// Some task has waited for I/O.
    used: bool,
}

impl Block {
    /// Everybody who sleeps for a request or a tag, for verification.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        let of_tags = self.devices.iter().flat_map(|device| &device.queues);
        let of_tags = of_tags.flat_map(|queue| queue.waiters.iter().copied());
        let in_flight = |index: &usize| !self.free.contains(&RequestId(*index as u32));
        let requests = (0..self.requests.len()).filter(in_flight);
        of_tags.chain(requests.map(|index| self.requests[index].0.task))
    }

    /// Asserts that tags and requests agree.
    pub(crate) fn verify(&self) {
        let all: u32 = self.devices.iter().map(|d| d.is.queue_depth * d.queues.len() as u32).sum();
        let free: u32 = self.devices.iter().flat_map(|d| &d.queues).map(|q| q.free_tags).sum();
        let in_flight = self.requests.len() - self.free.len();
        assert_eq!((all - free) as usize, in_flight, "tags and requests");
    }

    fn request(&self, id: RequestId) -> &(IssuedRequest, CpuId) {
        &self.requests[id.0 as usize]
    }

    /// How long a CPU was idle while a task that went to sleep there waited for I/O; `None`: no task has.
    pub(crate) fn iowait(&self, cpu: CpuId) -> Option<Ns> {
        self.used.then(|| self.iowait[cpu.index()])
    }
}

impl Kernel {
    /// Registers the machine's block devices, before time begins.
    pub fn register_block_devices(&mut self, devices: &[BlockDevice]) {
        let nr_cpus = self.sched.nr_cpus();
        // No task has more than one request.
        let most = self.cx.platform.device_tree.nr_threads_hint + 1;
        let queue = |is: &BlockDevice| HwQueue {
            free_tags: is.queue_depth,
            waiters: VecDeque::with_capacity(most),
        };
        let queues = |is: &BlockDevice| (0..is.nr_hw_queues).map(|_| queue(is)).collect();
        self.block.devices =
            devices.iter().map(|is| Device { is: *is, queues: queues(is) }).collect();
        self.block.requests.reserve(most);
        self.block.free.reserve(most);
        self.block.issued.reserve(4);
        self.block.interrupts.reserve(most);
        self.block.done = (0..nr_cpus).map(|_| Vec::with_capacity(most)).collect();
        self.block.iowait = vec![0; nr_cpus];
    }

    /// A request that the last entry has given to a device; to be asked until there is none.
    #[inline(always)]
    pub fn take_block_request(&mut self) -> Option<IssuedRequest> {
        self.block.issued.pop()
    }

    /// A device says in the next entry that has [`schedtwin_types::IrqLine::Peripheral`] among its lines that it has done a request.
    pub fn block_request_done(&mut self, id: RequestId) {
        self.block.interrupts.push(id);
    }

    /// A read, write or flush of the running task.
    #[inline(never)]
    pub(crate) fn block_io(
        &mut self,
        task: TaskId,
        device: BlockDeviceId,
        op: BlockOp,
        bytes: u32,
    ) {
        let cpu = self.cx.this_cpu;
        let nr_cpus = self.sched.nr_cpus();
        let call = Syscall::BlockIo { device, op, bytes };
        let of = &mut self.block.devices[usize::from(device.0)];
        let queue = cpu.index() * of.queues.len() / nr_cpus;
        let hctx = &mut of.queues[queue];
        let issued = hctx.free_tags > 0;
        if issued {
            hctx.free_tags -= 1;
            let cost = of.is.submit;
            self.sched.charge(cost, &mut self.cx);
            self.issue(IssuedRequest {
                id: RequestId(0),
                device,
                queue: queue as u16,
                task,
                op,
                bytes,
                at: self.cx.local_clock(),
            });
        } else {
            hctx.waiters.push_back(task);
        }
        let blocked = Blocked { call, done: u32::from(issued), waited: true };
        self.sched.set_resume(task, Some(Resume::Call(blocked)));
        self.block.used = true;
        self.sched.set_in_iowait(task, true);
        self.sched.set_task_state(task, TaskState::Uninterruptible);
        self.schedule(false);
    }

    fn issue(&mut self, mut request: IssuedRequest) {
        let cpu = self.cx.this_cpu;
        request.id = match self.block.free.pop() {
            Some(id) => id,
            None => {
                self.block.requests.push((request, cpu));
                RequestId(self.block.requests.len() as u32 - 1)
            }
        };
        self.block.requests[request.id.0 as usize] = (request, cpu);
        self.block.issued.push(request);
        let IssuedRequest { task, device, op, bytes, .. } = request;
        self.cx.fact(FactKind::BlockIssue { task, device: device.0, op: op as u8, bytes });
    }

    /// The task of a call to a block device runs again (`io_schedule_finish`): its request is done, or it may try for a tag.
    pub(crate) fn block_io_resumes(&mut self, task: TaskId, blocked: Blocked) {
        self.sched.set_in_iowait(task, false);
        let Syscall::BlockIo { device, op, bytes } = blocked.call else {
            unreachable!("its call is one of a block device")
        };
        match blocked.done {
            0 => self.block_io(task, device, op, bytes),
            _ => self.sched.set_outcome(task, Outcome::Value(u64::from(bytes))),
        }
    }

    /// The drivers' handlers: `blk_mq_complete_request_remote()` of each request.
    pub(crate) fn handle_block_interrupts(&mut self) {
        let this = self.cx.this_cpu;
        for at in 0..self.block.interrupts.len() {
            let id = self.block.interrupts[at];
            let (request, submitter) = *self.block.request(id);
            let several = self.block.devices[usize::from(request.device.0)].queues.len() > 1;
            if self.completes_by_call(this, submitter) {
                self.completes_on(submitter, id);
                let kind = IpiKind::WakeList;
                self.sched.send_ipi(submitter, kind, &mut self.cpuidle, &mut self.cx);
            } else if several {
                self.complete_request(id);
            } else {
                self.completes_on(this, id);
                self.softirqs.raise(this, Softirq::Block);
            }
        }
        self.block.interrupts.clear();
    }

    /// `blk_mq_complete_need_ipi()`.
    fn completes_by_call(&self, this: CpuId, submitter: CpuId) -> bool {
        let complete = self.cx.config.rq_affinity;
        if complete == 0 || this == submitter {
            return false;
        }
        let near = self.sched.topology().cpus_share_cache(this, submitter)
            && match self.cx.config.blk_complete {
                BlkComplete::SharesCache => true,
                BlkComplete::SharesCacheAndCapacity => {
                    let capacity = |cpu| self.sched.arch_scale_cpu_capacity(cpu);
                    capacity(this) == capacity(submitter)
                }
            };
        complete == 2 || !near
    }

    fn completes_on(&mut self, cpu: CpuId, id: RequestId) {
        let at = self.cx.local_clock();
        self.block.done[cpu.index()].push(Done { at, id });
    }

    /// `__blk_mq_complete_request_remote()`: the function call has arrived. What was listed later than now has one of its own.
    #[inline]
    pub(crate) fn block_csd(&mut self, cpu: CpuId) {
        if self.block.devices.is_empty() {
            return;
        }
        let (now, done) = (self.cx.now, &self.block.done[cpu.index()]);
        let arrived = done.iter().any(|done| done.at <= now);
        let later = done.iter().map(|done| done.at).filter(|at| *at > now).min();
        if arrived {
            self.softirqs.raise(cpu, Softirq::Block);
        }
        if let Some(at) = later {
            self.cx.wake_list_again(cpu, at);
        }
    }

    /// `blk_done_softirq()`.
    pub(crate) fn blk_done_softirq(&mut self, cpu: CpuId) {
        let now = self.cx.local_clock();
        while let Some(done) = self.block.done.get_mut(cpu.index()) {
            // Those of this CPU's own interrupts were listed at most now; those of others arrive with their calls.
            let Some(at) = done.iter().position(|done| done.at <= now) else { break };
            let Done { id, .. } = done.remove(at);
            self.complete_request(id);
        }
    }

    /// The end of a request: its tag comes back, and its task is woken.
    fn complete_request(&mut self, id: RequestId) {
        let (request, _) = *self.block.request(id);
        let IssuedRequest { task, device, queue, op, bytes, .. } = request;
        let of = &mut self.block.devices[usize::from(device.0)];
        let hctx = &mut of.queues[usize::from(queue)];
        hctx.free_tags += 1;
        let (waiter, cost) = (hctx.waiters.pop_front(), of.is.complete);
        self.block.free.push(id);
        self.sched.charge(cost, &mut self.cx);
        self.cx.fact(FactKind::BlockComplete { task, device: device.0, op: op as u8, bytes });
        if let Some(waiter) = waiter {
            self.try_to_wake_up(waiter, 0, WakeSource::Kernel);
        }
        self.try_to_wake_up(task, 0, WakeSource::Kernel);
    }

    /// `tick_nohz_stop_idle()`: an interrupt ends a piece of a CPU's idle time, which is `iowait` if a task that went to sleep
    /// there waits.
    #[inline(always)]
    pub(crate) fn account_iowait(&mut self, cpu: CpuId) {
        if self.block.used {
            self.account_iowait_if_any(cpu);
        }
    }

    fn account_iowait_if_any(&mut self, cpu: CpuId) {
        let tick = &self.cpuidle.cpu(cpu).tick;
        let (inidle, since) = (tick.inidle, tick.idle_entrytime);
        if inidle && self.sched.rq(cpu).nr_iowait > 0 {
            self.block.iowait[cpu.index()] += self.cx.now.saturating_sub(since);
        }
    }

    /// `write()` that sleeps for nothing.
    pub(crate) fn write_cached(&mut self, task: TaskId, copied: u32) {
        let cost = copy_cost(copied, &self.cx);
        self.sched.charge(cost, &mut self.cx);
        self.sched.set_outcome(task, Outcome::Value(u64::from(copied)));
    }
}

/// The cost of copying bytes from user memory.
fn copy_cost(bytes: u32, cx: &Context) -> Work {
    u64::from(bytes) * cx.platform.device_tree.path_costs.copy_per_kib / 1024
}
