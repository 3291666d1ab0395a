// SPDX-License-Identifier: GPL-2.0-or-later
//! Clamps of task groups: what `cpu.uclamp.min` and `cpu.uclamp.max` leave of a task's.
//!
//! **Idea.** The manager of a machine limits groups of tasks. A group's minimum raises what its
//! tasks ask for, its maximum lowers it, and no group gets more than the group above.
//!
//! **Terms.** *Request*: what was written into the group's two files. *Effective*: what is left of it below the groups
//! above; the root's are the system-wide limits.
//!
//! **Algorithm.**
//! 1. A file is written: percent with two decimals become a capacity, and the key is on.
//! 2. From there down: effective = the smaller of request and effective above, and the minimum at most the maximum.
//! 3. Tasks that are counted in groups which changed are counted anew, at once. Sums follow with the next refresh of a
//!    task's averages.
//! 4. A task outside of the root asks for what it wants, within its group's two.
//!
//! ```text
//!   group             request       effective
//!   /                               1024, 1024
//!   /app              102, 1024      102, 1024      a task that wants   0, 1024 gets 102, 1024
//!   /app/background   512, 205       102,  205      a task that wants 300,  700 gets 205,  205
//! ```
//!
//! Kernel: 6.12.95 kernel/sched/core.c `cpu_uclamp_write`, `cpu_util_update_eff`, `uclamp_update_active`,
//! `uclamp_tg_restrict`.
//! Differences: tasks are counted anew in the order of their numbers, not of their joining the
//! group, which may change the value that a bucket remembers. Autogroups have no files; the
//! effective clamps in them are the root's, which alters nothing (Linux asks for autogroups here,
//! and then does not look).

use super::{Clamps, system_clamps};
use crate::arena::Id;
use crate::config::Config;
use crate::sched::SCHED_CAPACITY_SCALE;
use crate::{Context, Scheduler};
use schedtwin_types::TaskGroupId;

/// `UCLAMP_PERCENT_SCALE`: 100.00 %, in hundredths of a percent.
const PERCENT_SCALE: u32 = 10_000;

/// A group's clamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupClamps {
    /// The values of its files (`uclamp_req`).
    request: Clamps,
    /// The part of the request that is effective (`uclamp`).
    effective: Clamps,
}

impl GroupClamps {
    /// Of the root, which has no files: the system-wide limits.
    pub(crate) fn root(config: &Config) -> GroupClamps {
        let limits = system_clamps(config);
        GroupClamps { request: limits, effective: below(limits, limits) }
    }

    /// Of a new group below one with these.
    pub(crate) fn new(above: GroupClamps) -> GroupClamps {
        GroupClamps { request: Clamps::NONE, effective: below(Clamps::NONE, above.effective) }
    }

    /// Restricts a task's clamps to those of the group (`uclamp_tg_restrict`).
    pub(super) fn restrict(self, task: Clamps) -> Clamps {
        let Clamps { min, max } = self.effective;
        Clamps { min: task.min.clamp(min, max), max: task.max.clamp(min, max) }
    }
}

/// Returns the part of a request that is effective below a group.
fn below(request: Clamps, above: Clamps) -> Clamps {
    let max = request.max.min(above.max);
    Clamps { min: request.min.min(above.min).min(max), max }
}

/// `capacity_from_percent()`: hundredths of a percent as a capacity.
///
/// ```
/// use schedtwin_kernel::sched::demand::uclamp::group::capacity_from_percent;
/// assert_eq!(capacity_from_percent(2_000), 205); // 20 %: 204.8
/// assert_eq!(capacity_from_percent(10_000), 1024);
/// ```
pub fn capacity_from_percent(percent: u32) -> u32 {
    (percent * SCHED_CAPACITY_SCALE as u32 + PERCENT_SCALE / 2) / PERCENT_SCALE
}

