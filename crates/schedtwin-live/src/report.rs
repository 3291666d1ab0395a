// SPDX-License-Identifier: GPL-2.0-or-later
//! What was found, as text, as JSON and as a page with figures.

use crate::judge::{Counts, Judged, Method, RULE, Verdict, is_beyond_chance};
use maud::{Markup, html};
use schedtwin_lab::report::html::page;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::{Duration, SystemTime};

/// A whole judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What ran, for people.
    pub work: String,
    /// The first setting.
    pub a: String,
    /// The others.
    pub settings: Vec<OfSetting>,
    /// Runs under each.
    pub runs: usize,
    /// A against A: figures, and those called different.
    pub control: [usize; 2],
    /// The prediction's hash and when it was sealed, ns since 1970.
    pub seal: (String, u64),
    /// The troubles of the runs, and unrelated work beside them.
    pub troubles: Vec<String>,
}

/// The judgement of one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct OfSetting {
    /// As it was spelled.
    pub setting: String,
    /// Why it is not judged.
    pub ended: Option<String>,
    /// How it was predicted.
    pub method: Method,
    /// What a user should know of the prediction.
    pub notes: Vec<String>,
    /// Whether it is the control of a known large effect, which does not count.
    pub is_control: bool,
    /// Every figure.
    pub judged: Vec<Judged>,
    /// The machine as its own prophet.
    pub floor: Counts,
}

