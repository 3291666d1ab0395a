// SPDX-License-Identifier: GPL-2.0-or-later
//! What must hold after each event.

use super::TaskState;
use super::dsq::SCX_DSQ_FLAG_BUILTIN;
use crate::Scheduler;
use crate::sched::{Class, OnRq};
use schedtwin_types::CpuId;

impl Scheduler {
    /// Asserts that tasks, queues and masks agree.
    pub(crate) fn verify_scx(&self) {
        let Some(ext) = self.ext.as_ref().filter(|ext| ext.enabled) else { return };
        assert!(
            ext.notices.is_empty() && ext.buf.is_empty(),
            "a call of the scheduler is left over"
        );
        for task in self.tasks.ids().skip(1) {
            self.verify_scx_task(task);
        }
        for (index, dsq) in ext.dsqs.iter() {
            let (mut at, mut count, mut last) = (dsq.head(), 0, None);
            while let Some(task) = at {
                let entity = &ext.tasks[task.index()];
                assert_eq!((entity.dsq, entity.prev), (Some(index), last), "{task:?}: links");
                count += 1;
                (last, at) = (at, entity.next);
            }
            assert_eq!((dsq.nr, dsq.tail()), (count, last), "DSQ {:x}", dsq.id);
        }
        let mut all = vec![0; self.nr_cpus()];
        for task in self.tasks.ids().skip(1) {
            let t = &self.tasks[task];
            all[t.cpu.index()] += u32::from(ext.tasks[task.index()].queued);
        }
        for (c, queued) in all.into_iter().enumerate() {
            self.verify_scx_cpu(CpuId(c as u16), queued);
        }
    }

    fn verify_scx_task(&self, task: schedtwin_types::TaskId) {
        let (ext, t) = (self.scx(), &self.tasks[task]);
        let entity = &ext.tasks[task.index()];
        let of_class = t.class == Class::Ext && t.state != schedtwin_types::TaskState::Dead;
        assert_eq!(entity.state == TaskState::Enabled, of_class, "{task:?}: state of its class");
        if !of_class {
            assert!(!entity.queued && entity.dsq.is_none(), "{task:?} is in another class");
            return;
        }
        assert_eq!(entity.queued, t.on_rq == OnRq::Queued, "{task:?}: queued");
        let running = self.rq[t.cpu].curr == task;
        let in_dsq = entity.dsq.is_some();
        let places = u32::from(in_dsq) + u32::from(entity.held) + u32::from(entity.deferred);
        let waits = entity.queued && !running;
        // Too often enqueued anew: it belongs nowhere until the scheduler is gone.
        if ext.exit.is_some() && waits && places == 0 {
            return;
        }
        assert_eq!(places, u32::from(waits), "{task:?}: places where it waits");
        assert_eq!(entity.runnable_seq > 0, waits, "{task:?}: on the runnable list");
        let in_user_dsq =
            entity.dsq.is_some_and(|dsq| ext.dsqs[dsq].id & SCX_DSQ_FLAG_BUILTIN == 0);
        let custody = entity.held || (ext.form.custody && in_user_dsq);
        assert_eq!(entity.in_custody, custody, "{task:?}: custody");
        assert!(entity.sticky_cpu.is_none(), "{task:?} was left in a migration");
        if let Some(cpu) = entity.dsq.and_then(|dsq| ext.dsqs[dsq].cpu) {
            assert_eq!(cpu, t.cpu, "{task:?} is in another CPU's local queue");
        }
    }

    fn verify_scx_cpu(&self, cpu: CpuId, queued: u32) {
        let (ext, rq) = (self.scx(), &self.rq[cpu]);
        assert_eq!(ext.rqs[cpu].nr_running, queued, "{cpu:?}: nr_running of the class");
        assert!(!ext.rqs[cpu].in_dispatch && !ext.rqs[cpu].in_wakeup, "{cpu:?} is in a call");
        if !ext.idle.enabled {
            return;
        }
        let (idle, cores) = (ext.idle_cpumask(), ext.idle_smtmask());
        assert!(!idle.contains(cpu) || rq.curr.is_idle(), "{cpu:?} is busy, and idle in the mask");
        if cores.contains(cpu) {
            let threads = self.topology.smt_mask[cpu.index()];
            assert!(threads.is_subset(&idle), "{cpu:?}: its core is not idle");
        }
        let local = ext.dsqs.local(cpu);
        if rq.curr.is_idle() && !rq.need_resched && ext.dsqs[local].nr > 0 && ext.exit.is_none() {
            panic!("{cpu:?} idles with tasks in its local queue");
        }
    }
}
