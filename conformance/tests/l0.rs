// SPDX-License-Identifier: GPL-2.0-or-later
//! Our arithmetic against the kernel's, subject by subject: golden vectors always, the kernel's own C where a tree is given.

use schedtwin_conformance::cfs::Cfs;
use schedtwin_conformance::eevdf::Eevdf;
use schedtwin_conformance::l0::{self, Action, Asked};
use schedtwin_conformance::rational;
use schedtwin_conformance::subjects::{Entry, SUBJECTS};

/// Tests beside each other, each with a share of the subjects.
const SHARES: usize = 4;

/// Sequences of each subject that are compared with the C.
const CASES: u64 = 2_000;

fn each_of(share: usize, test: impl Fn(&Entry)) {
    SUBJECTS.iter().skip(share).step_by(SHARES).for_each(test);
}

/// Panics if the action finds a difference. A tree may be of another form than the subject.
fn run(subject: &Entry, action: Action) {
    let asked = Asked {
        action,
        cases: Some(CASES),
        seed: 7,
        as_written: false,
        mutations: Default::default(),
    };
    match (subject.run)(&asked) {
        Ok(code) => assert_eq!(code, 0, "{}", subject.name),
        Err(why) if action == Action::Compare && why.contains(" form") => {
            println!("skipped: {}: {why}", subject.name);
        }
        Err(why) => panic!("{}: {why}", subject.name),
    }
}

fn golden_vectors(share: usize) {
    each_of(share, |subject| run(subject, Action::Golden));
}

fn kernels_c(share: usize) {
    each_of(share, |subject| match l0::kernel_tree(subject.tree) {
        Some(_) => run(subject, Action::Compare),
        None => println!("skipped: {}: {} is not set", subject.name, subject.tree),
    });
}

#[test]
fn golden_vectors_of_the_first_share() {
    golden_vectors(0);
}

#[test]
fn golden_vectors_of_the_second_share() {
    golden_vectors(1);
}

#[test]
fn golden_vectors_of_the_third_share() {
    golden_vectors(2);
}

#[test]
fn golden_vectors_of_the_fourth_share() {
    golden_vectors(3);
}

#[test]
fn the_kernels_c_of_the_first_share() {
    kernels_c(0);
}

#[test]
fn the_kernels_c_of_the_second_share() {
    kernels_c(1);
}

#[test]
fn the_kernels_c_of_the_third_share() {
    kernels_c(2);
}

#[test]
fn the_kernels_c_of_the_fourth_share() {
    kernels_c(3);
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
