// SPDX-License-Identifier: GPL-2.0-or-later
//! Our arithmetic against the kernel's: golden vectors always, the kernel's own C where a tree is
//! given.

use schedtwin_conformance::amd_pstate::AmdPstateCpu;
use schedtwin_conformance::balance::{Balance61, Balance73, Balance612, Balance612_95};
use schedtwin_conformance::bandwidth::{Bandwidth, Bandwidth61, Bandwidth73, Bandwidth618};
use schedtwin_conformance::capacity::{Capacity61, Capacity73, Capacity612, Capacity618};
use schedtwin_conformance::cfs::Cfs;
use schedtwin_conformance::dbs::Dbs;
use schedtwin_conformance::deadline_queues::{
    DeadlineQueues61, DeadlineQueues73, DeadlineQueues612, FairServer73, FairServer612,
};
use schedtwin_conformance::eevdf::Eevdf;
use schedtwin_conformance::eevdf::v6_18::Eevdf618;
use schedtwin_conformance::eevdf::v7_3::{Eevdf73, Eevdf73Flat};
use schedtwin_conformance::feec::{Feec61, Feec73, Feec519, Feec612, Feec618};
use schedtwin_conformance::haltpoll::{Haltpoll, Haltpoll61, HaltpollForm};
use schedtwin_conformance::hrtimer::{Hrtimers61, Hrtimers73, Hrtimers612, Hrtimers618};
use schedtwin_conformance::idle::{Form, World, tree_has_form};
use schedtwin_conformance::intel_pstate::IntelPstate;
use schedtwin_conformance::l0::{self, Subject};
use schedtwin_conformance::ladder::{Ladder, LadderForm};
use schedtwin_conformance::menu::{self, Menu5_18, Menu6_12, Menu73, Menu618};
use schedtwin_conformance::nohz::{Nohz61, Nohz73, Nohz612};
use schedtwin_conformance::pelt::{self, Pelt, Pelt61, Pelt73, Pelt612_95, Pelt618, PeltOf};
use schedtwin_conformance::rational;
use schedtwin_conformance::rt::{Rt61, Rt73, Rt612};
use schedtwin_conformance::sched_cache::SchedCaches;
use schedtwin_conformance::schedutil::{BEFORE_6_8, LINUX_7_3, SINCE_6_8, Schedutil};
use schedtwin_conformance::schedutil_4_7::Schedutil47;
use schedtwin_conformance::slow_path::{SlowPath61, SlowPath73, SlowPath612, SlowPath618};
use schedtwin_conformance::states::{self, States};
use schedtwin_conformance::teo::{
    Late, Patched, Teo, Teo73, Teo618, TeoLate, TeoLatePlain, TeoPatched, TeoRecent,
};
use schedtwin_conformance::timer_wheel::{TimerWheel61, TimerWheel73, TimerWheel612};
use schedtwin_conformance::uclamp::max::{self, Max};
use schedtwin_conformance::uclamp::sum::Sum;
use schedtwin_conformance::wakeups::{Wakeups61, Wakeups73, Wakeups612};

fn golden<S: Subject>() {
    match l0::golden::check::<S>() {
        Ok(summary) => println!("{summary}"),
        Err(difference) => panic!("{difference}"),
    }
}

#[test]
fn pelt_golden_vectors() {
    golden::<Pelt>();
    golden::<Pelt612_95>();
    golden::<Pelt618>();
    golden::<Pelt73>();
}

#[test]
fn pelt_6_1_golden_vectors() {
    golden::<Pelt61>();
}

#[test]
fn teo_golden_vectors() {
    golden::<Teo>();
    golden::<Teo618>();
    golden::<Teo73>();
}

#[test]
fn idle_golden_vectors_of_other_forms() {
    golden::<TeoRecent>();
    golden::<TeoLate>();
    golden::<TeoLatePlain>();
    golden::<Ladder>();
    golden::<Haltpoll>();
    golden::<Haltpoll61>();
    golden::<Menu5_18>();
    golden::<Menu6_12>();
    golden::<Menu618>();
    golden::<Menu73>();
}

#[test]
fn golden_vectors_of_utilisation_awareness() {
    golden::<TeoPatched<0>>();
    golden::<TeoPatched<1>>();
    golden::<TeoPatched<2>>();
    golden::<TeoPatched<3>>();
    golden::<TeoPatched<4>>();
}

