//! Conditions under which a comparison shall fail, for scripts and CI: `power>+5%`.
//!
//! ```text
//! condition = name [ "." stat ] [ "{" key "=" value { "," key "=" value } "}" ] op limit
//! op        = ">" | ">=" | "<" | "<="
//! limit     = ( "+" | "-" ) number "%"      change against the baseline in percent of it
//!           | ( "+" | "-" ) number [ unit ] change against the baseline in the metric's unit
//!           | number [ unit ]               the value itself, in the metric's unit
//! ```
//!
//! Units of the same quantity are converted: `power>+0.5W`, `wakeup_latency.p99>+1ms`.
//!
//! `power>+5%` fails if any other kernel's mean power is more than 5 % above the baseline's;
//! `overutilized>4%` fails if that (a metric whose unit is %) is above 4. Absolute limits judge the
//! baseline too when it is alone. The mean decides, not its significance: a gate that
//! waits for significance opens when there are too few runs. A failure says whether it was significant.
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

use crate::compare::{ComparedRow, Comparison};
use crate::report::{key_of, number, signed};
use crate::select::Key;
use crate::selector::Selector;

/// A parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    source: Arc<Source>,
    selector: Selector,
    op: Op,
    limit: Limit,
    unit: String,
}

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
        let Named { name, stat, labels, span, op, limit, unit } = named;
        let selector = Selector::new(&source, span, name, stat, labels)?;
        let mut condition = Condition { source, selector, op, limit, unit };
        condition.scale()?;
        Ok(condition)
    }

    /// The limit in the unit of the metric, or why its own unit is none for it. Before anything runs: who waits for
    /// the table should not learn then that it judges nothing.
    fn scale(&mut self) -> Result<(), Diagnostics> {
        let [unit] = self.selector.units()[..] else { return Ok(()) };
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
            _ => format!("write the limit in {unit}"),
        };
        let message = format!("it is measured in {unit:?}, not in {:?}", self.unit);
        Err(self.fault(message, help))
    }

    /// Judges a comparison. A condition that names rows that were not measured is an error.
    pub fn judge(&self, comparison: &Comparison) -> Result<Verdict, Diagnostics> {
        let rows = self.select(comparison)?;
        let mut findings = Vec::new();
        for row in rows {
            self.check_unit(row)?;
            let first = usize::from(comparison.kernels.len() > 1);
            for (kernel, cell) in row.cells.iter().enumerate().skip(first) {
                let difference = cell.difference.as_ref();
                let found = match self.limit {
                    Limit::ChangePercent(_) => difference.and_then(|d| d.diff_pct),
                    Limit::Change(_) => difference.map(|d| d.diff),
                    Limit::Value(_) => cell.estimate.map(|e| e.mean),
                };
                // Without a change there is nothing to object to, also where a share of zero is undefined.
                let unchanged = difference.is_some_and(|d| d.diff == 0.0);
                let found =
                    found
                        .or((unchanged && matches!(self.limit, Limit::ChangePercent(_)))
                            .then_some(0.0));
                if found.is_some_and(|found| !self.holds(found)) {
                    continue;
                }
                let what = match (found, self.limit) {
                    (None, _) => "is undefined".to_string(),
                    (Some(x), Limit::ChangePercent(_)) => format!("changed by {}%", signed(x)),
                    (Some(x), Limit::Change(_)) => {
                        format!("changed by {} {}", signed(x), row.row.unit)
                    }
                    (Some(x), Limit::Value(_)) => format!("is {} {}", number(x), row.row.unit),
                };
                let sure = match (difference, self.limit) {
                    (_, Limit::Value(_)) | (None, _) => String::new(),
                    (Some(d), _) => {
                        let sure = if d.significant { "significant" } else { "not significant" };
                        match (row.row.better, d.diff > 0.0) {
                            (Better::Neutral, _) => format!(" ({sure})"),
                            (Better::Higher, true) | (Better::Lower, false) => {
                                format!(" ({sure}, better)")
                            }
                            (Better::Higher, false) | (Better::Lower, true) => {
                                format!(" ({sure}, worse)")
                            }
                        }
                    }
                };
                let kernel = &comparison.kernels[kernel];
                findings.push(format!(
                    "{}: {} of {kernel} {}{sure}",
                    self.source.text,
                    row.row.title(),
                    what.trim_end()
                ));
            }
        }
        Ok(Verdict { failed: !findings.is_empty(), findings })
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

    fn select<'a>(&self, comparison: &'a Comparison) -> Result<Vec<&'a ComparedRow>, Diagnostics> {
        let keys: Vec<Key> = comparison.rows.iter().map(key_of).collect();
        let picked = self.selector.pick_totals(&keys)?;
        Ok(picked.into_iter().map(|at| &comparison.rows[at]).collect())
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

