// SPDX-License-Identifier: GPL-2.0-or-later
//! The state of a fair server, for the differential test against the kernel's own C (`conformance/`, L0 `fair-server`).

use crate::time::hrtimer::TimerKind;
use crate::{Scheduler, Time};
use schedtwin_types::{CpuId, Ns};

/// A fair server (`struct sched_dl_entity`).
pub struct ServerState {
    /// `runtime`.
    pub runtime: i64,
    /// `deadline`.
    pub deadline: u64,
    /// `dl_server_active`, `dl_throttled`, `dl_defer_armed`, `dl_defer_running`, `dl_defer_idle` and
    /// `dl_non_contending`, from bit 0 on.
    pub state: u64,
    /// When `dl_timer` and `inactive_timer` are due.
    pub timers: [Option<Ns>; 2],
}

impl Scheduler {
    /// Returns the fair server of a CPU. Of one timer, `non_contending` says which of the two it is.
    pub(in crate::sched) fn fair_server_state(&self, cpu: CpuId, time: &Time) -> ServerState {
        let server = &self.rq[cpu].fair_server;
        let bits = [
            server.active,
            server.throttled,
            server.defer_armed,
            server.defer_running,
            server.defer_idle,
            server.non_contending,
        ];
        let first = time.base(server.timer_on).expires(TimerKind::FairServer(cpu));
        let second = time.base(server.inactive_on).expires(TimerKind::FairServerInactive(cpu));
        let timers = match second {
            None if server.non_contending => [None, first],
            _ => [first, second],
        };
        ServerState {
            runtime: server.runtime,
            deadline: server.deadline,
            state: (0..).zip(bits).map(|(bit, set)| (set as u64) << bit).sum(),
            timers,
        }
    }
}
