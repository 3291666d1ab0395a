// SPDX-License-Identifier: GPL-2.0-or-later
//! What is declared is what the readers ask for.

use std::collections::BTreeSet;

use schedtwin_input::Source;
use schedtwin_machine::keys::{self, Kind};
use schedtwin_machine::{builtin_names, builtin_source, keys_asked};

/// Each table that some built-in machine has, and `[turns]`, asked by its reader; keys of tables are tables.
#[test]
fn readers_ask_for_what_is_declared() {
    let tables = keys::tables();
    let paths: Vec<Vec<&str>> = tables.iter().map(|table| segments(table.path)).collect();
    let mut asked: BTreeSet<(usize, String)> = BTreeSet::new();
    let names = builtin_names().into_iter().map(|(name, _)| name);
    let mut sources: Vec<_> = names.map(|name| (name, builtin_source(name).unwrap())).collect();
    // A table that no built-in machine has.
    let uniform8 = builtin_source("uniform8").unwrap();
    let turns = format!("{}\n[turns]\npiece_ns = 1\nwork_by_clock = true\n", uniform8.text);
    let lines = format!(
        "{}\n[distance]\nrefill_lines = 1\noverlap_permille = 500\ncopy_permille = 1\nhandover_lines = 1\n\
         rq_locks = true\nline_ns = {{ llc = 1 }}\n[distance.lines]\nlook = 1\n",
        uniform8.text
    );
    sources.push(("lines", Source::new("lines.toml", lines)));
    sources.push(("turns", Source::new("turns.toml", turns)));
    for (name, source) in &sources {
        for (path, key) in keys_asked(source).unwrap() {
            let path = segments(&path).join(".");
            if path.starts_with("work.") && path.ends_with(".factor_permille") {
                continue; // its keys are the names of cores
            }
            // Names may have dots: the longest of those that fit.
            let fitting = (0..paths.len()).filter(|at| fits(&paths[*at], &path));
            let table = fitting.max_by_key(|at| paths[*at].len());
            match table {
                Some(table) => drop(asked.insert((table, key))),
                None => panic!("{name}: `{path}` is not declared"),
            }
        }
    }
    let choices = ["switch", "capacities", "platform", "part", "exits", "busy_power"];
    for (at, table) in tables.iter().enumerate() {
        let declared: BTreeSet<&str> = table.keys.iter().map(|key| key.name).collect();
        assert_eq!(declared.len(), table.keys.len(), "{}: a key twice", table.path);
        let below = |key: &&str| {
            let under = |path: &Vec<&str>| {
                path.len() > paths[at].len()
                    && path[..paths[at].len()] == paths[at][..]
                    && path[paths[at].len()] == *key
            };
            paths.iter().any(under)
        };
        let asked: BTreeSet<&str> =
            asked.iter().filter(|(of, _)| *of == at).map(|(_, key)| key.as_str()).collect();
        let asked: BTreeSet<&str> = asked
            .into_iter()
            .filter(|key| !(below(key) || table.path.is_empty() && choices.contains(key)))
            .collect();
        assert_eq!(asked, declared, "`[{}]`", table.path);
    }
}

/// `a.*.b[]` and `a.x.b[3]` without the brackets.
fn segments(path: &str) -> Vec<&str> {
    path.split('.').filter(|s| !s.is_empty()).map(|s| s.split('[').next().unwrap()).collect()
}

/// Whether a path is one of the declared ones; names may have dots in them.
fn fits(declared: &[&str], path: &str) -> bool {
    let Some((first, rest)) = declared.split_first() else { return path.is_empty() };
    if *first != "*" {
        let Some(after) = path.strip_prefix(first) else { return false };
        return match after.strip_prefix('.') {
            Some(after) => fits(rest, after),
            None => after.is_empty() && rest.is_empty(),
        };
    }
    let mut ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
    ends.any(|end| end > 0 && fits(rest, path[end..].trim_start_matches('.')))
}

/// Every number has a unit, but counts.
#[test]
fn numbers_have_units() {
    let without: Vec<&str> = keys::tables()
        .iter()
        .flat_map(|table| table.keys.clone())
        .filter(|key| matches!(key.kind, Kind::Whole(..) | Kind::Map(..)) && key.unit.is_none())
        .map(|key| key.name)
        .collect();
    assert_eq!(
        without,
        [
            "estimated",
            "reclaim_distance",
            "capacity",
            "refill_lines",
            "handover_lines",
            "look",
            "run_queue",
            "group_level",
            "task",
            "task_state",
            "wake_list",
            "load_avg",
            "llc",
            "pipe",
            "socket_queue",
            "skb",
            "wmem",
            "tcp",
            "udp",
            "futex",
            "cpu",
            "queues",
            "depth",
            "irq_cpu",
            "parallel",
            "k_po",
            "k_pu",
            "k_i",
            "k_d"
        ]
    );
}
