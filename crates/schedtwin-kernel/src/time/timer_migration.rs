// SPDX-License-Identifier: GPL-2.0-or-later
//! The timer migration hierarchy: who expires the global timers of CPUs that are idle.
//!
//! **Idea.** Since 6.9 a timer stays on the CPU that armed it. If that CPU goes idle, another one that is awake expires the
//! timer in its place, so that nobody is woken for it. Only the last CPU to go idle takes the first timer of all as an event
//! of its own.
//!
//! **Terms.** CPUs are in groups of eight, these in groups of eight, and so on to one group at the top. *Active*: a CPU whose
//! tick goes on, a group with such a CPU. *Migrator* of a group: the active child that looks after the timers of the idle
//! ones. *Event*: the first global timer of an idle CPU, or the first one below an idle group, queued one level up.
//!
//! ```text
//!        group 2     migrator: group 1      events: group 0, 50 ms
//!        /     \
//!   group 0   group 1   migrator: cpu9      events of group 0: cpu3, 50 ms
//!   (idle)    cpu9 active
//! ```
//!
//! **Algorithm.**
//! 1. A CPU that stops its tick leaves its group, and queues its event there. Another active child becomes migrator. If there
//!    is none, the group leaves its parent in the same way, with its first event.
//! 2. Where the top group has no active child left, the CPU learns the first event of all, and wakes up for it.
//! 3. A CPU that restarts its tick joins its group, and so on upwards where nobody was active. Its own event is ignored.
//! 4. A tick looks at the events of the groups in which its CPU is migrator. What is due is expired in the softirq.
//!
//! **Example.** 250 Hz, two CPUs. CPU 0 stops at jiffy 100 with a timer for 150 while CPU 1 is busy: CPU 0 sleeps without an
//! event, and CPU 1's tick at 150 expires the timer. If CPU 1 stops at 120, it sleeps until 150 and expires it then.
//!
//! Kernel: 6.12.95 kernel/time/timer_migration.c `tmigr_update_events`, `tmigr_active_up`, `tmigr_inactive_up`,
//! `tmigr_quick_check`, `tmigr_requires_handle_remote`, `tmigr_handle_remote_up`, `tmigr_setup_groups`; the same in 7.3.
//! Differences: entries are atomic, so no two CPUs walk at the same time. 7.3 leaves isolated CPUs out; the model has none.

use super::timer::bases::NEVER;
use schedtwin_types::CpuId;

/// `TMIGR_CHILDREN_PER_GROUP`.
const CHILDREN_PER_GROUP: usize = 8;
/// `TMIGR_NONE`.
const NONE: u8 = 0xff;

/// `struct tmigr_event`.
#[derive(Clone, Copy, Debug)]
struct Event {
    expires: u64,
    /// It does not count: its CPU is awake, or it has no timer.
    ignore: bool,
    /// It is among the events of its group.
    queued: bool,
    /// The CPU whose timer it is.
    cpu: CpuId,
}

/// `struct tmigr_group`.
#[derive(Clone, Debug)]
struct Group {
    parent: Option<usize>,
    /// Its bit in its parent.
    groupmask: u8,
    migrator: u8,
    active: u8,
    num_children: usize,
    /// The events of its children by their numbers, earliest first (`events`).
    events: Vec<usize>,
    next_expiry: u64,
    /// The NUMA node, of groups below the level that joins nodes.
    node: Option<usize>,
}

/// `struct tmigr_cpu`.
#[derive(Clone, Copy, Debug)]
struct TmigrCpu {
    group: usize,
    groupmask: u8,
    idle: bool,
    /// Another CPU is expiring its timers.
    remote: bool,
    /// When it has to wake up for the sake of all.
    wakeup: u64,
}

/// The hierarchy of a machine.
#[derive(Clone, Debug)]
pub struct TimerMigration {
    cpus: Vec<TmigrCpu>,
    groups: Vec<Group>,
    /// Of each CPU, then of each group (`groupevt`).
    events: Vec<Event>,
}

/// `struct tmigr_walk`.
struct Walk {
    nextexp: u64,
    firstexp: u64,
    /// The CPU whose event is updated.
    cpu: usize,
    remote: bool,
}

