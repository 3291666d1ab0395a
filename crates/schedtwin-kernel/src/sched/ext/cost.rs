// SPDX-License-Identifier: GPL-2.0-or-later
//! The cost of what a scheduler calls, beside that of its callback (`scx.op_ns`).
//!
//! Measured with programs of BPF on a server (x86-64, Zen 5, Linux 6.18, JIT), least of 200 loops of 1,000 calls, in ns: a call that
//! does nothing more 2; `bpf_cpumask_any_distribute` 4; a lock taken and given back 13; `bpf_task_from_pid` and its release 11;
//! `bpf_ktime_get_ns` 22. Of kfuncs of sched_ext no figure is published, and none was measured: they are put together from these.
//! Helpers and maps of BPF, which only a scheduler in C has, are in `crates/schedtwin-tree/c/include/schedtwin/scx.h`, from the same measurement.
//!
//! A dispatch queue that is no CPU's own has a lock. Its holder has it for [`HOLD`]; where lines of other CPUs cost something, the
//! queue's come from the CPU that had it last, and who comes meanwhile waits.
//!
//! **Not modelled:** plain instructions, which are in `scx.op_ns` for all callbacks alike.

use super::dsq::DsqIndex;
use crate::Kernel;
use schedtwin_types::Ns;

/// A number, a pointer or a mask is read; a flag is set.
pub(super) const READ: Ns = 2;
/// A task is looked up by its number, and released.
pub(super) const TASK: Ns = 11;
/// The clock is read (`bpf_ktime_get_ns`).
pub(super) const CLOCK: Ns = 22;
/// A task is noted for a queue.
pub(super) const INSERT: Ns = 5;
/// A CPU of a mask, the bit of an idle one taken.
pub(super) const PICK: Ns = 10;
/// An idle CPU near a task is looked for: several masks.
pub(super) const SELECT: Ns = 20;
/// A timer is armed or taken back.
pub(super) const TIMER: Ns = 40;
/// A queue's lock is taken, a task linked or unlinked, and the lock given back.
const HOLD: Ns = 18;

impl Kernel {
    /// The executing CPU locks a dispatch queue and changes it. A CPU's own queue is under its run queue's lock.
    pub(super) fn scx_lock_dsq(&mut self, dsq: DsqIndex) {
        if self.sched.scx().dsqs.is_local(dsq) {
            return;
        }
        self.sched.charge(HOLD, &mut self.cx);
        self.sched.fetch(&mut self.cx, |lines, at| lines.dsq_changes(dsq.index(), HOLD, at));
    }
}
