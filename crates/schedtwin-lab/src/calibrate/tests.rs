// SPDX-License-Identifier: GPL-2.0-or-later
//! The fitter cannot see what is to be predicted, keeps its limits, and finds what there is to find.

use schedtwin_engine::MODEL_VERSION;
use schedtwin_input::Source;

use super::{BaseOnly, Effort, fit};
use crate::Progress;
use crate::study::{Study, demo_text, read};

/// The demonstration study with two base values to fit on.
fn fittable() -> String {
    demo_text().replace("fitted_on = [\"1\"]", "fitted_on = [\"1\", \"2 base\"]")
}

fn study(text: &str) -> Study {
    read(&Source::new("demo.toml", text)).unwrap()
}

const EFFORT: Effort = Effort { seeds: 1, steps_per_parameter: 3 };

#[test]
fn the_fitter_sees_no_patched_number() {
    let of = |text: &str| BaseOnly::of(&study(text)).unwrap();
    let base = of(&fittable());
    let all = format!("{base:?}");
    for hidden in ["2700.5", "1.5", "patched", "runnable-boost", "lower", "made up", "nowhere"] {
        // `better: Lower` is capitalised: the word "lower" is a patched cell's text.
        assert!(!all.contains(hidden), "{hidden} is within reach: {all}");
    }
    assert!(all.contains("3000") && all.contains("0.7"));
    // Other predictions, the same calibration, byte for byte.
    let other = fittable().replace("2700.5", "12.25").replace("diff_pct = 1.5", "diff_pct = -40");
    assert_ne!(other, fittable());
    let found = fit(&base, EFFORT, &Progress::new()).unwrap();
    let same = fit(&of(&other), EFFORT, &Progress::new()).unwrap();
    assert_eq!(found.text(), same.text());
    assert_eq!(found.model_version, MODEL_VERSION);
    assert_eq!(found.fitted_on, ["1 base", "2 base"]);
    let most: u64 = EFFORT.settings(1).iter().sum();
    assert!((5..=most as usize).contains(&found.evaluations), "{}", found.evaluations);
    // Whole numbers where the bounds are whole.
    let value = &found.parameters[0].set.value;
    assert!((10..=300).contains(&value.parse::<i32>().unwrap()), "{value}");
    assert_eq!(found.check(&study(&fittable())), None);
    let moved = fittable().replace("value = 3000", "value = 3100");
    assert!(found.check(&study(&moved)).unwrap().contains("other base values"));
    let mut old = found.clone();
    old.model_version = "1".into();
    assert!(old.check(&study(&fittable())).unwrap().contains("is of model 1, this is model"));
}

#[test]
fn at_most_half_as_many_parameters_as_base_values() {
    let faults = BaseOnly::of(&study(&demo_text())).unwrap_err().to_string();
    assert!(faults.contains("1 parameters on 1 base values"), "{faults}");
    let none = study(&demo_text().replace("[[fit]]", "[[fit]]\n# "));
    assert!(BaseOnly::of(&none).is_err());
}

/// What the twin makes of the two base values with this setting.
fn measured(setting: &str) -> (f64, f64) {
    let text = fittable().replace(
        "why = \"so that it is set\"",
        &format!("why = \"so that it is set\"\n[[setting]]\nset = \"{setting}\"\nwhy = \"known\""),
    );
    let ready = crate::study::run::Ready::new(
        study(&text),
        Vec::new(),
        false,
        &crate::study::prepare::Registry::built_in(),
    );
    let plan =
        crate::compare::Plan { first_seed: 1, iterations: crate::stopping::Iterations::Fixed(1) };
    let ran = ready.run(&plan, &Progress::new()).unwrap();
    let of = |id: &str| {
        let cell = ran.cells.iter().find(|cell| ran.study.rows[cell.row].id == id).unwrap();
        cell.twin.unwrap().mean
    };
    (of("1"), of("2"))
}

/// The study with other base values.
fn with_base(text: &str, (frame, power): (f64, f64)) -> BaseOnly {
    let text = text
        .replace("value = 3000", &format!("value = {frame:?}"))
        .replace("value = 0.7", &format!("value = {power:?}"));
    BaseOnly::of(&study(&text)).unwrap()
}

