// SPDX-License-Identifier: GPL-2.0-or-later
//! `studies/calibrations/NAME.toml`: what was fitted, on what, how well, and under which model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schedtwin_engine::MODEL_VERSION;
use schedtwin_input::{
    Diagnostics, FromNode, Located, Node, Source, TableReader, TomlDocument, Value, read_source,
};

use crate::calibrate::{BaseOnly, Target};
use crate::study::Study;
use crate::study::run::{Calibrated, Ready, Then};
use crate::study::spec::Assignment;

/// The calibrations that are compiled in: name of the study and text.
const BUILT_IN: [(&str, &str); 6] = [
    ("daytrader-power10", include_str!("../../studies/calibrations/daytrader-power10.toml")),
    ("geekbench5-pixel6", include_str!("../../studies/calibrations/geekbench5-pixel6.toml")),
    ("jankbench-pixel6", include_str!("../../studies/calibrations/jankbench-pixel6.toml")),
    (
        "geekbench5-fridge-pixel6",
        include_str!("../../studies/calibrations/geekbench5-fridge-pixel6.toml"),
    ),
    ("messaging-i7-3630qm", include_str!("../../studies/calibrations/messaging-i7-3630qm.toml")),
    ("pcmark-web-pixel6", include_str!("../../studies/calibrations/pcmark-web-pixel6.toml")),
];

/// How far the fitted twin is from a base value.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// `ID KERNEL`, of several occasions each.
    pub on: String,
    /// The published value; of several occasions their mean.
    pub published: f64,
    /// How well it is known, in its unit.
    pub half_width: f64,
    /// The twin's.
    pub twin: f64,
    /// Twin minus published, in percent of the published.
    pub deviation_pct: f64,
    /// Twin minus published, in half-widths: what the fit makes small.
    pub in_half_widths: f64,
}

impl Residual {
    pub(super) fn new(target: &Target, twin: f64) -> Residual {
        let Target { centre, half_width, .. } = *target;
        // Of a published zero the deviation is taken as it is.
        let of = if centre == 0.0 { 1.0 } else { centre.abs() };
        Residual {
            on: target.name(),
            published: centre,
            half_width,
            twin,
            deviation_pct: 100.0 * (twin - centre) / of,
            in_half_widths: (twin - centre) / half_width,
        }
    }
}

/// A fitted parameter, and how well the base values tell it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its value.
    pub set: Assignment,
    /// The bound at which it ended, if it did.
    pub at_bound: Option<f64>,
    /// The rise of the cost if the parameter is a tenth of its range less; `None` beyond a bound.
    pub rise_below: Option<f64>,
    /// The same for a tenth more.
    pub rise_above: Option<f64>,
}

impl Parameter {
    /// Returns the faults of the parameter, if there are any.
    pub fn warnings(&self) -> Vec<String> {
        let name = self.set.parameter();
        let mut warnings = Vec::new();
        if let Some(bound) = self.at_bound {
            warnings.push(format!("{name} ended at its bound {bound}"));
        }
        let rises: Vec<f64> = self.rise_below.into_iter().chain(self.rise_above).collect();
        // A rise of 1 is one half-width of one base value.
        if !rises.is_empty() && rises.iter().all(|rise| *rise < 1.0) {
            let rises: Vec<String> = rises.iter().map(|rise| format!("{rise:.2}")).collect();
            warnings.push(format!(
                "{name} is hardly told by the base values: a tenth of its range costs {}",
                rises.join(" or ")
            ));
        }
        warnings
    }
}

/// The result of a calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The study.
    pub study: String,
    /// The model that it was made under.
    pub model_version: String,
    /// Names the base values, parameters and bounds.
    pub base_values: String,
    /// The parameters with their values.
    pub parameters: Vec<Parameter>,
    /// The base values that they were fitted on, all together.
    pub fitted_on: Vec<String>,
    /// The sum of the squared deviations in half-widths: about the number of base values less that of the parameters, if the twin is right.
    pub cost: f64,
    /// How well they are met.
    pub residuals: Vec<Residual>,
    /// Settings that were measured, those of the coarse grid included.
    pub evaluations: usize,
    /// Seeds of each, from 1; the grid has fewer.
    pub seeds: usize,
    /// Name and digest of every input, before the parameters were put in.
    pub hashes: Vec<(String, String)>,
}

