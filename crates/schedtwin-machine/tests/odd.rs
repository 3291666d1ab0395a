// SPDX-License-Identifier: GPL-2.0-or-later
//! What a file may say but cannot mean: each warning, by a change of a file that has none.

use schedtwin_input::Source;
use schedtwin_machine::{Machine, builtin_names, builtin_source};

const GOOD: &str = include_str!("good.toml");

/// The warnings of the good file with these pieces of it replaced, each once.
fn warnings(changes: &[(&str, &str)]) -> String {
    let mut text = GOOD.to_string();
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text = text.replace(from, to);
    }
    let machine = Machine::from_source(&Source::new("odd.toml", text), &[]);
    machine.unwrap_or_else(|faults| panic!("{faults}")).warnings.to_string()
}

const LITTLE: &str = "khz = 600_000, em_uw = 15_000, active_uw = 34_000, wfi_uw = 1_000";
const C2: &str = "residency_us = 2_000, power = \"off\", deep = true";

#[test]
fn each_oddity_is_a_warning_with_its_place() {
    assert_eq!(warnings(&[]), "");
    let rows: [(&str, &str, &str); 11] = [
        (
            "wfi_uw = 760",
            "wfi_uw = 22_760",
            "odd.toml:38:64: at 300000 kHz a CPU in WFI draws more than a busy one: 22760 and 22000 µW",
        ),
        (
            "active_uw = 34_000",
            "active_uw = 19_000",
            "odd.toml:39:48: measured power falls by more than a tenth from 300000 to 600000 kHz",
        ),
        (
            "em_uw = 15_000",
            "em_uw = 6_000",
            "odd.toml:39:28: the energy model's power does not rise at 600000 kHz\n  \
             help: the kernel takes it as it is; the lower frequency then never pays",
        ),
        (
            "em_uw = 15_000",
            "em_uw = 11_999",
            "odd.toml:39:28: by the energy model work costs less at the highest frequency than at 300000 kHz\n  \
             help: the kernel then never chooses the lower one",
        ),
        (
            "wfi_uw = 760 },",
            "wfi_uw = 760 },\n  { khz = 300_900, em_uw = 6_050, active_uw = 22_000, wfi_uw = 760 },",
            "odd.toml:39:11: 300900 kHz has the capacity of 300000 kHz: 150\n  \
             help: to the kernel the faster one only costs more",
        ),
        (
            LITTLE,
            "khz = 600_000, em_uw = 15_000, active_uw = 34_000, wfi_uw = 35_000",
            "odd.toml:39:65: at 600000 kHz a CPU in WFI draws more than a busy one: 35000 and 34000 µW",
        ),
        (
            C2,
            "residency_us = 200, power = \"off\", deep = true",
            "odd.toml:19:3: `residency_us` of `c2` is shorter than its exit latency\n  \
             help: it is usually above entry and exit together",
        ),
        (
            C2,
            "residency_us = 2_000, power = \"active\", deep = true",
            "odd.toml:19:3: `c2` is deep and draws a share of busy power\n  \
             help: a core whose power is off has `power = \"off\"`\n\
             odd.toml:19:3: `c2` draws more than the shallower `WFI`",
        ),
        (
            "power = \"wfi\" },\n  { name = \"c2\"",
            "power = \"10%\" },\n  { name = \"c1\", entry_ns = 0, exit_ns = 2_000, residency_us = 9, power = \"11%\" },\n  { name = \"c2\"",
            "odd.toml:19:3: `c1` draws more than the shallower `WFI`",
        ),
        (
            "entry_ns = 70_000, exit_ns = 160_000, ",
            "entry_ns = 70, exit_ns = 1_000, kernel_exit_ns = 230_000, ",
            "",
        ),
        (
            "{ name = \"WFI\", entry_ns = 0, exit_ns = 1_000, residency_us = 1, power = \"wfi\" },\n  { name = \"c2\", entry_ns = 70_000, exit_ns = 160_000, ",
            "{ name = \"WFI\", entry_ns = 0, exit_ns = 1, residency_us = 1, power = \"wfi\" },\n  { name = \"c2\", entry_ns = 70, exit_ns = 160, ",
            "odd.toml:19:3: `c2` is deep, and entry and exit take less than 1 us\n  \
             help: they are in ns: 160 us are 160_000",
        ),
    ];
    for (from, to, expected) in rows {
        // Couplings would name frequencies that are gone.
        let without = GOOD.find("[[coupled]]").unwrap()..GOOD.find("[interrupts]").unwrap();
        let told = warnings(&[(from, to), (&GOOD[without], "")]);
        match expected {
            "" => assert_eq!(told, "", "{to}"),
            _ => assert!(told.starts_with(expected), "{to}: {told}"),
        }
    }
}