impl TimerMigration {
    /// The hierarchy of CPUs of which each is in the NUMA node that `nodes` says; all CPUs are awake.
    pub fn new(nodes: &[usize]) -> TimerMigration {
        let nr_cpus = nodes.len();
        let nr_nodes = nodes.iter().max().map_or(1, |last| last + 1);
        let largest = (0..nr_nodes).map(|node| nodes.iter().filter(|n| **n == node).count());
        let levels = |count: usize| {
            let bits = count.next_power_of_two().trailing_zeros();
            bits.div_ceil(CHILDREN_PER_GROUP.trailing_zeros()) as usize
        };
        let crossnode = levels(largest.max().unwrap_or(1));
        let mut all = TimerMigration { cpus: Vec::new(), groups: Vec::new(), events: Vec::new() };
        let mut children: Vec<(usize, usize)> = Vec::new();
        for (cpu, node) in nodes.iter().copied().enumerate() {
            let group = all.group_with_space(0, node, crossnode > 0);
            let groupmask = all.groups[group].take_place();
            all.cpus.push(TmigrCpu { group, groupmask, idle: false, remote: false, wakeup: NEVER });
            if children.last().is_none_or(|(last, _)| *last != group)
                && !children.iter().any(|(known, _)| *known == group)
            {
                children.push((group, node));
            }
            let none =
                Event { expires: NEVER, ignore: true, queued: false, cpu: CpuId(cpu as u16) };
            all.events.push(none);
        }
        let mut level = 1;
        while children.len() > 1 {
            let first = all.groups.len();
            let mut parents: Vec<(usize, usize)> = Vec::new();
            for (child, node) in children {
                let parent = all.group_with_space(first, node, level < crossnode);
                let groupmask = all.groups[parent].take_place();
                (all.groups[child].parent, all.groups[child].groupmask) = (Some(parent), groupmask);
                if !parents.iter().any(|(known, _)| *known == parent) {
                    parents.push((parent, node));
                }
            }
            children = parents;
            level += 1;
        }
        let none = Event { expires: NEVER, ignore: true, queued: false, cpu: CpuId(0) };
        all.events.resize(nr_cpus + all.groups.len(), none);
        (0..nr_cpus).for_each(|cpu| all.active_up(cpu));
        all
    }

    /// A group, of those from `first` on, that takes another child of `node`.
    fn group_with_space(&mut self, first: usize, node: usize, of_node: bool) -> usize {
        let node = of_node.then_some(node);
        let takes = |group: &Group| group.node == node && group.num_children < CHILDREN_PER_GROUP;
        if let Some(found) = self.groups[first..].iter().position(takes) {
            return first + found;
        }
        self.groups.push(Group {
            parent: None,
            groupmask: 0,
            migrator: NONE,
            active: 0,
            num_children: 0,
            events: Vec::with_capacity(CHILDREN_PER_GROUP),
            next_expiry: NEVER,
            node,
        });
        self.groups.len() - 1
    }

    /// The number of a group's own event.
    fn groupevt(&self, group: usize) -> usize {
        self.cpus.len() + group
    }

    /// `tmigr_check_migrator()`: whether the child is the migrator, or there is none.
    fn check_migrator(&self, group: usize, childmask: u8) -> bool {
        let migrator = self.groups[group].migrator;
        migrator == childmask || migrator == NONE
    }

    /// `tmigr_next_groupevt()`: the group's first event that counts. Those before it are taken out.
    fn next_groupevt(&mut self, group: usize) -> Option<usize> {
        self.groups[group].next_expiry = NEVER;
        while let Some(first) = self.groups[group].events.first().copied() {
            if !self.events[first].ignore {
                self.groups[group].next_expiry = self.events[first].expires;
                return Some(first);
            }
            self.dequeue(group, first);
            if self.groups[group].events.is_empty() {
                break;
            }
        }
        None
    }

    fn dequeue(&mut self, group: usize, event: usize) {
        self.groups[group].events.retain(|queued| *queued != event);
        self.events[event].queued = false;
    }

