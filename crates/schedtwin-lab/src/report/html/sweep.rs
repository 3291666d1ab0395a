// SPDX-License-Identifier: GPL-2.0-or-later
//! A sweep as a page: the settings as points over two metrics, those that no other beats joined by a line, and all of them as a table.

use maud::{Markup, html};
use schedtwin_input::Diagnostics;

use super::figures::{WIDTH, at};
use super::{breakable, page};
use crate::report::cells::number;
use crate::report::sweep::{BEHIND, FRONT, Measured, PERHAPS, Shown, kept_off_lines, size};
use crate::selector::Selector;
use crate::sweep::Sweep;
use crate::sweep::run::Run;

/// Height of the figure, in its own units.
const HEIGHT: f64 = 480.0;

/// The free space around the points, of each side.
const MARGIN: f64 = 40.0;

/// The page; arguments are those of the table.
pub fn sweep(
    swept: &Sweep,
    runs: &[Run],
    shown: &[Selector],
    front: &[Selector],
) -> Result<String, Diagnostics> {
    let shown = Shown::new(swept, runs, shown, front)?;
    let Shown { names, measured, axes, on_front, perhaps, kept_off, rivals, seeds } = &shown;
    let is_kept_off = |setting: usize| kept_off.iter().any(|of| of.setting == setting);
    let kept_off_text = kept_off_lines(kept_off, names);
    let title = format!("Sweep of {}", names[0].join(", "));
    let raced = seeds.iter().any(|count| *count != seeds[0]);
    Ok(page(
        &title,
        html! {
            h1 { (title) }
            p.muted { "schedtwin sweep: " (size(seeds)) }
            @if let Some(axes) = axes { (picture(axes, &names[1..], on_front, rivals)) }
            h2 { "All settings" }
            div.wide { table.cards {
                tr.heads { th.l { "" } @for name in &names[0] { th.l { (breakable(name)) } }
                    @if raced { th { "seeds" } }
                    @for metric in measured { th { (breakable(&metric.title())) } } }
                @for (setting, name) in names[1..].iter().enumerate() { tr {
                    td.l { (setting + 1) @if on_front.get(setting) == Some(&true) { " *" } @else if perhaps.get(setting) == Some(&true) { " ?" } @else if is_kept_off(setting) { " broken" } }
                    @for (word, of) in name.iter().zip(&names[0]) { td.l data-is=(of) { (word) } }
                    @if raced { td data-is="seeds" { (seeds[setting]) } }
                    @for metric in measured { td data-is=(metric.title()) { (mean(metric, setting)) } }
                } }
            } }
            p.legend { "Means over the seeds, with half the width of their 95% interval." @if !on_front.is_empty() { " *: " (FRONT) @if raced { (BEHIND) } "." @if perhaps.contains(&true) { " ?: " (PERHAPS) "." } } }
            @if let Some((first, each)) = kept_off_text.split_first() { p { (first) } ul { @for line in each { li { (line) } } } }
            h2 { "Where this comes from" }
            ul { @for line in swept.head() { li { (line) } } }
        },
    ))
}

fn mean(metric: &Measured, setting: usize) -> Markup {
    let half = |[low, high]: [f64; 2]| (high - low) / 2.0;
    html! {
        @match &metric.means[setting] {
            Some(estimate) => { (number(estimate.mean))
                @if let Some(ci95) = estimate.ci95 { span.muted { " ±" (number(half(ci95))) } } }
            None => "-",
        }
    }
}

