// SPDX-License-Identifier: GPL-2.0-or-later
//! An rt-app file of a recording: a model of it that a person can read and change.
//!
//! # Algorithm
//!
//! 1. Threads with at least [`SHARE_LEAST_PCT`] % of the work become tasks, [`TASKS_MOST`] of them at most; the rest is lost.
//! 2. Each job of a task is its thread's mean job. What begins it is what began most of the thread's:
//!    - regular interrupts: a `timer` with the median period;
//!    - one thread, if it is a task, too: a semaphore, which that task posts at the end of as many of its own jobs as it woke
//!      the thread in;
//!    - anything else: a `sleep` of the mean length.
//!
//!    A task does its jobs for ever, but for one whose thread exits before the end, never sleeps, or has fewer than `FEW_JOBS`
//!    jobs without a period: that one does as many jobs as were recorded, and begins when its thread was forked (`delay`).
//! 3. What this leaves out is listed.
//!
//! Work is in microseconds at full speed of the strongest CPU (`"calibration": "largest"`).

use schedtwin_engine::recording::{Recorded, RecordedThread};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A thread's share of the work from which on it becomes a task, %.
pub const SHARE_LEAST_PCT: f64 = 0.5;

/// Tasks of a file.
pub const TASKS_MOST: usize = 40;

/// Share of a thread's jobs that its waker has to begin to be taken for the cause, %.
const WAKER_PCT: u64 = 50;

/// Jobs without a period of which a mean sleep says too little to go on with it for ever.
const FEW_JOBS: u64 = 8;

/// A file, and what it lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtApp {
    /// The text of the file.
    pub text: String,
    /// What of the recording is not in it, a sentence each.
    pub lost: Vec<String>,
}

/// Makes the file.
pub fn rtapp(recorded: &Recorded, title: &str) -> RtApp {
    let chosen = chosen(recorded);
    let name_of = names(recorded, &chosen);
    let mut lost = Lost::default();
    let mut tasks = Map::new();
    for &index in &chosen {
        let mut task = Map::new();
        let thread = &recorded.threads[index];
        priority(thread.prio, &mut task);
        let cause = cause(recorded, index, &name_of, &mut lost);
        match loops(thread, &cause, recorded.span_ns) {
            None => {
                lost.begin_at_once += u64::from(thread.jobs.begins.is_some());
                task.insert("loop".to_owned(), json!(-1));
            }
            Some(loops) => {
                task.insert("loop".to_owned(), json!(loops));
                if let Some(us) = thread.jobs.begins.map(|ns| ns / 1000).filter(|us| *us > 0) {
                    task.insert("delay".to_owned(), json!(us));
                }
            }
        }
        match &cause {
            Cause::Timer(us) => {
                let timer = json!({"ref": name_of[&index], "period": us, "mode": "absolute"});
                task.insert("timer".to_owned(), timer);
            }
            Cause::Waker => drop(task.insert("sem_wait".to_owned(), json!(name_of[&index]))),
            Cause::Sleep(us) => drop(task.insert("sleep".to_owned(), json!(us))),
            Cause::None => {}
        }
        lost.spread(thread);
        let mean = thread.jobs.work / thread.jobs.count.max(1) / 1000;
        task.insert("run".to_owned(), json!(mean.max(1)));
        wakes(recorded, index, &chosen, &name_of, &mut task, &mut lost);
        tasks.insert(name_of[&index].clone(), Value::Object(task));
    }
    let seconds = recorded.span_ns.div_ceil(1_000_000_000).max(1);
    let file = json!({
        "global": {
            "duration": seconds,
            "calibration": "largest",
            "default_policy": "SCHED_OTHER",
        },
        "tasks": tasks,
    });
    let body = serde_json::to_string_pretty(&file).expect("it is made of plain values");
    let text = format!(
        "/*\n * A model of the recording {}: mean jobs of the threads with the most work, in\n \
         * microseconds at full speed of the strongest CPU. Made by schedtwin convert; change it.\n */\n{body}\n",
        title.replace("*/", "* /").replace('\n', " ")
    );
    RtApp { text, lost: lost.sentences(recorded, &chosen) }
}

/// The threads that become tasks, the most work first.
fn chosen(recorded: &Recorded) -> Vec<usize> {
    let all: u64 = recorded.threads.iter().map(|thread| thread.jobs.work).sum();
    let share = |thread: &RecordedThread| 100.0 * thread.jobs.work as f64 / all.max(1) as f64;
    let mut chosen: Vec<usize> = (0..recorded.threads.len())
        .filter(|index| share(&recorded.threads[*index]) >= SHARE_LEAST_PCT)
        .collect();
    chosen.sort_by_key(|index| std::cmp::Reverse(recorded.threads[*index].jobs.work));
    chosen.truncate(TASKS_MOST);
    chosen
}

/// A name for each task: its thread's, with the pid where several have it.
fn names(recorded: &Recorded, chosen: &[usize]) -> BTreeMap<usize, String> {
    let name = |index: &usize| &recorded.threads[*index].name;
    let named = chosen.iter().map(|index| {
        let alone = chosen.iter().filter(|other| name(other) == name(index)).count() == 1;
        let pid = recorded.threads[*index].pid;
        (*index, if alone { name(index).to_string() } else { format!("{}-{pid}", name(index)) })
    });
    named.collect()
}