impl Scheduler {
    /// `cpu_uclamp_write()`: the files `cpu.uclamp.min` and `cpu.uclamp.max` of a group are written, those that are given:
    /// hundredths of a percent, 0..=10000; `max` is 10000.
    pub(crate) fn cpu_uclamp_write(
        &mut self,
        group: TaskGroupId,
        min: Option<u32>,
        max: Option<u32>,
        cx: &Context,
    ) {
        assert!(group != TaskGroupId::ROOT, "the root's clamps are the system's limits");
        for (percent, is_max) in [(min, false), (max, true)] {
            let Some(percent) = percent else { continue };
            assert!(cx.uclamp_compiled_in(), "there are no such files without clamps");
            assert!(percent <= PERCENT_SCALE, "{percent} hundredths of a percent");
            let mut value = capacity_from_percent(percent);
            if value != SCHED_CAPACITY_SCALE as u32 {
                value = cx.scaled_clamp(value);
            }
            let request = &mut self.groups[group].uclamp.request;
            *(if is_max { &mut request.max } else { &mut request.min }) = value;
            self.set_uclamp_key(true, cx);
            self.cpu_util_update_eff(group, cx);
        }
    }

    /// `cpu_util_update_eff()`: a group's request has changed.
    fn cpu_util_update_eff(&mut self, top: TaskGroupId, cx: &Context) {
        // Groups come behind those that they are in.
        for index in top.index()..self.groups.len() {
            let group = TaskGroupId::from_index(index);
            let Some(parent) = self.groups[group].parent else { continue };
            let above = self.groups[parent].uclamp.effective;
            let clamps = &mut self.groups[group].uclamp;
            let effective = below(clamps.request, above);
            if std::mem::replace(&mut clamps.effective, effective) != effective {
                self.uclamp_update_active_tasks(group, cx);
            }
        }
    }

