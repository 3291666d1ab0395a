// SPDX-License-Identifier: GPL-2.0-or-later
//! From the script of a built-in workload to instructions: one for each step, at the same place.
//!
//! Behind the steps follow the beginnings of threads that have one (affinity, class, priority), and
//! at last thread 0: it starts all others but those that another thread starts, and then sleeps for the run's duration, or until a
//! thread says that the workload is over.

use super::Benchmark;
use super::amount::Amount;
use super::script::{DeviceScript, Grid, Script, Step, Thread, ThreadScript};
use crate::program::code::{AmountId, AttributeCode, Code, GridId, Instruction, TaskCode};
use crate::program::devices::DeviceCode;
use schedtwin_types::draw::Draws;
use schedtwin_types::{BlockOp, CpuMask, Mode, Ns, SchedAttr, ThreadId};

/// Compiles a script for a run with that seed and duration.
pub(crate) fn compile(
    benchmark: &'static dyn Benchmark,
    script: Script,
    seed: u64,
    warmup: Ns,
    duration: Option<Ns>,
) -> Code {
    let mut lowering = Lowering { seed, code: Code::default(), draws: None };
    for (index, thread) in script.threads.iter().enumerate() {
        let next = script.threads.get(index + 1);
        let end = next.map_or(script.steps.len(), |next| next.first_step as usize);
        // Threads of one name are told apart by their place among them.
        let earlier = &script.threads[..index];
        let alike = earlier.iter().filter(|other| other.name == thread.name).count();
        // Steps of hints are not counted: with them and without, the work is the same.
        let mut ordinal = 0;
        for step in &script.steps[thread.first_step as usize..end] {
            lowering.draws = Some((thread.name.clone(), format!("{alike}.{ordinal}")));
            let instruction = lowering.step(*step);
            lowering.code.instructions.push(instruction);
            ordinal += usize::from(!step.is_hint());
        }
    }
    for thread in &script.threads {
        lowering.thread(thread);
    }
    for device in &script.devices {
        lowering.device(device);
    }
    lowering.main(&script, duration);
    let nr_threads = script.threads.len() as u32;
    Code {
        start: (0..nr_threads).collect(),
        duration,
        semaphores: script.flags,
        main_name: benchmark.name().into(),
        work_kind: if script.kind.is_empty() { "benchmark" } else { script.kind },
        first_futex: 1,
        warmup,
        registers: script.registers,
        records: vec![0; script.recorded.len()],
        processes: script.processes.len() as u32,
        pipes: script.nr_pipes,
        pairs: script.pairs,
        queues: script.nr_queues,
        crews: script.nr_crews,
        arrivals: script.arrivals,
        sessions: script.sessions,
        tests: script.tests,
        refresh: script.refresh,
        jank: script.jank,
        benchmark: Some(benchmark),
        ..lowering.code
    }
}

struct Lowering {
    seed: u64,
    code: Code,
    /// The names of the present step's draws.
    draws: Option<(String, String)>,
}

impl Lowering {
    fn amount(&mut self, amount: Amount) -> AmountId {
        let (who, what) = self.draws.clone().unwrap_or_default();
        self.code.amounts.push((amount, Draws::new(self.seed, &who, &what)));
        AmountId(self.code.amounts.len() as u32 - 1)
    }

    fn grid(&mut self, grid: Grid) -> GridId {
        let known = self.code.grids.iter().position(|known| *known == grid);
        let at = known.unwrap_or_else(|| {
            self.code.grids.push(grid);
            self.code.grids.len() - 1
        });
        GridId(at as u32)
    }

    fn device(&mut self, device: &DeviceScript) {
        self.draws = Some((device.name.clone(), "again".to_owned()));
        let again = device.again.map(|every| self.amount(every));
        self.code.devices.push(DeviceCode { cpu: device.cpu, posts: device.posts.clone(), again });
    }

    fn thread(&mut self, thread: &ThreadScript) {
        let beginning = self.code.instructions.len() as u32;
        if thread.cpus.is_some() {
            self.code.instructions.push(Instruction::TaskCpus);
        }
        if thread.attributes != SchedAttr::default() {
            self.code.instructions.push(Instruction::TaskAttributes);
        }
        let entry = match self.code.instructions.len() as u32 == beginning {
            true => thread.first_step,
            false => {
                self.code.instructions.push(Instruction::Jump(thread.first_step));
                beginning
            }
        };
        self.code.tasks.push(TaskCode {
            name: thread.group.clone(),
            comm: Some(thread.name.as_str().into()),
            entry,
            attributes: AttributeCode::of(thread.attributes),
            cpus: thread.cpus.unwrap_or(CpuMask::EMPTY),
            later: thread.later,
            // Thread 0 is a process of its own.
            process: thread.process.map(|process| process + 1),
            ..TaskCode::default()
        });
    }

    fn main(&mut self, script: &Script, duration: Option<Ns>) {
        self.code.main = self.code.instructions.len() as u32;
        self.code.instructions.push(Instruction::Begin(0));
        self.code.instructions.extend((0..script.pairs.len() as u32).map(Instruction::Connect));
        self.code.instructions.extend([
            Instruction::StartThreads,
            duration.map_or(Instruction::AwaitEnd, Instruction::SleepUntil),
            Instruction::Finish,
        ]);
    }

