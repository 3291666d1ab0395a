// SPDX-License-Identifier: GPL-2.0-or-later
//! The subjects of [`crate::l0`] by name: what the command line offers.

use crate::amd_pstate::AmdPstateCpu;
use crate::balance::{Balance61, Balance73, Balance612, Balance612_95, Balance618};
use crate::bandwidth::{Bandwidth, Bandwidth61, Bandwidth73, Bandwidth618};
use crate::capacity::{Capacity61, Capacity73, Capacity612, Capacity618};
use crate::cfs::Cfs;
use crate::dbs::Dbs;
use crate::deadline::Deadline;
use crate::deadline_queues::{
    DeadlineQueues61, DeadlineQueues73, DeadlineQueues612, FairServer73, FairServer612,
};
use crate::eevdf::Eevdf;
use crate::eevdf::v6_18::Eevdf618;
use crate::eevdf::v7_3::{Eevdf73, Eevdf73Flat};
use crate::feec::{Feec61, Feec73, Feec519, Feec612, Feec618};
use crate::groups::{Groups, Groups61, Groups73, Groups618};
use crate::haltpoll::{Haltpoll, Haltpoll61};
use crate::hrtimer::{Hrtimers61, Hrtimers73, Hrtimers612, Hrtimers618};
use crate::intel_pstate::IntelPstate;
use crate::l0::mutate::Mutation;
use crate::l0::{self, Run, Subject};
use crate::ladder::Ladder;
use crate::menu::{Menu4_20, Menu5_18, Menu6_12, Menu73, Menu618};
use crate::nohz::{Nohz61, Nohz73, Nohz612, Nohz618};
use crate::pelt::{Pelt, Pelt61, Pelt73, Pelt612_95, Pelt618};
use crate::rt::{Rt61, Rt63, Rt73, Rt612};
use crate::sched_cache::SchedCaches;
use crate::schedutil::{BEFORE_6_8, LINUX_7_3, SINCE_6_8, Schedutil};
use crate::schedutil_4_7::Schedutil47;
use crate::slow_path::{SlowPath61, SlowPath73, SlowPath612, SlowPath618};
use crate::states::{self, States};
use crate::teo::{Teo, Teo73, Teo618, TeoLate, TeoLatePlain, TeoPatched, TeoRecent};
use crate::timer_wheel::{TimerWheel61, TimerWheel73, TimerWheel612};
use crate::uclamp::max::{self, Max};
use crate::uclamp::sum::Sum;
use crate::wakeups::{Wakeups61, Wakeups73, Wakeups612};

/// A subject on the command line.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// The environment variable that names its kernel tree.
    pub tree: &'static str,
    /// The actions that can be done with it.
    pub run: Run,
    /// Wrong tokens that it must notice.
    pub mutations: &'static [Mutation],
}

const fn of<S: Subject>() -> Entry {
    Entry { name: S::NAME, tree: S::TREE, run: l0::run::<S>, mutations: S::MUTATIONS }
}

const fn of_states<S: States + 'static>() -> Entry {
    Entry { name: S::NAME, tree: S::TREE, run: states::run::<S>, mutations: S::MUTATIONS }
}

/// All of them.
pub const SUBJECTS: &[Entry] = &[
    of::<Pelt>(),
    of::<Pelt61>(),
    of::<Pelt612_95>(),
    of::<Pelt618>(),
    of::<Pelt73>(),
    of::<Teo>(),
    of::<Teo618>(),
    of::<Teo73>(),
    of::<TeoRecent>(),
    of::<TeoLate>(),
    of::<TeoLatePlain>(),
    of::<TeoPatched<0>>(),
    of::<TeoPatched<1>>(),
    of::<TeoPatched<2>>(),
    of::<TeoPatched<3>>(),
    of::<TeoPatched<4>>(),
    of::<Ladder>(),
    of::<Haltpoll>(),
    of::<Haltpoll61>(),
    of::<Menu4_20>(),
    of::<Menu5_18>(),
    of::<Menu6_12>(),
    of::<Menu618>(),
    of::<Menu73>(),
    of_states::<Balance61>(),
    of_states::<Balance612_95>(),
    of_states::<Balance612>(),
    of_states::<Balance618>(),
    of_states::<Balance73>(),
    of_states::<Nohz61>(),
    of_states::<Nohz612>(),
    of_states::<Nohz618>(),
    of_states::<Nohz73>(),
    of_states::<Wakeups61>(),
    of_states::<Wakeups612>(),
    of_states::<Wakeups73>(),
    of_states::<Feec519>(),
    of_states::<Feec61>(),
    of_states::<Feec612>(),
    of_states::<Feec618>(),
    of_states::<Feec73>(),
    of_states::<Capacity61>(),
    of_states::<Capacity612>(),
    of_states::<Capacity618>(),
    of_states::<Capacity73>(),
    of_states::<SlowPath61>(),
    of_states::<SlowPath612>(),
    of_states::<SlowPath618>(),
    of_states::<SlowPath73>(),
    of::<Eevdf>(),
    of::<Eevdf618>(),
    of::<Eevdf73>(),
    of::<Eevdf73Flat>(),
    of::<Cfs>(),
    of::<Schedutil<SINCE_6_8>>(),
    of::<Schedutil<BEFORE_6_8>>(),
    of::<Schedutil<LINUX_7_3>>(),
    of::<Schedutil47>(),
    of::<Dbs<false>>(),
    of::<Dbs<true>>(),
    of::<AmdPstateCpu<0>>(),
    of::<AmdPstateCpu<1>>(),
    of::<AmdPstateCpu<2>>(),
    of::<AmdPstateCpu<3>>(),
    of::<IntelPstate<false>>(),
    of::<IntelPstate<true>>(),
    of::<Max<{ max::LINUX_6_12 }>>(),
    of::<Max<{ max::LINUX_6_1 }>>(),
    of::<Max<{ max::LINUX_6_18 }>>(),
    of::<Max<{ max::LINUX_7_3 }>>(),
    of::<Sum>(),
    of::<Deadline>(),
    of::<Groups>(),
    of::<Groups61>(),
    of::<Groups618>(),
    of::<Groups73>(),
    of::<Bandwidth61>(),
    of::<Bandwidth>(),
    of::<Bandwidth618>(),
    of::<Bandwidth73>(),
    of::<SchedCaches>(),
    of::<DeadlineQueues61>(),
    of::<DeadlineQueues612>(),
    of::<DeadlineQueues73>(),
    of::<FairServer612>(),
    of::<FairServer73>(),
    of::<Rt61>(),
    of::<Rt63>(),
    of::<Rt612>(),
    of::<Rt73>(),
    of::<TimerWheel61>(),
    of::<TimerWheel612>(),
    of::<TimerWheel73>(),
    of::<Hrtimers61>(),
    of::<Hrtimers612>(),
    of::<Hrtimers618>(),
    of::<Hrtimers73>(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutation_has_its_place() {
        let source = l0::home().join("../crates/schedtwin-kernel/src");
        for subject in SUBJECTS {
            for Mutation { file, from, .. } in subject.mutations {
                let text = std::fs::read_to_string(source.join(file)).unwrap();
                let places = text.matches(from).count();
                assert_eq!(places, 1, "{}: {file}: {from}", subject.name);
            }
        }
    }
}