/// A file in MHz, in mW, or without powers.
#[test]
fn units_that_were_mixed_up() {
    let without = GOOD.find("[[coupled]]").unwrap()..GOOD.find("[interrupts]").unwrap();
    let little = GOOD.find("[domain.little]").unwrap()..GOOD.find("[domain.big]").unwrap();
    let domain = |rows: &str| format!("[domain.little]\ncpus = \"0-1\"\nopp = [\n{rows}]\n");
    let told = |rows: &str, more: &str| {
        let head = format!("coupling = true{more}");
        warnings(&[
            (&GOOD[without.clone()], ""),
            (&GOOD[little.clone()], &domain(rows)),
            ("coupling = true", &head),
        ])
    };
    let mhz = "{ khz = 300, em_uw = 6_000, active_uw = 22_000, wfi_uw = 760 },\n\
               { khz = 19_999, em_uw = 615_000, active_uw = 834_000, wfi_uw = 1_000 },\n";
    assert_eq!(
        told(mhz, ""),
        "odd.toml:39:9: the highest frequency is 19999 kHz\n  help: `khz` is in kHz: 2.4 GHz are 2_400_000"
    );
    let mw = "{ khz = 300_000, em_uw = 6, active_uw = 22, wfi_uw = 1 },\n\
              { khz = 600_000, em_uw = 15, active_uw = 999, wfi_uw = 1 },\n";
    assert_eq!(
        told(mw, ""),
        "odd.toml:39:26: `em_uw` of a CPU at its highest frequency is 15 µW\n  \
         help: powers are in µW: 300 mW are 300_000\n\
         odd.toml:39:42: `active_uw` of a CPU at its highest frequency is 999 µW\n  \
         help: powers are in µW: 300 mW are 300_000"
    );
    let none = "{ khz = 300_000, em_uw = 0, active_uw = 0, wfi_uw = 0 },\n\
                { khz = 600_000, em_uw = 0, active_uw = 0, wfi_uw = 0 },\n";
    assert_eq!(
        told(none, ""),
        "odd.toml:37:7: all powers are 0\n  help: energies will be 0; \
         `power_unknown = true` at the top of the file says that this is meant"
    );
    assert_eq!(told(none, "\npower_unknown = true"), "");
}

/// Also in the ways that a file offers.
#[test]
fn no_built_in_machine_is_odd() {
    for (name, _) in builtin_names() {
        let machine = Machine::load(name).unwrap();
        assert!(machine.warnings.is_empty(), "{}", machine.warnings);
        let text = &builtin_source(name).unwrap().text;
        let choices = text.lines().filter_map(|line| line.strip_prefix("[choices."));
        for choice in choices {
            let mut words = choice.trim_end_matches(|c| c != ']').trim_end_matches(']').split('.');
            let (key, option) = (words.next().unwrap(), words.next().unwrap());
            let machine = Machine::load(&format!("{name}:{key}={option}")).unwrap();
            assert!(machine.warnings.is_empty(), "{key}={option}: {}", machine.warnings);
        }
    }
}