impl Calibration {
    pub(super) fn new(
        base: &BaseOnly,
        parameters: Vec<Parameter>,
        (cost, residuals): (f64, Vec<Residual>),
        evaluations: usize,
        seeds: usize,
        inputs: &Ready,
    ) -> Calibration {
        Calibration {
            study: base.study().name.clone(),
            model_version: MODEL_VERSION.to_string(),
            base_values: base.fingerprint(),
            parameters,
            fitted_on: base.cells(),
            cost,
            residuals,
            evaluations,
            seeds,
            hashes: inputs.provenance().hashes,
        }
    }

    /// Why this calibration may not be used for the study; `None` if it may.
    pub fn check(&self, study: &Study) -> Option<String> {
        let again = format!("run `schedtwin calibrate {}` again", self.study);
        if self.model_version != MODEL_VERSION {
            return Some(format!(
                "its calibration is of model {}, this is model {MODEL_VERSION}: {again}",
                self.model_version
            ));
        }
        match BaseOnly::of(study) {
            Ok(base) if base.fingerprint() == self.base_values => None,
            _ => Some(format!(
                "its calibration is of other base values, parameters or bounds: {again}"
            )),
        }
    }

    /// As a study's runs take it.
    pub fn calibrated(&self) -> Vec<Calibrated> {
        let one = |parameter: &Parameter| Calibrated {
            set: parameter.set.clone(),
            fitted_on: self.fitted_on.clone(),
            warnings: parameter.warnings(),
            then: Then {
                seeds: self.seeds,
                values: self.residuals.iter().map(|one| (one.on.clone(), one.twin)).collect(),
            },
        };
        self.parameters.iter().map(one).collect()
    }

    /// Returns the doubtful points of the calibration, a line each.
    pub fn warnings(&self) -> Vec<String> {
        self.parameters.iter().flat_map(Parameter::warnings).collect()
    }

    /// The file.
    pub fn text(&self) -> String {
        let mut text = format!(
            "# Written by `schedtwin calibrate {}`. The same bytes on every computer; refused under another model.\n\n",
            self.study
        );
        let quoted = |text: &str| toml_text(text);
        text.extend(self.warnings().iter().map(|warning| format!("# warning: {warning}\n")));
        if !self.warnings().is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("study = {}\n", quoted(&self.study)));
        text.push_str(&format!("model_version = {}\n", quoted(&self.model_version)));
        text.push_str(&format!("base_values = {}\n", quoted(&self.base_values)));
        text.push_str(&format!("seeds = {}\nevaluations = {}\n", self.seeds, self.evaluations));
        let on: Vec<String> = self.fitted_on.iter().map(|on| quoted(on)).collect();
        text.push_str(&format!("fitted_on = [{}]\n", on.join(", ")));
        text.push_str(&format!("cost = {:?}\n", self.cost));
        for Parameter { set, at_bound, rise_below, rise_above } in &self.parameters {
            text.push_str(&format!("\n[[parameter]]\nset = {}\n", quoted(&set.text())));
            for (key, value) in
                [("at_bound", at_bound), ("rise_below", rise_below), ("rise_above", rise_above)]
            {
                text.extend(value.map(|value| format!("{key} = {value:?}\n")));
            }
        }
        for residual in &self.residuals {
            let Residual { on, published, half_width, twin, deviation_pct, in_half_widths } =
                residual;
            text.push_str(&format!("\n[[residual]]\non = {}\n", quoted(on)));
            for (key, value) in [
                ("published", published),
                ("half_width", half_width),
                ("twin", twin),
                ("deviation_pct", deviation_pct),
                ("in_half_widths", in_half_widths),
            ] {
                text.push_str(&format!("{key} = {value:?}\n"));
            }
        }
        for (name, hash) in &self.hashes {
            text.push_str(&format!(
                "\n[[input]]\nname = {}\nhash = {}\n",
                quoted(name),
                quoted(hash)
            ));
        }
        text
    }

    /// Reads the file.
    pub fn read(source: &Arc<Source>) -> Result<Calibration, Diagnostics> {
        let document = TomlDocument::parse(source)?;
        let mut faults = Diagnostics::new();
        let f = &mut faults;
        let mut file = document.reader();
        let study = file.required("study", f);
        let model_version = file.required("model_version", f);
        let base_values = file.required("base_values", f);
        let seeds: Option<u32> = file.required("seeds", f);
        let evaluations: Option<u32> = file.required("evaluations", f);
        let fitted_on = file.required("fitted_on", f);
        let cost = file.required::<Measured>("cost", f);
        let parameters =
            file.tables("parameter", f).into_iter().filter_map(|t| parameter(t, f)).collect();
        let residuals =
            file.tables("residual", f).into_iter().filter_map(|t| residual(t, f)).collect();
        let hashes = file.tables("input", f).into_iter().filter_map(|t| input(t, f)).collect();
        file.finish(f);
        let (Some(study), Some(model_version), Some(base_values), Some(seeds), true) =
            (study, model_version, base_values, seeds, faults.is_empty())
        else {
            return Err(faults);
        };
        Ok(Calibration {
            study,
            model_version,
            base_values,
            parameters,
            fitted_on: fitted_on.unwrap_or_default(),
            cost: cost.map_or(0.0, |cost| cost.0),
            residuals,
            evaluations: evaluations.unwrap_or_default() as usize,
            seeds: seeds as usize,
            hashes,
        })
    }
}

