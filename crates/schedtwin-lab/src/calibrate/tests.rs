//! The fitter cannot see what is to be predicted, keeps its limits, and finds what there is to find.

use schedtwin::MODEL_VERSION;
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
    assert!((2..=9).contains(&found.evaluations), "{}", found.evaluations);
    // Whole numbers where the bounds are whole.
    let value = &found.settings[0].value;
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

/// A base value that the twin itself made is found again.
#[test]
fn the_search_finds_a_known_setting() {
    let measured = |settle: &str| {
        let text = fittable().replace("why = \"so that it is set\"", &format!(
            "why = \"so that it is set\"\n[[setting]]\nset = \"machine.settle_us={settle}\"\nwhy = \"known\""
        ));
        let ready = crate::study::run::Ready::new(
            study(&text),
            Vec::new(),
            false,
            &crate::study::prepare::Registry::built_in(),
        );
        let plan = crate::compare::Plan {
            first_seed: 1,
            iterations: crate::compare::Iterations::Fixed(1),
        };
        let ran = ready.run(plan, &Progress::new()).unwrap();
        let of = |id: &str| {
            let cell = ran.cells.iter().find(|cell| ran.study.rows[cell.row].id == id).unwrap();
            cell.twin.unwrap().mean
        };
        (of("1"), of("2"))
    };
    let (frame, power) = measured("280");
    let text = fittable()
        .replace("value = 3000", &format!("value = {frame:?}"))
        .replace("value = 0.7", &format!("value = {power:?}"));
    let base = BaseOnly::of(&study(&text)).unwrap();
    let effort = Effort { seeds: 1, steps_per_parameter: 25 };
    let found = fit(&base, effort, &Progress::new()).unwrap();
    let at_start = {
        let (f, p) = measured("100");
        ((f - frame) / frame).powi(2) + ((p - power) / power).powi(2)
    };
    let cost: f64 = found.residuals.iter().map(|r| (r.deviation_pct / 100.0).powi(2)).sum();
    assert!(cost < at_start / 4.0, "{found:?} {at_start}");
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
