// SPDX-License-Identifier: GPL-2.0-or-later
//! Measured power of the recording beside the twin's.
//!
//! A rail is a domain's if its name or its subsystem has the domain's name as a word (`CPU(BIG)`, `cpu.big`) or ends in
//! `CPUCL` and the domain's number in the order of CPUs (`S2M_VDD_CPUCL2`), as the boards of phones name them. Other
//! rails (display, memory, radio) have no counterpart in the twin and are shown alone.
//!
//! A rail's mean is that of its own counts, which are seconds apart; of a replay of a part it is still that of the whole.

use super::{Board, Pair, mean_of};
use crate::compare::Comparison;
use schedtwin_engine::recording::PowerRail;

/// A row for each rail that counted.
pub fn pairs(rails: &[PowerRail], board: &Board, comparison: &Comparison) -> Vec<Pair> {
    let pair = |rail: &PowerRail| {
        let recorded = rail.mean_mw()?;
        let domain =
            board.domains.iter().enumerate().find(|(at, (name, ..))| feeds(rail, name, *at));
        let labels = domain.map(|(_, (name, ..))| vec![("domain", name.clone())]);
        let of = |kernel| mean_of(comparison, kernel, "power", "mean", labels.as_ref()?);
        let replayed = (0..comparison.kernels.len()).map(of).collect();
        let shown = match &rail.name[..] {
            "" => rail.subsystem.clone(),
            name => name.to_owned(),
        };
        let mut told = vec![("rail", shown)];
        told.extend(labels.into_iter().flatten());
        Some(Pair {
            name: "power",
            stat: "mean",
            labels: told,
            unit: "mW",
            recorded: Some(recorded),
            replayed,
        })
    };
    rails.iter().filter_map(pair).collect()
}

/// Whether a rail feeds a domain, the `at`-th of the machine.
fn feeds(rail: &PowerRail, domain: &str, at: usize) -> bool {
    let domain = domain.to_ascii_lowercase();
    let has_word = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == domain)
    };
    let is_cpus = |text: &str| text.to_ascii_lowercase().contains("cpu");
    let named = |text: &str| is_cpus(text) && has_word(text);
    named(&rail.name)
        || named(&rail.subsystem)
        || rail.name.to_ascii_lowercase().ends_with(&format!("cpucl{at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rails_are_the_domains_that_their_names_say() {
        let rail = |name: &str, subsystem: &str| {
            let mut rail = PowerRail::default();
            rail.name.push_str(name);
            rail.subsystem.push_str(subsystem);
            rail
        };
        for (rail, fed) in [
            (rail("S2M_VDD_CPUCL2", "CPU"), Some("big")),
            (rail("S4M_VDD_CPUCL0", ""), Some("little")),
            (rail("VDD_X", "CPU(MID)"), Some("mid")),
            (rail("power.rails.cpu.big", ""), Some("big")),
            (rail("power.rails.gpu.big", ""), None),
            (rail("L15M_VDD_SLC_M", "SLC"), None),
        ] {
            let domains = ["little", "mid", "big"];
            let found = domains.iter().enumerate().find(|(at, domain)| feeds(&rail, domain, *at));
            assert_eq!(found.map(|(_, domain)| *domain), fed, "{rail:?}");
        }
    }
}
