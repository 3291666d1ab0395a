// SPDX-License-Identifier: GPL-2.0-or-later
//! In what a change is told: in percent of the baseline; temperatures in K and shares in points (28 °C is not twice as
//! warm as 14 °C, and a share that goes from 1 to 2 % of the time gains one point); in the metric's unit where the
//! baseline is zero, or one of the two is below it.

use schedtwin_engine::result::Better;

use super::cells::number;
use crate::compare::ComparedRow;
use crate::stats::Difference;
use crate::verdict::LEAST_HARM_PCT;

/// The largest part of the longer side of an interval by which the shorter one may be shorter, and `+-` still tells it.
const MOST_LOPSIDED: f64 = 0.25;

/// A change as people read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change<'a> {
    /// How much, in [`Change::unit`].
    pub value: f64,
    /// Its 95 % interval.
    pub ends: Option<[f64; 2]>,
    /// The unit of the change.
    pub unit: Told<'a>,
    significant: bool,
    for_equal_lengths: bool,
}

/// The mark of a change that is not that of the two values beside it ([`Difference::for_equal_lengths`]).
const MARK: &str = "~";

/// The unit in which a change is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// Percent of the baseline.
    Percent,
    /// K, of temperatures.
    Kelvin,
    /// Points, of shares: a unit of % less another one.
    Points,
    /// The metric's unit.
    Own(&'a str),
}

impl Told<'_> {
    /// The unit as it stands behind a number; `None` of a metric's own, which the row has.
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Told::Percent => Some("%"),
            Told::Kelvin => Some(" K"),
            Told::Points => Some(" pt"),
            Told::Own(_) => None,
        }
    }
}

impl<'a> Change<'a> {
    /// The change of a metric with that unit.
    pub fn of(difference: &Difference, unit: &'a str) -> Change<'a> {
        let in_its_own = match unit {
            "C" => Some(Told::Kelvin),
            "%" => Some(Told::Points),
            _ => None,
        };
        let Difference { significant, for_equal_lengths, .. } = *difference;
        let told = |value, ends, unit| Change { value, ends, unit, significant, for_equal_lengths };
        let own = |unit| told(difference.diff, difference.ci95, unit);
        match (in_its_own, difference.diff_pct) {
            (Some(unit), _) => own(unit),
            (None, Some(value)) => told(value, difference.ci95_pct, Told::Percent),
            (None, None) => own(Told::Own(unit)),
        }
    }

    /// Whether it can be drawn beside others, on one scale of percent, K and points.
    pub fn has_a_scale(&self) -> bool {
        !matches!(self.unit, Told::Own(_))
    }

    /// Whether it is surely less than a hundredth of the baseline, a K or a point: its whole interval, or the change
    /// itself where there is none. Nobody decides by that, however sure it is.
    pub fn is_small(&self) -> bool {
        let [low, high] = self.ends.unwrap_or([self.value; 2]);
        self.has_a_scale() && low.abs().max(high.abs()) < LEAST_HARM_PCT
    }

    /// Whether its interval reaches a quarter of the baseline or more on one side.
    pub fn may_be_a_quarter(&self) -> bool {
        let ends = self.ends.filter(|_| self.has_a_scale());
        ends.is_some_and(|[low, high]| low.abs().max(high.abs()) >= 25.0)
    }

    /// The ends of the interval, each to stand in a sentence.
    pub fn whole_ends(&self) -> Option<[String; 2]> {
        Some(self.ends?.map(|value| Change { value, ends: None, ..*self }.whole()))
    }

    /// Half the width of the interval.
    fn half(&self) -> Option<f64> {
        self.ends.map(|[low, high]| (high - low) / 2.0)
    }

    /// Whether one side of the interval is longer than the other by more than a quarter: half its width would mislead.
    fn is_lopsided(&self) -> bool {
        self.ends.is_some_and(|[low, high]| {
            let [below, above] = [self.value - low, high - self.value];
            (above - below).abs() > MOST_LOPSIDED * below.max(above)
        })
    }

    /// As two cells: the signed change, and its interval: the half-width behind `sign`, or both ends where the sides differ.
    pub fn cells(&self, sign: &str) -> (String, String) {
        let (value, half) = (self.value, self.half());
        let ends = self.ends.filter(|_| self.is_lopsided());
        let Some(suffix) = self.unit.suffix() else {
            let interval = match (ends, half.filter(|half| *half > 0.0)) {
                (Some(ends), _) => bracketed(ends, super::signed),
                (None, half) => {
                    half.map_or(String::new(), |half| format!("{sign}{}", number(half)))
                }
            };
            return (super::signed(value), interval);
        };
        let decimals = match value.abs().max(half.unwrap_or(0.0)) {
            ..10.0 => 2,
            10.0..100.0 => 1,
            _ => 0,
        };
        let signed = |value: f64| without_sign_of_zero(format!("{value:+.decimals$}"));
        let change = match value {
            0.0 if half.is_none_or(|half| half == 0.0) => {
                return (format!("0{suffix}"), String::new());
            }
            0.0 => format!("0{suffix}"),
            _ => without_sign_of_zero(format!("{value:+.decimals$}{suffix}")),
        };
        let interval = match (ends, half) {
            (Some(ends), _) if signed(ends[0]) != signed(ends[1]) => bracketed(ends, signed),
            (_, Some(half)) => format!("{sign}{half:.decimals$}"),
            (_, None) => String::new(),
        };
        (change, interval)
    }

    /// The signed change with its unit, to stand in a sentence.
    pub fn whole(&self) -> String {
        let (change, _) = self.cells("+-");
        match self.unit {
            Told::Own(unit) => format!("{change} {unit}").trim_end().to_string(),
            _ => change,
        }
    }

    /// `*` and, where the metric has a direction, which way it went; empty when not significant, or so
    /// small that the table shows 0.00: nobody acts on that, and JSON has it.
    pub fn verdict(&self, better: Better) -> &'static str {
        let shown = matches!(self.unit, Told::Own(_)) || self.value.abs() >= 0.005;
        if !self.significant || !shown {
            return "";
        }
        match (better, self.value > 0.0) {
            (Better::Neutral, _) => "*",
            (Better::Higher, true) | (Better::Lower, false) => "* better",
            (Better::Higher, false) | (Better::Lower, true) => "* worse",
        }
    }
}

