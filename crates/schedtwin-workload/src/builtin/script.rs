// SPDX-License-Identifier: GPL-2.0-or-later
//! The script of the threads of a built-in workload: a few steps over shared memory, as rt-app's
//! events are, and
//! the devices that interrupt them.
//!
//! # Terms
//!
//! * *flag*: a semaphore in user memory (a futex). [`Step::Post`] adds one and wakes a waiter;
//!   [`Step::Raise`] does so only if it is down, so that what comes too fast is one event.
//! * *register*: a number that all threads share: a wish, a moment.
//! * *channel*: a pipe, or two connected sockets, over which threads send each other bytes. Thread 0 makes them before it
//!   starts the others.
//! * *device*: what interrupts a CPU at a time of its own. A thread gives it something to do
//!   ([`Step::Start`]), or it comes again by itself; its handler raises flags. No timer shows it:
//!   idle governors are surprised, as by real devices.
//!
//! ```text
//! thread   Work | Start gpu, 2 ms | Wait done ...............| Work
//! device                 |==== 2 ms ====> interrupt: Post done
//! ```
//!
//! A script is built for one machine; [`super::compile`] makes instructions of it.

use super::amount::Amount;
use super::frames::Rule;
pub(crate) use crate::program::code::{Crew, Device, Flag, Grid, Pair, Queue, Register, Session};
pub(crate) use crate::program::devices::Delivery;
pub(crate) use schedtwin_types::File as End;
use schedtwin_types::{
    BlockDeviceId, CpuId, CpuMask, Ns, PipeId, Policy, SchedAttr, SocketId, SocketKind,
};

/// The connection of two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// A pipe.
    Pipe,
    /// Two sockets, with a send buffer of so many bytes; 0: the kernel's default.
    Sockets(SocketKind, u32),
}

/// A thread's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread(pub u32);

/// A place in a thread's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(u32);

/// One step of a thread. Those with the name of an [`Instruction`](crate::program::code::Instruction) are documented there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Computes.
    Work(Amount),
    /// Draws an amount into a register, times the per cent in another.
    Draw(Register, Amount, Register),
    /// Computes so many per cent of an amount in a register.
    WorkShare(Register, u64),
    /// Computes what is in a register, and sets it to 0.
    WorkRest(Register),
    /// Sleeps, with a timer.
    Sleep(Amount),
    /// Sleeps until the next moment of a grid, with a timer.
    Until(Grid),
    /// Takes one of a flag; sleeps until there is one.
    Wait(Flag),
    /// Adds one to a flag.
    Post(Flag),
    Raise(Flag),
    /// Gives a device something to do, for so long times the per cent in a register; it begins when it is
    /// through with what it has, and not before the moment in the second register.
    Start(Device, Amount, Register, Register),
    /// A device is to interrupt at the next moment of a grid.
    StartUntil(Device, Grid),
    Set(Register, u64),
    Add(Register, u64),
    /// Draws an amount into a register.
    SetDrawn(Register, Amount),
    Copy(Register, Register),
    Take(Register),
    /// Sets a register to the present moment, or to that which the thread last slept until.
    Now(Register),
    SetNext(Register, Grid),
    Jump(Label),
    JumpIfZero(Register, Label),
    FrameBegin(Register),
    FrameEnd,
    Count(Option<u16>),
    Clock(Register),
    Record(u16, Register),
    /// A number for the results.
    RecordAmount(u16, u64),
    HintBegin(Session),
    /// Sets a register to the present moment, for [`Step::HintWaited`].
    HintClock(Register),
    HintWaited(Session, Register),
    HintEnd(Session),
    HintTake(Session),
    /// Computes in the kernel.
    KernelWork(Amount),
    /// Writes so many bytes.
    Write(End, u32),
    /// Reads until it has so many bytes.
    Read(End, u32),
    Poll(End),
    Spin(Register, Ns),
    Enlist(Crew, Flag, Register),
    RaiseAll(Crew),
    Relax,
    LockCpu,
    UnlockCpu,
    Job(Register),
    /// Starts a thread that is made later ([`ThreadSteps::later`]).
    Clone(Thread),
    Exec,
    /// The thread ends.
    Leave,
    /// A device interrupts after so long and delivers, whatever else it has to do: an answer of somebody far away.
    Later(Device, Amount, Delivery),
    Put(Queue, Register),
    Get(Queue, Register),
    PostAll(Flag, Register),
    /// Requests to a block device, so many of a hundred of them reads: the device, the size, the share.
    BlockIo(BlockDeviceId, u32, u64),
    /// A request that makes all writes before it lasting.
    Flush(BlockDeviceId),
    End,
}

