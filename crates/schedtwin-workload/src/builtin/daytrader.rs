// SPDX-License-Identifier: GPL-2.0-or-later
//! `daytrader`: a closed loop of users before the Java machines of DayTrader 7 on Liberty, the database elsewhere.
//!
//! ```text
//! user ··net··> NIC irq ─> selector ─> worker: receive | work | lock | query ·········> NIC irq ─> worker: work | ... | send ─┐
//!  └<···········think···············································database···┘                                            │
//!  └<·······················································net···············································<────────────┘
//! all workers at a safepoint ─> last one ─> GC threads, in parallel ─> last one ─> all workers
//! ```
//!
//! **Terms.** A *user* is elsewhere, has one request under way, and belongs to one Java machine. A *selector* is the thread that
//! waits for all connections of its machine and hands requests over; a *worker* handles one from its first byte to its last, and
//! sleeps for each query. A thread is *in Java* unless it waits outside of a lock; a *stop* begins when none is.
//!
//! A machine's first thread, `java-N`, makes all others of it, as in recordings of OpenJDK 17, whose main thread makes 83 of 83
//! (`conformance/recordings/births`).
//!
//! **Algorithm** of a request, and who wakes whom:
//! 1. The network interrupts the CPU of the user's queue, whose handler wakes the selector. That wakes the worker that has waited for
//!    longest.
//! 2. The worker receives, and does its work in equal pieces, with a query after each but the last. A piece ends with one of its
//!    machine's locks for a moment: a futex, where nobody has it for free.
//! 3. A query is sent; the answer comes by an interrupt at the CPU of the worker's queue, whose handler wakes the worker.
//! 4. It sends the answer. After the way there and back, and the time that the user thinks, the next request comes.
//! 5. After so many requests the nursery of a machine is full: its workers stop where a piece ends, or when they would come back
//!    from a wait. The last one wakes the GC threads, the last of which wakes the workers.
//! 6. A compiler thread works most of the time in the beginning, and then now and then.
//!
//! **What is known** [S]: 80 users, 1 to 8 machines on 8 cores, no time to think; locks, JMS and pools of the program; a database of its
//! own; which requests users make. What is not [X]: how long anything takes. From the base table follow CPU time a request, by mode, and how
//! long all else takes ([D], `studies/daytrader-power10.toml`); which parts these have is estimated [E], all numbers below.
//! That 80 users are those of all machines together is a reading, too: 80 a machine would wait 100 ms and more for 64 CPUs. So is the
//! order of "sys/user": the larger is user time.
//!
//! **Choices** [E]: a worker for each user of the machine, so that nobody waits for one; as many GC threads as CPUs (OpenJ9's default is one
//! less, up to 64, and a thread of the program [S]); 7 compiler threads (OpenJ9's heuristics give up to 15). Work of pieces and compilers is drawn from an exponential distribution, that of GC threads is even
//! within a third.
//!
//! Differences: all requests are of one kind, and orders are not completed by a second thread (JMS). A waiting thread does not spin before it
//! sleeps, in locks nor in the GC, which steals no work. The network's softirq costs what a device's handler costs; sending and receiving are
//! system work of the thread. A network queue has one CPU for ever (`--nic-spread`). Heap and code grow with the number of
//! machines by one factor of user work (`--jvm-growth`), not by a model of caches.

use super::amount::Amount;
use super::benchmark::Benchmark;
use super::options::{Values, WorkloadOption};
use super::script::{
    Delivery, Device, Flag, Queue, Register, Script, Step, Thread, ThreadSteps, nice,
};
use crate::Host;
use schedtwin_types::Ns;
use schedtwin_types::metric::{self, DeclaredMetric};

const NS_PER_S: Ns = 1_000_000_000;
const NS_PER_MS: Ns = 1_000_000;
const NS_PER_US: Ns = 1_000;
/// Half of what receiving and sending cost is a request's own, the rest its queries'. [E]
const OWN_SYSTEM_PERCENT: u64 = 40;
/// A selector's work a request: its look at who has sent something, in the kernel, and the rest. [E]
const SELECT_SYSTEM: Ns = 15 * NS_PER_US;
const SELECT: Ns = 10 * NS_PER_US;
/// How long a lock is held. [E]
const HELD: Ns = 8 * NS_PER_US;
/// Compiler threads of a machine, and the pieces in which they work. [E]
const COMPILERS: u64 = 7;
const COMPILES: Amount = Amount::Exponential(3 * NS_PER_MS);
/// Users come one after the other within this time. [E]
const RAMP_UP: Ns = 100 * NS_PER_MS;

