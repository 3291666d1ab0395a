// SPDX-License-Identifier: GPL-2.0-or-later
use super::super::options;
use super::*;
use schedtwin_input::Source;

fn host(cpus: usize) -> Host {
    Host {
        cpu_capacity: vec![1024; cpus],
        ns_per_loop: 20,
        dl_bandwidth: None,
        copy_per_kib: 60,
        block_devices: Vec::new(),
    }
}

fn values(options: &str) -> Values {
    let text = format!("daytrader {options}");
    let source = Source::new("<test>", text);
    options::read(&source, 9, "daytrader", OPTIONS).expect("good options")
}

/// A worker for each user of a machine, a selector, GC threads for each CPU, compilers; users one after the other.
#[test]
fn threads_and_users_are_those_asked_for() {
    let script = Daytrader.build(&values("-j 4 -u 10"), &host(6));
    let count = |group: &str| script.threads.iter().filter(|thread| thread.group == group).count();
    let groups = ["main", "selector", "web", "gc", "jit"];
    assert_eq!(groups.map(count), [4, 4, 4 * 3, 4 * 6, 4 * 7]);
    let at_once = script.threads.iter().filter(|thread| !thread.later).map(|thread| &*thread.group);
    assert_eq!(at_once.collect::<Vec<_>>(), ["main"; 4], "who makes the others");
    assert_eq!(script.arrivals.len(), 10);
    assert!(script.arrivals.windows(2).all(|two| two[0].1 != two[1].1));
    let few = Daytrader.build(&values("--workers 2 --gc-threads 3"), &host(6));
    assert_eq!(few.threads.len(), 1 + 1 + 2 + 3 + 7);
}

/// Queues lie evenly over the CPUs, or side by side; those that a machine has not go round.
#[test]
fn network_queues_have_their_cpus() {
    let cpus = |options: &str, cpus| {
        let script = Daytrader.build(&values(options), &host(cpus));
        script.devices.iter().map(|device| device.cpu.0).collect::<Vec<_>>()
    };
    assert_eq!(cpus("", 64), [0, 8, 16, 24, 32, 40, 48, 56]);
    assert_eq!(cpus("--nic-queues 3 --nic-spread 1", 64), [0, 1, 2]);
    assert_eq!(cpus("--nic-queues 4", 2), [0, 1, 0, 1]);
}

/// More work for each doubling; in between as much as a straight line has.
#[test]
fn work_grows_with_the_machines() {
    let piece = |jvms| {
        let options = format!("-j {jvms} --work-us 1000 --queries 0 --jvm-growth 50");
        let settings = Settings::of(&values(&options), &host(8));
        settings.piece
    };
    for (jvms, us) in [(1, 1000), (2, 1500), (3, 1750), (4, 2000), (6, 2250), (8, 2500)] {
        assert_eq!(piece(jvms), Amount::Exponential(us * 1000), "{jvms}");
    }
}

/// All system work is shared out: two calls of a request's own and two a query.
#[test]
fn system_work_is_shared_out() {
    for (queries, own, each) in [(4, 240, 90), (1, 240, 360), (0, 600, 600)] {
        let options = format!("--system-us 1200 --queries {queries}");
        let settings = Settings::of(&values(&options), &host(8));
        assert_eq!(settings.own_call, Amount::Fixed(own * 1000));
        if queries > 0 {
            assert_eq!(settings.query_call, Amount::Fixed(each * 1000));
        }
    }
}