    /// `timerqueue_add()`: later than those for the same time. Whether it is the first.
    fn enqueue(&mut self, group: usize, event: usize) -> bool {
        let expires = self.events[event].expires;
        let queue = &self.groups[group].events;
        let at = queue.iter().take_while(|other| self.events[**other].expires <= expires).count();
        self.groups[group].events.insert(at, event);
        self.events[event].queued = true;
        at == 0
    }

    /// `tmigr_active_up()` from a CPU: up to where somebody was active already.
    fn active_up(&mut self, cpu: usize) {
        self.events[cpu].ignore = true;
        self.cpus[cpu].wakeup = NEVER;
        let TmigrCpu { mut group, groupmask: mut childmask, .. } = self.cpus[cpu];
        loop {
            let of = &mut self.groups[group];
            let first = of.migrator == NONE;
            if first {
                of.migrator = childmask;
            }
            of.active |= childmask;
            let (parent, groupmask) = (of.parent, of.groupmask);
            let event = self.groupevt(group);
            // At boot groups have no events yet.
            if let Some(event) = self.events.get_mut(event) {
                event.ignore = true;
            }
            match parent {
                Some(parent) if first => (group, childmask) = (parent, groupmask),
                _ => break,
            }
        }
    }

    /// `tmigr_cpu_activate()`: the tick of a CPU goes on again.
    pub fn cpu_activate(&mut self, cpu: CpuId) {
        let cpu = cpu.index();
        assert!(self.cpus[cpu].idle, "an active CPU stays so");
        self.cpus[cpu].idle = false;
        self.active_up(cpu);
    }

    /// `tmigr_update_events()`; whether the walk ends here. `child`: the group from which it comes.
    fn update_events(&mut self, group: usize, child: Option<usize>, walk: &mut Walk) -> bool {
        let mut done = false;
        let (event, nextexp, first_cpu);
        if let Some(child) = child {
            if self.groups[child].active != 0 {
                return true;
            }
            let first = self.next_groupevt(child);
            nextexp = self.groups[child].next_expiry;
            event = self.groupevt(child);
            self.events[event].ignore = nextexp == NEVER;
            first_cpu = first.map(|first| self.events[first].cpu);
        } else {
            nextexp = walk.nextexp;
            event = walk.cpu;
            first_cpu = Some(self.events[event].cpu);
            if self.events[event].ignore && !walk.remote && self.groups[group].parent.is_some() {
                return true;
            }
        }
        let Event { expires, ignore, queued, .. } = self.events[event];
        if queued && expires == nextexp && !ignore {
            self.events[event].cpu = first_cpu.expect("an event that counts has a CPU");
        } else {
            if queued {
                self.dequeue(group, event);
                if self.groups[group].events.is_empty() {
                    self.groups[group].next_expiry = NEVER;
                }
            }
            if ignore {
                done = !walk.remote || self.groups[group].active != 0;
            } else {
                self.events[event].expires = nextexp;
                self.events[event].cpu = first_cpu.expect("an event that counts has a CPU");
                if self.enqueue(group, event) {
                    self.groups[group].next_expiry = nextexp;
                }
            }
        }
        if self.groups[group].parent.is_none() && self.groups[group].migrator == NONE {
            done = true;
            if !walk.remote {
                self.next_groupevt(group);
                walk.firstexp = self.groups[group].next_expiry;
            }
        }
        done
    }

    /// `tmigr_new_timer_up()` from a CPU on.
    fn new_timer_up(&mut self, walk: &mut Walk) {
        let (mut group, mut child) = (self.cpus[walk.cpu].group, None);
        while !self.update_events(group, child, walk) {
            let Some(parent) = self.groups[group].parent else { break };
            (child, group) = (Some(group), parent);
        }
    }

