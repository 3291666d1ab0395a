// SPDX-License-Identifier: GPL-2.0-or-later
//! Settings of older kernel files that have since been split into several: the present meaning of each of their
//! words.
//!
//! So a kernel file that was captured earlier keeps its meaning.

use super::{
    BalanceFair, CheckMisfitStatus, MisfitFailure, PickBusiestBigger, PickBusiestFull,
    PickBusiestMisfit, PreferSibling, SelectIdleCluster, SiblingImbalance,
};

/// A setting that no longer exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    /// Its path in older kernel files.
    pub path: &'static str,
    /// For each of its words: the points that replace it, each with the word of the arm.
    pub words: Vec<(&'static str, Vec<(&'static str, &'static str)>)>,
}

macro_rules! retired {
    ($($path:literal { $($word:literal: $($point:ident::$arm:ident),+;)+ })*) => {
        /// All settings that were split into others.
        pub fn retired() -> Vec<Retired> {
            vec![$(Retired {
                path: $path,
                words: vec![$(($word, vec![$(($point::PATH, $point::$arm.word())),+])),+],
            }),*]
        }
    };
}

retired! {
    "balance" {
        "6.1": SelectIdleCluster::WholeLlc, BalanceFair::NoTask, PreferSibling::ChildDomain,
            SiblingImbalance::Difference, PickBusiestBigger::Always, PickBusiestFull::First,
            PickBusiestMisfit::Last, MisfitFailure::Counted, CheckMisfitStatus::IfItCanBeHelped;
        "6.12": SelectIdleCluster::ClusterFirst, BalanceFair::NoFairTask, PreferSibling::BusiestGroup,
            SiblingImbalance::ByCores, PickBusiestBigger::AmongEqualTypes, PickBusiestFull::Last,
            PickBusiestMisfit::First, MisfitFailure::Ignored, CheckMisfitStatus::AnyMisfit;
    }
}