const OPTIONS: &[WorkloadOption] = &[
    WorkloadOption::count(Some('j'), "jvms", "", 1, (1, 16), "Java machines"),
    WorkloadOption::count(Some('u'), "users", "", 80, (1, 1000), "users of all machines together"),
    WorkloadOption::count(None, "workers", "", 0, (0, 500), "of a machine; 0: one for each user"),
    WorkloadOption::count(None, "think-us", "us", 0, (0, 10_000_000), "what a user thinks, mean"),
    WorkloadOption::count(None, "work-us", "us", 3_500, (10, 100_000), "user work a request")
        .free(),
    WorkloadOption::count(None, "system-us", "us", 1_200, (1, 100_000), "system work a request")
        .free(),
    WorkloadOption::decimal(
        None,
        "jvm-growth",
        "%",
        0,
        (0, 200_000),
        "more user work for each doubling of the machines",
    )
    .free(),
    WorkloadOption::count(None, "queries", "", 4, (0, 50), "queries a request"),
    WorkloadOption::count(None, "db-us", "us", 500, (1, 1_000_000), "an answer, network included")
        .free(),
    WorkloadOption::count(None, "net-us", "us", 300, (0, 1_000_000), "to the user and back"),
    WorkloadOption::count(None, "locks", "", 8, (1, 64), "locks of a machine"),
    WorkloadOption::count(None, "gc-every", "", 600, (1, 1_000_000), "requests between two stops"),
    WorkloadOption::count(None, "gc-work-us", "us", 20_000, (1, 10_000_000), "work of a stop"),
    WorkloadOption::count(None, "gc-threads", "", 0, (0, 256), "of a machine; 0: as many as CPUs"),
    WorkloadOption::count(
        None,
        "jit-ms",
        "ms",
        500,
        (0, 60_000),
        "compilers work, in the beginning",
    ),
    WorkloadOption::count(None, "nic-queues", "", 8, (1, 16), "queues of the network"),
    WorkloadOption::count(
        None,
        "nic-spread",
        "CPUs",
        0,
        (0, 256),
        "from one queue's CPU to the next one's; 0: evenly over all",
    ),
    WorkloadOption::count(None, "warmup-ms", "ms", 500, (0, 600_000), "not measured"),
    WorkloadOption::decimal(
        None,
        "seconds",
        "s",
        1_500,
        (100, 3_600_000),
        "how long, warm-up included",
    ),
];

/// DayTrader on Java machines.
#[derive(Debug)]
pub(super) struct Daytrader;

impl Benchmark for Daytrader {
    fn name(&self) -> &'static str {
        "daytrader"
    }

    fn description(&self) -> &'static str {
        "users before Java machines, the database elsewhere; by default -j 1 -u 80 (1.5 s)"
    }

    fn options(&self) -> &'static [WorkloadOption] {
        OPTIONS
    }

    fn about(&self) -> &'static str {
        "\
user: a request, by the network; the answer; thinks; the next one
selector: wakes a worker; worker: receives; work, a lock, a query, which sleeps; ...; sends
GC threads: all work while all workers stop; compiler threads: busy in the beginning, then rarely
throughput: requests a second; frame_duration: from the interrupt to the answer; cpu_time_per_request
"
    }

    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        const OWN: &[&DeclaredMetric] = &[&metric::CPU_TIME_PER_REQUEST];
        OWN
    }

    fn duration(&self, values: &Values) -> Option<Ns> {
        Some(values.thousandths("seconds") * NS_PER_MS)
    }

    fn warmup(&self, values: &Values) -> Ns {
        values.whole("warmup-ms") * NS_PER_MS
    }

    fn counts_requests(&self) -> bool {
        true
    }

    fn build(&self, values: &Values, host: &Host) -> Script {
        let mut script = Script::new(host.cpu_capacity.len());
        let nic = nic(&mut script, values);
        let settings = Settings::of(values, host);
        for number in 0..settings.jvms {
            jvm(&mut script, &settings, &nic, number);
        }
        script
    }
}

/// The settings that all machines have in common.
struct Settings {
    jvms: u64,
    users: u64,
    workers: u64,
    gc_threads: u64,
    gc_every: u64,
    gc_work: Ns,
    jit: Ns,
    locks: u64,
    queries: u64,
    /// User work of a piece.
    piece: Amount,
    /// System work of the request's own two calls, and of a query's two, each.
    own_call: Amount,
    query_call: Amount,
    db: Amount,
    /// To the user, who thinks, and back.
    away: Amount,
}

