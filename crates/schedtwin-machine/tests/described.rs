// SPDX-License-Identifier: GPL-2.0-or-later
//! What is said of a machine, and how far its numbers go: the machine of `good.toml` with more around it.

use schedtwin_input::Source;
use schedtwin_machine::{IdlePower, Machine};

/// Everything that the small machine lacks.
const MORE: &str = r#"
[broadcast]
device = "timer"
moves = true
program_ns = 300

[smt]
second_permille = 150
speed_permille = [1000, 650]

[power.pair]
cpus = "0-1"
uw = 2_500
states = [{ name = "quiet", cpus_in = "c2", uw = 40, residency_us = 3_000, exit_ns = 1_500 }]

[heat_node.die]
capacity_mj_per_k = 1_000
heated_by = ["big", "little"]
to = [{ node = "case", mk_per_w = 8_000 }]

[heat_node.case]
capacity_mj_per_k = 100_000
to = [{ node = "ambient", mk_per_w = 10_000 }]

[thermal_zone.die]
node = "die"
governor = "step_wise"
polling_delay_ms = 1_000
passive_delay_ms = 100
trips = [
  { c = 90, hysteresis_c = 5, type = "passive", cools = ["big"] },
  { c = 105, type = "critical" },
]

[[dependent]]
domain = "little"
on = "big"
rows = [
  { khz = 300_000, active_uw = [22_000, 23_000], wfi_uw = [1, 2], static_uw = [3, 4] },
  { khz = 600_000, active_uw = [34_000, 36_500], wfi_uw = [1, 2], static_uw = [3, 4] },
]
"#;

fn text() -> String {
    let good = include_str!("good.toml");
    let root = "heat = true\nambient_c = 25\nstart_above_k = 10\nheat_step_us = 5_000\n\
        estimates = [\"ns_per_loop\", \"settle_us\", \"core.small.idle[0].exit_ns\", \"interrupts\", \"path_costs\"]\n";
    let good = good.replacen("name =", &format!("{root}name ="), 1);
    let places = "package = [\"0-3\"]\ncore = [\"0,1\"]\nnode = [\"0-1\", \"2-3\"]\n\
        distances = [[10, 25], [25, 10]]\nllc = [\"0-1\", \"2-3\"]\n";
    good.replacen("package = [\"0-3\"]\nllc = [\"0-3\"]\n", places, 1) + MORE
}

fn read(text: impl Into<String>) -> Result<Machine, String> {
    Machine::from_source(&Source::new("x.toml", text.into()), &[])
        .map_err(|faults| faults.to_string())
}

