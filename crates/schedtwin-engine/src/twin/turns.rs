// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs that execute in turns, one at a time (`[turns]` of the machine), as QEMU executes them with one host thread.
//!
//! Terms: the **holder** is the CPU whose turn it is; a CPU that **waits** has something to execute, and it is not its turn.
//!
//! ```text
//!  cpu0 ▓▓call▓▓┤yield              ├▓▓call▓▓┤
//!  cpu1         ├▓▓▓wakes cpu3▓▓┤WFI
//!  cpu2 .. idle: has nothing to execute, so it is passed over ..
//!  cpu3         .                 ├▓▓interrupt, task▓▓ ...       └─► cpu0 again
//! ```
//!
//! A turn ends when, in the holder,
//!
//! 1. a program executes the instruction that lets others go on: after each call that moves data, after each piece of work,
//!    and where the program says so ([`schedtwin_types::Op::Relax`]);
//! 2. the idle loop stops the CPU, and nothing is pending;
//! 3. any CPU's timer expires, or the holder sets a timer that is to expire before all others.
//!
//! The next holder is the next CPU by number, cyclically, that has something to execute. An interrupt that a CPU sends does
//! not end its turn: it is pending at once, and the receiver takes it in its next turn.
//!
//! The clock goes on in all turns, so what is due by the clock (ways out of idle states, settling frequencies) comes at its
//! time. If programs measure their work by the clock (`work_by_clock`), work of at least one piece is done by the time that
//! passes, and is found done at the first return of the turn after that.
//!
//! QEMU 7.2 and later: `accel/tcg/tcg-accel-ops-rr.c`, `rr_cpu_thread_fn()`, `rr_kick_vcpu_thread()`;
//! `accel/tcg/tcg-accel-ops-icount.c`, `icount_get_limit()`; `accel/tcg/icount-common.c`, `qemu_timer_notify_cb()`.
//!
//! Differences: a path of the kernel is never cut; where a timer ends a turn within a path, the turn ends after the path. In
//! the emulator another CPU may find a lock taken then. The emulator's limit of a turn without timers (100 ms) is absent, for
//! pieces of work are much shorter. A CPU that polls keeps no turn.

use super::{Phase, TaskState, Twin};
use crate::board::{Board, CpuSlot, Slot};
use schedtwin_machine::Turns;
use schedtwin_types::{CpuId, CpuMask, IrqLine, NEVER, Ns, Syscall, TaskId, Work};

/// Whose turn it is, and who waits for one.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    holder: Option<CpuId>,
    waits: CpuMask,
    /// A timer has ended the turn, which lasts until the holder's path in the kernel is over.
    over: bool,
    /// The earliest expiry among the timers of all CPUs, as of the last event.
    first_timer: Ns,
    piece_ns: Ns,
    work_by_clock: bool,
}

impl Turn {
    /// Nobody's turn.
    pub(super) fn new(turns: &Turns) -> Turn {
        let Turns { piece_ns, work_by_clock } = *turns;
        Turn {
            holder: None,
            waits: CpuMask::EMPTY,
            over: false,
            first_timer: NEVER,
            piece_ns,
            work_by_clock,
        }
    }

    /// Whether a CPU that executes takes an interrupt at once: an expiring timer ends the turn first.
    pub(super) fn takes(&self, cpu: CpuId, line: IrqLine) -> bool {
        self.holder == Some(cpu) && line != IrqLine::ClockEvent && !self.over
    }
}

/// Whether the programs of the emulated board pass the turn after a call.
pub(super) fn moves_data(call: &Syscall) -> bool {
    matches!(
        call,
        Syscall::PipeWrite { .. }
            | Syscall::PipeRead { .. }
            | Syscall::Send { .. }
            | Syscall::Recv { .. }
    )
}

impl<B: Board> Twin<B> {
    /// Whether a CPU executes now.
    pub(super) fn executes(&self, cpu: CpuId) -> bool {
        self.turns.as_ref().is_none_or(|turn| turn.holder == Some(cpu))
    }

    /// An event is due. `true`: its CPU has to execute for that, and waits for its turn.
    pub(super) fn waits_for_turn(&mut self, source: Slot, slot: usize) -> bool {
        let Slot::Cpu(cpu, CpuSlot::Idle | CpuSlot::Work | CpuSlot::Unmask) = source else {
            return false;
        };
        let silicon = matches!(self.cpus[cpu].phase, Phase::Idle { .. } | Phase::Waiting { .. });
        if silicon {
            return false;
        }
        let turn = self.turns.as_mut().expect("CPUs take turns");
        if turn.holder == Some(cpu) {
            let c = &self.cpus[cpu];
            let path_over = c.masked_until <= self.now;
            let over = turn.over && path_over && matches!(c.phase, Phase::Task(_));
            if over {
                self.turn_ends();
            }
            return over;
        }
        self.board.set(slot, NEVER);
        turn.waits.insert(cpu);
        if turn.holder.is_none() {
            self.turn_begins(cpu);
        }
        true
    }

    /// An interrupt comes to a CPU that executes and does not take it now: the holder takes it when its path is over, another
    /// CPU in its turn.
    pub(super) fn comes_in_turn(&mut self, cpu: CpuId) {
        let polls = matches!(self.cpus[cpu].phase, Phase::Poll { .. });
        let at = self.cpus[cpu].masked_until.max(self.now);
        if self.executes(cpu) {
            self.board.set(self.slots.cpu(cpu, CpuSlot::Unmask), at);
        } else if polls {
            self.board.set(self.slots.cpu(cpu, CpuSlot::Idle), at);
        }
    }

