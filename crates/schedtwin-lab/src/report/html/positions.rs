// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the shapes of a page stand: each figure is drawn from values whose places are known, and its shapes are read back.

use maud::Markup;
use std::collections::BTreeMap;

use super::figures::{self, Interval};
use super::{domains, execution};
use crate::measured::Row;
use crate::moment::{Moment, Piece};
use crate::study::execution::{Execution, PARTS, Stage, Task};
use schedtwin_engine::Scenario;
use schedtwin_types::metric::{Better, Kind, Parts};

/// A shape: its attributes.
type Shape = BTreeMap<String, String>;

/// The shapes of one kind below a picture whose label begins with `label`, in order.
fn shapes(page: &Markup, label: &str, kind: &str) -> Vec<Vec<Shape>> {
    let pictures = page.0.split("<svg ").skip(1);
    let mine = pictures.filter(|svg| svg.contains(&format!("aria-label=\"{label}")));
    mine.map(|svg| {
        let svg = svg.split("</svg>").next().unwrap_or("");
        let tags = svg.split('<').filter_map(|tag| tag.strip_prefix(kind));
        tags.filter(|rest| rest.starts_with([' ', '>'])).map(attributes).collect()
    })
    .collect()
}

fn attributes(tag: &str) -> Shape {
    let inside = tag.split('>').next().unwrap_or("");
    let mut pieces = inside.split('"');
    let mut shape = Shape::new();
    while let (Some(name), Some(value)) = (pieces.next(), pieces.next()) {
        shape.insert(name.trim().trim_end_matches('=').to_string(), value.to_string());
    }
    shape
}

/// From where to where the shapes reach from left to right, without those of a class.
fn spans(shapes: &[Shape]) -> Vec<[f64; 2]> {
    let number = |shape: &Shape, key: &str| shape[key].parse::<f64>().expect("a number");
    let plain = shapes.iter().filter(|shape| !shape.contains_key("class"));
    plain
        .map(|shape| {
            let x = number(shape, "x");
            [x, (10.0 * (x + number(shape, "width"))).round() / 10.0]
        })
        .collect()
}

/// An attribute of those shapes that have it.
fn each<'a>(shapes: &'a [Shape], name: &str) -> Vec<&'a str> {
    shapes.iter().filter_map(|shape| shape.get(name)).map(String::as_str).collect()
}

fn of_class<'a>(shapes: &'a [Shape], class: &str) -> Vec<&'a Shape> {
    shapes.iter().filter(|shape| shape.get("class").is_some_and(|own| own == class)).collect()
}