#[test]
fn eevdf_golden_vectors() {
    golden::<Eevdf>();
    golden::<Eevdf618>();
    golden::<Eevdf73>();
    golden::<Eevdf73Flat>();
}

#[test]
fn cfs_golden_vectors() {
    golden::<Cfs>();
}

#[test]
fn schedutil_golden_vectors() {
    golden::<Schedutil<SINCE_6_8>>();
    golden::<Schedutil<BEFORE_6_8>>();
    golden::<Schedutil<LINUX_7_3>>();
    golden::<Schedutil47>();
}

#[test]
fn golden_vectors_of_governors() {
    golden::<Dbs<false>>();
    golden::<Dbs<true>>();
    golden::<IntelPstate<false>>();
    golden::<IntelPstate<true>>();
    golden::<AmdPstateCpu<0>>();
    golden::<AmdPstateCpu<1>>();
    golden::<AmdPstateCpu<2>>();
}

#[test]
fn sched_cache_golden_vectors() {
    golden::<SchedCaches>();
}

#[test]
fn golden_vectors_of_deadline_queues() {
    golden::<DeadlineQueues61>();
    golden::<DeadlineQueues612>();
    golden::<DeadlineQueues73>();
    golden::<FairServer612>();
    golden::<FairServer73>();
}

#[test]
fn deadline_queues_equal_the_kernels_c() {
    oracle::<DeadlineQueues61>(2_000);
    oracle::<DeadlineQueues612>(2_000);
    oracle::<DeadlineQueues73>(2_000);
    oracle::<FairServer612>(2_000);
    oracle::<FairServer73>(2_000);
}

#[test]
fn golden_vectors_of_cpu_max() {
    golden::<Bandwidth61>();
    golden::<Bandwidth>();
    golden::<Bandwidth618>();
    golden::<Bandwidth73>();
}

#[test]
fn cpu_max_equals_the_kernels_c() {
    oracle::<Bandwidth61>(2_000);
    oracle::<Bandwidth>(2_000);
    oracle::<Bandwidth618>(2_000);
    oracle::<Bandwidth73>(2_000);
}

#[test]
fn rt_golden_vectors() {
    golden::<Rt61>();
    golden::<Rt612>();
    golden::<Rt73>();
}

#[test]
fn rt_equals_the_kernels_c() {
    oracle::<Rt61>(2_000);
    oracle::<Rt612>(2_000);
    oracle::<Rt73>(2_000);
}

#[test]
fn timer_wheel_golden_vectors() {
    golden::<TimerWheel61>();
    golden::<TimerWheel612>();
    golden::<TimerWheel73>();
}

#[test]
fn hrtimer_golden_vectors() {
    golden::<Hrtimers61>();
    golden::<Hrtimers612>();
    golden::<Hrtimers618>();
    golden::<Hrtimers73>();
}

#[test]
fn hrtimers_and_the_tick_equal_the_kernels_c() {
    oracle::<Hrtimers61>(3_000);
    oracle::<Hrtimers612>(3_000);
    oracle::<Hrtimers618>(3_000);
    oracle::<Hrtimers73>(3_000);
}

#[test]
fn golden_vectors_of_clamps() {
    golden::<Max<{ max::LINUX_6_1 }>>();
    golden::<Max<{ max::LINUX_6_12 }>>();
    golden::<Max<{ max::LINUX_6_18 }>>();
    golden::<Max<{ max::LINUX_7_3 }>>();
    golden::<Sum>();
}

fn oracle<S: Subject>(cases: u64) {
    let Some(tree) = l0::kernel_tree(S::TREE) else {
        println!("skipped: {} is not set", S::TREE);
        return;
    };
    let dir = l0::BuildDir::new(&format!("test-{}", S::NAME)).unwrap();
    let oracle = S::build_oracle(&tree, dir.path(), &["-O1"]).unwrap();
    let found = l0::compare::<S>(&oracle, 7, cases, false).unwrap();
    assert_eq!(found.first_difference.as_deref(), None);
    assert_eq!((found.cases, found.differing), (cases, 0));
}

