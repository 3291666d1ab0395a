// SPDX-License-Identifier: GPL-2.0-or-later
//! Conditions under which a comparison shall fail, for scripts and CI: `power>+5%`.
//!
//! ```text
//! condition = [ sure ":" ] name [ "." stat ] [ "{" key "=" value { "," key "=" value } "}" ] op limit
//! sure      = "certain" | "mean" | "possible"
//! op        = ">" | ">=" | "<" | "<="
//! limit     = ( "+" | "-" ) number "%"      change against the baseline in percent of it
//!           | ( "+" | "-" ) number [ unit ] change against the baseline in the metric's unit
//!           | number [ unit ]               the value itself, in the metric's unit
//!           | "(" "-" number ")" [ unit ]   the same below zero: slack.min<(-1)ms
//! ```
//!
//! Stat and labels may also stand as in tables and in `--metric`: `wakeup_latency p99 task=ui>+10%`, `power,domain=big>+5%`.
//!
//! Units of the same quantity are converted: `power>+0.5W`, `wakeup_latency.p99>+1ms`. A share changes by percent of the
//! baseline's share (`jank>+10%`) or by points (`jank>+0.5pt`), a temperature by K (`temperature.max>+2K`).
//!
//! `power>+5%` fails if any other kernel's mean power is more than 5 % above the baseline's, and that is certain: the
//! whole 95 % interval of the difference lies above 5 %. `mean:power>+5%` asks the mean alone, whatever its interval, and
//! `possible:power>+5%` fails already if the interval reaches above 5 %: a gate that opens only when the runs rule it
//! out. `overutilized>4%` (a metric whose unit is %) asks the value itself, with the interval of its mean. Absolute
//! limits judge the baseline too when it is alone.
//!
//! One run has no interval, so only the mean can be asked of it ([`Condition::check_runs`]).
//!
//! Without a stat the total is meant (`mean`, `sum` or `gmean`), or the only stat that there is. Names, stats and labels
//! are those of [`crate::selector`]: checked before anything runs, and without labels the row of the whole is meant, or
//! every part where there is none. What is undefined cannot be judged and fails.
//!
//! A finding says in which direction the metric went, and whether that is better or worse: who writes `throughput>+5%`
//! where `throughput<-5%` was meant sees it.

use std::ops::Range;
use std::sync::Arc;

use schedtwin_input::{Diagnostics, Source};
use schedtwin_types::metric::Better;

use crate::compare::{Cell, ComparedRow, Comparison};
use crate::measured::Row;
use crate::report::{number, signed, totals_of};
use crate::selector::Selector;

/// A parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    source: Arc<Source>,
    sure: Sure,
    selector: Selector,
    op: Op,
    limit: Limit,
    unit: String,
}

/// Which number of a mean and its interval a condition is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sure {
    /// The bound of the interval nearest to where the condition does not hold.
    Certain,
    /// The mean.
    Mean,
    /// The other bound.
    Possible,
}

/// The words that may stand in front of a condition; without one it has to be certain.
const SURE: [(&str, Sure); 3] =
    [("certain", Sure::Certain), ("mean", Sure::Mean), ("possible", Sure::Possible)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Above,
    AtLeast,
    Below,
    AtMost,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    ChangePercent(f64),
    Change(f64),
    Value(f64),
}

/// How a condition turned out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the condition holds, that is, the comparison fails.
    pub failed: bool,
    /// One line per kernel and metric for which it holds, saying what was found.
    pub findings: Vec<String>,
}

impl Condition {
    /// Reads a condition; faults point into its text.
    pub fn parse(text: &str) -> Result<Condition, Diagnostics> {
        let source = Source::new("--fail-if", text);
        let mut reader = Reader { text, at: 0 };
        let named = reader.condition().map_err(|(from, message, help)| {
            let mut faults = Diagnostics::new();
            let to = if from < text.len() { text.len() } else { from };
            faults.push(&source, from..to, message, help);
            faults
        })?;
        let Named { sure, name, stat, labels, span, op, limit, unit } = named;
        let selector = Selector::new(&source, span, name, stat, labels)?;
        let mut condition = Condition { source, sure, selector, op, limit, unit };
        condition.scale()?;
        Ok(condition)
    }