/// A structure is found again like a number: each choice is tried.
#[test]
fn the_search_finds_a_known_choice() {
    let text = fittable()
        .replace("parameter = \"machine.settle_us\"", "parameter = \"machine.coupling\"")
        .replace("bounds = [10, 300]", "choices = [\"true\", \"false\"]")
        .replace("start = 100\n", "");
    let effort = Effort { seeds: 1, steps_per_parameter: 2 };
    for known in ["true", "false"] {
        let base = with_base(&text, measured(&format!("machine.coupling={known}")));
        let found = fit(&base, effort, &Progress::new()).unwrap();
        assert_eq!(found.parameters[0].set.value, known);
        assert_eq!((found.cost, found.parameters[0].at_bound), (0.0, None));
        assert_eq!(found.evaluations, 2);
    }
    for faulty in ["choices = []", "choices = [\"a\"]", "choices = [\"a\", \"a\"]"] {
        let text = text.replace("choices = [\"true\", \"false\"]", faulty);
        let fault = read(&Source::new("it.toml", &text)).unwrap_err().to_string();
        assert!(fault.contains("two different choices at least"), "{fault}");
    }
}

/// A base value that the twin itself made is found again.
#[test]
fn the_search_finds_a_known_setting() {
    let (frame, power) = measured("machine.settle_us=280");
    let base = with_base(&fittable(), (frame, power));
    let effort = Effort { seeds: 1, steps_per_parameter: 25 };
    let found = fit(&base, effort, &Progress::new()).unwrap();
    let at_start = {
        let (f, p) = measured("machine.settle_us=100");
        ((f - frame) / base.targets()[0].half_width).powi(2)
            + ((p - power) / base.targets()[1].half_width).powi(2)
    };
    let cost: f64 = found.residuals.iter().map(|r| r.in_half_widths.powi(2)).sum();
    assert!((cost - found.cost).abs() < 1e-12 && cost < at_start / 4.0, "{found:?} {at_start}");
    // Both sides of what is found are worse, and what is at no bound says nothing of one.
    let one = &found.parameters[0];
    let sides = [one.rise_below, one.rise_above];
    assert!(sides.iter().flatten().all(|rise| *rise >= 0.0), "{one:?}");
    let value: f64 = one.set.value.parse().unwrap();
    assert_eq!(one.at_bound, (value > 297.0).then_some(300.0), "{one:?}");
}