/// The settings over both metrics.
fn picture(
    [x, y]: &[Measured; 2],
    names: &[Vec<String>],
    on_front: &[bool],
    rivals: &[usize],
) -> Markup {
    let value = |metric: &Measured, setting: usize| {
        metric.means[setting].as_ref().map(|estimate| estimate.mean)
    };
    let points: Vec<(usize, f64, f64)> = (0..names.len())
        .filter_map(|setting| Some((setting, value(x, setting)?, value(y, setting)?)))
        .collect();
    if points.is_empty() {
        return html! { p { "No setting has both of " (x.title()) " and " (y.title()) ": there is no figure." } };
    }
    // The ends of the error bars are within the figure.
    let ends = |metric: &Measured, setting: usize| {
        let estimate = metric.means[setting].as_ref();
        estimate.map(|estimate| estimate.ci95.unwrap_or([estimate.mean; 2]))
    };
    let all = |metric| points.iter().filter_map(move |point| ends(metric, point.0)).flatten();
    let along = Axis::of(all(x), WIDTH);
    let upwards = Axis::of(all(y), HEIGHT);
    let place = |x: f64, y: f64| (along.place(x), HEIGHT - upwards.place(y));

    // From the best in x to the best in y. Between two settings the front is a step: what they have reached, not a line
    // of settings that nobody tried.
    let mut best: Vec<&(usize, f64, f64)> =
        points.iter().filter(|point| on_front[point.0]).collect();
    best.sort_by(|a, b| x.cost(a.0).partial_cmp(&x.cost(b.0)).expect("means are numbers"));
    best.sort_by_key(|point| rivals[point.0]);
    let mut path = String::new();
    for (step, point) in best.iter().enumerate() {
        let (across, down) = place(point.1, point.2);
        let first = step == 0 || rivals[best[step - 1].0] != rivals[point.0];
        let how = if first { format!("M{across:.1} ") } else { format!("H{across:.1}V") };
        path.push_str(&format!("{how}{down:.1}"));
    }
    html! {
        figure {
            h2 { (y.title()) " over " (x.title()) }
            p.axis { span { (y.title()) } }
            div.plot {
                svg viewBox="0 0 1000 480" role="img" aria-label=(format!("{} over {}", y.title(), x.title())) {
                    rect.track x="0" y="0" width="1000" height="480" {}
                    @for tick in along.ticks() { @let across = at(along.place(tick)); line.grid x1=(across) x2=(across) y1="0" y2="480" {} }
                    @for tick in upwards.ticks() { @let down = at(HEIGHT - upwards.place(tick)); line.grid x1="0" x2="1000" y1=(down) y2=(down) {} }
                    path.freq d=(path) {}
                    @for (setting, of_x, of_y) in &points {
                        @let (across, down) = place(*of_x, *of_y);
                        @if let Some([low, high]) = ends(x, *setting) { line.error x1=(at(along.place(low))) x2=(at(along.place(high))) y1=(at(down)) y2=(at(down)) {} }
                        @if let Some([low, high]) = ends(y, *setting) { line.error x1=(at(across)) x2=(at(across)) y1=(at(HEIGHT - upwards.place(low))) y2=(at(HEIGHT - upwards.place(high))) {} }
                        @let fill = if on_front[*setting] { "var(--seq)" } else { "var(--plain)" };
                        circle cx=(at(across)) cy=(at(down)) r="7" fill=(fill) fill-opacity="0.75" {
                            title { (setting + 1) ": " (names[*setting].join(", ")) ": " (number(*of_x)) ", " (number(*of_y)) }
                        }
                    }
                }
                @for (setting, of_x, of_y) in &best {
                    @let (across, down) = place(*of_x, *of_y);
                    span style=(format!("left:{:.2}%;top:{:.2}%", across / WIDTH * 100.0, down / HEIGHT * 100.0)) { (setting + 1) }
                }
                @for tick in upwards.ticks() { span.up style=(format!("left:0;top:{:.2}%", 100.0 - upwards.place(tick) / HEIGHT * 100.0)) { (number(tick)) } }
            }
            div.ticks { @for tick in along.ticks() { span.tick style=(format!("left:{:.2}%", along.place(tick) / WIDTH * 100.0)) { (number(tick)) } } }
            p.axis { span {} span { (x.title()) } span {} }
            p.legend { "A point is a setting (hover for its name) with the 95% intervals of its means. A line is a front: " (FRONT) ". Its settings have their number in the table." }
        }
    }
}

/// The range that a side of the figure spans.
struct Axis {
    from: f64,
    to: f64,
    length: f64,
}

impl Axis {
    /// From the least value to the greatest, which are the ends of the margins.
    fn of(values: impl Iterator<Item = f64> + Clone, length: f64) -> Axis {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        // One value alone is in the middle.
        let span = if most > least { most - least } else { least.abs().max(1.0) };
        let free = if most > least { span * MARGIN / (length - 2.0 * MARGIN) } else { span / 2.0 };
        Axis { from: least - free, to: most + free, length }
    }

    /// Some four to nine round values within it.
    fn ticks(&self) -> Vec<f64> {
        let rough = (self.to - self.from) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
        let (first, last) = ((self.from / step).ceil() as i64, (self.to / step).floor() as i64);
        (first..=last).map(|tick| tick as f64 * step).collect()
    }

    fn place(&self, value: f64) -> f64 {
        (value - self.from) / (self.to - self.from) * self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_margins_and_one_value_is_in_its_middle() {
        let axis = Axis::of([3.0, 1.0, 2.0].into_iter(), 1000.0);
        assert_eq!([1.0, 2.0, 3.0].map(|value| axis.place(value).round()), [40.0, 500.0, 960.0]);
        assert_eq!(axis.ticks(), [1.0, 1.5, 2.0, 2.5, 3.0]);
        for alone in [0.0, 7.0, -7.0] {
            assert_eq!(Axis::of([alone].into_iter(), 480.0).place(alone), 240.0);
        }
    }
}