/// Each line with single blanks, so that nothing depends on the width of columns.
fn lines(machine: &Machine) -> Vec<String> {
    let text = machine.describe();
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Worked out by hand from the file. The energy model's performance is capacity × kHz / highest kHz, its cost
/// 10 × µW / performance, both rounded down.
#[test]
fn all_of_a_machine_is_told() {
    let told = lines(&read(text()).unwrap());
    let expected = "\
bad: a small machine

topology `mc`: 4 CPUs
node 0: CPU 0-1
package 0: CPU 0-1
cache 0: CPU 0-1
CPU 0-1 small capacity 300 clock little (policy0)
node 1: CPU 2-3
package 0: CPU 2-3
cache 1: CPU 2-3
CPU 2-3 large capacity 1024 clock big (policy2)
the kernel does not know the threads of a core; levels of arm64
distances from node 0: 10 25
distances from node 1: 25 10

clock little (policy0, CPU 0-1): fast switch,
kernel's transition latency 500 us, takes 100 us
kHz mV capacity EM mW EM cost busy mW WFI mW domain mW
300000 - 150 6.000 400 22.000 0.760 0.000
600000 - 300 15.000 500 34.000 1.000 0.000

clock big (policy2, CPU 2-3): fast switch,
kernel's transition latency 500 us, takes 100 us
kHz mV capacity EM mW EM cost busy mW WFI mW domain mW
500000 - 182 79.000 4340 87.000 16.000 0.000
2800000 - 1024 2158.000 21074 1942.000 121.000 0.000

idle states (\"told\": the kernel's table)
core state entry exit told exit residency power entry nJ exit nJ
small WFI 0 1 us 1 us 1 us WFI 0 0
small c2 70 us 160 us 230 us 2 ms off 0 0
large WFI 0 1 us 1 us 1 us WFI 0 0
c2 of small: deep
where the timer stops: timer, interrupts the CPU with the earliest event

hardware threads of a core: a further one adds 0.150 of its power;
speed of each, by how many work: 1.000, 0.650

power domains, which firmware puts into states by itself
domain CPUs state CPUs in quiet exit mW
pair 0-1 on 2.500
quiet c2 3 ms 1500 ns 0.040

heat: air 25 C, start 35 C, a step each 5 ms
die: 1000 mJ/K, 8000 mK/W to case
case: 100000 mJ/K, 10000 mK/W to the air
zone die (StepWise): 90 C holds back big, 105 C

coupling: while big runs at least at ..., little runs at least at ...
500000: 300000 2800000: 600000

busy mW of one little CPU while big has the largest vote, at ... kHz
kHz 500000 2800000
300000 22.000 23.000
600000 34.000 36.500

interrupts arrive after: IPI 300 ns to 900 ns, timer 100 ns to 600 ns

kernel paths cost (ns of work at capacity 1024 and full speed)";
    let expected: Vec<&str> = expected.lines().collect();
    for (at, line) in expected.iter().enumerate() {
        assert_eq!(told.get(at).map(String::as_str), Some(*line), "line {at} of {told:#?}");
    }
    for line in ["rt-app's loop: 21 ns of work", "estimates (the file says why)"] {
        assert!(told.iter().any(|l| l == line), "{line} in {told:#?}");
    }
    for path in ["syscall 250 ", "tick 1000 ", "exit 15000 "] {
        assert!(told.iter().any(|l| l.starts_with(path)), "{path} in {told:#?}");
    }
    // All five fit a line.
    let last = "ns_per_loop settle_us core.small.idle[0].exit_ns interrupts path_costs";
    assert_eq!(told.last().map(String::as_str), Some(last));
}

/// A clock that is slow, a domain with power of its own, states that are shared, a timer that stays, CPUs with equal clocks.
#[test]
fn what_is_unlike_is_told_otherwise() {
    let text = text()
        .replacen("[domain.little]\n", "[domain.little]\noff_uw = 120\n", 1)
        .replacen("moves = true", "moves = false\ncpu = 2", 1)
        .replacen("power = \"off\", deep", "power = \"46.3%\", cluster = true, deep", 1)
        .replacen("cpus_in = \"c2\", uw = 40", "cpus_in = \"WFI\", uw = 40", 1)
        .replacen("scale = \"work\"", "scale = \"time\"", 1);
    let told = lines(&read(text).unwrap());
    for line in [
        "all in deep states: 0.120 mW",
        "where the timer stops: timer, interrupts CPU 2",
        "small c2 70 us 160 us 230 us 2 ms 46% of WFI 0 0",
        "c2 of small: deep, of the whole cluster",
        "kernel paths cost (ns on every CPU at every frequency)",
    ] {
        assert!(told.iter().any(|l| l == line), "{line} in {told:#?}");
    }
    assert_eq!(told.iter().filter(|line| line.starts_with("all in deep states")).count(), 1);
    let machine = Machine::load("uniform8").unwrap();
    assert_eq!(machine.identity, "uniform8");
    assert_eq!(Machine::load("pixel6:heat=false").unwrap().identity, "pixel6:heat=false");
    // Clocks of their own that are alike are told once.
    let own = include_str!("good.toml").split("[[coupled]]").next().unwrap().to_string()
        + "[interrupts]"
        + include_str!("good.toml").split("[interrupts]").nth(1).unwrap();
    let own = own.replacen("[domain.little]\n", "[domain.little]\nper_cpu = true\n", 1);
    let told = lines(&read(own).unwrap());
    let clocks: Vec<&String> = told.iter().filter(|line| line.starts_with("clock ")).collect();
    assert_eq!(
        clocks,
        [
            "clock little0 (policy0, CPU 0): fast switch,",
            "clock big (policy2, CPU 2-3): fast switch,"
        ]
    );
    for line in [
        "CPU 0-1 small capacity 300 clock each, as little0 (policy0)",
        "CPU 2-3 large capacity 1024 clock big (policy2)",
    ] {
        assert!(told.iter().any(|l| l == line), "{line} in {told:#?}");
    }
}

/// A clock of its own is like another one's only if that is alone, too. A machine of one node has no nodes to tell of.
#[test]
fn alike_are_clocks_of_single_cpus() {
    let (head, tail) = include_str!("good.toml").split_once("[cpu.little]").unwrap();
    let tail = tail.split_once("[interrupts]").unwrap().1;
    let point = "opp = [{ khz = 300_000, em_uw = 6_000, active_uw = 22_000, wfi_uw = 760 }]";
    let text = format!(
        "{head}[cpu.all]\ncpus = \"0-3\"\ncore = \"small\"\ncapacity = 1024\n\
         [domain.a]\ncpus = \"0\"\n{point}\n[domain.b]\ncpus = \"1-3\"\n{point}\n[interrupts]{tail}"
    );
    let told = lines(&read(text.replacen("[core.large]", "[core.small2]", 1).replace(
        "[core.small2]\nidle = [{ name = \"WFI\", entry_ns = 0, exit_ns = 1_000, residency_us = 1, power = \"wfi\" }]\n",
        "",
    )).unwrap());
    for line in [
        "CPU 0 small capacity 1024 clock a (policy0)",
        "CPU 1-3 small capacity 1024 clock b (policy1)",
    ] {
        assert!(told.iter().any(|l| l == line), "{line} in {told:#?}");
    }
    assert!(!told.iter().any(|line| line.starts_with("node ")), "{told:#?}");
}

/// What is written is what a run computes with, in its units.
#[test]
fn numbers_have_the_units_of_the_twin() {
    let machine = read(text()).unwrap();
    let heat = machine.heat.as_ref().unwrap();
    assert_eq!((heat.ambient_mc, heat.start_mc, heat.step_ns), (25_000, 35_000, 5_000_000));
    let zone = &heat.zones[0];
    assert_eq!((zone.polling_delay_ns, zone.passive_delay_ns), (1_000_000_000, 100_000_000));
    let trips: Vec<_> = zone.trips.iter().map(|trip| (trip.mc, trip.hysteresis_mc)).collect();
    assert_eq!(trips, [(90_000, 5_000), (105_000, 0)]);
    assert!(read(text().replacen("heat = true", "heat = false", 1)).unwrap().heat.is_none());
    let small = &machine.core_types[0];
    assert_eq!([0, 1].map(|state| small.depth(state).1), [0, 1]);
    let big = &machine.domains.as_slice()[1];
    let points = [1, 500_000, 500_001, 2_800_000, 2_800_001].map(|khz| big.opp_at_least(khz));
    assert_eq!(points, [0, 0, 1, 1, 1]);
    let power = |power: &str| {
        let text = text().replacen("power = \"off\"", &format!("power = \"{power}\""), 1);
        read(text).map(|machine| machine.core_types[0].idle_states[1].power)
    };
    assert_eq!(power("46.3%"), Ok(IdlePower::WfiPermille(463)));
    assert_eq!(power("50.5% active"), Ok(IdlePower::ActivePermille(505)));
    for wrong in ["+4.5%", "4.+%", "4.55%", "100.1%", ".5%"] {
        assert!(power(wrong).is_err(), "{wrong}");
    }
}

/// The largest value is taken, the next one is not.
#[test]
fn limits_are_within_what_is_allowed() {
    let entry = "uw = 40, entry_nj = ";
    let points = |count: usize| {
        let point = |n: usize| {
            format!("  {{ khz = {}, em_uw = 1, active_uw = 9, wfi_uw = 1 }},\n", 1_000_000 + n)
        };
        let more: String = (0..count - 2).map(point).collect();
        ("{ khz = 2_800_000, em_uw", format!("{}  {{ khz = 2_800_000, em_uw", more.trim_start()))
    };
    let (at, most) = points(256);
    let (_, too_many) = points(257);
    let trips = |count: usize| {
        let more = "  { c = 90, type = \"active\" },\n".repeat(count - 2);
        format!("{}  {{ c = 105, type", more.trim_start())
    };
    for (at, good, bad, complaint) in [
        (
            "\"bad\"",
            format!("\"{}\"", "m".repeat(64)),
            format!("\"{}\"", "m".repeat(65)),
            "the name of a machine",
        ),
        (
            "ns_per_loop = 21",
            "ns_per_loop = 1_000_000".into(),
            "ns_per_loop = 1_000_001".into(),
            "`ns_per_loop`",
        ),
        (
            "polling_delay_ms = 1_000",
            "polling_delay_ms = 3_600_000".into(),
            "polling_delay_ms = 3_600_001".into(),
            "more than an hour",
        ),
        (
            "second_permille = 150",
            "second_permille = 1000".into(),
            "second_permille = 1001".into(),
            "alone: 1000",
        ),
        ("uw = 40", format!("{entry}1_000_000_000"), format!("{entry}1_000_000_001"), "a joule"),
        (
            "\"quiet\"",
            format!("\"{}\"", "q".repeat(31)),
            format!("\"{}\"", "q".repeat(32)),
            "1 to 31 letters",
        ),
        (
            "power = \"off\"",
            "power = \"off\", kernel_exit_ns = 1_000_000_000".into(),
            "power = \"off\", kernel_exit_ns = 1_000_000_001".into(),
            "more than a second",
        ),
        (
            "34_000, 36_500",
            "34_000, 1_000_000_000".into(),
            "34_000, 1_000_000_001".into(),
            "a kilowatt",
        ),
        (at, most, too_many, "at most 256"),
        (
            "ipi_latency_max_ns = 900",
            "ipi_latency_max_ns = 10_000_000".into(),
            "ipi_latency_max_ns = 10_000_001".into(),
            "more than 10 ms",
        ),
        ("{ c = 105, type", trips(64), trips(65), "more than 64 trip points"),
    ] {
        let text = text();
        assert!(text.contains(at), "{at}");
        read(text.replacen(at, &good, 1)).unwrap_or_else(|faults| panic!("{at}: {faults}"));
        let faults = read(text.replacen(at, &bad, 1)).expect_err(complaint);
        assert!(faults.contains(complaint), "{faults}");
    }
}

#[test]
fn shapes_that_are_none_are_refused() {
    let quiet =
        "{ name = \"quiet\", cpus_in = \"c2\", uw = 40, residency_us = 3_000, exit_ns = 1_500 }";
    let cases = [
        ("distances = [[10, 25], [25, 10]]", "distances = [[10, 25], [25]]", "needs 2 rows of 2"),
        ("distances = [[10, 25], [25, 10]]", "distances = [[10, 25]]", "needs 2 rows of 2"),
        // A second state that waits for less, by its CPUs or by its time.
        (
            quiet,
            &*format!(
                "{quiet}, {{ name = \"a\", cpus_in = \"WFI\", uw = 1, residency_us = 3_000 }}"
            ),
            "from shallow to deep",
        ),
        (
            quiet,
            &*format!(
                "{quiet}, {{ name = \"a\", cpus_in = \"c2\", uw = 1, residency_us = 2_999 }}"
            ),
            "from shallow to deep",
        ),
    ];
    for (at, wrong, complaint) in cases {
        let text = text();
        assert!(text.contains(at), "{at}");
        let faults = read(text.replacen(at, wrong, 1)).expect_err(complaint);
        assert!(faults.contains(complaint), "{faults}");
    }
    // A state of the core, and behind it one of the CPU alone.
    let text = include_str!("good.toml").replacen(
        "power = \"off\", deep = true },",
        "power = \"off\", core = true, deep = true },\n  { name = \"c3\", entry_ns = 70_000, \
         exit_ns = 160_000, residency_us = 2_000, power = \"off\", deep = true },",
        1,
    );
    let faults = read(text).unwrap_err();
    assert!(faults.contains("`c3` is deeper than a state of the core"), "{faults}");
    let text = include_str!("good.toml");
    let faults =
        read(text.replacen("[topologies.mc]\npackage = [\"0-3\"]\nllc = [\"0-3\"]\n", "", 1));
    assert!(faults.unwrap_err().contains("the file needs a table `[topologies.NAME]`"));
    // As many clocks as a machine has CPUs leave no CPU for a further clock.
    let (head, tail) = text.split_once("[domain.little]").unwrap();
    let tail = tail.split_once("[interrupts]").unwrap().1;
    let point = "opp = [{ khz = 300_000, em_uw = 6_000, active_uw = 22_000, wfi_uw = 760 }]";
    let many = format!(
        "{head}[domain.a]\ncpus = \"0-255\"\nper_cpu = true\n{point}\n[domain.b]\ncpus = \"0\"\n{point}\n[interrupts]{tail}"
    );
    let many = many.replace("0-3", "0-255").replace("cpus = \"2-3\"", "cpus = \"2-255\"");
    assert!(
        read(&*many.replace("[domain.b]\ncpus = \"0\"\n", "").replacen(
            &format!("{point}\n{point}"),
            point,
            1
        ))
        .is_ok()
    );
    assert!(read(many).is_err());
}
