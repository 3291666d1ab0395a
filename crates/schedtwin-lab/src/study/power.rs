// SPDX-License-Identifier: GPL-2.0-or-later
//! What a study could have told: the smallest difference that its own noise let it see.
//!
//! A published difference is known to `N`, the half-width of its 95 % interval (its own, or the day-to-day spread that is assumed for
//! its row). If the experiment were repeated with a true difference `D`, it would find an effect, that is an interval without
//! zero, in four of five repetitions if
//!
//! ```text
//! D >= N · (1.96 + 0.84) / 1.96 = 1.43 N        two-sided 5 %, power 80 %, normal errors
//! ```
//!
//! 1. A cell of words has no number: it is no cell, and counts nowhere.
//! 2. A base cell predicts nothing.
//! 3. Without a known noise nothing can be said.
//! 4. Else the cell *decides* if its published difference is at least that; one that is smaller may be chance, whatever its
//!    sign, and a twin that disagrees with it is not refuted by it.
//!
//! The rule looks at the published numbers alone, never at the twin's.

use super::run::published_difference;
use super::{Cell, Published, Role, Row, Study};

/// Of a two-sided test of 5 %, and of a power of 80 %: quantiles of the normal distribution.
const Z_TEST: f64 = 1.959_964;
const Z_POWER: f64 = 0.841_621;

/// What a cell can decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Power {
    /// It is of a base kernel.
    Base,
    /// It has no number.
    Words,
    /// How well it is known was not published.
    NoiseUnknown,
    /// It could tell.
    Decides {
        /// The smallest difference that it could, in percent of the base.
        least_pct: f64,
    },
    /// Its difference is smaller than what it could tell.
    Open {
        /// The smallest difference that it could, in percent of the base.
        least_pct: f64,
    },
}

impl Power {
    /// The smallest detectable difference, in percent of the base.
    pub fn least_pct(self) -> Option<f64> {
        match self {
            Power::Decides { least_pct } | Power::Open { least_pct } => Some(least_pct),
            Power::Base | Power::Words | Power::NoiseUnknown => None,
        }
    }

    /// A word for a table.
    pub fn word(self) -> &'static str {
        match self {
            Power::Base => "",
            Power::Words => "words",
            Power::NoiseUnknown => "noise unknown",
            Power::Decides { .. } => "decides",
            Power::Open { .. } => "open",
        }
    }
}

/// The smallest difference that is found in four of five repetitions, of the half-width of its interval.
///
/// ```
/// let least = schedtwin_lab::study::power::detectable(2.0);
/// assert!((least - 2.859).abs() < 0.001, "{least}");
/// ```
pub fn detectable(half_width: f64) -> f64 {
    half_width * (Z_TEST + Z_POWER) / Z_TEST
}

/// What a cell of a row can decide.
pub fn power(study: &Study, row: &Row, cell: &Cell) -> Power {
    if matches!(cell.published, Published::Text(_)) {
        return Power::Words;
    }
    if cell.role == Role::Base {
        return Power::Base;
    }
    match published_difference(row, row.base_of(study, cell), cell) {
        (Some(difference), Some(noise)) => {
            let least_pct = detectable(noise);
            match difference.abs() >= least_pct {
                true => Power::Decides { least_pct },
                false => Power::Open { least_pct },
            }
        }
        _ => Power::NoiseUnknown,
    }
}

/// How many predicted cells of a study decide, are open, and have an unknown noise; and how many are words only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Powers {
    /// Cells that could tell what they say.
    pub decide: usize,
    /// Cells whose difference is below what they could tell.
    pub open: usize,
    /// Cells of which no noise is known.
    pub unknown: usize,
    /// Cells of words, which are none.
    pub words: usize,
}

impl Powers {
    /// Of a study.
    pub fn of(study: &Study) -> Powers {
        let mut powers = Powers::default();
        for (row, cell) in study.rows.iter().flat_map(|row| row.cells.iter().map(move |c| (row, c)))
        {
            if cell.role == Role::Base {
                continue;
            }
            match power(study, row, cell) {
                Power::Decides { .. } => powers.decide += 1,
                Power::Open { .. } => powers.open += 1,
                Power::NoiseUnknown => powers.unknown += 1,
                Power::Words => powers.words += 1,
                Power::Base => {}
            }
        }
        powers
    }

    /// A sentence about them; none where nothing is predicted.
    pub fn sentence(self) -> Option<String> {
        let Powers { decide, open, unknown, words } = self;
        let cells = decide + open + unknown;
        if cells + words == 0 {
            return None;
        }
        let mut text = format!(
            "what the study could decide: of {cells} predicted cells {decide} decide, {open} are below what their noise lets the \
             study see, and of {unknown} the noise is unknown"
        );
        if words > 0 {
            text.push_str(&format!("; {words} more are words only and no cells"));
        }
        Some(
            text + ". detectable: the smallest difference that four of five repetitions would find.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::read;
    use schedtwin_input::Source;

    fn powers(base: &str, patched: &str, noise: &str) -> Power {
        let text = crate::study::tests::demo_text();
        let row = text.find("[[row]]").expect("it has rows");
        let fit = text.find("[[fit]]").expect("and a fit");
        let own = format!(
            "[[row]]\nid = \"1\"\nmetric = \"power\"\nstat = \"mean\"\nunit = \"mW\"\nbetter = \"lower\"\n{noise}\ncells = [\n\
             {{ kernel = \"base\", role = \"base\", {base} }},\n{{ kernel = \"patched\", role = \"patched\", {patched} }},\n]\n"
        );
        let text = format!("{}{own}{}", &text[..row], &text[fit..]);
        let study = read(&Source::new("demo.toml", text)).unwrap_or_else(|f| panic!("{f}"));
        assert_eq!(power(&study, &study.rows[0], &study.rows[0].cells[0]).least_pct(), None);
        power(&study, &study.rows[0], &study.rows[0].cells[1])
    }

    #[test]
    fn a_difference_is_set_beside_what_could_be_seen() {
        let least = |power: Power| power.least_pct().map(|p| (p * 1000.0).round() / 1000.0);
        // Half-widths of 3 and 4 mW of 100 are 5 % together, of which 7.147 % could be seen.
        let both = |patched: &str| powers("value = 100, noise = 3", patched, "");
        let (seen, below) = (both("value = 92, noise = 4"), both("value = 93, noise = 4"));
        assert_eq!((seen.word(), least(seen)), ("decides", Some(7.147)));
        assert_eq!((below.word(), least(below)), ("open", Some(7.147)));
        // A spread that is assumed for the row.
        let assumed = "noise = { value = 10, assumed = \"days\" }";
        let open = powers("value = 100", "value = 110", assumed);
        assert_eq!((open.word(), least(open)), ("open", Some(14.294)));
        for (patched, word) in [("value = 50", "noise unknown"), ("text = \"lower\"", "words")] {
            assert_eq!(powers("value = 100", patched, "").word(), word);
        }
    }

    #[test]
    fn words_are_counted_apart() {
        let study = read(&Source::new("demo.toml", crate::study::tests::demo_text())).unwrap();
        let powers = Powers::of(&study);
        assert_eq!(powers, Powers { decide: 0, open: 1, unknown: 2, words: 1 });
        let text = powers.sentence().unwrap();
        assert!(
            text.contains("of 3 predicted cells 0 decide") && text.contains("1 more are words"),
            "{text}"
        );
        assert_eq!(Powers::default().sentence(), None);
    }
}