impl Step {
    /// Whether it belongs to a session of hints: such steps draw nothing, and may be there or not.
    pub fn is_hint(self) -> bool {
        matches!(
            self,
            Step::HintBegin(_)
                | Step::HintClock(_)
                | Step::HintWaited(..)
                | Step::HintEnd(_)
                | Step::HintTake(_)
        )
    }
}

/// A thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadScript {
    /// As `comm` shows it, at most 15 bytes.
    pub name: String,
    /// Under which its measurements are summed.
    pub group: String,
    /// The process whose memory the thread shares, among [`Script::processes`]; `None`: nobody's.
    pub process: Option<u32>,
    pub attributes: SchedAttr,
    /// Where it may run; `None`: everywhere.
    pub cpus: Option<CpuMask>,
    /// Another thread starts it, not thread 0 at the beginning.
    pub later: bool,
    pub first_step: u32,
}

/// A device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceScript {
    pub name: String,
    /// Which CPU its interrupt goes to.
    pub cpu: CpuId,
    /// The flags that its handler posts.
    pub posts: Vec<Flag>,
    /// When it comes again by itself.
    pub again: Option<Amount>,
}

/// All of a built-in workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub threads: Vec<ThreadScript>,
    /// Processes that have several threads, by name.
    pub processes: Vec<String>,
    pub steps: Vec<Step>,
    /// The value of each flag at the beginning.
    pub flags: Vec<u32>,
    /// The value of each register at the beginning.
    pub registers: Vec<u64>,
    pub devices: Vec<DeviceScript>,
    /// How many crews there are.
    pub nr_crews: u32,
    /// How many pipes there are.
    pub nr_pipes: u32,
    /// Connected sockets: pair n has the ends 2n and 2n + 1.
    pub pairs: Vec<Pair>,
    /// How many queues there are.
    pub nr_queues: u32,
    /// Deliveries that devices make by themselves, so long after the workload's beginning.
    pub arrivals: Vec<(Device, Ns, Delivery)>,
    /// Sessions of hints: the target of each.
    pub sessions: Vec<Ns>,
    /// Names of the tests whose frames are counted, and the display's period.
    pub tests: Vec<&'static str>,
    pub refresh: Ns,
    /// Which frames are jank.
    pub jank: Rule,
    /// The names of the recorded values, by number, see `Step::Record`.
    pub recorded: Vec<&'static str>,
    pub nr_cpus: usize,
    /// The kind of all the work, for machines that have speeds of their own for it; empty: a
    /// benchmark's.
    pub kind: &'static str,
    /// Raised when the GPU is through with a frame, where there is a display.
    pub frame_done: Option<Flag>,
}

/// The longest `comm`.
const NAME_BYTES_MAX: usize = 15;

impl Script {
    /// An empty script for a machine with so many CPUs.
    pub fn new(nr_cpus: usize) -> Script {
        Script { nr_cpus, ..Script::default() }
    }

    pub fn flag(&mut self, value: u32) -> Flag {
        self.flags.push(value);
        Flag(self.flags.len() as u32 - 1)
    }

    pub fn register(&mut self, value: u64) -> Register {
        self.registers.push(value);
        Register(self.registers.len() as u32 - 1)
    }

