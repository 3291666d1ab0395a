// SPDX-License-Identifier: GPL-2.0-or-later
//! Chains from need to clock: written, read back and explained.

mod sample;

use schedtwin_trace::explain::{Query, Summary, What, explain_record};
use schedtwin_trace::record::{Entry, Reader, RecordedChain};
use schedtwin_trace::{PackedRecord, Record, Sink};
use schedtwin_types::{
    ChainEnd, ChainEvent, CpuId, FrequencyRule, NeedCause, NeedChain, Ns, PolicyId,
};

fn need(at: Ns, khz: u32, cause: NeedCause) -> ChainEvent {
    ChainEvent::Need { at, cpu: CpuId(5), khz, cause }
}

/// One that settled after the rate limit and a tick, one of less, and one whose need has gone.
fn chains() -> Vec<NeedChain> {
    let refused = ChainEvent::Governor {
        at: 4_000_000,
        cpu: CpuId(1),
        khz: 400_000,
        rule: FrequencyRule::RateLimit,
        limited_until: Some(4_500_000),
        times: 2,
    };
    let base = NeedChain {
        policy: PolicyId(1),
        more: true,
        from_khz: 400_000,
        khz: 1_800_000,
        need_at: 4_000_000,
        requested: Some((5_000_000, Some(CpuId(6)))),
        driver_at: Some(5_100_000),
        end_at: 5_250_000,
        end: ChainEnd::Settled,
        events: vec![need(4_000_000, 1_800_000, NeedCause::Wakeup(sample::UI)), refused],
        events_left_out: 3,
        waits: [500_000, 500_000, 0, 0, 0, 100_000, 150_000],
    };
    let less = NeedChain {
        more: false,
        from_khz: 1_800_000,
        khz: 400_000,
        need_at: 6_000_000,
        requested: Some((6_000_000, None)),
        driver_at: Some(6_000_000),
        end_at: 6_150_000,
        events: vec![need(6_000_000, 400_000, NeedCause::Tick)],
        events_left_out: 0,
        waits: [0, 0, 0, 0, 0, 0, 150_000],
        ..base.clone()
    };
    let gone = NeedChain {
        policy: PolicyId(0),
        need_at: 7_000_000,
        requested: None,
        driver_at: None,
        end_at: 7_004_000,
        end: ChainEnd::NeedGone,
        events: vec![need(7_000_000, 1_800_000, NeedCause::MigrationIn(sample::RT))],
        events_left_out: 0,
        waits: [0, 4_000, 0, 0, 0, 0, 0],
        ..base.clone()
    };
    vec![base, less, gone]
}

fn record() -> Vec<u8> {
    let mut bytes = Vec::new();
    fed(Box::new(Record::new(&mut bytes, sample::meta())));
    bytes
}

fn fed(mut sink: Box<impl Sink>) {
    sample::tasks().iter().for_each(|task| sink.task(task));
    chains().iter().for_each(|chain| sink.chain(chain));
    sink.finish().expect("memory takes everything");
}

fn list(query: &Query) -> (String, Summary) {
    let mut text = Vec::new();
    let summary = explain_record(&record()[..], query, &mut text).expect("a record");
    (String::from_utf8(text).expect("text"), summary)
}

const CHAINS: Query = Query {
    at: None,
    window_ns: 0,
    task: None,
    cpu: None,
    limit: u64::MAX,
    events: Vec::new(),
    what: What::Chains,
    json: false,
};

#[test]
fn chains_come_back() {
    let mut packed = Vec::new();
    fed(Box::new(PackedRecord::new(&mut packed, sample::meta())));
    for bytes in [record(), packed] {
        let read = Reader::new(&bytes[..]).filter_map(|entry| match entry.expect("no errors") {
            Entry::Chain(at, chain) => Some((at, chain)),
            _ => None,
        });
        let read: Vec<(Ns, RecordedChain)> = read.collect();
        let written = chains();
        let written = written.iter().map(|chain| (chain.end_at, RecordedChain::from(chain)));
        assert!(read.into_iter().eq(written));
    }
}