    /// The condition as it was written.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// The limit in the unit of the metric, or why its own unit is none for it. Before anything runs: who waits for
    /// the table should not learn then that it judges nothing.
    fn scale(&mut self) -> Result<(), Diagnostics> {
        let [unit] = self.selector.units()[..] else { return Ok(()) };
        if unit == "C" && matches!(self.limit, Limit::ChangePercent(_)) {
            let message = "a temperature has no percent of another".to_string();
            return Err(self.fault(message, "write the limit in K: +2K".to_string()));
        }
        let (Limit::Change(limit) | Limit::Value(limit)) = &mut self.limit else { return Ok(()) };
        if self.unit.is_empty() || self.unit == unit {
            return Ok(());
        }
        if let Some(factor) = factor(&self.unit, unit) {
            *limit *= factor;
            self.unit = unit.to_string();
            return Ok(());
        }
        let help = match self.unit.as_str() {
            "%" => "a change against the baseline has a sign: +5% or -5%".to_string(),
            several if several.contains(',') => "give each condition its own --fail-if".to_string(),
            _ => format!("write the limit in {unit}"),
        };
        let message = format!("it is measured in {unit:?}, not in {:?}", self.unit);
        Err(self.fault(message, help))
    }

    /// Judges a comparison. A condition that names rows that were not measured is an error.
    pub fn judge(&self, comparison: &Comparison) -> Result<Verdict, Diagnostics> {
        let rows = totals_of(&self.selector, &comparison.rows)?;
        let mut findings = Vec::new();
        for row in rows {
            self.check_unit(row)?;
            let first = usize::from(comparison.kernels.len() > 1);
            for (kernel, cell) in row.cells.iter().enumerate().skip(first) {
                let found = self.found(cell);
                if let Found::Number { mean, interval } = found
                    && self.judged(mean, interval).is_some_and(|number| !self.holds(number))
                {
                    continue;
                }
                let kernel = &comparison.kernels[kernel];
                findings.push(format!(
                    "{}: {} of {kernel} {}",
                    self.source.text,
                    row.row.title(),
                    self.told(found, cell, &row.row)
                ));
            }
        }
        Ok(Verdict { failed: !findings.is_empty(), findings })
    }

    /// Whether it holds wherever in their intervals the numbers lie: `Some` if one of them makes it hold, or none can; `None`: that is
    /// open, or nothing is measured.
    pub fn certain(&self, rows: &[ComparedRow]) -> Option<bool> {
        let mut open = false;
        for row in totals_of(&self.selector, rows).ok()? {
            let first = usize::from(row.cells.len() > 1);
            for cell in &row.cells[first..] {
                let ends = match self.found(cell) {
                    Found::Number { interval: Some(ends), .. } => ends.map(|end| self.holds(end)),
                    _ => [false, true],
                };
                match ends {
                    [true, true] => return Some(true),
                    [false, false] => {}
                    _ => open = true,
                }
            }
        }
        (!open).then_some(false)
    }

    /// Whether one run cannot tell: a mean without an interval is never certain.
    fn needs_an_interval(&self) -> bool {
        self.sure != Sure::Mean
    }

    /// Refuses a condition that so many runs of each kernel can never tell.
    pub fn check_runs(&self, runs: u64) -> Result<(), Diagnostics> {
        if runs > 1 || !self.needs_an_interval() {
            return Ok(());
        }
        let text = &self.source.text;
        let condition = text.split_once(':').map_or(text.as_str(), |(_, condition)| condition);
        Err(self.fault(
            "one run has no interval, so nothing is certain".to_string(),
            format!("ask the mean, mean:{condition}, or run more: -n 10"),
        ))
    }