    pub fn queue(&mut self) -> Queue {
        self.nr_queues += 1;
        Queue(self.nr_queues - 1)
    }

    /// A device that a thread starts. Its interrupt goes to CPU `cpu`, or where there are not so many to
    /// the first.
    pub fn device(&mut self, name: &str, cpu: u16, posts: &[Flag]) -> Device {
        let cpu = if usize::from(cpu) < self.nr_cpus { CpuId(cpu) } else { CpuId(0) };
        let posts = posts.to_vec();
        self.devices.push(DeviceScript { name: name.to_owned(), cpu, posts, again: None });
        Device(self.devices.len() as u16 - 1)
    }

    /// A device that interrupts by itself, time and again.
    pub fn source(&mut self, name: &str, cpu: u16, posts: &[Flag], every: Amount) -> Device {
        let device = self.device(name, cpu, posts);
        self.devices[usize::from(device.0)].again = Some(every);
        device
    }

    /// An empty list of threads that wait to be woken all together.
    pub fn crew(&mut self) -> Crew {
        self.nr_crews += 1;
        Crew(self.nr_crews - 1)
    }

    /// Two ends of a new channel: what is written to the second can be read from the first.
    pub fn channel(&mut self, channel: Channel) -> [End; 2] {
        match channel {
            Channel::Pipe => {
                self.nr_pipes += 1;
                [End::Pipe(PipeId(self.nr_pipes - 1)); 2]
            }
            Channel::Sockets(kind, sndbuf) => {
                self.pairs.push(Pair { kind, sndbuf });
                let second = self.pairs.len() as u32 * 2 - 1;
                [End::Socket(SocketId(second - 1)), End::Socket(SocketId(second))]
            }
        }
    }

    /// A session of hints, whose frames may take so long.
    pub fn session(&mut self, target: Ns) -> Session {
        self.sessions.push(target);
        Session(self.sessions.len() as u32 - 1)
    }

    /// A thread; its steps follow.
    pub fn thread(&mut self, name: &str, attributes: SchedAttr) -> ThreadSteps<'_> {
        let end = (0..=NAME_BYTES_MAX.min(name.len())).rev();
        let end = end.into_iter().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        self.threads.push(ThreadScript {
            name: name[..end].to_owned(),
            group: name.to_owned(),
            process: None,
            attributes,
            cpus: None,
            later: false,
            first_step: self.steps.len() as u32,
        });
        ThreadSteps { script: self }
    }
}

/// Writes the steps of a thread. What comes after its last step is its first one again.
pub(crate) struct ThreadSteps<'s> {
    script: &'s mut Script,
}

