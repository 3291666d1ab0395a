// SPDX-License-Identifier: GPL-2.0-or-later
//! Every table of a machine file with its keys.

use super::Kind::{self, Cpus, Map, Switch, Text, Whole};
use super::Need::{self, Always, May, Unless, WithoutClass};
use super::{Key, Table, unit_of};
use crate::core_class;
use crate::core_type::{MAX_ENTRY_NJ, MAX_LATENCY_NS};
use crate::costs::{MAX_COST_NS, MAX_DELAY_NS, PathCosts};
use crate::domain::{MAX_KHZ, MAX_UW};
use crate::switching::{LateRequests, MAX_LATENCY_US};

fn words(words: &[&'static str]) -> Kind {
    Kind::Words(words.to_vec())
}

fn list(of: Kind) -> Kind {
    Kind::List(Box::new(of))
}

fn upto(most: u64) -> Kind {
    Whole(0, most as i64)
}

fn table<const N: usize>(
    path: &'static str,
    help: &'static str,
    keys: [(&'static str, Need, Kind, &str); N],
) -> Table {
    let key = |(name, need, kind, help): (&'static str, Need, Kind, &str)| {
        let unit = unit_of(name, &kind);
        Key { name, need, kind, unit, help: help.into() }
    };
    Table { path, help, keys: keys.into_iter().map(key).collect() }
}

/// All tables, in the order of the document.
pub fn tables() -> Vec<Table> {
    vec![
        top(),
        topologies(),
        core(),
        idle_state(),
        table(
            "cpu.*",
            "a group of equal CPUs; they are numbered from 0 without gaps",
            [
                ("cpus", Always, Cpus, "which"),
                ("core", Always, Text, "whose kind they are: the NAME of a `[core.NAME]`"),
                (
                    "capacity",
                    WithoutClass,
                    Whole(1, 1024),
                    "at the highest frequency; the strongest have 1024",
                ),
            ],
        ),
        domain(),
        table(
            "domain.*.opp[]",
            "operating points, from the slowest",
            [
                ("khz", Always, Whole(1, MAX_KHZ.into()), "frequency"),
                ("uv", May, upto(u32::MAX.into()), "voltage; needed with `slew_uv_per_us`"),
                (
                    "em_uw",
                    Always,
                    upto(MAX_UW),
                    "power of one busy CPU in the kernel's energy model: EAS decides with it",
                ),
                (
                    "active_uw",
                    WithoutClass,
                    upto(MAX_UW),
                    "power of one busy CPU, measured: the meter reads it",
                ),
                ("wfi_uw", WithoutClass, upto(MAX_UW), "power of one CPU in WFI, measured"),
                (
                    "static_uw",
                    May,
                    upto(MAX_UW),
                    "the domain's own power while any CPU is not in a deep state; 0",
                ),
                ("idle_static_uw", May, upto(MAX_UW), "the same while none executes; `static_uw`"),
            ],
        ),
        table(
            "interrupts",
            "from the cause to the first instruction of the handler on a busy CPU, drawn evenly",
            [
                (
                    "ipi_latency_min_ns",
                    WithoutClass,
                    upto(MAX_DELAY_NS),
                    "of another CPU's interrupt, the least",
                ),
                ("ipi_latency_max_ns", WithoutClass, upto(MAX_DELAY_NS), "and the most"),
                ("timer_latency_min_ns", WithoutClass, upto(MAX_DELAY_NS), "of a timer, the least"),
                ("timer_latency_max_ns", WithoutClass, upto(MAX_DELAY_NS), "and the most"),
            ],
        ),
        path_costs(),
        table(
            "coupled[]",
            "a clock that holds another up",
            [
                ("from", Always, Text, "the clock that does: the NAME of a `[domain.NAME]`"),
                ("to", Always, Text, "the one that is held up"),
            ],
        ),
        table(
            "coupled[].floor[]",
            "steps, from the slowest",
            [
                (
                    "at_khz",
                    Always,
                    Whole(1, MAX_KHZ.into()),
                    "while the one runs at least at this operating point",
                ),
                ("min_khz", Always, Whole(1, MAX_KHZ.into()), "the other does at this"),
            ],
        ),
        table(
            "dependent[]",
            "power of one domain that depends on the clock of another",
            [("domain", Always, Text, "whose power"), ("on", Always, Text, "on whose clock")],
        ),
        table(
            "dependent[].rows[]",
            "one for each operating point; in each list a value for each of the other clock, which may end early",
            [
                ("khz", Always, Whole(1, MAX_KHZ.into()), "of `domain`"),
                ("active_uw", Always, list(upto(MAX_UW)), "as in `opp`"),
                ("wfi_uw", Always, list(upto(MAX_UW)), "as in `opp`"),
                ("static_uw", Always, list(upto(MAX_UW)), "as in `opp`"),
            ],
        ),
        table(
            "work.*",
            "a kind of work with speeds of its own",
            [
                (
                    "stall_permille",
                    Always,
                    Whole(0, 1000),
                    "share of its time at full speed that waits for memory",
                ),
                (
                    "factor_permille",
                    Always,
                    Map(1, 100_000),
                    "by `[core.NAME]`: how much faster than capacity says; 1000",
                ),
            ],
        ),
        table(
            "smt",
            "what hardware threads of a core share; needed where a topology has a `core`",
            [
                (
                    "second_permille",
                    Always,
                    Whole(0, 1000),
                    "what each further executing thread adds to the power of one",
                ),
                (
                    "speed_permille",
                    Always,
                    list(Whole(1, 1000)),
                    "of each thread while one, two, ... work; the first is 1000",
                ),
                (
                    "polling_permille",
                    May,
                    Whole(0, 1000),
                    "what one that polls is to the others, of a working one; 0",
                ),
            ],
        ),
        table(
            "distance",
            "what it costs that CPUs are apart",
            [(
                "refill_lines",
                May,
                Whole(0, 100_000),
                "cache lines that a task fetches after it has moved",
            )],
        ),
        by_distance(
            "distance.line_ns",
            "what fetching a line takes, by the least that both CPUs share; a level left out is as the nearer one",
        ),
        by_distance("distance.ipi_ns", "what an interrupt from so far takes longer"),
        table(
            "broadcast",
            "the timer for CPUs whose own timers stop",
            [
                (
                    "device",
                    Always,
                    Text,
                    "its name; `hrtimer`: a CPU that stays out of such states",
                ),
                ("cpu", May, upto(65_535), "whom it interrupts; 0"),
                ("moves", May, Switch, "it interrupts the CPU with the earliest event; false"),
                ("program_ns", May, upto(10_000_000), "what arming it costs; 0"),
            ],
        ),
        table(
            "power.*",
            "a cluster or package with power and states of its own, which firmware enters unasked",
            [
                ("cpus", Always, Cpus, "which; nested or disjoint"),
                ("uw", Always, upto(MAX_UW), "while none of the states holds"),
            ],
        ),
        table(
            "power.*.states[]",
            "from the shallowest",
            [
                ("name", Always, Text, "for people"),
                ("cpus_in", Always, Text, "the idle state in which, or deeper, all CPUs rest"),
                ("uw", Always, upto(MAX_UW), "power in it"),
                (
                    "residency_us",
                    May,
                    upto(MAX_LATENCY_NS / 1000),
                    "entered only while no timer is nearer; 0",
                ),
                ("exit_ns", May, upto(MAX_LATENCY_NS), "on top of the CPU's own way out; 0"),
                ("entry_nj", May, upto(MAX_ENTRY_NJ), "of each entry; 0"),
            ],
        ),
        table(
            "power_limit.*",
            "firmware that holds clocks back: by cores awake, by a budget, or both",
            [
                ("cpus", Always, Cpus, "whose"),
                ("step_us", May, Whole(10, 1_000_000), "how often it looks; 1000"),
                (
                    "awake_khz",
                    May,
                    list(Whole(1, MAX_KHZ.into())),
                    "the highest clock while one, two, ... cores are awake",
                ),
                (
                    "sustained_uw",
                    May,
                    Whole(1, MAX_UW as i64),
                    "what may be drawn for long; needs the next two",
                ),
                ("tau_ms", May, Whole(1, 1_000_000), "time constant of the average"),
                ("burst_uw", May, Whole(1, MAX_UW as i64), "what may be drawn until then"),
                ("tells_kernel", May, Switch, "as hardware pressure; false"),
            ],
        ),
        table(
            "heat_node.*",
            "something that stores heat",
            [
                ("capacity_mj_per_k", Always, Whole(1, 1_000_000_000), "how much"),
                ("heated_by", May, list(Text), "clocks and power domains whose power goes in here"),
            ],
        ),
        table(
            "heat_node.*.to[]",
            "where heat goes",
            [
                ("node", Always, Text, "another node, or `ambient`"),
                ("mk_per_w", Always, Whole(1, 1_000_000_000), "resistance"),
            ],
        ),
        table(
            "thermal_zone.*",
            "what the kernel does about it",
            [
                ("node", Always, Text, "whose temperature it reads"),
                (
                    "governor",
                    Always,
                    words(&["step_wise", "power_allocator"]),
                    "by how much clocks are held back",
                ),
                (
                    "polling_delay_ms",
                    Always,
                    upto(3_600_000),
                    "how often it looks; 0: when a trip point is crossed",
                ),
                (
                    "passive_delay_ms",
                    Always,
                    upto(3_600_000),
                    "how often above a passive trip point",
                ),
                (
                    "sustainable_mw",
                    May,
                    upto(u32::MAX.into()),
                    "of power_allocator; left out, the kernel's own estimate",
                ),
                (
                    "k_po",
                    May,
                    Whole(i32::MIN.into(), i32::MAX.into()),
                    "of power_allocator, 10 fractional bits; likewise",
                ),
                ("k_pu", May, Whole(i32::MIN.into(), i32::MAX.into()), "likewise"),
                ("k_i", May, Whole(i32::MIN.into(), i32::MAX.into()), "likewise"),
                ("k_d", May, Whole(i32::MIN.into(), i32::MAX.into()), "likewise"),
                ("integral_cutoff_c", May, Whole(-60, 250), "of power_allocator; 0"),
            ],
        ),
        table(
            "thermal_zone.*.trips[]",
            "trip points",
            [
                ("c", Always, Whole(-60, 250), "from this temperature on"),
                ("hysteresis_c", May, Whole(-60, 250), "until it is so much below; 0"),
                ("type", Always, words(&["passive", "active", "hot", "critical"]), "what it is"),
                ("cools", May, list(Text), "clocks that a passive one holds back"),
            ],
        ),
        table(
            "choices.*.*",
            "values that change together: `-m pixel6:capacities=late`; the first name becomes a key at the top of the file; at most 64 options",
            [],
        ),
    ]
}

fn top() -> Table {
    let late = LateRequests::words();
    table(
        "",
        "what stands before the first table",
        [
            ("name", Always, Text, "letters, digits, `-`, `_` and `.`"),
            ("description", Always, Text, "a line for people"),
            (
                "estimated",
                May,
                upto(i64::MAX as u64),
                "how many lines hold estimates, as `schedtwin capture` counts them; results repeat it",
            ),
            (
                "estimates",
                May,
                list(Text),
                "paths of keys whose values are estimates, `[\"smt\", \"domain.cpu.opp\"]`; `show machine` lists them",
            ),
            ("topology", WithoutClass, Text, "which `[topologies.NAME]` is in use"),
            (
                "coupling",
                May,
                Switch,
                "whether the clocks of `[[coupled]]` hold each other up; true",
            ),
            (
                "ns_per_loop",
                WithoutClass,
                Whole(1, 1_000_000),
                "rt-app's calibration: one loop on the strongest core at full speed",
            ),
            ("power_unknown", May, Switch, "all powers are 0, and that is meant; false"),
            ("power_dependence", May, Switch, "whether `[[dependent]]` holds; true"),
            ("kinds", May, Switch, "whether `[work.NAME]` hold; true"),
            (
                "transition_latency_us",
                WithoutClass,
                upto(MAX_LATENCY_US),
                "what the cpufreq driver claims; the kernel derives its default rate limit from it",
            ),
            ("settle_us", WithoutClass, upto(MAX_LATENCY_US), "from the request to the new clock"),
            (
                "stall_us",
                May,
                upto(MAX_LATENCY_US),
                "for how long, at the end of that, the clock's CPUs stand still; 0",
            ),
            (
                "slew_uv_per_us",
                May,
                upto(i64::MAX as u64),
                "how fast the voltage rises, for which the clock waits; 0: no matter",
            ),
            (
                "late_requests",
                May,
                words(&late),
                "a request during a switch: the switch begins anew; the newest after it; all in order; each takes its own time",
            ),
            (
                "fast_switch",
                WithoutClass,
                Switch,
                "the governor may switch from the scheduler's context; else its thread calls the driver",
            ),
            (
                "driver",
                May,
                words(&["sleeps", "spins"]),
                "without fast switch: what that call does; spins",
            ),
            ("driver_latency_us", May, upto(MAX_LATENCY_US), "and for how long; 0"),
            (
                "dvfs_possible_from_any_cpu",
                WithoutClass,
                Switch,
                "a CPU outside of the clock's domain may request",
            ),
            ("heat", May, Switch, "there is heat; left out, there is none"),
            ("ambient_c", May, Whole(-60, 250), "the air; needed with `heat`"),
            ("start_above_k", May, Whole(-60, 250), "how much warmer all is at the start; 0"),
            (
                "heat_step_us",
                May,
                Whole(100, 1_000_000),
                "the grid on which heat flows; needed with `heat`",
            ),
        ],
    )
}

fn topologies() -> Table {
    let parts = || list(Cpus);
    table(
        "topologies.*",
        "who shares what, as the kernel is told; `schedtwin show machine FILE -k KERNEL` prints the domains. Left out with a class: one package and cache",
        [
            (
                "like",
                May,
                Text,
                "another topology, which this one follows wherever it says nothing",
            ),
            ("formerly", May, list(Text), "older names of it"),
            ("package", Unless("like"), parts(), "sockets; every CPU is in one"),
            ("llc", Unless("like"), parts(), "last-level caches; every CPU shares one"),
            (
                "cluster",
                May,
                parts(),
                "leaf clusters of a cpu-map; what they become is up to the kernel",
            ),
            ("core", May, parts(), "hardware threads of a core; needs `[smt]`"),
            ("node", May, parts(), "NUMA nodes"),
            ("l2", May, parts(), "level 2 caches of several cores (x86, powerpc)"),
            ("hemisphere", May, parts(), "halves of a powerpc chip"),
            ("big_core", May, parts(), "powerpc: cores of two small ones, which `core` names"),
            (
                "architecture",
                May,
                words(&["arm64", "x86", "powerpc"]),
                "whose levels of domains the kernel builds; arm64",
            ),
            (
                "kernel_smt",
                May,
                Switch,
                "the kernel is told of `core`; false: it takes each thread for a core",
            ),
            (
                "distances",
                May,
                list(list(Whole(10, 255))),
                "between nodes in the order of their lowest CPUs; 20",
            ),
            (
                "reclaim_distance",
                May,
                Whole(10, 255),
                "the kernel spreads no tasks to nodes beyond it; 30, on AMD's Zen 32",
            ),
            ("sd_asym_packing", May, Switch, "some CPUs are preferred (ITMT); false"),
            (
                "asym_priority",
                May,
                list(Whole(0, 10_000)),
                "priority of each CPU; left out, lower ones are preferred",
            ),
        ],
    )
}

fn core() -> Table {
    table(
        "core.*",
        "a kind of core; `idle` lists its states from the shallowest to the deepest",
        [(
            "class",
            May,
            words(&core_class::all()),
            "what stands for values that the file leaves out: see above",
        )],
    )
}

fn idle_state() -> Table {
    table(
        "core.*.idle[]",
        "idle states that CPUs ask for, at most 10",
        [
            ("name", Always, Text, "1 to 31 letters"),
            (
                "entry_ns",
                WithoutClass,
                upto(MAX_LATENCY_NS),
                "from the instruction to being in the state",
            ),
            (
                "exit_ns",
                WithoutClass,
                upto(MAX_LATENCY_NS),
                "from the CPU's own timer to the first instruction",
            ),
            (
                "residency_us",
                Always,
                upto(MAX_LATENCY_NS / 1000),
                "`target_residency` of the kernel's table; of the first at most 1",
            ),
            (
                "power",
                Always,
                Text,
                "`wfi`, a share of it (`30%`), `off`, `active` or a share of it (`46.3% active`)",
            ),
            (
                "kernel_exit_ns",
                May,
                upto(MAX_LATENCY_NS),
                "`exit_latency` of the kernel's table; entry and exit",
            ),
            (
                "exit_ipi_ns",
                May,
                upto(MAX_LATENCY_NS),
                "the way out after another CPU's interrupt; `exit_ns`",
            ),
            (
                "exit_device_ns",
                May,
                upto(MAX_LATENCY_NS),
                "the way out after a device's interrupt; `exit_ns`",
            ),
            (
                "abort_ns",
                May,
                upto(MAX_LATENCY_NS),
                "the way back from an entry that an interrupt cuts short; left out, the entry is completed",
            ),
            ("entry_nj", May, upto(MAX_ENTRY_NJ), "energy of each entry; 0"),
            ("exit_nj", May, upto(MAX_ENTRY_NJ), "energy of each exit; 0"),
            ("abort_nj", May, upto(MAX_ENTRY_NJ), "energy of an aborted entry; `entry_nj`"),
            ("deep", May, Switch, "counts as off for the domain's static power; false"),
            ("polling", May, Switch, "the CPU spins (state 0 of x86); false"),
            (
                "refuses_pending",
                May,
                Switch,
                "the hardware refuses the entry while an interrupt waits; false",
            ),
            ("local_timer_stops", May, Switch, "the CPU's timer stops, see `[broadcast]`; false"),
            (
                "core",
                May,
                Switch,
                "the state of a whole core, entered once all its threads have asked; false",
            ),
            ("cluster", May, Switch, "of the whole frequency domain; false"),
            ("package", May, Switch, "of the whole package; false"),
        ],
    )
}

/// A clock may have its own values of what stands at the top.
fn domain() -> Table {
    let mut domain = table(
        "domain.*",
        "a clock: one for each cpufreq policy; `opp` lists its operating points",
        [
            ("cpus", Always, Cpus, "whose"),
            ("per_cpu", May, Switch, "a clock for each of these CPUs; false"),
            (
                "off_uw",
                May,
                upto(MAX_UW),
                "the domain's power while all its CPUs are in deep states; 0",
            ),
        ],
    );
    let own = [
        "transition_latency_us",
        "settle_us",
        "stall_us",
        "slew_uv_per_us",
        "late_requests",
        "fast_switch",
        "driver",
        "driver_latency_us",
        "dvfs_possible_from_any_cpu",
    ];
    let own = top().keys.into_iter().filter(|key| own.contains(&key.name));
    let as_above = "as at the top of the file, which it replaces for this clock".to_string();
    domain.keys.extend(own.map(|key| Key { need: May, help: as_above.clone(), ..key }));
    domain
}

fn path_costs() -> Table {
    let mut costs = table(
        "path_costs",
        "what the kernel's paths cost; estimates on all machines but rig8: vary `percent`",
        [
            (
                "scale",
                WithoutClass,
                words(&["work", "time"]),
                "ns of a CPU of capacity 1024 at full speed, or of every CPU alike",
            ),
            ("percent", WithoutClass, Whole(0, 10_000), "scales all of them"),
            ("running_clocks", May, Switch, "run-queue clocks advance within a path; false"),
            (
                "one_at_a_time",
                May,
                Switch,
                "CPUs enter the kernel one at a time, as an emulator runs them; false",
            ),
        ],
    );
    costs.keys.extend(PathCosts::declared().into_iter().map(|(name, help, share)| Key {
        name,
        need: if share.is_some() { May } else { WithoutClass },
        kind: upto(MAX_COST_NS),
        unit: Some("ns"),
        help: share.map_or(help.to_string(), |share| format!("{help}; {share} % of `syscall_ns`")),
    }));
    costs
}

fn by_distance(path: &'static str, help: &'static str) -> Table {
    let ns = || Whole(0, 100_000);
    let mut levels = table(
        path,
        help,
        [
            ("core", May, ns(), "threads of the same core"),
            ("cluster", May, ns(), "the same cluster or level 2 cache"),
            ("llc", May, ns(), "the same last-level cache"),
            ("node", May, ns(), "another cache of the node"),
            ("package", May, ns(), "another node of the socket"),
            ("machine", May, ns(), "another socket"),
        ],
    );
    levels.keys.iter_mut().for_each(|key| key.unit = Some("ns"));
    levels
}