    /// Returns the value that the limit is compared with.
    fn found(&self, cell: &Cell) -> Found {
        let number = |mean: Option<f64>, interval| match mean {
            Some(mean) => Found::Number { mean, interval },
            None => Found::Undefined,
        };
        let difference = cell.difference.as_ref();
        match self.limit {
            Limit::Value(_) => {
                number(cell.estimate.map(|e| e.mean), cell.estimate.and_then(|e| e.ci95))
            }
            Limit::Change(_) => number(difference.map(|d| d.diff), difference.and_then(|d| d.ci95)),
            // Without a change there is nothing to object to, also where a share of zero is undefined.
            Limit::ChangePercent(_) if difference.is_some_and(|d| d.is_none()) => {
                Found::Number { mean: 0.0, interval: Some([0.0, 0.0]) }
            }
            Limit::ChangePercent(_) => {
                number(difference.and_then(|d| d.diff_pct), difference.and_then(|d| d.ci95_pct))
            }
        }
    }

    /// The number that decides; `None`: there is no interval.
    fn judged(&self, mean: f64, interval: Option<[f64; 2]>) -> Option<f64> {
        let upward = matches!(self.op, Op::Above | Op::AtLeast);
        match self.sure {
            Sure::Mean => Some(mean),
            Sure::Certain => interval.map(|[low, high]| if upward { low } else { high }),
            Sure::Possible => interval.map(|[low, high]| if upward { high } else { low }),
        }
    }

    /// `changed by +3.7% (95% from +3.1% to +4.3%, worse)`.
    fn told(&self, found: Found, cell: &Cell, row: &Row) -> String {
        let Found::Number { mean, interval } = found else { return "is undefined".to_string() };
        let change = !matches!(self.limit, Limit::Value(_));
        let unit = match (self.limit, row.unit) {
            (Limit::ChangePercent(_), _) => "%".to_string(),
            (_, "") => String::new(),
            (Limit::Change(_), "%") => " pt".to_string(),
            (Limit::Change(_), "C") => " K".to_string(),
            (_, unit) => format!(" {unit}"),
        };
        let shown = |x: f64| if change { signed(x) } else { number(x) };
        let what = if change { "changed by" } else { "is" };
        let mut beside = Vec::new();
        match interval {
            Some([low, high]) => {
                beside.push(format!("95% from {} to {}{unit}", shown(low), shown(high)));
            }
            None => beside.push("one run: no interval".to_string()),
        }
        match (row.better, cell.difference.as_ref().map(|d| d.diff > 0.0)) {
            (Better::Neutral, _) | (_, None) => {}
            (Better::Higher, Some(up)) if change => {
                beside.push(if up { "better" } else { "worse" }.to_string());
            }
            (Better::Lower, Some(up)) if change => {
                beside.push(if up { "worse" } else { "better" }.to_string());
            }
            _ => {}
        }
        format!("{what} {}{unit} ({})", shown(mean), beside.join(", "))
    }

    fn holds(&self, found: f64) -> bool {
        let (Limit::ChangePercent(limit) | Limit::Change(limit) | Limit::Value(limit)) = self.limit;
        match self.op {
            Op::Above => found > limit,
            Op::AtLeast => found >= limit,
            Op::Below => found < limit,
            Op::AtMost => found <= limit,
        }
    }

    fn check_unit(&self, row: &ComparedRow) -> Result<(), Diagnostics> {
        if self.unit.is_empty()
            || self.unit == row.row.unit
            || matches!(self.limit, Limit::ChangePercent(_))
        {
            return Ok(());
        }
        let help = match self.unit.as_str() {
            "%" => "a change against the baseline has a sign: +5% or -5%".to_string(),
            several if several.contains(',') => "give each condition its own --fail-if".to_string(),
            _ => format!("write the limit in {}", row.row.unit),
        };
        let message =
            format!("{} is measured in {:?}, not in {:?}", row.row.name, row.row.unit, self.unit);
        Err(self.fault(message, help))
    }