    /// `tmigr_cpu_new_timer()`: a CPU that is idle already has another first global timer. Returns its wakeup.
    pub fn cpu_new_timer(&mut self, cpu: CpuId, nextexp: u64) -> u64 {
        let cpu = cpu.index();
        let Event { expires, ignore, .. } = self.events[cpu];
        if nextexp == NEVER || (nextexp == expires && !ignore) {
            return self.cpus[cpu].wakeup;
        }
        let mut walk = Walk { nextexp, firstexp: NEVER, cpu, remote: false };
        if !self.cpus[cpu].remote {
            self.events[cpu].ignore = false;
            self.new_timer_up(&mut walk);
        }
        self.cpus[cpu].wakeup = walk.firstexp;
        walk.firstexp
    }

    /// `tmigr_cpu_deactivate()`: a CPU stops its tick. Returns when it has to wake up for the sake of all.
    pub fn cpu_deactivate(&mut self, cpu: CpuId, nextexp: u64) -> u64 {
        let cpu = cpu.index();
        let mut walk = Walk { nextexp, firstexp: NEVER, cpu, remote: false };
        if nextexp != NEVER {
            self.events[cpu].ignore = false;
        }
        let TmigrCpu { mut group, groupmask: mut childmask, .. } = self.cpus[cpu];
        let mut child = None;
        loop {
            // tmigr_inactive_up()
            let child_active = child.is_some_and(|child: usize| self.groups[child].active != 0);
            let of = &mut self.groups[group];
            let mut done = true;
            if !child_active {
                of.active &= !childmask;
                if of.migrator == childmask {
                    let next = of.active & of.active.wrapping_neg();
                    of.migrator = if next != 0 { next } else { NONE };
                    done = next != 0;
                }
            }
            let (parent, groupmask) = (of.parent, of.groupmask);
            self.update_events(group, child, &mut walk);
            match parent {
                Some(parent) if !done => {
                    (child, group, childmask) = (Some(group), parent, groupmask)
                }
                _ => break,
            }
        }
        self.cpus[cpu].idle = true;
        self.cpus[cpu].wakeup = walk.firstexp;
        walk.firstexp
    }

    /// `tmigr_quick_check()`: as [`TimerMigration::cpu_deactivate`], without changing anything.
    pub fn quick_check(&self, cpu: CpuId, nextexp: u64) -> u64 {
        let TmigrCpu { group, groupmask, .. } = self.cpus[cpu.index()];
        if !self.check_migrator(group, groupmask) {
            return NEVER;
        }
        let (mut at, mut next) = (Some(group), nextexp);
        while let Some(group) = at {
            let of = &self.groups[group];
            if of.active.count_ones() > 1 {
                return NEVER;
            }
            next = next.min(of.next_expiry);
            at = of.parent;
        }
        next
    }

    /// `tmigr_requires_handle_remote()`: whether a tick of the CPU has to raise the softirq for others.
    pub fn requires_handle_remote(&self, cpu: CpuId, now: u64) -> bool {
        let TmigrCpu { group, groupmask, idle, wakeup, .. } = self.cpus[cpu.index()];
        if idle {
            return now >= wakeup;
        }
        let (mut at, mut childmask) = (Some(group), groupmask);
        while let Some(group) = at {
            if !self.check_migrator(group, childmask) {
                return false;
            }
            if now >= self.groups[group].next_expiry {
                return true;
            }
            (at, childmask) = (self.groups[group].parent, self.groups[group].groupmask);
        }
        false
    }

    /// Begins to expire the timers of others (`tmigr_handle_remote`): whether the CPU is the one to do it.
    pub fn handles_remote(&self, cpu: CpuId) -> bool {
        let TmigrCpu { group, groupmask, wakeup, .. } = self.cpus[cpu.index()];
        self.check_migrator(group, groupmask) || wakeup != NEVER
    }

    /// The next step of `tmigr_handle_remote_up()` from `at` on: a CPU whose global timers are due, or the end of the walk.
    pub fn next_remote(&mut self, at: &mut RemoteWalk, now: u64) -> Option<CpuId> {
        while let Some((group, childmask)) = at.group {
            if !self.check_migrator(group, childmask) {
                at.group = None;
                return None;
            }
            // tmigr_next_expired_groupevt()
            if let Some(first) = self.next_groupevt(group)
                && now >= self.events[first].expires
            {
                self.dequeue(group, first);
                self.next_groupevt(group);
                return Some(self.events[first].cpu);
            }
            let of = &self.groups[group];
            at.firstexp = of.next_expiry;
            at.group = of.parent.map(|parent| (parent, of.groupmask));
        }
        None
    }

