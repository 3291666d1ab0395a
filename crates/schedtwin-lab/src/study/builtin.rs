// SPDX-License-Identifier: GPL-2.0-or-later
//! The studies that are compiled in.

use std::sync::Arc;

use schedtwin_input::{Source, Spec};

use crate::study::reports::ledger::Ledger;
use crate::study::{Study, load};

/// Name and text, in the order of the publications.
const STUDIES: [(&str, &str); 15] = [
    ("jankbench-pixel6", include_str!("../../studies/jankbench-pixel6.toml")),
    ("messaging-altra", include_str!("../../studies/messaging-altra.toml")),
    ("server-neutral-spr", include_str!("../../studies/server-neutral-spr.toml")),
    ("daytrader-power10", include_str!("../../studies/daytrader-power10.toml")),
    ("geekbench5-pixel6", include_str!("../../studies/geekbench5-pixel6.toml")),
    ("geekbench5-fridge-pixel6", include_str!("../../studies/geekbench5-fridge-pixel6.toml")),
    ("pcmark-web-pixel6", include_str!("../../studies/pcmark-web-pixel6.toml")),
    ("idle-i5-10600k", include_str!("../../studies/idle-i5-10600k.toml")),
    ("speedometer-pixel9", include_str!("../../studies/speedometer-pixel9.toml")),
    ("uibench-pixel9", include_str!("../../studies/uibench-pixel9.toml")),
    ("uclamp-scenarios-juno", include_str!("../../studies/uclamp-scenarios-juno.toml")),
    ("uclamp-scenarios-pixel6", include_str!("../../studies/uclamp-scenarios-pixel6.toml")),
    ("uclamp-enqueue-order", include_str!("../../studies/uclamp-enqueue-order.toml")),
    ("remote-latency-x86", include_str!("../../studies/remote-latency-x86.toml")),
    ("messaging-i7-3630qm", include_str!("../../studies/messaging-i7-3630qm.toml")),
];

/// Name and text of reports, by name.
macro_rules! texts {
    ($($id:literal)*) => {
        &[$(($id, include_str!(concat!("../../studies/reports/", $id, ".toml")))),*]
    };
}

/// The reports: studies/reports.
const REPORTS: &[(&str, &str)] = texts![
    "D01" "D02" "D03" "D04" "D05" "D06" "D07" "D08" "D09" "D10"
    "D11" "D12" "D13" "D14" "D15" "D16" "D17" "D18" "D19" "D20"
    "D21" "D22" "D23" "D24" "D25" "D26" "D27" "D28" "D29" "D30"
    "D31" "N01" "N02" "N03" "N04" "N05" "N06" "N07" "N08" "N09"
    "N10" "N11" "R1" "R2" "R3" "R4" "R6" "R7" "R8" "R9"
    "R10" "R11" "R13" "R14" "R15" "R16" "R17" "R18" "R19" "R20"
];

const FIRST_RESULTS: &str = include_str!("../../studies/reports/first-results.csv");
const PRESENT_RESULTS: &str = include_str!("../../studies/reports/present-results.csv");

/// The names.
pub fn names() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|(name, _)| *name)
}

/// The names of the built-in reports.
pub fn reports() -> impl Iterator<Item = &'static str> {
    REPORTS.iter().map(|(name, _)| *name)
}

/// The first results of reports, and the present ones.
pub fn results() -> [Ledger; 2] {
    [("first-results.csv", FIRST_RESULTS), ("present-results.csv", PRESENT_RESULTS)].map(
        |(name, text)| Ledger::read(name, text).expect("the built-in results are read by a test"),
    )
}

/// The patches in a kernel's spelling: `linux-6.1+runnable-boost:hz=100` has one.
fn patches(kernel: &str) -> Vec<String> {
    let patches = Spec::parse_kernel(kernel).map(|spec| spec.patches).unwrap_or_default();
    patches.into_iter().map(|patch| patch.text).collect()
}

/// Says which built-in studies hold a patch that only one of two kernels has against published numbers: those on the
/// machine, or else those on others.
pub fn studies_of_the_difference(machine: &str, a: &str, b: &str) -> Option<String> {
    let (of_a, of_b) = (patches(a), patches(b));
    let only = |own: &[String], other: &[String]| -> Vec<String> {
        own.iter().filter(|patch| !other.contains(patch)).cloned().collect()
    };
    let differ = [only(&of_b, &of_a), only(&of_a, &of_b)].concat();
    if differ.is_empty() {
        return None;
    }
    let holds = |study: &Study| {
        let mut of_columns = study.columns.iter().flat_map(|column| patches(&column.kernel));
        of_columns.any(|patch| differ.contains(&patch))
    };
    let all: Vec<Study> = names().filter_map(|name| load(name).ok()).filter(holds).collect();
    let base = |machine: &str| Spec::parse_machine(machine).map(|spec| spec.name.text).ok();
    let own = base(machine);
    let (here, elsewhere): (Vec<&Study>, Vec<&Study>) =
        all.iter().partition(|study| base(&study.machine) == own);
    let names_of = |studies: &[&Study]| {
        studies.iter().map(|study| study.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (names, place) = match (here.is_empty(), elsewhere.is_empty()) {
        (false, _) => (names_of(&here), "on this machine"),
        (true, false) => (names_of(&elsewhere), "on other machines"),
        (true, true) => return None,
    };
    Some(format!(
        "{} was measured {place}: `schedtwin study run` sets the twin beside the published numbers of {names}",
        differ.join(", ")
    ))
}

/// The file of a built-in study or report.
pub fn source(name: &str) -> Option<Arc<Source>> {
    let (name, text) = STUDIES.iter().chain(REPORTS).find(|(known, _)| *known == name)?;
    Some(Source::new(format!("<built in> {name}"), *text))
}
