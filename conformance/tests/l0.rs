//! Our arithmetic against the kernel's: golden vectors always, the kernel's own C where a tree is
//! given.

use schedtwin_conformance::eevdf::Eevdf;
use schedtwin_conformance::l0::{self, Subject, pelt::Pelt, teo::Teo};
use schedtwin_conformance::schedutil::Schedutil;

fn golden<S: Subject>() {
    match l0::golden::check::<S>() {
        Ok(summary) => println!("{summary}"),
        Err(difference) => panic!("{difference}"),
    }
}

#[test]
fn pelt_golden_vectors() {
    golden::<Pelt>();
}

#[test]
fn teo_golden_vectors() {
    golden::<Teo>();
}

#[test]
fn eevdf_golden_vectors() {
    golden::<Eevdf>();
}

#[test]
fn schedutil_golden_vectors() {
    golden::<Schedutil<false>>();
    golden::<Schedutil<true>>();
}

fn oracle<S: Subject>(cases: u64) {
    let Some(tree) = l0::kernel_tree() else {
        println!("skipped: SCHEDTWIN_KERNEL_TREE is not set");
        return;
    };
    let dir = l0::BuildDir::new(&format!("test-{}", S::NAME)).unwrap();
    let oracle = S::build_oracle(&tree, dir.path(), &["-O1"]).unwrap();
    let found = l0::compare::<S>(&oracle, 7, cases, false).unwrap();
    assert_eq!(found.first_difference.as_deref(), None);
    assert_eq!((found.cases, found.differing), (cases, 0));
}

#[test]
fn pelt_equals_the_kernels_c() {
    oracle::<Pelt>(20_000);
}

#[test]
fn teo_equals_the_kernels_c() {
    oracle::<Teo>(20_000);
}

#[test]
fn eevdf_equals_the_kernels_c() {
    oracle::<Eevdf>(2_000);
}

/// Of the two forms the one that the tree has.
#[test]
fn schedutil_equals_the_kernels_c() {
    let old = l0::kernel_tree().is_some_and(|tree| {
        let file = std::fs::read_to_string(tree.join("kernel/sched/cpufreq_schedutil.c"));
        !file.unwrap_or_default().contains("sugov_effective_cpu_perf")
    });
    if old { oracle::<Schedutil<true>>(5_000) } else { oracle::<Schedutil<false>>(5_000) }
}

#[test]
fn balancing_equals_the_kernels_c() {
    let Some(tree) = l0::kernel_tree() else {
        println!("skipped: SCHEDTWIN_KERNEL_TREE is not set");
        return;
    };
    let (text, equal) = l0::balance::compare(&tree, 20_000, &["-O1"]).unwrap();
    assert!(equal, "{text}");
}