fn row(
    name: &'static str,
    stat: &'static str,
    labels: &[(&'static str, &str)],
    values: &[f64],
) -> Row {
    let labels = labels.iter().map(|(key, value)| (*key, value.to_string())).collect();
    // Two seeds: what is drawn is their mean.
    let samples = values.iter().map(|value| vec![Some(value * 0.5), Some(value * 1.5)]).collect();
    Row { name, stat, unit: "ms", labels, kind: Kind::One, better: Better::Lower, samples }
}

fn kernels(count: usize) -> Vec<String> {
    (0..count).map(|kernel| format!("kernel {kernel}")).collect()
}

fn drawn(percent: f64, ci95: [f64; 2], published: Option<f64>, class: &'static str) -> Markup {
    let words = Some("five runs");
    figures::interval(&Interval {
        percent: Some(percent),
        ci95: Some(ci95),
        published,
        class,
        reach: 10.0,
        words,
    })
}

#[test]
fn an_interval_stands_on_its_scale() {
    let picture = drawn(-3.6, [-6.4, 2.5], Some(4.9), "good");
    let rects = shapes(&picture, "interval", "rect").remove(0);
    // The scale reaches from -10 to 10 by square roots: a quarter of 10 is half of the way. A mark is centred on its value.
    assert_eq!(spans(&rects), [[100.0, 750.0], [194.0, 206.0]]);
    assert_eq!(of_class(&rects, "published")[0]["x"], "842.0");
    assert_eq!(of_class(&rects, "all")[0]["width"], "1000");
    let zero = &shapes(&picture, "interval", "line")[0][0];
    assert_eq!((zero["x1"].as_str(), zero["x2"].as_str()), ("500", "500"));
    assert!(shapes(&picture, "interval", "path")[0].is_empty(), "nothing lies beyond the scale");
    for (class, colour) in [("good", "var(--good)"), ("bad", "var(--bad)"), ("", "var(--plain)")] {
        let rects = shapes(&drawn(1.0, [0.0, 2.0], None, class), "interval", "rect").remove(0);
        let marks = each(&rects, "fill");
        assert_eq!(marks, [colour, colour]);
    }
}

#[test]
fn what_lies_beyond_a_scale_is_at_its_edge_with_an_arrow() {
    let arrows = |picture: &Markup| -> Vec<String> {
        let paths = shapes(picture, "interval", "path").remove(0);
        paths.iter().map(|path| path["d"].split('L').next().unwrap_or("").to_string()).collect()
    };
    let low = drawn(-40.0, [-60.0, -11.0], Some(-10.0), "");
    assert_eq!(spans(&shapes(&low, "interval", "rect")[0]), [[0.0, 4.0], [0.0, 12.0]]);
    assert_eq!(of_class(&shapes(&low, "interval", "rect")[0], "published")[0]["x"], "2.0");
    assert_eq!(arrows(&low), ["M0 10"]);
    let high = drawn(40.0, [9.98, 10.0], Some(11.0), "");
    assert_eq!(spans(&shapes(&high, "interval", "rect")[0]), [[999.5, 1003.5], [988.0, 1000.0]]);
    assert_eq!(of_class(&shapes(&high, "interval", "rect")[0], "published")[0]["x"], "982.0");
    assert_eq!(arrows(&high), ["M1000 10"]);
    assert_eq!(arrows(&drawn(0.0, [-10.0, 10.0], Some(10.0), "")), [""; 0], "just within");
    assert_eq!(arrows(&drawn(0.0, [-10.1, 10.1], None, "")), ["M0 10", "M1000 10"]);
}

#[test]
fn quantiles_stand_on_an_axis_of_doublings() {
    let rows: Vec<Row> = [("p50", 2.0), ("p90", 4.0), ("p99", 8.0), ("max", 32.0)]
        .map(|(stat, ms)| row("frame_duration", stat, &[], &[ms, ms / 2.0]))
        .to_vec();
    let page = figures::first(&kernels(2), &rows);
    // From 1 to 32 ms: five doublings in 980 units.
    let pictures = shapes(&page, "quantiles", "rect");
    assert_eq!(spans(&pictures[0]), [[206.0, 402.0], [402.0, 598.0], [598.0, 990.0]]);
    assert_eq!(spans(&pictures[1]), [[10.0, 206.0], [206.0, 402.0], [402.0, 794.0]]);
    for doubling in [1, 2, 4, 8, 16, 32] {
        assert!(page.0.contains(&format!("<span>{doubling}</span>")), "{doubling}: {}", page.0);
    }
    assert_eq!(pictures[0][1]["fill"], "var(--k0)");
    assert_eq!(pictures[1][1]["fill"], "var(--k1)");
    // One value: an axis of one doubling, and bars that can be seen.
    let rows: Vec<Row> =
        ["p50", "p90", "p99", "max"].map(|stat| row("frame_duration", stat, &[], &[4.0])).to_vec();
    let page = figures::first(&kernels(1), &rows);
    assert_eq!(spans(&shapes(&page, "quantiles", "rect")[0]), [[10.0, 12.0]; 3]);
}

#[test]
fn powers_are_stacked_beside_the_greatest_sum() {
    let power = |domain, values: &[f64]| row("power", "mean", &[("domain", domain)], values);
    let rows = [
        power("little", &[100.0, 50.0]),
        power("big", &[300.0, 150.0]),
        // The whole, and a part of a part: not parts.
        row("power", "mean", &[], &[400.0, 200.0]),
        row("power", "mean", &[("domain", "big"), ("cpu", "6")], &[900.0, 900.0]),
        row("power", "max", &[("domain", "big")], &[900.0, 900.0]),
    ];
    let page = figures::first(&kernels(2), &rows);
    let pictures = shapes(&page, "shares", "rect");
    assert_eq!(spans(&pictures[0]), [[0.0, 250.0], [250.0, 1000.0]]);
    assert_eq!(spans(&pictures[1]), [[0.0, 125.0], [125.0, 500.0]]);
    let colours = each(&pictures[0], "fill");
    assert_eq!(colours, ["var(--k2)", "var(--k3)"]);
    assert!(
        page.0.contains("<div>400.0 mW</div>") && page.0.contains("<div>200.0 mW</div>"),
        "{}",
        page.0
    );
}

#[test]
fn many_domains_are_drawn_as_one() {
    let names: Vec<String> = (0..=crate::many_parts::MANY).map(|at| format!("d{at}")).collect();
    let power = |name: &String| row("power", "mean", &[("domain", name)], &[1.0]);
    let mut rows: Vec<Row> = names.iter().map(power).collect();
    rows.push(row("power", "mean", &[], &[40.0]));
    let page = figures::first(&kernels(1), &rows);
    assert_eq!(spans(&shapes(&page, "shares", "rect")[0]), [[0.0, 1000.0]]);
    // One fewer: each has its piece.
    rows.remove(0);
    let page = figures::first(&kernels(1), &rows);
    assert_eq!(spans(&shapes(&page, "shares", "rect")[0]).len(), crate::many_parts::MANY);
}

#[test]
fn time_at_frequencies_is_shaded_by_frequency() {
    let at =
        |khz, share| row("freq_residency", "share", &[("domain", "big"), ("khz", khz)], &[share]);
    let rows = [
        at("500000", 25.0),
        at("1000000", 50.0),
        at("2000000", 0.0),
        row("freq_mean", "mean", &[("domain", "big")], &[750.0]),
        row("freq_mean", "mean", &[("domain", "little")], &[300.0]),
    ];
    let page = figures::rest(&kernels(1), &rows);
    let rects = shapes(&page, "shares", "rect").remove(0);
    assert_eq!(spans(&rects), [[0.0, 250.0], [250.0, 750.0]], "a share of nothing has no piece");
    let shades = each(&rects, "fill-opacity");
    // 0.08 + 0.87 of the highest, which is 2 GHz.
    assert_eq!(shades, ["0.30", "0.52"]);
    assert!(page.0.contains("<div>750.0 MHz</div>"), "{}", page.0);
    assert!(page.0.contains("opacity:0.95") && page.0.contains("2000 MHz"), "{}", page.0);
    // Of many frequencies the legend has five, from the lowest to the highest.
    let rows: Vec<Row> = (1..=9)
        .map(|step| at(["1", "2", "3", "4", "5", "6", "7", "8", "9"][step - 1], 10.0))
        .collect();
    let page = figures::rest(&kernels(1), &rows);
    assert_eq!(page.0.matches("opacity:0.").count(), 5, "{}", page.0);
    for khz in [1.0, 3.0, 5.0, 7.0, 9.0] {
        let shade = format!("opacity:{:.2}", 0.08 + 0.87 * khz / 9.0);
        assert!(page.0.contains(&shade), "{shade}: {}", page.0);
    }
}

#[test]
fn idle_states_are_stacked_from_shallow_to_deep() {
    let state = |state, share| {
        row("idle_residency", "share", &[("cluster", "little"), ("state", state)], &[share])
    };
    let page = figures::rest(&kernels(1), &[state("WFI", 20.0), state("c2", 70.0)]);
    let rects = shapes(&page, "shares", "rect").remove(0);
    assert_eq!(spans(&rects), [[0.0, 200.0], [200.0, 900.0]]);
    let shades = each(&rects, "fill-opacity");
    assert_eq!(shades, ["0.57", "0.90"]);
    assert!(page.0.contains("<div>10.00% busy</div>"), "{}", page.0);
    assert!(
        page.0.contains("opacity:0.57") && page.0.contains("opacity:0.90"),
        "the legend's: {}",
        page.0
    );
}

#[test]
fn the_mean_of_many_clusters_is_drawn_for_them() {
    let many = crate::many_parts::MANY + 1;
    let names: Vec<String> = (0..many).map(|at| format!("c{at}")).collect();
    let one = |name: &String| {
        row("idle_residency", "share", &[("cluster", name), ("state", "C1")], &[50.0])
    };
    let mut rows: Vec<Row> = names.iter().map(one).collect();
    let mut mean = row("idle_residency", "share", &[("state", "C1")], &[40.0]);
    mean.kind = Kind::Mean(Parts { over: "cluster", of: many as u32 });
    let mut lowest = mean.clone();
    lowest.kind = Kind::Lowest(Parts { over: "cluster", of: many as u32 });
    rows.extend([mean, lowest]);
    let pictures = shapes(&figures::rest(&kernels(1), &rows), "shares", "rect");
    assert_eq!(pictures.len(), 1);
    assert_eq!(spans(&pictures[0]), [[0.0, 400.0]]);
    let few = &rows[1..many];
    assert_eq!(shapes(&figures::rest(&kernels(1), few), "shares", "rect").len(), many - 1);
}

fn moment() -> Moment {
    let piece = |span, task: &str, is_waiter| Piece { span, task: task.into(), is_waiter };
    Moment {
        kernel: "linux".into(),
        seed: 3,
        task: "ui".into(),
        cpu: 1,
        ready_at: 1_500_000,
        runs_at: 2_000_000,
        window: [1_000_000, 3_000_000],
        lanes: vec![
            vec![piece([1_000_000, 1_000_100], "short", false)],
            vec![
                piece([1_200_000, 2_000_000], "other", false),
                piece([2_000_000, 2_500_000], "ui", true),
            ],
            vec![],
        ],
        frequencies: vec![
            ("big".into(), vec![(1_000_000, 2_000_000), (2_000_000, 500_000)]),
            ("little".into(), vec![(1_000_000, 1_000_000)]),
        ],
    }
}

#[test]
fn a_longest_wait_is_drawn_in_its_window() {
    let page = figures::moments(&[moment()]);
    let lanes = shapes(&page, "CPU ", "rect");
    assert_eq!(lanes.len(), 3);
    assert_eq!(spans(&lanes[0]), [[0.0, 0.6]], "what is short can be seen");
    assert_eq!(spans(&lanes[1]), [[100.0, 500.0], [500.0, 750.0]]);
    assert!(of_class(&lanes[0], "wait").is_empty() && of_class(&lanes[2], "wait").is_empty());
    let wait = of_class(&lanes[1], "wait")[0];
    assert_eq!((wait["x"].as_str(), wait["width"].as_str()), ("250.0", "250.0"));
    let fills = each(&lanes[1], "fill");
    assert_eq!(fills, ["var(--plain)", "var(--bad)"]);
    let clocks = shapes(&page, "frequency of ", "path");
    // From 1 at the top to 19 at the bottom of the box.
    assert_eq!(clocks[0][0]["d"], "M0.0 1.0H500.0V14.5H1000");
    assert_eq!(clocks[1][0]["d"], "M0.0 1.0H1000");
    assert!(page.0.contains("waits 0.500 ms"), "{}", page.0);
    assert!(page.0.contains("<span>1.000 ms</span><span>3.000 ms</span>"), "{}", page.0);
}

#[test]
fn a_large_machine_shows_what_moved_in_a_wait() {
    let mut large = moment();
    large.lanes.resize(crate::many_parts::MANY + 1, Vec::new());
    large.cpu = 2;
    let still = ("still".to_string(), vec![(1_000_000, 1_000_000)]);
    large.frequencies.resize(crate::many_parts::MANY + 1, still);
    let page = figures::moments(&[large.clone()]);
    let labels = |start: &str| {
        let label = format!("aria-label=\"{start}");
        page.0
            .split(&label)
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap_or("").to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        labels("CPU "),
        ["0", "1", "2"],
        "those that ran something, and the one that was waited for"
    );
    assert_eq!(labels("frequency of "), ["big"]);
    // With as many as have room all are shown.
    large.lanes.pop();
    large.frequencies.pop();
    let page = figures::moments(&[large]);
    assert_eq!(shapes(&page, "CPU ", "rect").len(), crate::many_parts::MANY);
    assert_eq!(shapes(&page, "frequency of ", "rect").len(), crate::many_parts::MANY);
}

#[test]
fn an_execution_is_drawn_in_hundredths() {
    let seats = |seat: &dyn Fn(usize) -> Option<u16>| (0..PARTS).map(seat).collect();
    let task = |seats: Vec<Option<u16>>| Task { name: "t".into(), ran: vec![0; 2], seats };
    let execution = Execution {
        length: 1_000,
        same_work: false,
        tasks: vec![
            task(seats(&|part| (part < 50).then_some(0))),
            task(seats(&|part| (25..75).contains(&part).then_some(0))),
            task(seats(&|part| (part >= 90).then_some(1))),
            task(seats(&|_| None)),
        ],
        stage: Some(Stage {
            span: [1_000_000_000, 2_000_000_000],
            clock: vec![
                (0, 400),
                (500_000_000, 1_000),
                (1_250_000_000, 2_000),
                (1_600_000_000, 500),
                (2_000_000_000, 100),
            ],
            util: (0..PARTS).map(|part| if part == 0 { 640.0 } else { 2_000.0 }).collect(),
        }),
    };
    let page = execution::picture("recorded", "var(--fg)", &execution);
    let lanes = shapes(&page, "recorded, CPU ", "rect");
    assert_eq!(spans(&lanes[0]), [[0.0, 250.0], [250.0, 500.0], [500.0, 750.0]]);
    assert_eq!(spans(&lanes[1]), [[900.0, 1000.0]]);
    let dark = each(&lanes[0], "fill-opacity");
    assert_eq!(dark, ["0.25", "0.50", "0.25"], "of four tasks");
    // The clock before the stage is that at its beginning, and a change at its end is outside. The top is the highest that was ever seen.
    let clock = &shapes(&page, "clock", "path")[0][0]["d"];
    assert_eq!(clock, "M0.0 10.0H250.0V1.0H600.0V14.5H1000");
    // 200 ms from the middle, 1.5 s.
    let close_up = &shapes(&page, "close-up", "path")[0][0]["d"];
    assert_eq!(close_up, "M0.0 1.0H500.0V14.5H1000");
    let util = &shapes(&page, "utilisation", "path")[0][0]["d"];
    assert!(util.starts_with("M5.0 10.0L15.0 0.0L25.0 0.0"), "{util}");
    assert!(util.ends_with("L995.0 0.0"), "{util}");
}

fn domains_of(machine: &str) -> Markup {
    let scenario =
        Scenario::new(machine, "linux-6.12", "w1", Some(1_000_000)).expect("it is built in");
    domains::all(&kernels(1), &[scenario.domains()])
}

#[test]
fn domains_stand_where_their_cpus_do() {
    let page = domains_of("ryzen-5950x");
    let boxes = |level: &str| spans(&shapes(&page, &format!("{level}\""), "rect")[0]);
    let cuts = |level: &str| -> Vec<String> {
        let lines = shapes(&page, &format!("{level}\""), "line").remove(0);
        assert!(lines.iter().all(|line| line["x1"] == line["x2"] && line["class"] == "groups"));
        lines.iter().map(|line| line["x1"].clone()).collect()
    };
    // 32 CPUs of 31.25 units, threads of a core beside each other; 3 units are free at each end of a box.
    let cores = boxes("SMT");
    assert_eq!(
        (cores.len(), cores[0], cores[1], cores[15]),
        (16, [3.0, 59.5], [65.5, 122.0], [940.5, 997.0])
    );
    assert_eq!(cuts("SMT")[..2], ["31.2", "93.8"]);
    assert_eq!(boxes("MC"), [[3.0, 497.0], [503.0, 997.0]]);
    assert_eq!(
        (cuts("MC").len(), cuts("MC")[0].as_str(), cuts("MC")[7].as_str()),
        (14, "62.5", "562.5")
    );
    assert_eq!((boxes("PKG"), cuts("PKG")), (vec![[3.0, 997.0]], vec!["500.0".to_string()]));
    let shade =
        |level: &str| shapes(&page, &format!("{level}\""), "rect")[0][1]["fill-opacity"].clone();
    assert_eq!(
        [shade("SMT"), shade("MC"), shade("PKG")],
        ["0.8", "0.8", "0.4"],
        "what shares a cache is darker"
    );
}

#[test]
fn a_machine_of_many_cpus_leaves_less_between_its_domains() {
    let page = domains_of("epyc-milan-2x64");
    // 256 CPUs of 3.9 units, a fifth of which is free.
    assert_eq!(spans(&shapes(&page, "SMT\"", "rect")[0])[..2], [[0.8, 7.0], [8.6, 14.8]]);
}