/// The same for PELT; the tree may be of another form.
fn pelt_oracle<const FORM: u8>() {
    match l0::kernel_tree(PeltOf::<FORM>::TREE).map(|tree| pelt::tree_has_form::<FORM>(&tree)) {
        Some(Err(why)) => println!("skipped: {why}"),
        _ => oracle::<PeltOf<FORM>>(20_000),
    }
}

#[test]
fn pelt_equals_the_kernels_c() {
    pelt_oracle::<{ pelt::LINUX_6_12 }>();
    pelt_oracle::<{ pelt::LINUX_6_12_95 }>();
    pelt_oracle::<{ pelt::LINUX_6_18 }>();
    pelt_oracle::<{ pelt::LINUX_7_3 }>();
}

/// The same for an idle governor; the tree may have another form of it.
fn idle_oracle<F: Form>() {
    match l0::kernel_tree(F::TREE).map(|tree| tree_has_form::<F>(&tree)) {
        Some(Err(why)) => println!("skipped: {why}"),
        _ => oracle::<World<F>>(20_000),
    }
}

#[test]
fn pelt_6_1_equals_the_kernels_c() {
    oracle::<Pelt61>(20_000);
}

#[test]
fn idle_governors_equal_the_kernels_c() {
    idle_oracle::<schedtwin_kernel::cpuidle::teo::v6_12::TeoCpu>();
    idle_oracle::<schedtwin_kernel::cpuidle::teo::v6_18::TeoCpu>();
    idle_oracle::<schedtwin_kernel::cpuidle::teo::v7_3::TeoCpu>();
    idle_oracle::<schedtwin_kernel::cpuidle::teo::v5_14::TeoCpu>();
    idle_oracle::<Late<true>>();
    idle_oracle::<Late<false>>();
    idle_oracle::<Patched<0>>();
    idle_oracle::<Patched<1>>();
    idle_oracle::<Patched<2>>();
    idle_oracle::<Patched<3>>();
    idle_oracle::<Patched<4>>();
    idle_oracle::<LadderForm>();
    idle_oracle::<HaltpollForm<true>>();
    idle_oracle::<HaltpollForm<false>>();
    idle_oracle::<menu::Waiters>();
    idle_oracle::<menu::Plain<{ menu::LINUX_6_12 }>>();
    idle_oracle::<menu::Plain<{ menu::LINUX_6_18 }>>();
    idle_oracle::<menu::Plain<{ menu::LINUX_7_3 }>>();
}

#[test]
fn eevdf_equals_the_kernels_c() {
    oracle::<Eevdf>(2_000);
    oracle::<Eevdf618>(2_000);
    oracle::<Eevdf73>(2_000);
    oracle::<Eevdf73Flat>(2_000);
}

#[test]
fn schedutil_equals_the_kernels_c() {
    oracle::<Schedutil<SINCE_6_8>>(5_000);
    oracle::<Schedutil<BEFORE_6_8>>(5_000);
    oracle::<Schedutil<LINUX_7_3>>(5_000);
    oracle::<Schedutil47>(5_000);
}

#[test]
fn governors_equal_the_kernels_c() {
    oracle::<Dbs<false>>(5_000);
    oracle::<Dbs<true>>(5_000);
    oracle::<IntelPstate<false>>(5_000);
    oracle::<IntelPstate<true>>(5_000);
    oracle::<AmdPstateCpu<0>>(5_000);
    oracle::<AmdPstateCpu<1>>(5_000);
    oracle::<AmdPstateCpu<2>>(5_000);
}

#[test]
fn sched_cache_equals_the_kernels_c() {
    oracle::<SchedCaches>(5_000);
}

#[test]
fn timer_wheel_against_the_kernel() {
    oracle::<TimerWheel61>(5_000);
    oracle::<TimerWheel612>(5_000);
    oracle::<TimerWheel73>(5_000);
}

#[test]
fn clamps_equal_the_kernels_c() {
    oracle::<Max<{ max::LINUX_6_1 }>>(5_000);
    oracle::<Max<{ max::LINUX_6_12 }>>(5_000);
    oracle::<Max<{ max::LINUX_6_18 }>>(5_000);
    oracle::<Max<{ max::LINUX_7_3 }>>(5_000);
    oracle::<Sum>(5_000);
}