/// A TOML basic string.
fn toml_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            _ if character.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

fn parameter(mut reader: TableReader, f: &mut Diagnostics) -> Option<Parameter> {
    let text: Option<Located<String>> = reader.required("set", f);
    let [at_bound, rise_below, rise_above] = ["at_bound", "rise_below", "rise_above"]
        .map(|key| reader.optional::<Measured>(key, f).map(|value| value.0));
    reader.finish(f);
    let text = text?;
    let set = Assignment::parse(&text.value);
    let set = set.map_err(|message| f.push_at(&text.at, message, None)).ok()?;
    Some(Parameter { set, at_bound, rise_below, rise_above })
}

/// A measured number.
struct Measured(f64);

impl FromNode for Measured {
    fn from_node(node: &Node, faults: &mut Diagnostics) -> Option<Measured> {
        match node.value {
            Value::Float(value) if value.is_finite() => Some(Measured(value)),
            Value::Integer(value) => Some(Measured(value as f64)),
            _ => {
                faults.push_at(&node.at, "a finite number expected", None);
                None
            }
        }
    }
}

fn residual(mut reader: TableReader, f: &mut Diagnostics) -> Option<Residual> {
    let on = reader.required("on", f);
    let mut number = |key| reader.required::<Measured>(key, f).map(|value| value.0);
    let [published, half_width, twin, deviation_pct, in_half_widths] =
        ["published", "half_width", "twin", "deviation_pct", "in_half_widths"].map(&mut number);
    reader.finish(f);
    Some(Residual {
        on: on?,
        published: published?,
        half_width: half_width?,
        twin: twin?,
        deviation_pct: deviation_pct?,
        in_half_widths: in_half_widths?,
    })
}

fn input(mut reader: TableReader, f: &mut Diagnostics) -> Option<(String, String)> {
    let name = reader.required("name", f);
    let hash = reader.required("hash", f);
    reader.finish(f);
    Some((name?, hash?))
}

/// Where the calibration of a study is written: beside a study of the user's own, else in the folder of the
/// built-in ones.
pub fn path_of(named: &str) -> PathBuf {
    let path = Path::new(named);
    let is_path = named.contains('/') || named.ends_with(".toml");
    let stem = path.file_stem().map_or("study".into(), |stem| stem.to_string_lossy());
    let folder = match is_path {
        true => path.parent().unwrap_or(Path::new("")).to_path_buf(),
        false => PathBuf::from("studies"),
    };
    let stem = if is_path { stem.to_string() } else { named.to_string() };
    folder.join("calibrations").join(format!("{stem}.toml"))
}