    /// Where the walk of a CPU that handles the timers of others begins.
    pub fn remote_walk(&self, cpu: CpuId) -> RemoteWalk {
        let TmigrCpu { group, groupmask, .. } = self.cpus[cpu.index()];
        RemoteWalk { group: Some((group, groupmask)), firstexp: NEVER }
    }

    /// The walk of a CPU is over.
    pub fn remote_walk_ends(&mut self, cpu: CpuId, walk: RemoteWalk) {
        self.cpus[cpu.index()].wakeup = walk.firstexp;
    }

    /// Whether the timers of `cpu` are to be expired by another one; that one does so if it is (`tmigr_handle_remote_cpu`).
    pub fn remote_begins(&mut self, cpu: CpuId, now: u64) -> bool {
        let Event { expires, ignore, .. } = self.events[cpu.index()];
        let of = &mut self.cpus[cpu.index()];
        let due = !of.remote && !ignore && now >= expires;
        if due {
            of.remote = true;
            of.wakeup = NEVER;
        }
        due
    }

    /// They have been expired; `nextexp`: the next one.
    pub fn remote_ends(&mut self, cpu: CpuId, nextexp: u64) {
        if self.cpus[cpu.index()].idle {
            let mut walk = Walk { nextexp, firstexp: NEVER, cpu: cpu.index(), remote: true };
            self.new_timer_up(&mut walk);
        }
        self.cpus[cpu.index()].remote = false;
    }

    /// Asserts what holds between entries. `is_idle`: whether the bases of a CPU are marked idle.
    pub fn verify(&self, is_idle: impl Fn(CpuId) -> bool) {
        for (index, cpu) in self.cpus.iter().enumerate() {
            let id = CpuId(index as u16);
            assert_eq!(cpu.idle, is_idle(id), "{id:?}: idle in the hierarchy, and its bases");
            let active = self.groups[cpu.group].active & cpu.groupmask != 0;
            assert_ne!(active, cpu.idle, "{id:?}: active in its group");
            assert!(!cpu.remote, "{id:?}: nobody is expiring its timers");
        }
        for (index, group) in self.groups.iter().enumerate() {
            assert_eq!(group.migrator == NONE, group.active == 0, "group {index}: its migrator");
            let sorted = group.events.iter().map(|event| self.events[*event].expires).is_sorted();
            assert!(sorted, "group {index}: its events");
            if let Some(parent) = group.parent {
                let active = self.groups[parent].active & group.groupmask != 0;
                assert_eq!(active, group.active != 0, "group {index}: active in its parent");
            } else if group.active == 0 {
                let counted = group.events.iter().filter(|event| !self.events[**event].ignore);
                let first = counted.map(|event| self.events[*event].expires).min();
                let wakeup = self.cpus.iter().map(|cpu| cpu.wakeup).min().unwrap_or(NEVER);
                assert!(first.unwrap_or(NEVER) >= wakeup, "nobody wakes up for the first timer");
            }
        }
    }
}

impl Group {
    /// Adds a child and returns its bit.
    fn take_place(&mut self) -> u8 {
        self.num_children += 1;
        1 << (self.num_children - 1)
    }
}

/// The place of a CPU that handles the timers of others in its walk upwards.
#[derive(Clone, Copy, Debug)]
pub struct RemoteWalk {
    group: Option<(usize, u8)>,
    firstexp: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_types::rng::Rng;

    const CPU0: CpuId = CpuId(0);
    const CPU1: CpuId = CpuId(1);

    /// Takes all that is due at `now` on `cpu`, as its softirq does; `next`: the next global timer of each CPU.
    fn handle(all: &mut TimerMigration, cpu: CpuId, now: u64, next: &mut [u64]) -> Vec<CpuId> {
        let mut handled = Vec::new();
        if !all.handles_remote(cpu) {
            return handled;
        }
        let mut walk = all.remote_walk(cpu);
        while let Some(remote) = all.next_remote(&mut walk, now) {
            if all.remote_begins(remote, now) {
                handled.push(remote);
                next[remote.index()] = NEVER;
                all.remote_ends(remote, NEVER);
            }
        }
        all.remote_walk_ends(cpu, walk);
        handled
    }

