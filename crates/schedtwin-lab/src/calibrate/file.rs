//! `studies/calibrations/NAME.toml`: what was fitted, on what, how well, and under which model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schedtwin::MODEL_VERSION;
use schedtwin_input::{
    Diagnostics, FromNode, Located, Node, Source, TableReader, TomlDocument, Value, read_source,
};

use crate::calibrate::BaseOnly;
use crate::study::Study;
use crate::study::run::{Calibrated, Ready};
use crate::study::spec::Assignment;

/// The calibrations that are compiled in: name of the study and text.
const BUILT_IN: [(&str, &str); 4] = [
    ("geekbench5-pixel6", include_str!("../../../../studies/calibrations/geekbench5-pixel6.toml")),
    ("jankbench-pixel6", include_str!("../../../../studies/calibrations/jankbench-pixel6.toml")),
    (
        "geekbench5-fridge-pixel6",
        include_str!("../../../../studies/calibrations/geekbench5-fridge-pixel6.toml"),
    ),
    ("pcmark-web-pixel6", include_str!("../../../../studies/calibrations/pcmark-web-pixel6.toml")),
];

/// How far the fitted twin is from a base value.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// `ID KERNEL`.
    pub on: String,
    /// The published value.
    pub published: f64,
    /// The twin's.
    pub twin: f64,
    /// Twin minus published, in percent of the published.
    pub deviation_pct: f64,
}

/// What a calibration found.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The study.
    pub study: String,
    /// The model that it was made under.
    pub model_version: String,
    /// Names the base values, parameters and bounds.
    pub base_values: String,
    /// The parameters with their values.
    pub settings: Vec<Assignment>,
    /// The base values that they were fitted on, all together.
    pub fitted_on: Vec<String>,
    /// How well they are met.
    pub residuals: Vec<Residual>,
    /// Settings that were measured.
    pub evaluations: usize,
    /// Seeds of each, from 1.
    pub seeds: usize,
    /// Name and digest of every input, before the parameters were put in.
    pub hashes: Vec<(String, String)>,
}

impl Calibration {
    pub(super) fn new(
        base: &BaseOnly,
        settings: Vec<Assignment>,
        residuals: Vec<Residual>,
        evaluations: usize,
        seeds: usize,
        inputs: &Ready,
    ) -> Calibration {
        Calibration {
            study: base.study().name.clone(),
            model_version: MODEL_VERSION.to_string(),
            base_values: base.fingerprint(),
            settings,
            fitted_on: base.targets().iter().map(|(_, _, name)| name.clone()).collect(),
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
        let one =
            |set: &Assignment| Calibrated { set: set.clone(), fitted_on: self.fitted_on.clone() };
        self.settings.iter().map(one).collect()
    }

    /// The file.
    pub fn text(&self) -> String {
        let mut text = format!(
            "# Written by `schedtwin calibrate {}`. The same bytes on every computer; refused under another model.\n\n",
            self.study
        );
        let quoted = |text: &str| toml_text(text);
        text.push_str(&format!("study = {}\n", quoted(&self.study)));
        text.push_str(&format!("model_version = {}\n", quoted(&self.model_version)));
        text.push_str(&format!("base_values = {}\n", quoted(&self.base_values)));
        text.push_str(&format!("seeds = {}\nevaluations = {}\n", self.seeds, self.evaluations));
        let on: Vec<String> = self.fitted_on.iter().map(|on| quoted(on)).collect();
        text.push_str(&format!("fitted_on = [{}]\n", on.join(", ")));
        for set in &self.settings {
            text.push_str(&format!("\n[[parameter]]\nset = {}\n", quoted(&set.text())));
        }
        for residual in &self.residuals {
            let Residual { on, published, twin, deviation_pct } = residual;
            text.push_str(&format!(
                "\n[[residual]]\non = {}\npublished = {published:?}\ntwin = {twin:?}\ndeviation_pct = {deviation_pct:?}\n",
                quoted(on)
            ));
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
        let settings =
            file.tables("parameter", f).into_iter().filter_map(|t| setting(t, f)).collect();
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
            settings,
            fitted_on: fitted_on.unwrap_or_default(),
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

fn setting(mut reader: TableReader, f: &mut Diagnostics) -> Option<Assignment> {
    let text: Option<Located<String>> = reader.required("set", f);
    reader.finish(f);
    let text = text?;
    Assignment::parse(&text.value).map_err(|message| f.push_at(&text.at, message, None)).ok()
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
    let [published, twin, deviation] =
        ["published", "twin", "deviation_pct"].map(|key| reader.required::<Measured>(key, f));
    reader.finish(f);
    Some(Residual { on: on?, published: published?.0, twin: twin?.0, deviation_pct: deviation?.0 })
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
            settings: vec![Assignment::parse("machine.settle_us=31").unwrap()],
            fitted_on: vec!["1 base".into(), "3 base".into()],
            residuals: vec![Residual {
                on: "1 base".into(),
                published: 18.0,
                twin: 0.1 + 0.2,
                deviation_pct: -1e-9,
            }],
            evaluations: 7,
            seeds: 3,
            hashes: vec![("machine pixel6".into(), "ff".into())],
        };
        let text = calibration.text();
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

    /// What is compiled in is of this model, of these base values, and within its bounds.
    #[test]
    fn the_built_in_calibrations_may_be_used() {
        for (name, _) in BUILT_IN {
            let study = crate::study::load(name).unwrap();
            let calibration = of_study(name).unwrap().expect("it is built in");
            assert_eq!(calibration.study, name);
            assert_eq!(calibration.check(&study), None);
            for (set, fit) in calibration.settings.iter().zip(&study.fits) {
                assert_eq!(set.parameter(), fit.parameter.value);
                let value: f64 = set.value.parse().unwrap();
                assert!((fit.bounds[0]..=fit.bounds[1]).contains(&value), "{name}: {value}");
            }
        }
    }
}