/// A time, ns after 1970, as a date: `2026-11-29 11:08:42.123 UTC`.
fn date(ns: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
    let text = humantime::format_rfc3339_millis(time).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

impl Judgement {
    /// Verdicts over all settings but the control.
    pub fn counts(&self) -> Counts {
        let of = self.settings.iter().filter(|of| !of.is_control).map(|of| Counts::of(&of.judged));
        of.fold(Counts::default(), Counts::plus)
    }

    /// The floor over the same settings.
    pub fn floor(&self) -> Counts {
        let of = self.settings.iter().filter(|of| !of.is_control).map(|of| of.floor);
        of.fold(Counts::default(), Counts::plus)
    }

    /// Whether the control of a large effect was called different; `None`: there was none.
    pub fn large_effect_seen(&self) -> Option<bool> {
        let control = self.settings.iter().find(|of| of.is_control)?;
        let [figures, different] = seen_of(&control.judged);
        Some(is_beyond_chance(figures, different))
    }

    fn summary(&self) -> Vec<String> {
        let share = |[sure, sign, size]: [usize; 3]| match sure {
            0 => "of none the machine is sure".to_owned(),
            _ => format!(
                "sign right for {sign} of {sure} ({:.0} %), within a factor of 2 for {size} ({:.0} %)",
                100.0 * sign as f64 / sure as f64,
                100.0 * size as f64 / sure as f64
            ),
        };
        let [figures, different] = self.control;
        let mut lines = vec![
            format!("the twin:              {}", share(self.counts().sure())),
            format!("the machine's halves:  {}", share(self.floor().sure())),
            format!("A against A:           {different} of {figures} figures are called different"),
        ];
        if let Some(control) = self.settings.iter().find(|of| of.is_control) {
            let [figures, different] = seen_of(&control.judged);
            let what = match is_beyond_chance(figures, different) {
                true => "it is seen",
                false => {
                    "IT IS NOT SEEN, that may be chance: nothing here can be believed; give more --runs"
                }
            };
            lines.push(format!(
                "a large effect:        {different} of {figures} figures are called different: {what}"
            ));
        }
        lines
    }

    /// As text.
    pub fn text(&self) -> String {
        let mut text =
            format!("{}, {} runs under each setting\nA: {}\n", self.work, self.runs, self.a);
        for of in &self.settings {
            let what = if of.is_control { " (control: a large effect)" } else { "" };
            let _ = writeln!(text, "\nB: {}{what}, predicted by {}", of.setting, of.method.word());
            for note in &of.notes {
                let _ = writeln!(text, "   note: {note}");
            }
            if let Some(why) = &of.ended {
                let _ = writeln!(text, "   not judged: {why}");
                continue;
            }
            let _ = writeln!(
                text,
                "{:<34} {:>11} {:>11} {:>9} {:>16} {:>10}  verdict",
                "figure", "A", "B", "B - A", "95 %", "predicted"
            );
            for row in &of.judged {
                let _ = writeln!(text, "{}", line(row));
            }
            let counts = Counts::of(&of.judged);
            let said =
                Verdict::ALL.iter().map(|v| format!("{} {}", counts.0[*v as usize], v.word()));
            let _ = writeln!(text, "{}", said.collect::<Vec<_>>().join(", "));
        }
        let _ = writeln!(text, "\n{}", self.summary().join("\n"));
        for trouble in &self.troubles {
            let _ = writeln!(text, "not as it was asked: {trouble}");
        }
        let _ = writeln!(text, "sealed {}, blake3 {}", date(self.seal.1), self.seal.0);
        let _ = writeln!(text, "{RULE}");
        text
    }

    /// As JSON: `schedtwin.live/1`.
    pub fn json(&self) -> Value {
        let counts = |counts: Counts| {
            let of =
                Verdict::ALL.iter().map(|v| (v.word().to_owned(), counts.0[*v as usize].into()));
            Value::Object(of.collect())
        };
        let settings = self.settings.iter().map(|of| {
            let rows = of.judged.iter().map(|row| {
                json!({
                    "class": row.key.class, "metric": row.key.metric, "stat": row.key.stat,
                    "unit": row.key.unit(),
                    "measured": row.measured, "diff": row.difference.diff,
                    "diff_pct": row.difference.diff_pct, "diff_ci95": row.difference.ci95,
                    "pairs": row.difference.n, "predicted": row.predicted,
                    "predicted_diff": row.predicted_difference(), "verdict": row.verdict.word(),
                })
            });
            json!({
                "setting": of.setting, "method": of.method.word(), "notes": of.notes,
                "control": of.is_control, "not_judged": of.ended, "rows": rows.collect::<Vec<_>>(),
                "verdicts": counts(Counts::of(&of.judged)), "floor": counts(of.floor),
            })
        });
        json!({
            "schema": "schedtwin.live/1",
            "work": self.work, "a": self.a, "runs": self.runs,
            "settings": settings.collect::<Vec<_>>(),
            "verdicts": counts(self.counts()), "floor": counts(self.floor()),
            "a_against_a": {"figures": self.control[0], "different": self.control[1]},
            "large_effect_seen": self.large_effect_seen(),
            "seal": {"blake3": self.seal.0, "sealed_unix_ns": self.seal.1},
            "troubles": self.troubles, "rule": RULE,
        })
    }

    /// As a page.
    pub fn html(&self) -> String {
        let title = format!("{}: predicted and measured", self.work);
        page(
            &title,
            html! {
                h1 { (title) }
                p.muted { "schedtwin live: " (self.runs) " runs under each setting, one after the other; A: " (self.a) }
                h2 { "What was found" }
                @for line in self.summary() { p { (line) } }
                @for of in &self.settings {
                    h2 { "B: " (of.setting) @if of.is_control { " (control: a large effect)" } }
                    @for note in &of.notes { p.muted { (note) } }
                    @match &of.ended {
                        Some(why) => p { b.bad { "not judged: " (why) } },
                        None => (table(of)),
                    }
                }
                p.legend { "Bars are measured differences in % of A with their 95% intervals, the ring is the prediction. " (RULE) }
                h2 { "Where this comes from" }
                ul {
                    @for trouble in &self.troubles { li { b.bad { "not as it was asked: " (trouble) } } }
                    li { "prediction sealed " (date(self.seal.1)) ", blake3 " (self.seal.0) }
                }
            },
        )
    }
}

/// Figures, and those that are called different.
fn seen_of(judged: &[Judged]) -> [usize; 2] {
    let different = judged.iter().filter(|row| row.verdict != Verdict::Inconclusive);
    [judged.len(), different.count()]
}

fn table(of: &OfSetting) -> Markup {
    let sure = |row: &&Judged| row.verdict != Verdict::Inconclusive;
    let most = of
        .judged
        .iter()
        .filter(sure)
        .filter_map(percents)
        .flat_map(|(m, ci, p)| [m.abs(), ci[0].abs(), ci[1].abs(), p.unwrap_or(0.0).abs()]);
    // One wild row must not make all others invisible.
    let reach = most.fold(1.0f64, f64::max).min(300.0);
    html! {
        div.wide { table {
            tr { th.l { "figure" } th { "A" } th { "B" } th { "B − A" } th { "predicted" } th.l { "" } th.l { "verdict" } }
            @for row in &of.judged { tr {
                td.l { (row.key) }
                td { (number(row.measured[0])) " " (row.key.unit()) }
                td { (number(row.measured[1])) }
                td { (percent(row.difference.diff_pct)) }
                td { (percent(predicted_pct(row))) }
                td.l { (figure(row, reach)) }
                td.l { @match row.verdict {
                    Verdict::Agree => b.good { "agree" },
                    Verdict::Disagree => b.bad { "disagree" },
                    other => span.muted[other != Verdict::Direction] { (other.word()) },
                } }
            } }
        } }
    }
}

/// Measured difference, its interval and the predicted difference, % of A.
fn percents(row: &Judged) -> Option<(f64, [f64; 2], Option<f64>)> {
    Some((row.difference.diff_pct?, row.difference.ci95_pct?, predicted_pct(row)))
}

/// A difference with its interval, and the prediction, on a scale with zero in the middle.
fn figure(row: &Judged, reach: f64) -> Markup {
    let Some((middle, [low, high], predicted)) = percents(row) else { return html! {} };
    let x = |percent: f64| 120.0 + 115.0 * (percent / reach).clamp(-1.0, 1.0);
    let (from, to) = (x(low), x(high));
    html! {
        svg width="240" height="16" viewBox="0 0 240 16" role="img" aria-label=(format!("{middle:+.0} %")) {
            line x1="120" y1="0" x2="120" y2="16" stroke="currentColor" stroke-opacity="0.4" {}
            line x1=(from) y1="8" x2=(to) y2="8" stroke="var(--k0)" stroke-width="4" {}
            circle cx=(x(middle)) cy="8" r="4" fill="var(--k0)" {}
            @if let Some(predicted) = predicted {
                circle cx=(x(predicted)) cy="8" r="5" fill="none" stroke="var(--k1)" stroke-width="2" {}
            }
        }
    }
}

fn predicted_pct(row: &Judged) -> Option<f64> {
    let [a, b] = row.predicted;
    let (a, b) = (a?, b?);
    (a != 0.0).then(|| 100.0 * (b - a) / a.abs())
}

fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:+.1} %"))
}

fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn line(row: &Judged) -> String {
    let unit = row.key.unit();
    let figure =
        if unit.is_empty() { row.key.to_string() } else { format!("{} ({unit})", row.key) };
    let interval = row
        .difference
        .ci95_pct
        .map_or("-".to_owned(), |[low, high]| format!("{low:+.1} .. {high:+.1}"));
    format!(
        "{figure:<34} {:>11} {:>11} {:>9} {interval:>16} {:>10}  {}",
        number(row.measured[0]),
        number(row.measured[1]),
        percent(row.difference.diff_pct),
        percent(predicted_pct(row)),
        row.verdict
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::judge;
    use crate::rows::{Key, Rows};

    fn judgement() -> Judgement {
        let runs = |values: &[f64]| -> Vec<Rows> {
            let key = Key { class: "*".into(), metric: "latency".into(), stat: "p99".into() };
            values.iter().map(|value| Rows::from([(key.clone(), *value)])).collect()
        };
        let (a, b) = (runs(&[100.0, 101.0, 99.0]), runs(&[50.0, 51.0, 49.5]));
        let of = |is_control| OfSetting {
            setting: "nice hogs=10".into(),
            ended: None,
            method: Method::File,
            notes: vec!["<b>".into()],
            is_control,
            judged: judge([&a, &b], [&a, &b], Method::File),
            floor: Counts([1, 0, 0, 2, 0]),
        };
        Judgement {
            work: "mix.json".into(),
            a: "as it is".into(),
            settings: vec![of(false), of(true)],
            runs: 3,
            control: [20, 1],
            seal: ("abc".into(), 7),
            troubles: vec!["x".into()],
        }
    }

    #[test]
    fn a_setting_that_has_ended_is_not_judged() {
        let mut judgement = judgement();
        judgement.settings[0].judged.clear();
        judgement.settings[0].ended = Some("no clamps".into());
        assert_eq!(judgement.counts().all(), 0);
        assert!(judgement.text().contains("not judged: no clamps"), "{}", judgement.text());
        assert_eq!(judgement.json()["settings"][0]["not_judged"], "no clamps");
        assert!(judgement.html().contains("not judged: no clamps"));
    }

    #[test]
    fn verdicts_sum_up_in_all_forms() {
        let judgement = judgement();
        assert_eq!(judgement.counts(), Counts([1, 0, 0, 0, 0]), "the control does not count");
        let text = judgement.text();
        assert!(text.contains("sign right for 1 of 1 (100 %)"), "{text}");
        assert!(text.contains("A against A:           1 of 20"), "{text}");
        assert!(text.contains("* latency p99 (us)"), "{text}");
        assert!(text.contains("-49.8 %"), "{text}");
        let json = judgement.json();
        assert_eq!(json["verdicts"]["agree"], 1);
        assert_eq!(json["settings"][0]["rows"][0]["verdict"], "agree");
        assert_eq!(json["large_effect_seen"], false, "one figure of one may be chance");
        let page = judgement.html();
        assert!(page.contains("&lt;b&gt;") && page.contains("<svg"), "{page}");
    }
}