    #[test]
    fn a_busy_cpu_expires_the_timers_of_an_idle_one() {
        let mut all = TimerMigration::new(&[0; 2]);
        assert_eq!(all.cpu_deactivate(CPU0, 150), NEVER, "CPU 1 is awake");
        assert!(!all.requires_handle_remote(CPU1, 149));
        assert!(all.requires_handle_remote(CPU1, 150));
        assert_eq!(handle(&mut all, CPU1, 150, &mut [150, NEVER]), [CPU0]);
        assert!(!all.requires_handle_remote(CPU1, 151));
    }

    #[test]
    fn the_last_cpu_wakes_up_for_the_first_timer_of_all() {
        let mut all = TimerMigration::new(&[0; 2]);
        assert_eq!(all.cpu_deactivate(CPU0, 150), NEVER);
        assert_eq!(all.quick_check(CPU1, 200), 150);
        assert_eq!(all.cpu_deactivate(CPU1, 200), 150);
        assert!(all.requires_handle_remote(CPU1, 150), "its wakeup");
        assert!(!all.requires_handle_remote(CPU0, 150), "its timers are another's");
        assert_eq!(handle(&mut all, CPU1, 150, &mut [150, 200]), [CPU0]);
        assert!(all.requires_handle_remote(CPU1, 200));
    }

    #[test]
    fn a_cpu_that_wakes_takes_its_timers_back() {
        let mut all = TimerMigration::new(&[0; 2]);
        all.cpu_deactivate(CPU0, 150);
        all.cpu_activate(CPU0);
        assert_eq!(handle(&mut all, CPU1, 150, &mut [150, NEVER]), []);
        assert_eq!(all.cpu_deactivate(CPU1, NEVER), NEVER);
    }

    /// CPUs of one to three levels, on one node and on two, go idle and wake at random: whoever is responsible finds each timer.
    #[test]
    fn no_timer_is_forgotten() {
        for case in 0..400 {
            let mut rng = Rng::new(7, case);
            let count = 1 + rng.below(100) as usize;
            let per_node = if rng.one_in(2) { count } else { count.div_ceil(2) };
            let nodes: Vec<usize> = (0..count).map(|cpu| cpu / per_node).collect();
            let mut all = TimerMigration::new(&nodes);
            let mut idle = vec![false; count];
            let mut next = vec![NEVER; count];
            let mut now = 100;
            for _ in 0..200 {
                let cpu = rng.below(count as u64) as usize;
                let id = CpuId(cpu as u16);
                now += rng.below(3);
                // Ticks of those that are awake, and wakeups.
                for at in 0..count {
                    let id = CpuId(at as u16);
                    if all.requires_handle_remote(id, now) {
                        for done in handle(&mut all, id, now, &mut next) {
                            assert!(idle[done.index()], "case {case}: {done:?} is awake");
                        }
                    }
                }
                let due = (0..count).find(|at| idle[*at] && next[*at] <= now);
                assert_eq!(due, None, "case {case}: a timer of this CPU was forgotten at {now}");
                if idle[cpu] {
                    idle[cpu] = false;
                    next[cpu] = NEVER;
                    all.cpu_activate(id);
                } else {
                    idle[cpu] = true;
                    let with_timer = rng.one_in(2);
                    next[cpu] = if with_timer { now + 1 + rng.below(40) } else { NEVER };
                    let quick = all.quick_check(id, next[cpu]);
                    let wakeup = all.cpu_deactivate(id, next[cpu]);
                    assert!(quick <= wakeup, "case {case}: the query promises no later event");
                    if idle.iter().all(|idle| *idle) {
                        let first = next.iter().copied().min().unwrap();
                        assert_eq!(
                            wakeup, first,
                            "case {case}: the last one wakes up for the first"
                        );
                    }
                }
                all.verify(|cpu| idle[cpu.index()]);
            }
        }
    }
}