impl Settings {
    fn of(values: &Values, host: &Host) -> Settings {
        let us = |long| values.whole(long) * NS_PER_US;
        let (jvms, users, queries) =
            (values.whole("jvms"), values.whole("users"), values.whole("queries"));
        let or =
            |long, default: u64| Some(values.whole(long)).filter(|n| *n > 0).unwrap_or(default);
        // Between powers of two the growth is even: doublings in thousandths, as the logarithm's straight pieces.
        let whole = u64::from(jvms.ilog2());
        let doublings = whole * 1000 + (jvms - (1 << whole)) * 1000 / (1 << whole);
        let growth = values.thousandths("jvm-growth") * doublings / 1000;
        let work = us("work-us") * (100_000 + growth) / 100_000;
        let system = us("system-us");
        let own = if queries == 0 { system } else { system * OWN_SYSTEM_PERCENT / 100 };
        let (net, think) = (us("net-us"), us("think-us"));
        Settings {
            jvms,
            users,
            workers: or("workers", users.div_ceil(jvms)),
            gc_threads: or("gc-threads", host.cpu_capacity.len() as u64),
            gc_every: values.whole("gc-every"),
            gc_work: us("gc-work-us"),
            jit: values.whole("jit-ms") * NS_PER_MS,
            locks: values.whole("locks"),
            queries,
            piece: Amount::Exponential(work / (queries + 1)),
            own_call: Amount::Fixed(own / 2),
            query_call: Amount::Fixed((system - own) / (2 * queries.max(1))),
            db: Amount::Exponential(us("db-us")),
            away: if think == 0 { Amount::Fixed(net) } else { Amount::Exponential(net + think) },
        }
    }
}

/// The network's queues, each with an interrupt of its own.
fn nic(script: &mut Script, values: &Values) -> Vec<Device> {
    let queues = values.whole("nic-queues");
    let cpus = script.nr_cpus as u64;
    let spread = match values.whole("nic-spread") {
        0 => (cpus / queues).max(1),
        spread => spread,
    };
    let cpu_of = |queue: u64| (queue * spread % cpus.max(1)) as u16;
    (0..queues).map(|queue| script.device(&format!("nic-{queue}"), cpu_of(queue), &[])).collect()
}

/// Shared memory of one machine's threads.
struct Jvm {
    incoming: Flag,
    arrived: Queue,
    jobs: Flag,
    waiting: Queue,
    locks: Vec<Flag>,
    gc_start: Flag,
    gc_done: Flag,
    /// A stop has been asked for.
    gc: Register,
    /// Threads in Java, those that wait for the stop's end, and GC threads at work.
    running: Register,
    stopped: Register,
    collecting: Register,
    gc_threads: Register,
    /// Requests until the nursery is full.
    room: Register,
}

fn jvm(script: &mut Script, s: &Settings, nic: &[Device], number: u64) {
    let jvm = Jvm {
        incoming: script.flag(0),
        arrived: script.queue(),
        jobs: script.flag(0),
        waiting: script.queue(),
        locks: (0..s.locks).map(|_| script.flag(1)).collect(),
        gc_start: script.flag(0),
        gc_done: script.flag(0),
        gc: script.register(0),
        running: script.register(0),
        stopped: script.register(0),
        collecting: script.register(0),
        gc_threads: script.register(0),
        room: script.register(s.gc_every),
    };
    let request = Delivery { flag: jvm.incoming, moment: Some(jvm.arrived) };
    for user in (0..s.users).filter(|user| user % s.jvms == number) {
        let queue = nic[user as usize % nic.len()];
        script.arrivals.push((queue, user * RAMP_UP / s.users, request));
    }
    let first = script.threads.len() as u32;
    let moment = script.register(0);
    let selector = script
        .thread(&format!("selector-{number}"), nice(0))
        .group("selector")
        .of(&jvm_name(number))
        .later();
    let selector = selector.then(&[Step::Wait(jvm.incoming)]);
    enter(selector, &jvm)
        .then(&[
            Step::Get(jvm.arrived, moment),
            Step::KernelWork(Amount::Fixed(SELECT_SYSTEM)),
            Step::Work(Amount::Fixed(SELECT)),
            Step::Put(jvm.waiting, moment),
            Step::Post(jvm.jobs),
        ])
        .leave_java(s, &jvm)
        .for_ever();
    for worker in 0..s.workers {
        let queue = nic[(number + worker * s.jvms) as usize % nic.len()];
        worker_thread(script, s, &jvm, queue, request, (number, worker));
    }
    for thread in 0..s.gc_threads {
        let share = s.gc_work / s.gc_threads;
        let work = Amount::Uniform(share * 2 / 3, share * 4 / 3);
        script
            .thread(&format!("gc-{number}-{thread}"), nice(0))
            .group("gc")
            .of(&jvm_name(number))
            .later()
            .then(&[Step::Wait(jvm.gc_start), Step::Work(work), Step::Take(jvm.collecting)])
            .unless_set(jvm.collecting, |last| {
                last.then(&[Step::Set(jvm.gc, 0), Step::PostAll(jvm.gc_done, jvm.stopped)])
            })
            .for_ever();
    }
    for thread in 0..COMPILERS {
        let counter = script.register(0);
        let begin = s.jit / (4 * NS_PER_MS);
        let pause = |mean| Step::Sleep(Amount::Exponential(mean));
        let name = format!("jit-{number}-{thread}");
        let busy = script.thread(&name, nice(0)).group("jit").of(&jvm_name(number)).later();
        let busy = busy.repeat(counter, (begin, [pause(NS_PER_MS), Step::Work(COMPILES)]));
        let again = busy.here();
        busy.then(&[pause(2 * NS_PER_S), Step::Work(COMPILES), Step::Jump(again)]).for_ever();
    }
    // The thread that begins a machine makes all others of it and waits for its end.
    let starts: Vec<Step> =
        (first..script.threads.len() as u32).map(|thread| Step::Clone(Thread(thread))).collect();
    let end = script.flag(0);
    let main = script.thread(&jvm_name(number), nice(0)).group("main").of(&jvm_name(number));
    main.then(&starts).then(&[Step::Wait(end)]).for_ever();
}

