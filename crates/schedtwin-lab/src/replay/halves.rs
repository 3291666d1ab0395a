// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether a replay's verdict holds: that of a recording's first half against its second, which was held back.
//!
//! # Algorithm
//!
//! 1. Each half is replayed on the kernel that recorded, and its figures judged by the same limits ([`super::trust`]).
//! 2. A figure that both halves have *agrees* if it is within its limit in both or in neither.
//! 3. The verdict *holds* if at least [`AGREE_LEAST_PCT`] % of the figures agree, and no figure that is within its limit in the
//!    first half is off by more than [`SURPRISE_FACTOR`] times as much as recorded in the second, up or down.
//!
//! Both numbers were fixed before any recording was looked at.

use super::trust::Figure;

/// Share of the figures that have to agree, %.
pub const AGREE_LEAST_PCT: f64 = 80.0;

/// How far a figure that was within its limit may be off in the other half: a factor, up or down.
pub const SURPRISE_FACTOR: f64 = 2.0;

/// A figure in both halves.
#[derive(Clone, Debug, PartialEq)]
pub struct HalfFigure {
    /// Its name.
    pub name: String,
    /// Replayed divided by recorded, and whether that is within the limit, in the first half.
    pub first: (Option<f64>, bool),
    /// The same in the second.
    pub second: (Option<f64>, bool),
}

/// The verdicts of two halves.
#[derive(Clone, Debug, PartialEq)]
pub struct Halves {
    /// Figures that can be judged in both.
    pub figures: Vec<HalfFigure>,
}

impl Halves {
    /// Sets the figures of two halves beside each other.
    pub fn of(first: &[Figure], second: &[Figure]) -> Halves {
        let mut figures = Vec::new();
        for one in first {
            let Some(other) = second.iter().find(|other| other.name == one.name) else { continue };
            if let (Some(a), Some(b)) = (one.within(), other.within()) {
                figures.push(HalfFigure {
                    name: one.name.clone(),
                    first: (one.ratio(), a),
                    second: (other.ratio(), b),
                });
            }
        }
        Halves { figures }
    }

    /// Figures with one verdict in both halves.
    pub fn agreeing(&self) -> usize {
        self.figures.iter().filter(|figure| figure.first.1 == figure.second.1).count()
    }

    /// Figures that the first half trusts and that are far off in the second.
    pub fn surprises(&self) -> impl Iterator<Item = &HalfFigure> {
        self.figures.iter().filter(|figure| {
            let far = |ratio: f64| ratio > SURPRISE_FACTOR || ratio * SURPRISE_FACTOR < 1.0;
            figure.first.1 && !figure.second.1 && figure.second.0.is_some_and(far)
        })
    }

    /// Whether the verdict of the first half holds for the second; `None`: there is nothing to judge by.
    pub fn hold(&self) -> Option<bool> {
        let all = self.figures.len();
        let agree = self.agreeing() as f64 * 100.0 >= AGREE_LEAST_PCT * all as f64;
        (all > 0).then(|| agree && self.surprises().next().is_none())
    }

    /// A table of the figures, and what they say together.
    pub fn text(&self) -> String {
        let mut lines =
            vec!["Held-back half: replayed divided by recorded".to_owned(), String::new()];
        let width =
            self.figures.iter().map(|figure| figure.name.chars().count()).max().unwrap_or(0);
        let cell = |(ratio, within): (Option<f64>, bool)| {
            let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            format!("{ratio:>7} {:<8}", if within { "trusted" } else { "doubtful" })
        };
        lines.push(format!("{:width$}  {:<16} second half", "", "first half"));
        for figure in &self.figures {
            let row =
                format!("{:width$}  {} {}", figure.name, cell(figure.first), cell(figure.second));
            lines.push(row.trim_end().to_owned());
        }
        lines.push(String::new());
        lines.push(format!(
            "{} of {} figures have one verdict in both halves (at least {AGREE_LEAST_PCT} % have to)",
            self.agreeing(),
            self.figures.len()
        ));
        let surprises: Vec<&str> = self.surprises().map(|figure| &*figure.name).collect();
        lines.push(match surprises.is_empty() {
            true => format!(
                "none that the first half trusts is off by a factor of {SURPRISE_FACTOR} in the second"
            ),
            false => format!(
                "trusted by the first half, and off by a factor of {SURPRISE_FACTOR} in the second: {}",
                surprises.join(", ")
            ),
        });
        lines.push(
            match self.hold() {
                Some(true) => "the verdict of the first half holds for the second",
                Some(false) => "the verdict of the first half does not hold for the second",
                None => "the halves have no figure that can be judged in both",
            }
            .to_owned(),
        );
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::super::trust::{Aspect, Limit};
    use super::*;

    fn figures(values: &[(&str, f64)]) -> Vec<Figure> {
        let figure = |(name, replayed): &(&str, f64)| Figure {
            aspect: Aspect::Latency,
            name: (*name).to_owned(),
            unit: "us",
            recorded: Some(100.0),
            replayed: Some(*replayed),
            limit: Limit::Factor,
            samples: None,
        };
        values.iter().map(figure).collect()
    }

    #[test]
    fn a_verdict_holds_where_the_other_half_agrees_without_surprise() {
        let first = figures(&[("a", 100.0), ("b", 300.0), ("c", 120.0), ("d", 90.0), ("e", 140.0)]);
        for (second, agreeing, hold) in [
            ([100.0, 400.0, 100.0, 100.0, 100.0], 5, Some(true)),
            // Off, though not far.
            ([160.0, 400.0, 100.0, 100.0, 100.0], 4, Some(true)),
            ([210.0, 400.0, 100.0, 100.0, 100.0], 4, Some(false)),
            ([49.0, 400.0, 100.0, 100.0, 100.0], 4, Some(false)),
            ([160.0, 100.0, 100.0, 100.0, 100.0], 3, Some(false)),
        ] {
            let names = ["a", "b", "c", "d", "e"];
            let second = figures(&names.into_iter().zip(second).collect::<Vec<_>>());
            let halves = Halves::of(&first, &second);
            assert_eq!((halves.agreeing(), halves.hold()), (agreeing, hold), "{second:?}");
        }
        assert_eq!(Halves::of(&first, &[]).hold(), None);
    }

    #[test]
    fn the_table_says_what_it_comes_to() {
        let halves = Halves::of(&figures(&[("p50", 100.0)]), &figures(&[("p50", 250.0)]));
        assert_eq!(
            halves.text(),
            "Held-back half: replayed divided by recorded\n\n     \
             first half       second half\n\
             p50     1.00 trusted     2.50 doubtful\n\n\
             0 of 1 figures have one verdict in both halves (at least 80 % have to)\n\
             trusted by the first half, and off by a factor of 2 in the second: p50\n\
             the verdict of the first half does not hold for the second\n"
        );
    }
}