impl ThreadSteps<'_> {
    /// It is a thread of a process that has others. Without this it is a process of its own, or stands for a kernel thread.
    pub fn of(self, process: &str) -> Self {
        let processes = &mut self.script.processes;
        let at = processes.iter().position(|known| known == process).unwrap_or_else(|| {
            processes.push(process.to_owned());
            processes.len() - 1
        });
        self.script.threads.last_mut().expect("a thread").process = Some(at as u32);
        self
    }

    /// Its measurements are summed under another name.
    pub fn group(self, group: &str) -> Self {
        self.script.threads.last_mut().expect("a thread").group = group.to_owned();
        self
    }

    /// Where it may run.
    pub fn cpus(self, cpus: CpuMask) -> Self {
        self.script.threads.last_mut().expect("a thread").cpus = Some(cpus);
        self
    }

    /// Another thread starts it, as often as it likes ([`Step::Clone`]), and it ends in between.
    pub fn later(self) -> Self {
        self.script.threads.last_mut().expect("a thread").later = true;
        self
    }

    /// Its number.
    pub fn number(&self) -> Thread {
        Thread(self.script.threads.len() as u32 - 1)
    }

    /// More steps.
    pub fn then(self, steps: &[Step]) -> Self {
        self.script.steps.extend_from_slice(steps);
        self
    }

    /// This place.
    pub fn here(&self) -> Label {
        Label(self.script.steps.len() as u32)
    }

    /// Steps that are gone through only if a register is not 0.
    pub fn if_set(self, register: Register, steps: impl FnOnce(Self) -> Self) -> Self {
        let at = self.script.steps.len();
        let inner = steps(self.then(&[Step::JumpIfZero(register, Label(0))]));
        let behind = inner.here();
        inner.script.steps[at] = Step::JumpIfZero(register, behind);
        inner
    }

    /// One or the other steps: `some` if a register is not 0 now, else `none`.
    pub fn either(
        self,
        register: Register,
        some: impl FnOnce(Self) -> Self,
        none: impl FnOnce(Self) -> Self,
    ) -> Self {
        let jump = self.script.steps.len();
        let inner = some(self.then(&[Step::JumpIfZero(register, Label(0))]));
        let over = inner.script.steps.len();
        let inner = inner.then(&[Step::Jump(Label(0))]);
        inner.script.steps[jump] = Step::JumpIfZero(register, inner.here());
        let inner = none(inner);
        inner.script.steps[over] = Step::Jump(inner.here());
        inner
    }

    /// Steps that are gone through only if a register is 0.
    pub fn unless_set(self, register: Register, steps: impl FnOnce(Self) -> Self) -> Self {
        self.either(register, |none| none, steps)
    }

    /// A step by the one of two threads that comes there last: `other` counts how often the other
    /// one has been there alone.
    pub fn both(self, other: Register, mine: Register, step: Step) -> Self {
        self.either(
            other,
            |last| last.then(&[Step::Take(other), step]),
            |first| first.then(&[Step::Add(mine, 1)]),
        )
    }

    /// Steps that are gone through so often; `counter` counts.
    pub fn times(self, counter: Register, count: u64, steps: impl FnOnce(Self) -> Self) -> Self {
        let head = self.then(&[Step::Set(counter, count)]);
        head.while_set(counter, |inner| steps(inner.then(&[Step::Take(counter)])))
    }

    /// Steps that are gone through for as long as a register is not 0.
    pub fn while_set(self, register: Register, steps: impl FnOnce(Self) -> Self) -> Self {
        let again = self.here();
        self.if_set(register, |inner| steps(inner).then(&[Step::Jump(again)]))
    }

    /// Steps of a session of hints, where there is one.
    pub fn hints<const N: usize>(
        self,
        session: Option<Session>,
        steps: impl FnOnce(Session) -> [Step; N],
    ) -> Self {
        self.when(session, |thread, session| thread.then(&steps(session)))
    }

    /// The steps of a part that a workload has or has not.
    pub fn when<T>(self, part: Option<T>, steps: impl FnOnce(Self, T) -> Self) -> Self {
        match part {
            Some(part) => steps(self, part),
            None => self,
        }
    }

    /// The first step follows.
    pub fn for_ever(self) {
        let first = self.script.threads.last().expect("a thread").first_step;
        self.script.steps.push(Step::Jump(Label(first)));
    }
}

impl Label {
    pub fn index(self) -> u32 {
        self.0
    }
}

impl ThreadSteps<'_> {
    /// The same steps so often; `counter` counts.
    pub fn repeat<const N: usize>(self, counter: Register, what: (u64, [Step; N])) -> Self {
        self.times(counter, what.0, |steps| steps.then(&what.1))
    }
}

/// Parameters of a fair thread.
pub(crate) fn nice(nice: i8) -> SchedAttr {
    SchedAttr { nice, ..SchedAttr::default() }
}

/// Parameters of a `SCHED_FIFO` thread. Traces show kernel priorities: 99 less this one.
pub(crate) fn fifo(rt_priority: u8) -> SchedAttr {
    SchedAttr { policy: Policy::Fifo, rt_priority, ..SchedAttr::default() }
}