/// The process of a server.
fn jvm_name(number: u64) -> String {
    format!("java-{number}")
}

fn worker_thread(
    script: &mut Script,
    s: &Settings,
    jvm: &Jvm,
    queue: Device,
    request: Delivery,
    (number, worker): (u64, u64),
) {
    let (since, answered) = (script.register(0), script.flag(0));
    let answer = Delivery { flag: answered, moment: None };
    let name = format!("web-{number}-{worker}");
    let mut steps = script
        .thread(&name, nice(0))
        .group("web")
        .of(&jvm_name(number))
        .later()
        .then(&[Step::Wait(jvm.jobs)]);
    steps = enter(steps, jvm).then(&[Step::Get(jvm.waiting, since), Step::KernelWork(s.own_call)]);
    for piece in 0..=s.queries {
        let lock = jvm.locks[((worker + piece) % s.locks) as usize];
        let held = Step::Work(Amount::Fixed(HELD));
        steps = steps.then(&[Step::Work(s.piece), Step::Wait(lock), held, Step::Post(lock)]);
        if piece == s.queries {
            break;
        }
        // Sending a query is a call out of Java, and so is waiting for its answer.
        steps = steps.leave_java(s, jvm).then(&[
            Step::KernelWork(s.query_call),
            Step::Later(queue, s.db, answer),
            Step::Wait(answered),
            Step::KernelWork(s.query_call),
        ]);
        steps = enter(steps, jvm);
    }
    steps
        .if_set(jvm.room, |room| room.then(&[Step::Take(jvm.room)]))
        .unless_set(jvm.room, |full| {
            full.then(&[Step::Set(jvm.room, s.gc_every), Step::Set(jvm.gc, 1)])
        })
        .leave_java(s, jvm)
        .then(&[
            Step::KernelWork(s.own_call),
            Step::Later(queue, s.away, request),
            Step::Job(since),
        ])
        .for_ever();
}

/// Comes back to Java: not while a stop has been asked for.
fn enter<'s>(steps: ThreadSteps<'s>, jvm: &Jvm) -> ThreadSteps<'s> {
    let stop = [Step::Add(jvm.stopped, 1), Step::Wait(jvm.gc_done)];
    steps.while_set(jvm.gc, |stops| stops.then(&stop)).then(&[Step::Add(jvm.running, 1)])
}

impl<'s> ThreadSteps<'s> {
    /// Leaves Java; the last one begins a stop that has been asked for.
    fn leave_java(self, s: &Settings, jvm: &Jvm) -> ThreadSteps<'s> {
        let begin = [
            Step::Set(jvm.collecting, s.gc_threads),
            Step::Set(jvm.gc_threads, s.gc_threads),
            Step::PostAll(jvm.gc_start, jvm.gc_threads),
        ];
        self.then(&[Step::Take(jvm.running)]).if_set(jvm.gc, |asked| {
            asked.unless_set(jvm.running, |last| {
                last.unless_set(jvm.collecting, |first| first.then(&begin))
            })
        })
    }
}

#[cfg(test)]
mod tests;
