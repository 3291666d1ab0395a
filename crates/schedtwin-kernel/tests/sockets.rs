// SPDX-License-Identifier: GPL-2.0-or-later
//! Sockets: who sleeps, who is woken, and that no byte is lost or doubled. The harness has the kernel check its sums
//! after every event, those of bytes sent and read among them, and that who sleeps has reason to.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS};
use insta::assert_snapshot;
use schedtwin_types::draw::{Draws, in_range};
use schedtwin_types::{Outcome, SocketId};

/// 222 messages of 100 bytes are 213120 bytes of kernel memory, just more than the buffer; the writer goes on when no
/// more than a quarter of it is used.
#[test]
fn a_unix_writer_goes_on_at_a_quarter() {
    let scenario = "w @0: pair 0 unix 0, [send 1 100]\nr @1ms: cpus 1, [recv 0 100, run 1ms]";
    let mut board = Board::new(2, scenario);
    board.run_until(MS / 2);
    let waits = |board: &Board| board.kernel.inside().sockets.memory(SocketId(1));
    assert_eq!(waits(&board), 222 * 960);
    // Reads from 1 ms on, one a millisecond: 167 leave 55 messages, 52800 bytes.
    board.run_until(167 * MS);
    assert_eq!(waits(&board), 56 * 960);
    board.run_until(168 * MS);
    assert_eq!(waits(&board), 222 * 960, "the writer has filled it again");
}

/// All who wait for a message are woken, latest first; one gets it, the others sleep again.
#[test]
fn readers_of_a_unix_socket_are_all_woken() {
    let scenario = "
        a @1ms: cpus 0, recv 0 1, [sleep 1s]
        b @2ms: cpus 0, recv 0 1, [sleep 1s]
        w @0: cpus 0, pair 0 unix 0, sleep 5ms, send 1 1, [sleep 1s]";
    let mut board = Board::new(1, scenario);
    board.run_until(10 * MS);
    let wakeups = board.wakeups();
    assert!(wakeups.ends_with("w b a"), "{wakeups}");
    assert_eq!(board.kernel.inside().sockets.waiting().count(), 1);
}

/// A datagram wakes one reader, the one that came first.
#[test]
fn readers_of_a_udp_socket_wait_exclusively() {
    let scenario = "
        a @1ms: cpus 0, recv 0 9, [sleep 1s]
        b @2ms: cpus 0, recv 0 9, [sleep 1s]
        w @0: cpus 0, pair 0 udp 0, sleep 5ms, send 1 9, [sleep 1s]";
    let mut board = Board::new(1, scenario);
    board.run_until(10 * MS);
    assert!(board.wakeups().ends_with("w a"), "{}", board.wakeups());
}

/// Nobody reads the byte that pollers wait for, so all of them go on.
#[test]
fn a_byte_lets_all_pollers_go() {
    let scenario = "
        a @1ms: cpus 0, poll 0, run 1ms, [sleep 1s]
        b @2ms: cpus 0, poll 0, run 1ms, [sleep 1s]
        w @0: cpus 0, pair 0 unix 0, sleep 5ms, send 1 1, [sleep 1s]";
    let mut board = Board::new(1, scenario);
    board.run_until(10 * MS);
    assert!(board.wakeups().ends_with("w b a"), "{}", board.wakeups());
    assert_eq!(board.kernel.inside().sockets.waiting().count(), 0);
    assert_eq!(board.kernel.inside().tasks[board.task("a")].outcome, Outcome::Done);
}

/// 64 KiB fit into the window; the rest follows when they are read.
#[test]
fn a_tcp_window_opens_by_reading() {
    let scenario = "
        w @0: pair 0 tcp 100000, send 1 300000, [sleep 1s]
        r @1ms: cpus 1, recv 0 65536, run 1ms, recv 0 1000000, run 1ms, recv 0 1000000, run 1ms, [recv 0 1000000]";
    let mut board = Board::new(2, scenario);
    board.run_until(20 * MS);
    assert_snapshot!(board.switch_list(0), @r"
    0.000 main
    0.000 .
    1.000 main
    1.000 .
    1.000 w
    1.000 .
    2.000 w
    2.000 .
    3.000 w
    3.000 .
    ");
    assert_eq!(board.kernel.inside().sockets.waiting().count(), 1, "the reader alone");
}

/// Threads that send and receive at random, with small buffers and nice values, and end early: sums agree after
/// every event, and whoever still sleeps has reason to.
#[test]
fn no_byte_is_lost() {
    for seed in 0..150 {
        let draws = Draws::new(seed, "sockets", "random");
        let mut nth = 0;
        let mut within = |low: u64, high: u64| {
            nth += 1;
            in_range(draws.nth(nth), low, high)
        };
        let kind = ["unix", "tcp", "udp"][within(0, 2) as usize];
        let sndbuf = [0, 4608, 9000, 40_000][within(0, 3) as usize];
        let mut scenario = format!("m @0: pair 0 {kind} {sndbuf}\n");
        for number in 0..within(2, 9) {
            let call = ["send 1", "recv 0"][within(0, 1) as usize];
            let step = format!("{call} {}, run {}us", within(1, 9000), within(1, 600));
            let steps = vec![step; within(1, 12) as usize].join(", ");
            let nice = within(0, 39) as i64 - 20;
            let start = within(100, 300);
            scenario.push_str(&format!("t{number} @{start}us: nice {nice}, {steps}\n"));
        }
        Board::new(within(1, 4) as usize, &scenario).run_until(100 * MS);
    }
}
