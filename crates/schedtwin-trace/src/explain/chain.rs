// SPDX-License-Identifier: GPL-2.0-or-later
//! Chains from a need to the clock: each in words, and where the time of all of them went.
//!
//! A chain is one line at its end, and below it what happened until then:
//!
//! ```text
//!     0.005250000 [  -] chain               policy4 (mid): more, 400000 -> 1800000 kHz, settled after 1.250 ms
//!                           0.004000000  need      1800000 kHz for CPU 5: wakeup of ui-12
//!                           0.004000000  governor  400000 kHz on CPU 5: rate limit until 0.004500000
//!                           0.005000000  request   1800000 kHz on CPU 5
//!                           0.005100000  driver    asks the hardware
//!                           waited for: governor not called 500.000 us, rate limit 500.000 us, ...
//! ```

use super::words::{INDENT, duration, head};
use super::{Listing, What};
use crate::record::{ChainEventLine, RecordedChain};
use schedtwin_types::{ChainEnd, ChainWait, CpuId, Khz, Ns, TaskId, printable};
use std::fmt::Write as _;
use std::io;

impl Listing<'_> {
    /// Whether a chain is asked for: one that was under way in the window, of the CPU's domain, begun or changed by
    /// the task.
    pub(super) fn wants_chain(&self, end_at: Ns, chain: &RecordedChain) -> bool {
        let of_task = |event: &ChainEventLine| match event {
            ChainEventLine::Need { task: Some(task), .. } => self.named.contains(&TaskId(*task)),
            _ => false,
        };
        let of_cpu = |cpu: CpuId| {
            let policy = self.policy_cpus.get(usize::from(chain.policy));
            policy.is_some_and(|cpus| cpus.contains(cpu))
        };
        self.is_under_way((chain.need_at, end_at))
            && self.query.what != What::Waits
            && self.is_asked("chain")
            && (self.query.task.is_none() || chain.events.iter().any(of_task))
            && self.query.cpu.is_none_or(of_cpu)
    }

    pub(super) fn chain(&self, end_at: Ns, chain: &RecordedChain) -> String {
        let direction = if chain.more { "more" } else { "less" };
        let text = format!(
            "{}: {direction}, {} -> {} kHz, {} after {}",
            self.policy(chain.policy),
            chain.from_khz,
            chain.khz,
            printable::line(&chain.end),
            duration(end_at - chain.need_at)
        );
        let mut block = head(end_at, None, "chain", &text);
        for event in &chain.events {
            match event {
                ChainEventLine::Need { at, cpu, khz, cause, task } => {
                    let who = task.map(|task| format!(" of {}", self.who(TaskId(task))));
                    let who = who.unwrap_or_default();
                    let cause = printable::line(cause);
                    step(&mut block, *at, "need", *khz, &format!("for CPU {cpu}: {cause}{who}"));
                }
                ChainEventLine::Governor { at, cpu, khz, rule, limited_until, times } => {
                    let rule = printable::line(rule);
                    let until = limited_until.map(|until| format!(" until {}", clock(until)));
                    let times = match times {
                        0 | 1 => String::new(),
                        times => format!(" ({times} times)"),
                    };
                    let why = format!("on CPU {cpu}: {rule}{}{times}", until.unwrap_or_default());
                    step(&mut block, *at, "governor", *khz, &why);
                }
            }
        }
        if chain.events_left_out > 0 {
            let _ = writeln!(block, "{:INDENT$}    and {} more", "", chain.events_left_out);
        }
        if let Some(at) = chain.requested_at {
            let by = chain.requested_by.map(|cpu| format!("on CPU {cpu}")).unwrap_or_default();
            step(&mut block, at, "request", chain.khz, &by);
        }
        if let Some(at) = chain.driver_at {
            let _ = writeln!(block, "{:INDENT$}    {}  driver    asks the hardware", "", clock(at));
        }
        let waits = chain.waits.iter();
        let waits: Vec<String> = waits
            .map(|wait| format!("{} {}", printable::line(&wait.wait), duration(wait.ns)))
            .collect();
        if !waits.is_empty() {
            let _ = writeln!(block, "{:INDENT$}    waited for: {}", "", waits.join(", "));
        }
        block
    }
}

/// A line of a chain's block: when, what, which frequency, and why.
fn step(block: &mut String, at: Ns, what: &str, khz: Khz, why: &str) {
    let line = format!("{:INDENT$}    {}  {what:<8}  {khz} kHz {why}", "", clock(at));
    let _ = writeln!(block, "{}", line.trim_end());
}

/// A point in time as the listing's lines begin.
pub(super) fn clock(at: Ns) -> String {
    format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000)
}

/// Where the time of chains went, by what they waited for, and of more and of less.
#[derive(Clone, Debug, Default)]
pub(super) struct WhereTimeWent {
    /// Settled chains by [`ChainWait`], of less and of more; the last is what this version has no word for.
    waits: [[Spans; 2]; ChainWait::ALL.len() + 1],
    settled: [Spans; 2],
    /// Chains that did not settle, by [`ChainEnd`].
    others: [[Spans; 2]; ChainEnd::ALL.len()],
}

/// How many spans of time there were, their sum and the longest, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Spans {
    count: u64,
    total_ns: u128,
    longest_ns: Ns,
}

impl Spans {
    fn add(&mut self, ns: Ns) {
        self.count += 1;
        self.total_ns += u128::from(ns);
        self.longest_ns = self.longest_ns.max(ns);
    }

    fn cells(&self) -> String {
        match self.count {
            0 => format!("{:>8} {:>12} {:>12}", "-", "-", "-"),
            count => {
                let us = self.total_ns / 1_000;
                let total = format!("{}.{:03} ms", us / 1_000, us % 1_000);
                format!("{count:>8} {total:>12} {:>12}", duration(self.longest_ns))
            }
        }
    }
}

impl WhereTimeWent {
    pub(super) fn add(&mut self, end_at: Ns, chain: &RecordedChain) {
        let more = usize::from(chain.more);
        let whole = end_at - chain.need_at;
        if chain.end != ChainEnd::Settled.text() {
            let known = ChainEnd::ALL.iter().position(|end| chain.end == end.text());
            self.others[known.unwrap_or(0)][more].add(whole);
            return;
        }
        self.settled[more].add(whole);
        for wait in &chain.waits {
            let known = ChainWait::ALL.iter().position(|known| wait.wait == known.text());
            self.waits[known.unwrap_or(ChainWait::ALL.len())][more].add(wait.ns);
        }
    }

    /// The table below the listing.
    pub(super) fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let columns = format!("{:>8} {:>12} {:>12}", "chains", "total", "longest");
        let title = "where the time went";
        writeln!(out, "\n{title:<46}{:<34}   less is needed", "more is needed")?;
        writeln!(out, "{:46}{columns}   {columns}", "")?;
        let mut row = |name: &str, spans: &[Spans; 2]| match spans[0].count + spans[1].count {
            0 => Ok(()),
            _ => writeln!(out, "  {name:<44}{}   {}", spans[1].cells(), spans[0].cells()),
        };
        row("need to clock", &self.settled)?;
        for (index, spans) in self.waits.iter().enumerate() {
            row(ChainWait::ALL.get(index).map_or("other", |wait| wait.text()), spans)?;
        }
        for (index, spans) in self.others.iter().enumerate() {
            row(&format!("not settled: {}", ChainEnd::ALL[index].text()), spans)?;
        }
        Ok(())
    }
}