    fn step(&mut self, step: Step) -> Instruction {
        match step {
            Step::Work(Amount::Fixed(work)) => Instruction::Compute { work },
            Step::Work(amount) => Instruction::ComputeAmount(self.amount(amount), Mode::User),
            Step::KernelWork(amount) => {
                Instruction::ComputeAmount(self.amount(amount), Mode::Kernel)
            }
            Step::Draw(to, amount, percent) => {
                Instruction::SetShare(to, self.amount(amount), percent)
            }
            Step::WorkShare(register, percent) => Instruction::ComputeShare(register, percent),
            Step::WorkRest(register) => Instruction::ComputeRest(register),
            Step::Sleep(amount) => Instruction::SleepAmount(self.amount(amount)),
            Step::Until(grid) => Instruction::SleepUntilNext(self.grid(grid)),
            Step::Wait(flag) => Instruction::SemaphoreWait { semaphore: flag.0, releases: true },
            Step::Post(flag) => Instruction::SemaphorePost { semaphore: flag.0 },
            Step::Raise(flag) => Instruction::Raise(flag),
            Step::Start(device, amount, percent, after) => {
                Instruction::DeviceStart(device, self.amount(amount), percent, after)
            }
            Step::StartUntil(device, grid) => {
                Instruction::DeviceStartUntil(device, self.grid(grid))
            }
            Step::Set(register, value) => Instruction::Set(register, value),
            Step::Add(register, value) => Instruction::Add(register, value),
            Step::SetDrawn(to, amount) => Instruction::SetAmount(to, self.amount(amount)),
            Step::Copy(to, from) => Instruction::Copy(to, from),
            Step::Take(register) => Instruction::Take(register),
            Step::Now(register) => Instruction::Released(register),
            Step::SetNext(register, grid) => Instruction::SetNext(register, self.grid(grid)),
            Step::Jump(label) => Instruction::Jump(label.index()),
            Step::JumpIfZero(register, label) => Instruction::JumpIfZero(register, label.index()),
            Step::Clock(register) | Step::HintClock(register) => Instruction::Clock(register),
            Step::Record(what, since) => Instruction::Record(what, since),
            Step::RecordAmount(what, amount) => Instruction::RecordNumber(what, amount),
            other => self.shared_step(other),
        }
    }

    /// A step that other threads, devices or results see.
    fn shared_step(&mut self, step: Step) -> Instruction {
        match step {
            Step::FrameBegin(register) => Instruction::FrameBegin(register),
            Step::FrameEnd => Instruction::FrameEnd,
            Step::Count(test) => Instruction::Count(test),
            Step::HintBegin(session) => Instruction::HintBegin(session),
            Step::HintWaited(session, since) => Instruction::HintWaited(session, since),
            Step::HintEnd(session) => Instruction::HintEnd(session),
            Step::HintTake(session) => Instruction::HintTake(session),
            Step::Write(file, bytes) => Instruction::Send(file, bytes),
            Step::Read(file, bytes) => Instruction::Receive(file, bytes),
            Step::Poll(file) => Instruction::Poll(file),
            Step::Spin(since, duration) => Instruction::Spin(since, duration),
            Step::Enlist(crew, flag, moment) => Instruction::Enlist(crew, flag, moment),
            Step::RaiseAll(crew) => Instruction::RaiseAll(crew),
            Step::Relax => Instruction::Relax,
            Step::LockCpu => Instruction::LockCpu,
            Step::UnlockCpu => Instruction::UnlockCpu,
            Step::Job(since) => Instruction::Job(since),
            Step::Clone(Thread(thread)) => Instruction::Clone(ThreadId(thread + 1)),
            Step::Exec => Instruction::Exec,
            Step::Leave => Instruction::Exit,
            Step::Later(device, amount, delivery) => {
                let queue = delivery.moment.and_then(|queue| (queue.0 + 1).try_into().ok());
                Instruction::Deliver(device, self.amount(amount), delivery.flag, queue)
            }
            Step::Put(queue, from) => Instruction::Put(queue, from),
            Step::Get(queue, to) => Instruction::Get(queue, to),
            Step::PostAll(flag, count) => Instruction::PostAll(flag, count),
            Step::BlockIo(device, bytes, reads @ (0 | 100)) => {
                let op = if reads == 100 { BlockOp::Read } else { BlockOp::Write };
                Instruction::BlockIo { device, op, bytes }
            }
            Step::BlockIo(device, bytes, reads) => {
                let amount = self.amount(Amount::Uniform(0, 99));
                Instruction::BlockIoAmount(device, bytes, amount, reads as u8)
            }
            Step::Flush(device) => Instruction::BlockIo { device, op: BlockOp::Flush, bytes: 0 },
            Step::End => Instruction::End,
            other => unreachable!("{other:?} is lowered above"),
        }
    }
}

#[cfg(test)]
mod tests;