/// Units of one quantity: each with how many of the first it is.
const QUANTITIES: [&[(&str, f64)]; 5] = [
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
        let name = self.word();
        if name.is_empty() {
            return Err((
                self.at,
                "a condition begins with the name of a metric".into(),
                example(),
            ));
        }
        let stat = self.eat(".").then(|| self.word());
        if stat.as_ref().is_some_and(String::is_empty) {
            return Err((
                self.at,
                "the dot is followed by a stat such as mean or p99".into(),
                example(),
            ));
        }
        let labels = if self.eat("{") { self.labels()? } else { Vec::new() };
        let span = 0..self.at;
        self.skip_spaces();
        let op = [(">=", Op::AtLeast), ("<=", Op::AtMost), (">", Op::Above), ("<", Op::Below)]
            .into_iter()
            .find_map(|(sign, op)| self.eat(sign).then_some(op))
            .ok_or_else(|| (self.at, "expected one of > >= < <=".to_string(), example()))?;
        self.skip_spaces();
        let from = self.at;
        let signed = self.rest().starts_with(['+', '-']);
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
        let unit = self.rest().trim().to_string();
        let limit = match (signed, unit.as_str()) {
            (true, "%") => Limit::ChangePercent(limit),
            (true, _) => Limit::Change(limit),
            (false, _) => Limit::Value(limit),
        };
        Ok(Named { name, stat, labels, span, op, limit, unit })
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
        self.skip_spaces();
        let rest = self.rest();
        let length = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '*')))
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
            ("power>+5%", Ok(0)),
            ("power>+3%", Ok(1)),
            ("power > +3 %", Ok(1)),
            ("power.mean{domain=cpu}>+3%", Ok(1)),
            ("power>+2mW", Ok(1)),
            ("power>130mW", Ok(1)),
            ("power>=500", Ok(0)),
            ("frame_duration<-20%", Ok(1)),
            ("frame_duration.max<-20%", Ok(0)),
            ("jank>0.5%", Ok(1)),
            ("jank>2%", Ok(0)),
            ("throttled>+0%", Ok(0)),
            ("score>1", Ok(1)),
            ("wakeup_latency.p99>+0%", Ok(2)),
            ("wakeup_latency.p99{task=ui}>+0%", Ok(1)),
            ("frame_duration.p99>+1%", Err("no frame_duration.p99 was measured")),
            ("frame_duration.p95>+1%", Err("frame_duration has no p95")),
            ("power.mean{task=ui}>+1%", Err("power has no label \"task\"")),
            ("wakeup_latency.p99{task=*}>+0%", Ok(2)),
            ("overutilized>4%", Err("overutilized was not measured")),
            ("wakeup_latency.p99{task=nobody}>+0%", Err("no wakeup_latency has these labels")),
            ("wakeup_latency>+5%", Err("several stats")),
            ("powre>+5%", Err("no metric is named \"powre\"")),
            ("power>5%", Err("measured in \"mW\", not in \"%\"")),
            ("power>5W", Ok(0)),
            ("power>+0.002W", Ok(1)),
            ("power>+0.006W", Ok(0)),
            ("power>+1ms", Err("measured in \"mW\", not in \"ms\"")),
            ("power>5V", Err("measured in \"mW\", not in \"V\"")),
            ("", Err("begins with the name")),
            ("power", Err("expected one of > >= < <=")),
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
        let verdict = Condition::parse("power>+3%").unwrap().judge(&example::comparison()).unwrap();
        assert_eq!(
            verdict.findings,
            [
                "power>+3%: power mean domain=cpu of linux-5.18+runnable-boost changed by +3.707% (significant, worse)"
            ]
        );
    }
}