#[test]
fn chains_are_told_with_where_their_time_went() {
    let (text, summary) = list(&CHAINS);
    assert!(text == EXPECTED, "got:\n{text}\nexpected:\n{EXPECTED}");
    assert_eq!((summary.matched, summary.listed), (3, 3));
    // Among facts and decisions there is no table.
    let (all, _) = list(&Query { what: What::Entries, ..CHAINS });
    assert!(EXPECTED.starts_with(&all) && all.lines().count() == 15, "{all}");
    // Nor is there one of no chains.
    let (none, _) = list(&Query { at: Some(1), ..CHAINS });
    assert_eq!(none, "");
}

const EXPECTED: &str = "    0.005250000 [  -] chain               policy4 (cpu-big): more, 400000 -> 1800000 kHz, settled after 1.250 ms
                          0.004000000  need      1800000 kHz for CPU 5: wakeup of ui-12
                          0.004000000  governor  400000 kHz on CPU 1: rate limit until 0.004500000 (2 times)
                          and 3 more
                          0.005000000  request   1800000 kHz on CPU 6
                          0.005100000  driver    asks the hardware
                          waited for: governor not called 500.000 us, rate limit 500.000 us, driver 100.000 us, clock settling 150.000 us
    0.006150000 [  -] chain               policy4 (cpu-big): less, 1800000 -> 400000 kHz, settled after 150.000 us
                          0.006000000  need      400000 kHz for CPU 5: tick
                          0.006000000  request   400000 kHz
                          0.006000000  driver    asks the hardware
                          waited for: clock settling 150.000 us
    0.007004000 [  -] chain               policy0 (cpu-little): more, 400000 -> 1800000 kHz, need gone after 4000 ns
                          0.007000000  need      1800000 kHz for CPU 5: arrival of sugov:0-3
                          waited for: rate limit 4000 ns

where the time went                           more is needed                       less is needed
                                                chains        total      longest     chains        total      longest
  need to clock                                      1     1.250 ms     1.250 ms          1     0.150 ms   150.000 us
  governor not called                                1     0.500 ms   500.000 us          -            -            -
  rate limit                                         1     0.500 ms   500.000 us          -            -            -
  driver                                             1     0.100 ms   100.000 us          -            -            -
  clock settling                                     1     0.150 ms   150.000 us          1     0.150 ms   150.000 us
  not settled: need gone                             1     0.004 ms      4000 ns          -            -            -
";

#[test]
fn chains_are_chosen() {
    let of = |query: Query| list(&query).1.matched;
    assert_eq!(of(Query { cpu: Some(CpuId(39)), ..CHAINS }), 2, "by CPUs of the policy");
    assert_eq!(of(Query { cpu: Some(CpuId(0)), ..CHAINS }), 1);
    assert_eq!(of(Query { task: Some("ui".into()), ..CHAINS }), 1, "by who brought the need");
    let at = |at: Ns| of(Query { at: Some(at), window_ns: 100, ..CHAINS });
    assert_eq!((at(4_600_000), at(3_999_900), at(3_999_899), at(5_250_101)), (1, 1, 0, 0));
    let (text, _) = list(&Query { limit: 1, ..CHAINS });
    assert!(text.contains("settled after 1.250 ms") && !text.contains("150.000 us\n    0.0"));
    assert!(text.contains("not settled: need gone"), "the table is of all: {text}");
}

#[test]
fn damaged_chains_are_refused() {
    let text = String::from_utf8(record()).expect("text");
    for (from, to, message) in [
        (r#""need_at":4000000"#, r#""need_at":5000001"#, "the times of a chain run backwards"),
        (r#""driver_at":5100000"#, r#""driver_at":9100000"#, "the times of a chain run backwards"),
        (r#""need":{"at":4000000,"cpu":5"#, r#""need":{"at":4,"cpu":40"#, "CPU 40, but there are"),
        (r#""task":12}"#, r#""task":4294967295}"#, "task 4294967295 is beyond"),
        (r#""more":true"#, r#""more":1"#, "invalid type"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let damaged = text.replacen(from, to, 1);
        let mut out = Vec::new();
        let summary = explain_record(damaged.as_bytes(), &CHAINS, &mut out).expect("a record");
        assert_eq!((summary.matched, summary.problem_count), (2, 1), "{to}");
        assert!(summary.problems[0].contains(message), "{:?}", summary.problems);
    }
}