    fn fault(&self, message: String, help: String) -> Diagnostics {
        let mut faults = Diagnostics::new();
        faults.push(&self.source, 0..self.source.text.len(), message, Some(help));
        faults
    }
}

/// The value of a cell that a limit is compared with.
#[derive(Clone, Copy)]
enum Found {
    Undefined,
    Number { mean: f64, interval: Option<[f64; 2]> },
}

/// Units of one quantity: each with how many of the first it is.
const QUANTITIES: [&[(&str, f64)]; 6] = [
    &[("%", 1.0), ("pt", 1.0)],
    &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)],
    &[("uW", 1.0), ("mW", 1e3), ("W", 1e6)],
    &[("uJ", 1.0), ("mJ", 1e3), ("J", 1e6)],
    &[("kHz", 1.0), ("MHz", 1e3), ("GHz", 1e6)],
    &[("C", 1.0), ("K", 1.0)],
];

/// By what a number in one unit is multiplied to be in another; `None`: they do not measure the same.
fn factor(from: &str, to: &str) -> Option<f64> {
    QUANTITIES.iter().find_map(|units| {
        let of = |name: &str| units.iter().find(|(unit, _)| *unit == name).map(|(_, size)| size);
        Some(of(from)? / of(to)?)
    })
}

/// A condition as it is spelled. `span`: of the metric.
struct Named {
    sure: Sure,
    name: String,
    stat: Option<String>,
    labels: Vec<(String, String)>,
    span: Range<usize>,
    op: Op,
    limit: Limit,
    unit: String,
}