    /// An event is over: the holder's turn may be, too.
    pub(super) fn look_at_turn(&mut self, source: Slot) {
        let mut first = NEVER;
        for (cpu, c) in self.cpus.iter().enumerate() {
            if !c.pending.contains(IrqLine::ClockEvent) {
                first = first.min(self.kernel.hardware().wires(CpuId(cpu as u16)).clock_event_at);
            }
        }
        let turn = self.turns.as_mut().expect("CPUs take turns");
        let kicked = first < std::mem::replace(&mut turn.first_timer, first);
        let Some(holder) = turn.holder else { return };
        match self.cpus[holder].phase {
            Phase::Idle { .. } | Phase::Waiting { .. } | Phase::Poll { spins: true } => {
                self.turn_ends();
            }
            Phase::Task(_) if kicked || matches!(source, Slot::Cpu(_, CpuSlot::ClockEvent)) => {
                turn.over = true;
                let at = self.cpus[holder].masked_until.max(self.now);
                self.board.set(self.slots.turn_slot(), at);
            }
            _ => {}
        }
    }

    /// The holder's turn ends, once its path in the kernel is over.
    pub(super) fn turn_ends(&mut self) {
        let slot = self.slots.turn_slot();
        let turn = self.turns.as_ref().expect("CPUs take turns");
        let Some(holder) = turn.holder else {
            self.board.set(slot, NEVER);
            return;
        };
        let path_over = self.cpus[holder].masked_until;
        if path_over > self.now {
            self.board.set(slot, path_over);
            return;
        }
        self.board.set(slot, NEVER);
        let frozen = !self.work_counts(holder);
        self.account_work(holder);
        let turn = self.turns.as_mut().expect("CPUs take turns");
        (turn.holder, turn.over) = (None, false);
        if matches!(self.cpus[holder].phase, Phase::Task(_)) {
            turn.waits.insert(holder);
            for stops in [CpuSlot::Unmask, CpuSlot::Work] {
                self.board.set(self.slots.cpu(holder, stops), NEVER);
            }
            if frozen {
                self.cpus[holder].since = NEVER;
            }
        }
        let turn = self.turns.as_ref().expect("CPUs take turns");
        let after = turn.waits.iter().find(|cpu| *cpu > holder);
        if let Some(next) = after.or_else(|| turn.waits.iter().next()) {
            self.turn_begins(next);
        }
    }

    /// A CPU that waits has its turn.
    fn turn_begins(&mut self, cpu: CpuId) {
        let turn = self.turns.as_mut().expect("CPUs take turns");
        turn.holder = Some(cpu);
        turn.waits.remove(cpu);
        let slot = |kind| self.slots.cpu(cpu, kind);
        if !matches!(self.cpus[cpu].phase, Phase::Task(_)) {
            self.board.set(slot(CpuSlot::Idle), self.now);
            return;
        }
        let work = slot(CpuSlot::Work);
        let goes_on_at = self.cpus[cpu].masked_until.max(self.now);
        if !self.cpus[cpu].pending.is_empty() {
            self.board.set(slot(CpuSlot::Unmask), goes_on_at);
        }
        if self.cpus[cpu].since == NEVER {
            self.cpus[cpu].since = goes_on_at;
        }
        self.account_work(cpu);
        let at = self.work_done_at(cpu);
        self.board.set(work, at);
        self.piece_begins(cpu);
    }

    /// The holder's task goes on with a piece of work, after what its CPU owes.
    pub(super) fn piece_begins(&mut self, cpu: CpuId) {
        let c = &self.cpus[cpu];
        let turn = self.turns.as_ref().expect("CPUs take turns");
        let Phase::Task(task) = c.phase else { return };
        let task = &self.tasks[task.index()];
        let piece_ns = match task.in_pieces && (task.remaining > 0 || task.reserve > 0) {
            _ if turn.over => 0,
            true => turn.piece_ns,
            false => NEVER,
        };
        let at = c.masked_until.max(self.now).saturating_add(piece_ns);
        self.board.set(self.slots.turn_slot(), at);
    }

    /// A program begins to compute: in pieces, unless it is less than one.
    pub(super) fn work_begins(&mut self, cpu: CpuId, task: TaskId, work: Work) {
        let turn = self.turns.as_ref().expect("CPUs take turns");
        let rate = self.cpus[cpu].rate;
        let piece = (turn.piece_ns * rate) >> schedtwin_machine::RATE_SHIFT;
        self.tasks[task.index()].in_pieces = work >= piece;
        self.piece_begins(cpu);
    }

    /// Whether the work of a CPU's task goes on by the clock.
    fn work_counts(&self, cpu: CpuId) -> bool {
        let Phase::Task(task) = self.cpus[cpu].phase else { return false };
        self.works_by_clock(&self.tasks[task.index()])
    }

    /// Whether a task's work goes on by the clock while it has any.
    fn works_by_clock(&self, task: &TaskState) -> bool {
        task.in_pieces && self.turns.as_ref().is_some_and(|turn| turn.work_by_clock)
    }

    /// Whether a CPU will find its task's work done without losing the turn before.
    pub(super) fn work_goes_on(&self, cpu: CpuId, task: &TaskState) -> bool {
        self.executes(cpu) && !(task.remaining > 0 && self.works_by_clock(task))
    }

    /// Whether a program, back from its call, passes the turn now.
    pub(super) fn passes_turn(&mut self, task: TaskId) -> bool {
        std::mem::take(&mut self.tasks[task.index()].passes_turn)
    }
}