/// The calibration that belongs to a study as it was named: compiled in, or in the file beside it.
/// `None` if there is none.
pub fn of_study(named: &str) -> Result<Option<Calibration>, Diagnostics> {
    let is_path = named.contains('/') || named.ends_with(".toml");
    let source = match is_path {
        true => {
            let path = path_of(named);
            if !path.exists() {
                return Ok(None);
            }
            read_source(path)?
        }
        false => match BUILT_IN.iter().find(|(name, _)| *name == named) {
            Some((name, text)) => Source::new(format!("<built in> calibrations/{name}"), *text),
            None => return Ok(None),
        },
    };
    Calibration::read(&source).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_back_as_it_was_written() {
        let calibration = Calibration {
            study: "a \"b\"\\".into(),
            model_version: "2".into(),
            base_values: "0123".into(),
            parameters: vec![
                Parameter {
                    set: Assignment::parse("machine.settle_us=31").unwrap(),
                    at_bound: None,
                    rise_below: Some(-0.5),
                    rise_above: Some(1.5),
                },
                Parameter {
                    set: Assignment::parse("workload.gpu-us=200").unwrap(),
                    at_bound: Some(200.0),
                    rise_below: None,
                    rise_above: Some(0.25),
                },
            ],
            fitted_on: vec!["1 base".into(), "3 base".into()],
            residuals: vec![Residual {
                on: "1 base".into(),
                published: 18.0,
                half_width: 1.8,
                twin: 0.1 + 0.2,
                deviation_pct: -1e-9,
                in_half_widths: -1e-10,
            }],
            cost: 3.25,
            evaluations: 7,
            seeds: 3,
            hashes: vec![("machine pixel6".into(), "ff".into())],
        };
        let text = calibration.text();
        let warned = "# warning: workload.gpu-us ended at its bound 200\n# warning: workload.gpu-us is hardly \
                      told by the base values: a tenth of its range costs 0.25\n\nstudy";
        assert!(text.contains(warned), "{text}");
        assert_eq!(
            Calibration::read(&Source::new("x", text.as_str())).unwrap(),
            calibration,
            "{text}"
        );
        let wrong = text.replace("machine.settle_us", "settle_us").replace("seeds = 3", "sed = 3");
        let faults = Calibration::read(&Source::new("x", wrong)).unwrap_err().to_string();
        assert!(
            faults.contains("machine., kernel. or workload.") && faults.contains("`seeds`"),
            "{faults}"
        );
    }

    #[test]
    fn files_stand_beside_their_studies() {
        for (named, expected) in [
            ("jankbench-pixel6", "studies/calibrations/jankbench-pixel6.toml"),
            ("./mine.toml", "./calibrations/mine.toml"),
            ("mine.toml", "calibrations/mine.toml"),
            ("/a/b/mine.toml", "/a/b/calibrations/mine.toml"),
        ] {
            assert_eq!(path_of(named), Path::new(expected));
        }
        assert_eq!(of_study("messaging-altra"), Ok(None));
    }

    /// Checks that each calibration that is compiled in is of this model, of these base values, and
    /// within its bounds.
    #[test]
    fn the_built_in_calibrations_may_be_used() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/studies/calibrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().replace(".toml", ""))
            .collect();
        let mut names: Vec<String> = BUILT_IN.iter().map(|(name, _)| name.to_string()).collect();
        files.sort();
        names.sort();
        assert_eq!(names, files, "each file is compiled in");
        for (name, _) in BUILT_IN {
            let study = crate::study::load(name).unwrap();
            let calibration = of_study(name).unwrap().expect("it is built in");
            assert_eq!(calibration.study, name);
            assert_eq!(calibration.check(&study), None);
            for (one, fit) in calibration.parameters.iter().zip(&study.fits) {
                assert_eq!(one.set.parameter(), fit.parameter.value);
                if fit.choices.contains(&one.set.value) {
                    continue;
                }
                let value: f64 = one.set.value.parse().unwrap();
                assert!((fit.bounds[0]..=fit.bounds[1]).contains(&value), "{name}: {value}");
            }
        }
    }
}