/// `[-60, +300]`.
fn bracketed([low, high]: [f64; 2], text: impl Fn(f64) -> String) -> String {
    format!("[{}, {}]", text(low), text(high))
}

/// The cells of a change, if there is one; `sign` stands before half the width of an interval.
pub fn difference_cells(
    difference: Option<&Difference>,
    unit: &str,
    sign: &str,
) -> (String, String) {
    let Some(difference) = difference else { return ("-".into(), String::new()) };
    let change = Change::of(difference, unit);
    let (mut text, interval) = change.cells(sign);
    if change.for_equal_lengths {
        text.push_str(MARK);
    }
    (text, interval)
}

/// Whether a kernel's change of a row is one for better or worse: a star and a word, nothing within chance, and for a
/// doubtful row, or one that is not judged, that it is one.
pub fn verdict(row: &ComparedRow, kernel: usize) -> &'static str {
    let Some(difference) = row.told(kernel) else { return "" };
    match Change::of(&difference, row.row.unit).verdict(row.row.better) {
        "" => "",
        _ if row.not_judged => "? not judged",
        _ if row.doubtful => "? doubtful",
        known => known,
    }
}

/// Removes the sign of a text that rounds to zero.
fn without_sign_of_zero(text: String) -> String {
    match text.strip_prefix(['+', '-']) {
        Some(digits) if !digits.contains(|c: char| matches!(c, '1'..='9')) => digits.to_string(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(diff: f64, base: f64, half: f64) -> Difference {
        Difference {
            n: 2,
            diff,
            diff_pct: (base != 0.0).then(|| 100.0 * diff / base),
            ci95: Some([diff - half, diff + half]),
            ci95_pct: (base != 0.0)
                .then(|| [100.0 * (diff - half) / base, 100.0 * (diff + half) / base]),
            p: Some(0.01),
            significant: true,
            for_equal_lengths: false,
        }
    }

    #[test]
    fn differences_show_percent_or_the_unit() {
        for (difference, unit, expected) in [
            (difference(-5.3, 18.0, 0.2), "ms", ("-29.4%", "1.1")),
            (difference(0.5, 100.0, 0.25), "ms", ("+0.50%", "0.25")),
            (difference(300.0, 100.0, 4.0), "ms", ("+300%", "4")),
            (difference(0.0, 100.0, 4.0), "ms", ("0%", "4.00")),
            (difference(-0.001, 100.0, 0.0001), "ms", ("0.00%", "0.00")),
            (difference(0.0, 100.0, 0.0), "ms", ("0%", "")),
            (difference(3.0, 0.0, 1.5), "ms", ("+3.000", "1.500")),
            (difference(0.23, 28.5, 0.09), "C", ("+0.23 K", "0.09")),
            (difference(-1.28, 19.75, 1.06), "%", ("-1.28 pt", "1.06")),
            (difference(2.5, 0.0, 0.5), "%", ("+2.50 pt", "0.50")),
            (difference(0.0, 0.0, 0.0), "%", ("0 pt", "")),
        ] {
            let (change, half) = difference_cells(Some(&difference), unit, "");
            assert_eq!((change.as_str(), half.as_str()), expected);
        }
        assert_eq!(difference_cells(None, "ms", "").0, "-");
        let of = Difference { for_equal_lengths: true, ..difference(1.0, 100.0, 0.5) };
        assert_eq!(difference_cells(Some(&of), "J", "+-").0, "+1.00%~");
        assert_eq!(Change::of(&difference(3.0, 0.0, 1.5), "ms").whole(), "+3.000 ms");
    }

    #[test]
    fn an_interval_with_unequal_sides_is_told_by_its_ends() {
        let told = |value: f64, [low, high]: [f64; 2], unit| {
            let of = Difference { ci95_pct: Some([low, high]), ..difference(value, 100.0, 0.0) };
            let of = Difference { ci95: Some([low, high]), ..of };
            difference_cells(Some(&of), unit, "+-").1
        };
        assert_eq!(told(40.0, [-60.0, 300.0], "ms"), "[-60, +300]");
        assert_eq!(told(-80.0, [-100.0, 20.0], "ms"), "[-100.0, +20.0]");
        assert_eq!(told(1.0, [0.2, 1.9], "ms"), "+-0.85", "0.8 and 0.9");
        assert_eq!(told(1.0, [0.4, 1.9], "C"), "[+0.40, +1.90]");
        let of = Difference { ci95: Some([-1.0, 9.0]), ..difference(3.0, 0.0, 0.0) };
        assert_eq!(difference_cells(Some(&of), "ms", "+-").1, "[-1.000, +9.000]");
    }

    #[test]
    fn a_change_is_small_with_its_whole_interval() {
        let small =
            |diff, base, half, unit| Change::of(&difference(diff, base, half), unit).is_small();
        assert!(small(-0.02, 100.0, 0.01, "ms") && small(0.3, 30.0, 0.2, "%"));
        assert!(!small(-0.8, 100.0, 0.3, "ms"), "it may be 1.1 %");
        assert!(!small(0.02, 0.0, 0.01, "ms"), "of nothing there is no hundredth");
    }

    #[test]
    fn verdicts_say_which_way() {
        let verdict = |diff, base, better, unit| {
            Change::of(&difference(diff, base, 0.0), unit).verdict(better)
        };
        assert_eq!(verdict(1.0, 5.0, Better::Lower, "ms"), "* worse");
        assert_eq!(verdict(1.0, 5.0, Better::Higher, "ms"), "* better");
        assert_eq!(verdict(1.0, 5.0, Better::Neutral, "ms"), "*");
        assert_eq!(verdict(0.004, 100.0, Better::Lower, "ms"), "");
        assert_eq!(verdict(0.004, 0.01, Better::Lower, "%"), "", "half a hundredth of a point");
    }
}