#[test]
fn cfs_equals_the_kernels_c() {
    oracle::<Cfs>(2_000);
}

fn golden_states<S: States>() {
    match states::check::<S>() {
        Ok(summary) => println!("{summary}"),
        Err(difference) => panic!("{difference}"),
    }
}

#[test]
fn golden_states_of_balancing() {
    golden_states::<Balance61>();
    golden_states::<Balance612_95>();
    golden_states::<Balance612>();
    golden_states::<Balance73>();
}

#[test]
fn golden_states_of_wakeups() {
    golden_states::<Wakeups61>();
    golden_states::<Wakeups612>();
    golden_states::<Wakeups73>();
}

#[test]
fn golden_states_of_placement_by_energy() {
    golden_states::<Feec519>();
    golden_states::<Feec61>();
    golden_states::<Feec612>();
    golden_states::<Feec618>();
    golden_states::<Feec73>();
}

#[test]
fn golden_states_of_newidle_and_nohz_balancing() {
    golden_states::<Nohz61>();
    golden_states::<Nohz612>();
    golden_states::<Nohz73>();
}

#[test]
fn golden_states_of_capacities() {
    golden_states::<Capacity61>();
    golden_states::<Capacity612>();
    golden_states::<Capacity618>();
    golden_states::<Capacity73>();
}

#[test]
fn golden_states_of_the_slow_path() {
    golden_states::<SlowPath61>();
    golden_states::<SlowPath612>();
    golden_states::<SlowPath618>();
    golden_states::<SlowPath73>();
}

/// Compares states with the kernel's C; the tree may be of another form.
fn oracle_of_states<S: States>() {
    let Some(tree) = l0::kernel_tree(S::TREE) else {
        println!("skipped: {} is not set", S::TREE);
        return;
    };
    if let Some(why) = S::refuse(&states::read_fair(&tree).unwrap()) {
        println!("skipped: {}: {why}", S::NAME);
        return;
    }
    let dir = l0::BuildDir::new(&format!("test-{}", S::NAME)).unwrap();
    let oracle = S::build_oracle(&tree, dir.path(), &["-O1"]).unwrap();
    let (text, equal) = states::compare::<S>(&oracle, 7, 20_000).unwrap();
    assert!(equal, "{}: {text}", S::NAME);
}

#[test]
fn balancing_equals_the_kernels_c() {
    oracle_of_states::<Balance61>();
    oracle_of_states::<Balance612_95>();
    oracle_of_states::<Balance612>();
    oracle_of_states::<Balance73>();
}

#[test]
fn wakeups_equal_the_kernels_c() {
    oracle_of_states::<Wakeups61>();
    oracle_of_states::<Wakeups612>();
    oracle_of_states::<Wakeups73>();
}

#[test]
fn placement_by_energy_equals_the_kernels_c() {
    oracle_of_states::<Feec519>();
    oracle_of_states::<Feec61>();
    oracle_of_states::<Feec612>();
    oracle_of_states::<Feec618>();
    oracle_of_states::<Feec73>();
}

#[test]
fn newidle_and_nohz_balancing_equal_the_kernels_c() {
    oracle_of_states::<Nohz61>();
    oracle_of_states::<Nohz612>();
    oracle_of_states::<Nohz73>();
}

#[test]
fn capacities_equal_the_kernels_c() {
    oracle_of_states::<Capacity61>();
    oracle_of_states::<Capacity612>();
    oracle_of_states::<Capacity618>();
    oracle_of_states::<Capacity73>();
}

#[test]
fn the_slow_path_equals_the_kernels_c() {
    oracle_of_states::<SlowPath61>();
    oracle_of_states::<SlowPath612>();
    oracle_of_states::<SlowPath618>();
    oracle_of_states::<SlowPath73>();
}

#[test]
fn eevdf_equals_exact_fractions() {
    let found = rational::compare::<Eevdf, rational::eevdf::Eevdf>(3, 800).unwrap();
    assert!(found.operations > 100_000, "{found:?}");
}

#[test]
fn cfs_equals_exact_fractions() {
    let found = rational::compare::<Cfs, rational::cfs::Cfs>(3, 800).unwrap();
    assert!(found.operations > 100_000, "{found:?}");
}