    /// `uclamp_update_active_tasks()`: tasks that are counted are counted anew.
    fn uclamp_update_active_tasks(&mut self, group: TaskGroupId, cx: &Context) {
        for index in 0..self.tasks.len() {
            let task = schedtwin_types::TaskId::from_index(index);
            let t = &self.tasks[task];
            if t.group == group
                && let Some(old) = t.uclamp.active
            {
                let (cpu, new) = (t.cpu, self.uclamp_eff_get(task, cx));
                self.tasks[task].uclamp.active = Some(new);
                self.change_uclamp(cpu, |uclamp| uclamp.reinc(old, new));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;
    use crate::config::Uclamp;
    use crate::sched::TaskKind;
    use crate::sched::core::ENQUEUE_WAKEUP;
    use crate::sched::demand::uclamp::UclampRequest;
    use crate::sched::root_domain::tests::little_and_big;
    use schedtwin_types::{CpuId, TaskId};

    const CPU: CpuId = CpuId(1);

    fn boot(change: impl FnOnce(&mut Config)) -> Kernel {
        let mut config = Config { fair_group_sched: true, ..Config::linux_6_12() };
        change(&mut config);
        little_and_big(config)
    }

    fn task(kernel: &mut Kernel, group: TaskGroupId, min: u16, max: u16) -> TaskId {
        let p = kernel.new_task(None, TaskKind::User);
        kernel.sched.tasks[p].uclamp_req = UclampRequest { min: Some(min), max: Some(max) };
        (kernel.sched.tasks[p].group, kernel.sched.tasks[p].cgroup) = (group, group);
        kernel.sched.tasks[p].cpu = CPU;
        kernel.sched.set_task_rq(p, CPU);
        p
    }

    fn clamps(min: u32, max: u32) -> Clamps {
        Clamps { min, max }
    }

    /// The header's table; what a task asks for, and what a group makes of it.
    #[test]
    fn what_groups_leave() {
        let mut kernel = boot(|_| {});
        let app = kernel.sched.new_task_group(TaskGroupId::ROOT, 1024, &kernel.cx);
        let background = kernel.sched.new_task_group(app, 1024, &kernel.cx);
        assert!(!kernel.sched.uclamp_is_used());
        kernel.sched.cpu_uclamp_write(app, Some(1000), None, &kernel.cx);
        assert!(kernel.sched.uclamp_is_used(), "who writes such a file uses clamps");
        kernel.sched.cpu_uclamp_write(background, Some(5000), Some(2000), &kernel.cx);
        assert_eq!(kernel.sched.groups[app].uclamp.effective, clamps(102, 1024));
        assert_eq!(kernel.sched.groups[background].uclamp.effective, clamps(102, 205));
        for (group, asked, expected) in [
            (TaskGroupId::ROOT, (0, 1024), clamps(0, 1024)),
            (app, (0, 1024), clamps(102, 1024)),
            (background, (300, 700), clamps(205, 205)),
            (background, (0, 50), clamps(102, 102)),
        ] {
            let p = task(&mut kernel, group, asked.0, asked.1);
            assert_eq!(
                kernel.sched.uclamp_eff_value(p, &kernel.cx),
                expected,
                "{group:?} {asked:?}"
            );
        }
        // A new group begins with what the one above leaves.
        let newer = kernel.sched.new_task_group(background, 1024, &kernel.cx);
        assert_eq!(kernel.sched.groups[newer].uclamp.effective, clamps(0, 205));
    }

    /// The system's limits hold for the root's tasks and for all groups, and writing one turns the key on.
    #[test]
    fn system_wide_limits() {
        let mut kernel = boot(|config| {
            config.uclamp = Uclamp::KeyOff;
            (config.uclamp_util_min, config.uclamp_util_max) = (300, 800);
        });
        assert!(kernel.sched.uclamp_is_used());
        let root = task(&mut kernel, TaskGroupId::ROOT, 500, 1024);
        assert_eq!(kernel.sched.uclamp_eff_value(root, &kernel.cx), clamps(300, 800));
        let group = kernel.sched.new_task_group(TaskGroupId::ROOT, 1024, &kernel.cx);
        kernel.sched.cpu_uclamp_write(group, Some(10_000), None, &kernel.cx);
        assert_eq!(kernel.sched.groups[group].uclamp.effective, clamps(300, 800));
        let p = task(&mut kernel, group, 0, 100);
        assert_eq!(kernel.sched.uclamp_eff_value(p, &kernel.cx), clamps(300, 300));
    }

    /// A queued task is counted anew when its group's clamps change, and so is one whose group's parent's do; another
    /// group's is not.
    #[test]
    fn queued_tasks_follow_at_once() {
        let mut kernel = boot(|config| config.uclamp = Uclamp::On);
        let app = kernel.sched.new_task_group(TaskGroupId::ROOT, 1024, &kernel.cx);
        let inner = kernel.sched.new_task_group(app, 1024, &kernel.cx);
        let p = task(&mut kernel, inner, 0, 1024);
        kernel.activate_task(CPU, p, ENQUEUE_WAKEUP);
        let of = |k: &Kernel| k.sched.rq[CPU].uclamp.clamps();
        assert_eq!(of(&kernel), clamps(0, 1024));
        kernel.sched.cpu_uclamp_write(inner, None, Some(3000), &kernel.cx);
        assert_eq!(of(&kernel), clamps(0, 307));
        kernel.sched.cpu_uclamp_write(app, None, Some(1000), &kernel.cx);
        assert_eq!(of(&kernel), clamps(0, 102));
        kernel.sched.verify_uclamp(CPU, &kernel.sched.tasks_of(CPU));
        kernel.sched.cpu_uclamp_write(inner, Some(500), None, &kernel.cx);
        assert_eq!(of(&kernel), clamps(0, 102), "the group above allows no minimum");
        kernel.sched.cpu_uclamp_write(app, Some(500), None, &kernel.cx);
        assert_eq!(of(&kernel), clamps(51, 102));
        let other = kernel.sched.new_task_group(TaskGroupId::ROOT, 1024, &kernel.cx);
        kernel.sched.cpu_uclamp_write(other, Some(9000), None, &kernel.cx);
        assert_eq!(of(&kernel), clamps(51, 102));
        kernel.sched.verify_uclamp(CPU, &kernel.sched.tasks_of(CPU));
    }

    /// Clamps that are all reduced to 0.8: of tasks, of groups, but not those that are none.
    #[test]
    fn scaled() {
        let mut kernel = boot(|config| {
            config.uclamp = Uclamp::On;
            config.uclamp_scale_permille = 800;
        });
        let group = kernel.sched.new_task_group(TaskGroupId::ROOT, 1024, &kernel.cx);
        for (asked, expected) in
            [((500, 1000), clamps(400, 800)), ((1024, 1024), clamps(819, 1024))]
        {
            let p = task(&mut kernel, TaskGroupId::ROOT, asked.0, asked.1);
            assert_eq!(kernel.sched.uclamp_eff_value(p, &kernel.cx), expected);
        }
        kernel.sched.cpu_uclamp_write(group, None, Some(5000), &kernel.cx);
        assert_eq!(kernel.sched.groups[group].uclamp.effective, clamps(0, 410));
    }
}
