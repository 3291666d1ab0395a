// SPDX-License-Identifier: GPL-2.0-or-later
//! The board's boot as tasks of an rt-app file: where a thread begins, and with which estimate, follows from what the boot
//! has left behind on the CPUs.
//!
//! Steps and times are those of three boots of 7.3 that were recorded from their first instant on
//! (`recordings/boot`), of no comparison:
//!
//! ```text
//!   0.000  kernel and init work; the last 130 ms       [`BOOT`]
//!          they clear pages of the trace's buffers
//!   0.292  a work on each CPU adds its buffer's pages  [`POOLS`]
//!          on each CPU in turn, init stops its fair
//!          server, if the workload says so
//!   0.293  it reads the workload from the host         [`READS`]
//!   0.312  waits for RCU, when events are switched on  [`RCU_US`]
//!   0.332  writes what it has found out to the host    [`WRITES`]
//!   0.350  makes the threads
//!          a grace period goes on                      [`GRACE_PERIOD`]
//! ```
//!
//! The kernel's own timers and works are not among them: the twin has those.

use super::workload::NR_CPUS;
use serde_json::{Map, Value, json};

/// The task of the board's init.
pub(super) const INIT: &str = "init";
/// Where kernel and init work before the steps below, and how long, us. The last is the clearing of pages, 130 ms.
const BOOT: [(u32, u64); 4] = [(0, 14_000), (4, 24_000), (7, 80_000), (6, 164_000)];
/// Where init goes on: it stayed there, also after sleeps.
const BOOT_CPU: u32 = BOOT[3].0;
/// CPUs whose pools make their second worker for the work on the trace's buffers. It comes with the estimate of a new task, and its
/// CPU keeps that for a while. By the workers' pids in the recordings, which are the last before those of the threads; the
/// others' are older (of CPUs 4 and 7 one, mostly 7).
const POOLS: [u32; 4] = [1, 2, 4, 5];
/// What init does on a CPU to stop its fair server, us. [E]
const FAIR_SERVER_US: u64 = 100;
/// Reads of the host's files: how many, the work of each and the wait after it, us.
const READS: (u32, u32, u32) = (8, 10, 1000);
/// The wait for a grace period, us.
const RCU_US: u32 = 22_000;
/// Writes of such files: how many, how long init works before each, and the wait after it, us.
const WRITES: (u32, u32, u32) = (5, 2500, 500);
/// The kworker that each of them wakes, and where it was mostly.
const WRITER: &str = "kworker/u32:0";
const WRITER_CPU: u32 = 7;
/// The grace period that goes on when the threads are made: how often its thread looks, the work of each look and the wait after
/// it, us. Then its callbacks have a kworker run on init's CPU and one on CPU 0.
const GRACE_PERIOD: (u32, u32, u32) = (5, 5, 8000);
const RCU: &str = "rcu_preempt";
/// Longer than any run, us.
const NEVER_US: u64 = 1_000_000_000;

/// The tasks of the boot, of which init makes the workload's threads (`births`).
pub(super) fn tasks(births: Map<String, Value>, stops_fair_servers: bool) -> Map<String, Value> {
    let mut tasks = Map::new();
    for cpu in 0..NR_CPUS {
        let worker = match POOLS.contains(&cpu) {
            true => {
                json!({ "instance": 0, "loop": 1, "cpus": [cpu], "run": 5, "sleep": NEVER_US })
            }
            false => {
                let name = worker_name(cpu);
                json!({ "instance": 0, "loop": -1, "cpus": [cpu], "sem_wait": name, "run": 5 })
            }
        };
        tasks.insert(worker_name(cpu), worker);
    }
    let (count, run, period) = GRACE_PERIOD;
    let rcu = json!({ "instance": 0, "loop": 1, "phases": {
        "wait": { "sem_wait": RCU },
        "grace_period": { "loop": count, "run": run, "sleep": period },
        "callbacks": { "sem_post": worker_name(BOOT_CPU), "sleep": period },
        "other": { "sem_post": worker_name(0), "sleep": NEVER_US } } });
    tasks.insert(RCU.into(), rcu);
    let writer = json!({
        "instance": 0, "loop": -1, "cpus": [WRITER_CPU], "sem_wait": WRITER, "run": 5 });
    tasks.insert(WRITER.into(), writer);
    tasks.insert(INIT.into(), init(births, stops_fair_servers));
    tasks
}

/// The board's init, which makes the threads.
fn init(births: Map<String, Value>, stops_fair_servers: bool) -> Value {
    let mut phases = Map::new();
    let older = (0..NR_CPUS).filter(|cpu| !POOLS.contains(cpu));
    let older = older.map(|cpu| (format!("fork{cpu}"), json!(worker_name(cpu))));
    let older =
        older.chain([("fork".to_string(), json!(WRITER)), ("forkr".to_string(), json!(RCU))]);
    phases.insert("older".into(), older.collect());
    for (cpu, us) in BOOT {
        phases.insert(format!("boot{cpu}"), json!({ "cpus": [cpu], "runtime": us }));
    }
    let workers = (0..NR_CPUS).map(|cpu| {
        let how = if POOLS.contains(&cpu) { "fork" } else { "sem_post" };
        (format!("{how}{cpu}"), json!(worker_name(cpu)))
    });
    let workers = std::iter::once(("cpus".to_string(), all_cpus())).chain(workers);
    phases.insert("workers".into(), workers.collect());
    for cpu in (0..NR_CPUS).filter(|_| stops_fair_servers) {
        let phase = json!({ "cpus": [cpu], "runtime": FAIR_SERVER_US });
        phases.insert(format!("fair_server{cpu}"), phase);
    }
    let (count, run, sleep) = READS;
    let reads = json!({ "cpus": [BOOT_CPU], "loop": count, "run": run, "sleep": sleep });
    phases.insert("reads".into(), reads);
    phases.insert("rcu".into(), json!({ "cpus": [BOOT_CPU], "sleep": RCU_US }));
    let (count, runtime, sleep) = WRITES;
    let writes = json!({
        "cpus": [BOOT_CPU], "loop": count, "runtime": runtime, "sem_post": WRITER, "sleep": sleep });
    phases.insert("writes".into(), writes);
    phases.insert("anywhere".into(), json!({ "cpus": all_cpus(), "run": 1 }));
    phases.insert("births".into(), Value::Object(births));
    phases.insert("rcu_tail".into(), json!({ "sem_post": RCU }));
    json!({ "instance": 1, "loop": 1, "phases": phases })
}

fn all_cpus() -> Value {
    json!((0..NR_CPUS).collect::<Vec<u32>>())
}

/// The second worker of a CPU's pool, as the kernel calls it: no task of a board has such a name.
fn worker_name(cpu: u32) -> String {
    format!("kworker/{cpu}:1")
}
