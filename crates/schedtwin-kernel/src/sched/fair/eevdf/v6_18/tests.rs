// SPDX-License-Identifier: GPL-2.0-or-later
//! Protection and changes of weight, worked out by hand.

use super::*;
use crate::config::{Config, EevdfForm, FrequencyGovernor, LagLimit, ReweightEntity};
use crate::device_tree::DeviceTree;
use crate::sched::TaskKind;
use crate::sched::core::{ENQUEUE_NOCLOCK, ENQUEUE_WAKEUP};
use crate::sched::fair::weight_of;
use schedtwin_types::Policy;

const CPU: CpuId = CpuId(0);
const US: u64 = 1000;
/// Where virtual time is.
const ZERO: u64 = 10_000 * US;

/// A CPU with tasks of nice 0, by virtual runtime (us after [`ZERO`]) and slice; the first runs if `runs`.
fn queue(entities: &[(i64, u64)], runs: bool) -> (Kernel, Vec<EntityId>) {
    let cpu = DeviceTree::of_domains(&[(1, 1024, &[(1_000_000, 1)])]);
    let mut kernel = Kernel::boot(
        DeviceTree { nr_threads_hint: entities.len(), ..cpu },
        Config {
            eevdf_form: EevdfForm::V6_18,
            reweight_entity: ReweightEntity::Placed,
            lag_limit: LagLimit::MaxSliceAndTick,
            base_slice_unscaled: 2_800 * US,
            cpufreq: FrequencyGovernor::Performance,
            fair_server_runtime: 0,
            ..Config::linux_6_12()
        },
    );
    kernel.cx.now = 5_000_000;
    kernel.sched.update_rq_clock(CPU, &kernel.cx);
    let root = CfsRqId::root(CPU);
    let mut all = Vec::new();
    for &(vruntime, slice) in entities {
        let task = kernel.new_task(None, TaskKind::User);
        let se = kernel.sched.se_of(task);
        kernel.sched.se[se].load = weight_of(Policy::Normal, 0);
        kernel.sched.se[se].slice = slice * US;
        kernel.sched.se[se].custom_slice = true;
        kernel.activate_task(CPU, task, ENQUEUE_WAKEUP | ENQUEUE_NOCLOCK);
        kernel.sched.timeline_remove(root, se);
        let entity = &mut kernel.sched.se[se];
        entity.vruntime = ZERO.wrapping_add_signed(vruntime * US as i64);
        entity.deadline = entity.vruntime + entity.slice;
        entity.vlag = 0;
        kernel.sched.timeline_insert(root, se);
        all.push(se);
    }
    if runs {
        kernel.sched.timeline_remove(root, all[0]);
        kernel.sched.cfs[root].curr = Some(all[0]);
    }
    (kernel, all)
}

/// `reweight_entity()` of the first, from 1024 to 512.
fn halve(kernel: &mut Kernel, se: EntityId, runs: bool) {
    let root = CfsRqId::root(CPU);
    let weight = weight_of(Policy::Normal, 0).weight / 2;
    let Kernel { sched, cx, .. } = kernel;
    let average = sched.avg_vruntime(root);
    assert_eq!(average, ZERO);
    if !runs {
        sched.timeline_remove(root, se);
    }
    let how = sched.reweight_eevdf(se, average, weight, cx);
    sched.se[se].load.weight = weight;
    sched.se[se].load.inv_weight = 0;
    sched.reweighted(root, se, how, cx);
    if !runs {
        sched.timeline_insert(root, se);
    }
}

#[test]
fn a_shorter_slice_bounds_the_protection() {
    for (other, protected) in [(2_800, 2_800), (1_000, 1_000), (5_000, 2_800)] {
        let (mut kernel, all) = queue(&[(0, 2_800), (0, other)], true);
        kernel.sched.set_protect_slice_6_18(CfsRqId::root(CPU), all[0], &kernel.cx);
        let vprot = kernel.sched.se[all[0]].vlag as u64;
        assert_eq!(vprot, ZERO + protected * US, "{other}");
        assert!(kernel.sched.protect_slice(all[0], &kernel.cx));
    }
}

#[test]
fn a_wakee_that_does_not_preempt_moves_the_protection_nearer() {
    for (other, protected) in [(1_000, 1_500), (2_800, 2_800)] {
        let (mut kernel, all) = queue(&[(500, 2_800), (0, other)], true);
        kernel.sched.se[all[0]].vlag = (ZERO + 2_800 * US) as i64;
        kernel.sched.update_protect_slice_6_18(CfsRqId::root(CPU), all[0], &kernel.cx);
        assert_eq!(kernel.sched.se[all[0]].vlag as u64, ZERO + protected * US, "{other}");
    }
}

/// 1 ms ahead of the average: 2 ms at half of the weight, 3 ms to keep 2 once it counts, from an average that is 1 ms earlier
/// without it.
#[test]
fn who_waits_is_placed_with_its_inflated_lag() {
    let (mut kernel, all) = queue(&[(1_000, 2_800), (-1_000, 2_800)], false);
    halve(&mut kernel, all[0], false);
    let entity = &kernel.sched.se[all[0]];
    assert_eq!(entity.vruntime, ZERO + 2_000 * US);
    // 1.8 ms + 2 ms of its request were left, which is twice as much.
    assert_eq!(entity.deadline, entity.vruntime + 5_600 * US);
    assert_eq!(kernel.sched.avg_vruntime(CfsRqId::root(CPU)), ZERO);
}

/// The running entity counts in the average and in the weights already, with its new weight. Its protection is lost: its lag is
/// computed first, into the same storage.
#[test]
fn who_runs_is_placed_among_others_that_include_it() {
    let (mut kernel, all) = queue(&[(1_000, 2_800), (-1_000, 2_800)], true);
    // 1 ms of its slice is protected.
    kernel.sched.se[all[0]].vlag = (ZERO + 2_000 * US) as i64;
    halve(&mut kernel, all[0], true);
    let entity = &kernel.sched.se[all[0]];
    assert_eq!(entity.vruntime, ZERO + 2_333_332);
    assert_eq!(entity.vlag, -2_000_000);
    assert!(!entity.is_protected_6_18());
}

#[test]
fn who_is_alone_stays_where_it_is() {
    let (mut kernel, all) = queue(&[(0, 2_800)], true);
    kernel.sched.se[all[0]].vlag = ZERO as i64;
    halve(&mut kernel, all[0], true);
    let entity = &kernel.sched.se[all[0]];
    assert_eq!(entity.vruntime, ZERO);
    assert!(!entity.is_protected_6_18());
}

#[test]
fn lag_and_relative_deadline_are_rescaled_off_the_queue() {
    let (mut kernel, all) = queue(&[(0, 2_800), (0, 2_800)], false);
    for (rel_deadline, deadline) in [(true, 5_600), (false, 2_800)] {
        let entity = &mut kernel.sched.se[all[0]];
        (entity.vlag, entity.deadline, entity.rel_deadline) = (-1_000_000, 2_800_000, rel_deadline);
        entity.rescale_6_18(entity.load.weight / 2);
        assert_eq!((entity.vlag, entity.deadline), (-2_000_000, deadline * US));
    }
}
