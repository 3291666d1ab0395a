//! Our arithmetic against the kernel's: golden vectors always, the kernel's own C where a tree is
//! given.

use schedtwin_conformance::cfs::Cfs;
use schedtwin_conformance::eevdf::Eevdf;
use schedtwin_conformance::l0::{self, Subject, pelt::Pelt, pelt::Pelt61, teo::Teo};
use schedtwin_conformance::rational;

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
fn pelt_6_1_golden_vectors() {
    golden::<Pelt61>();
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
fn cfs_golden_vectors() {
    golden::<Cfs>();
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

#[test]
fn pelt_equals_the_kernels_c() {
    oracle::<Pelt>(20_000);
}

#[test]
fn pelt_6_1_equals_the_kernels_c() {
    oracle::<Pelt61>(20_000);
}

#[test]
fn teo_equals_the_kernels_c() {
    oracle::<Teo>(20_000);
}

#[test]
fn eevdf_equals_the_kernels_c() {
    oracle::<Eevdf>(2_000);
}

#[test]
fn cfs_equals_the_kernels_c() {
    oracle::<Cfs>(2_000);
}

#[test]
fn balancing_equals_the_kernels_c() {
    let Some(tree) = l0::kernel_tree(l0::TREE) else {
        println!("skipped: SCHEDTWIN_KERNEL_TREE is not set");
        return;
    };
    let (text, equal) = l0::balance::compare(&tree, 20_000, &["-O1"]).unwrap();
    assert!(equal, "{text}");
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