/// rt-app's priority: a nice value, or that of a real-time task.
fn priority(prio: i32, task: &mut Map<String, Value>) {
    match prio {
        ..100 => {
            task.insert("policy".to_owned(), json!("SCHED_FIFO"));
            task.insert("priority".to_owned(), json!((99 - prio).clamp(1, 99)));
        }
        120 => {}
        nice => drop(task.insert("priority".to_owned(), json!((nice - 120).clamp(-20, 19)))),
    }
}

/// What begins a task's jobs.
enum Cause {
    /// A period, us.
    Timer(u64),
    Waker,
    /// A pause, us.
    Sleep(u64),
    /// It never sleeps.
    None,
}

/// The number of jobs that a task does; `None`: it goes on for ever.
fn loops(thread: &RecordedThread, cause: &Cause, span_ns: u64) -> Option<u64> {
    let jobs = &thread.jobs;
    let ends = match cause {
        // One that exits with the recording has a period all the time.
        Cause::Timer(us) => {
            let there = span_ns.saturating_sub(jobs.begins.unwrap_or(0));
            jobs.exits && jobs.count * us * 1000 < there / 10 * 9
        }
        Cause::None => true,
        Cause::Waker | Cause::Sleep(_) => jobs.exits || jobs.count < FEW_JOBS,
    };
    ends.then_some(jobs.count.max(1))
}

/// The task that wakes a thread, if it is the cause of its jobs.
fn waker_of(recorded: &Recorded, index: usize, tasks: &BTreeMap<usize, String>) -> Option<usize> {
    let jobs = &recorded.threads[index].jobs;
    let (waker, count) = jobs.waker?;
    let enough = count * 100 >= (jobs.woken + jobs.by_time) * WAKER_PCT;
    let waker = waker as usize;
    (enough && waker != index && tasks.contains_key(&waker)).then_some(waker)
}

fn cause(
    recorded: &Recorded,
    index: usize,
    tasks: &BTreeMap<usize, String>,
    lost: &mut Lost,
) -> Cause {
    let jobs = &recorded.threads[index].jobs;
    if let (Some(period), true) = (jobs.period, jobs.by_time >= jobs.woken) {
        return Cause::Timer(period.ns / 1000);
    }
    if waker_of(recorded, index, tasks).is_some() {
        return Cause::Waker;
    }
    if jobs.woken + jobs.by_time == 0 {
        return Cause::None;
    }
    lost.without_cause.push(tasks[&index].clone());
    Cause::Sleep((jobs.sleep / 1000).max(1))
}

/// The semaphores that a task posts, each in as many jobs as it woke the waiter in.
fn wakes(
    recorded: &Recorded,
    index: usize,
    chosen: &[usize],
    tasks: &BTreeMap<usize, String>,
    task: &mut Map<String, Value>,
    lost: &mut Lost,
) {
    for wakee in chosen {
        let caused = waker_of(recorded, *wakee, tasks) == Some(index);
        let jobs = &recorded.threads[*wakee].jobs;
        let periodic = jobs.period.is_some() && jobs.by_time >= jobs.woken;
        if !caused || periodic {
            continue;
        }
        // Keys of an object differ: the reader takes a number behind an event's name.
        let key = format!("sem_post{}", task.len());
        task.insert(key, json!(tasks[wakee]));
        let (own, woken) =
            (recorded.threads[index].jobs.count, jobs.waker.map_or(0, |(_, count)| count));
        if own > 0 && (woken * 5 < own * 4 || woken * 4 > own * 5) {
            lost.ratios.push(format!(
                "{} woke {} {woken} times in {own} jobs, here once in each",
                tasks[&index], tasks[wakee]
            ));
        }
    }
}

/// What the file does not hold.
#[derive(Default)]
struct Lost {
    without_cause: Vec<String>,
    spreads: Vec<String>,
    ratios: Vec<String>,
    /// Endless tasks whose threads begin within the recording.
    begin_at_once: u64,
}

impl Lost {
    fn spread(&mut self, thread: &RecordedThread) {
        let [least, median, most] = thread.jobs.quantiles;
        if most > 2 * least.max(1) {
            let us = |work: u64| work / 1000;
            self.spreads.push(format!(
                "{} {}..{}..{} us",
                thread.name,
                us(least),
                us(median),
                us(most)
            ));
        }
    }

    fn sentences(self, recorded: &Recorded, chosen: &[usize]) -> Vec<String> {
        let work = |threads: &mut dyn Iterator<Item = &RecordedThread>| -> u64 {
            threads.map(|thread| thread.jobs.work).sum()
        };
        let all = work(&mut recorded.threads.iter());
        let kept = work(&mut chosen.iter().map(|index| &recorded.threads[*index]));
        let begin_at_once = self.begin_at_once;
        let mut sentences = Vec::new();
        let rest = recorded.threads.len() - chosen.len();
        if rest > 0 {
            sentences.push(format!(
                "{rest} threads with {:.1} % of the work",
                100.0 * (all - kept) as f64 / all.max(1) as f64
            ));
        }
        let mut list = |what: &str, items: Vec<String>| {
            if !items.is_empty() {
                sentences.push(format!("{what}: {}", items.join("; ")));
            }
        };
        list("how the work of jobs differs (10 %..median..90 %)", self.spreads);
        list(
            "what begins the jobs of these, which pause for their mean sleep instead",
            self.without_cause,
        );
        list("how often one wakes another", self.ratios);
        for (count, what) in [
            (recorded.priority_changes, "changes of priority"),
            (begin_at_once, "threads that begin within the recording: here they begin at once"),
            (recorded.executed, "programs executed, for which the kernel looked for a CPU anew"),
        ] {
            if count > 0 {
                sentences.push(format!("{count} {what}"));
            }
        }
        sentences
    }
}