type Fault = (usize, String, Option<String>);

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn condition(&mut self) -> Result<Named, Fault> {
        let example =
            || Some("for example power>+5% or 'wakeup_latency.p99{task=ui}>+10%'".to_string());
        let mut from = self.at;
        let mut name = self.word();
        let mut sure = Sure::Certain;
        if self.eat(":") {
            let known = SURE.into_iter().find(|(word, _)| *word == name);
            let help = Some("power>+5% is the same as certain:power>+5%".to_string());
            let message = format!("{name:?} is none of certain, mean, possible");
            sure = known.ok_or((from, message, help))?.1;
            self.skip_spaces();
            from = self.at;
            name = self.word();
        }
        if name.is_empty() {
            return Err((
                self.at,
                "a condition begins with the name of a metric".into(),
                example(),
            ));
        }
        let mut stat = self.eat(".").then(|| self.stat());
        if stat.as_ref().is_some_and(String::is_empty) {
            return Err((
                self.at,
                "the dot is followed by a stat such as mean or p99".into(),
                example(),
            ));
        }
        let mut labels = if self.eat("{") { self.labels()? } else { Vec::new() };
        // As `--metric` and the titles of tables have them: power,domain=big and wakeup_latency p99 task=ui.
        loop {
            self.eat(",");
            let at = self.at;
            let word = self.stat();
            if word.is_empty() {
                break;
            }
            if self.eat("=") {
                let value = self.letters(&['_', '-', '*', '.', '/', ':', '#', '@']);
                labels.push((word, value));
            } else if stat.is_none() {
                stat = Some(word);
            } else {
                self.at = at;
                break;
            }
        }
        let span = from..self.at;
        self.skip_spaces();
        let op = [(">=", Op::AtLeast), ("<=", Op::AtMost), (">", Op::Above), ("<", Op::Below)]
            .into_iter()
            .find_map(|(sign, op)| self.eat(sign).then_some(op))
            .ok_or_else(|| (self.at, "expected one of > >= < <=".to_string(), example()))?;
        self.skip_spaces();
        let from = self.at;
        let in_brackets = self.eat("(");
        let signed = !in_brackets && self.rest().starts_with(['+', '-']);
        let length = self
            .rest()
            .find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-'))
            .unwrap_or(self.rest().len());
        let digits = &self.rest()[..length];
        let limit: f64 = digits
            .parse()
            .ok()
            .filter(|x: &f64| x.is_finite())
            .ok_or_else(|| (from, format!("{digits:?} is not a number"), example()))?;
        self.at += length;
        if in_brackets && !self.eat(")") {
            let help = Some("a value below zero is written (-1)".to_string());
            return Err((from, "the bracket is not closed".to_string(), help));
        }
        let unit = self.rest().trim().to_string();
        let limit = match (signed, unit.as_str()) {
            (true, "%") => Limit::ChangePercent(limit),
            (true, _) => Limit::Change(limit),
            (false, _) => Limit::Value(limit),
        };
        Ok(Named { sure, name, stat, labels, span, op, limit, unit })
    }

    fn labels(&mut self) -> Result<Vec<(String, String)>, Fault> {
        let mut labels = Vec::new();
        loop {
            let key = self.word();
            if key.is_empty() || !self.eat("=") {
                return Err((self.at, "labels are written {key=value,key=value}".into(), None));
            }
            let length = self.rest().find([',', '}']);
            let length = length
                .ok_or_else(|| (self.at, "the labels are not closed with }".to_string(), None))?;
            labels.push((key, self.rest()[..length].trim().to_string()));
            self.at += length;
            if self.eat("}") {
                return Ok(labels);
            }
            self.eat(",");
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn word(&mut self) -> String {
        self.letters(&['_', '-', '*'])
    }

    /// As [`Reader::word`], but `p99.9` is one.
    fn stat(&mut self) -> String {
        self.letters(&['_', '-', '*', '.'])
    }

    /// Letters, digits and `others`.
    fn letters(&mut self, others: &[char]) -> String {
        self.skip_spaces();
        let rest = self.rest();
        let length = rest
            .find(|c: char| !(c.is_alphanumeric() || others.contains(&c)))
            .unwrap_or(rest.len());
        let word = rest[..length].to_string();
        self.at += length;
        word
    }

    fn eat(&mut self, sign: &str) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    /// The example comparison: frame_duration 18 -> 12.7 ms, power 129.5 -> 134.3 mW (+3.71 %), ...
    #[test]
    fn conditions_are_judged() {
        let comparison = example::comparison();
        for (condition, expected) in [
            ("mean:power>+5%", Ok(0)),
            ("mean:power>+3%", Ok(1)),
            ("mean: power > +3 %", Ok(1)),
            ("mean:power,domain=cpu>+3%", Ok(1)),
            ("mean:power domain=cpu > +3%", Ok(1)),
            ("mean:power mean domain=cpu>+3%", Ok(1)),
            ("mean:power.mean{domain=cpu}>+3%", Ok(1)),
            // The difference is 3.7 % with an interval from 2.2 to 5.3 %.
            ("power>+1.9%", Ok(1)),
            ("power>+3%", Ok(0)),
            ("certain:power>+3%", Ok(0)),
            ("certain:power>+1.9%", Ok(1)),
            ("possible:power>+5%", Ok(1)),
            ("possible:power>+6%", Ok(0)),
            ("power{domain=cpu}<+3%", Ok(0)),
            ("power{domain=cpu}<+6%", Ok(1)),
            ("possible:power{domain=cpu}<+3%", Ok(1)),
            ("surely:power>+3%", Err("\"surely\" is none of certain, mean, possible")),
            ("mean:powre>+5%", Err("no metric is named \"powre\"")),
            (":power>+5%", Err("\"\" is none of certain")),
            ("power>+2mW", Ok(1)),
            ("power>130mW", Ok(1)),
            ("power>=500", Ok(0)),
            ("frame_duration<-20%", Ok(1)),
            ("frame_duration.max<-20%", Ok(0)),
            ("jank>0.5%", Ok(1)),
            ("jank>2%", Ok(0)),
            ("throttled>+0%", Ok(0)),
            ("score>1", Ok(1)),
            ("mean:wakeup_latency.p99>+0%", Ok(2)),
            ("wakeup_latency.p99>+0%", Ok(1)),
            ("wakeup_latency.p99{task=ui}>+0%", Ok(0)),
            ("mean:wakeup_latency.p99{task=ui}>+0%", Ok(1)),
            ("frame_duration.p99>+1%", Err("no frame_duration.p99 was measured")),
            ("frame_duration.p95>+1%", Err("no frame_duration.p95 was measured")),
            ("frame_duration.p99.9>+1%", Err("no frame_duration.p99.9 was measured")),
            ("frame_duration.p98>+1%", Err("frame_duration has no p98")),
            ("power.mean{task=ui}>+1%", Err("power has no label \"task\"")),
            ("mean:wakeup_latency.p99{task=*}>+0%", Ok(2)),
            ("overutilized>4%", Err("overutilized was not measured")),
            ("wakeup_latency.p99{task=nobody}>+0%", Err("no wakeup_latency has these labels")),
            ("wakeup_latency>+5%", Err("several stats")),
            ("powre>+5%", Err("no metric is named \"powre\"")),
            ("power>5%", Err("measured in \"mW\", not in \"%\"")),
            ("power>5W", Ok(0)),
            ("power>+0.002W", Ok(1)),
            ("power>+0.006W", Ok(0)),
            ("power>+1ms", Err("measured in \"mW\", not in \"ms\"")),
            ("mean:jank<-2pt", Ok(1)),
            ("mean:jank<-3pt", Ok(0)),
            ("jank<-60%", Ok(1)),
            ("power>+2pt", Err("measured in \"mW\", not in \"pt\"")),
            ("temperature>+5%", Err("no percent of another")),
            ("power>5V", Err("measured in \"mW\", not in \"V\"")),
            ("", Err("begins with the name")),
            ("power", Err("expected one of > >= < <=")),
            // The value, 134.3 mW, and not a change; and below zero.
            ("mean:power,domain=cpu>(134)", Ok(1)),
            ("mean:power,domain=cpu<(-1)mW", Ok(0)),
            ("mean:power<(-1", Err("the bracket is not closed")),
            ("power>", Err("\"\" is not a number")),
            ("power>+-5%", Err("\"+-5\" is not a number")),
            ("power>1e5", Err("not in \"e5\"")),
            ("power.>5", Err("followed by a stat")),
            ("power{task}>5", Err("labels are written")),
            ("power{task=ui>5", Err("not closed with }")),
            ("power{task=ü", Err("not closed with }")),
        ] {
            let outcome = Condition::parse(condition).and_then(|c| c.judge(&comparison));
            match (outcome, expected) {
                (Ok(verdict), Ok(findings)) => {
                    assert_eq!(
                        verdict.findings.len(),
                        findings,
                        "{condition}: {:?}",
                        verdict.findings
                    );
                    assert_eq!(verdict.failed, findings > 0);
                }
                (Err(faults), Err(message)) => {
                    assert!(faults.to_string().contains(message), "{condition}: {faults}");
                }
                (outcome, _) => panic!("{condition}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn a_finding_says_what_was_found() {
        for (condition, expected) in [
            ("power>+2%", "changed by +3.707% (95% from +2.160 to +5.253%, worse)"),
            ("mean:power>+4mW", "changed by +4.800 mW (95% from +2.797 to +6.803 mW, worse)"),
            ("power{domain=cpu}>130mW", "is 134.3 mW (95% from 133.1 to 135.5 mW)"),
        ] {
            let verdict = Condition::parse(condition).unwrap().judge(&example::comparison());
            let power = "power mean domain=cpu of linux-5.18+runnable-boost";
            let expected = format!("{condition}: {power} {expected}");
            assert_eq!(verdict.unwrap().findings, [expected]);
        }
    }
}