/// Checks the half-width of a target, and which cells are one target.
#[test]
fn days_of_one_measurement_are_one_target() {
    let targets = |text: &str| {
        let base = BaseOnly::of(&study(text)).unwrap();
        let of = |t: &super::Target| (t.name(), t.centre, t.half_width);
        base.targets().iter().map(of).collect::<Vec<_>>()
    };
    let one = |name: &str, centre: f64, half_width: f64| (name.to_string(), centre, half_width);
    // The noise of the file; without one a tenth of the value.
    let power = one("2 base", 0.7, 0.7 * 10.0 / 100.0);
    assert_eq!(targets(&fittable()), [one("1 base", 3000.0, 5000.0), power.clone()]);
    let row = "[[row]]\nid = \"1b\"\nmetric = \"frame_duration\"\nstat = \"mean\"\nunit = \"us\"\nbetter = \
               \"lower\"\noccasion = \"another day\"\ncells = [{ kernel = \"base\", role = \"base\", value = 3400 }]\n[[row]]\nid = \"2\"";
    let with = |edits: &[(&str, &str)]| {
        let mut text = fittable()
            .replace("[[row]]\nid = \"2\"", row)
            .replace("fitted_on = [\"1\", ", "fitted_on = [\"1\", \"1b\", ");
        for (from, to) in edits {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        text
    };
    let noise = "noise = { value = 5000, assumed = \"made up\" }\n";
    for (edits, first) in [
        // The file's noise is greater than the range of the days.
        (vec![], vec![one("1 base, 1b base", 3200.0, 5000.0)]),
        (vec![(noise, "")], vec![one("1 base, 1b base", 3200.0, 400.0)]),
        // Days that agree by chance are not known without fault.
        (
            vec![(noise, ""), ("value = 3400", "value = 3000")],
            vec![one("1 base, 1b base", 3000.0, 30.0)],
        ),
        // A cell's own.
        (
            vec![(noise, ""), ("value = 3400", "value = 3400, noise = 500")],
            vec![one("1 base, 1b base", 3200.0, 500.0)],
        ),
        // Another workload is another measurement.
        (
            vec![
                (noise, ""),
                (
                    "occasion = \"another day\"",
                    "workload = \"ui-phone\"\nset = [\"machine.settle_us=50\"]",
                ),
            ],
            vec![one("1 base", 3000.0, 300.0), one("1b base", 3400.0, 340.0)],
        ),
    ] {
        let mut expected = first;
        expected.push(power.clone());
        assert_eq!(targets(&with(&edits)), expected, "{edits:?}");
    }
    // Two days are one value: no parameter may be fitted on them alone.
    let alone = with(&[("\"1b\", \"2 base\"", "\"1b\"")]);
    let faults = BaseOnly::of(&study(&alone)).unwrap_err().to_string();
    assert!(
        faults.contains("1 parameters on 1 base values") && faults.contains("several occasions"),
        "{faults}"
    );
    let zero = fittable().replace("value = 0.7", "value = 0");
    let faults = BaseOnly::of(&study(&zero)).unwrap_err().to_string();
    assert!(faults.contains("a base value of 0 has no noise in percent"), "{faults}");
}

/// A value that is known badly does not drag the fit away from one that is known well.
#[test]
fn a_badly_known_value_pulls_less() {
    let fitted = |noise: &str| {
        let text = fittable()
            .replace("value = 5000", &format!("value = {noise}"))
            .replace("[10, 300]", "[10, 2000]");
        let base = BaseOnly::of(&study(&text)).unwrap();
        // Enough steps to come near the best value: the figure is not smooth.
        let effort = Effort { seeds: 1, steps_per_parameter: 12 };
        fit(&base, effort, &Progress::new()).unwrap()
    };
    let deviation = |noise| fitted(noise).residuals[0].deviation_pct.abs();
    let (sharp, loose) = (deviation("30"), deviation("50000"));
    assert!(sharp < loose, "{sharp} {loose}");
}

/// Every shipped study that may be calibrated keeps the rules.
#[test]
fn the_shipped_fits_keep_the_rules() {
    let mut fitted = 0;
    for name in crate::study::builtin::names() {
        let study = crate::study::load(name).unwrap();
        if !study.fits.is_empty() {
            BaseOnly::of(&study).unwrap_or_else(|faults| panic!("{name}: {faults}"));
            fitted += 1;
        }
    }
    assert!(fitted >= 5, "{fitted}");
}

mod long {
    use super::*;
    use crate::calibrate::of_study;
    use crate::compare::Plan;
    use crate::stopping::Iterations;
    use crate::study::prepare::Registry;
    use crate::study::run::Ready;

    /// Gives what a run of the base says of the study's calibration.
    fn stale(name: &str) -> Option<String> {
        let study = crate::study::load(name).unwrap();
        let calibrated = of_study(name).unwrap().expect("it is calibrated").calibrated();
        let seeds = calibrated[0].then.seeds;
        let ready = Ready::new(study.base_only(), calibrated, false, &Registry::built_in());
        let plan = Plan { first_seed: 1, iterations: Iterations::Fixed(seeds) };
        let ran = ready.run(&plan, &Progress::new()).unwrap();
        ran.notices.into_iter().find(|notice| notice.starts_with("stale"))
    }

    /// A change of the model that moves a base value asks for a new fit: `schedtwin calibrate NAME`. The other two are
    /// stale, and `study run` says so; they take too long for a test.
    #[test]
    fn calibrations_give_what_they_gave() {
        let of_phones = ["pcmark-web", "geekbench5", "geekbench5-fridge", "jankbench"]
            .map(|name| format!("{name}-pixel6"));
        for name in of_phones {
            assert_eq!(stale(&name), None, "{name}");
        }
    }
}
