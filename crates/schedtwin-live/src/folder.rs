// SPDX-License-Identifier: GPL-2.0-or-later
//! The files of a comparison, in one folder, so that each step can be repeated and looked at.
//!
//! ```text
//! plan.json                what runs, how often, under which settings
//! work.json                the rt-app file, if it is one
//! machine.toml kernel.toml this machine, as `schedtwin capture` describes it, with measured costs
//! basis/00.dat 00.json     recordings under the first setting: all that the prediction may look at
//! prediction.json          the figures that the twin gives for every setting
//! prediction.seal          its hash, and when it was sealed
//! measured/1-00.dat .json  recordings under every setting, made after that
//! measured/1.ended         why a setting is not judged: it did not reach the work
//! judgement.json .txt index.html
//! ```
//!
//! **Sealed.** Each measured run notes the seal that it found. [`Folder::check_seal`] refuses a prediction that was changed,
//! or replaced, or made after a run was measured, and recordings that are not those that were made.

use crate::judge::Method;
use crate::rows::{Key, Rows};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// An rt-app file, which the folder has a copy of.
    File,
    /// A command.
    Command(Vec<String>),
}

/// Who runs an rt-app file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The one of this crate.
    BuiltIn,
    /// `rt-app`.
    RtApp,
}

/// The plan of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What runs, for people.
    pub name: String,
    /// What runs.
    pub work: Work,
    /// Who runs it.
    pub runner: Runner,
    /// Runs under each setting.
    pub runs: usize,
    /// The settings as they were spelled; the first is A.
    pub settings: Vec<String>,
    /// Which of them is the control of a known large effect.
    pub control: Option<usize>,
}

/// A run that was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Number of its setting.
    pub setting: usize,
    /// Its round.
    pub round: usize,
    /// When it began, ns since 1970.
    pub began: u64,
    /// The number of the recorder's process, from which the work descends.
    pub recorder: u32,
    /// The seal that it found; none: there was no prediction.
    pub seal: Option<String>,
    /// The hash of its recording.
    pub recording: String,
    /// The ends of the work that were not well.
    pub troubles: Vec<String>,
    /// CPU time of threads that are not of the work, % of one CPU.
    pub others: f64,
    /// Its figures.
    pub rows: Rows,
}

/// What the twin says of one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// How.
    pub method: Method,
    /// What a user should know of it.
    pub notes: Vec<String>,
    /// The figures of its runs.
    pub runs: Vec<Rows>,
}

/// A prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The version of schedtwin and of its model.
    pub version: String,
    /// The machine and the kernel that the twin had.
    pub inputs: Vec<(String, String)>,
    /// By setting, as in the plan.
    pub settings: Vec<Predicted>,
}

/// The seal of a prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Its hash.
    pub hash: String,
    /// When, ns since 1970.
    pub at: u64,
}

/// Why a folder cannot be used.
pub type Fault = String;

/// A folder with these files.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Now, ns since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// The hash of bytes.
pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn fault(what: &str, path: &Path, error: &io::Error) -> Fault {
    format!("failed to {what} {}: {error}", path.display())
}

impl Folder {
    /// A folder; it need not exist.
    pub fn new(path: &Path) -> Folder {
        Folder { path: path.to_path_buf() }
    }

    /// A path in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The hash of one of its files.
    pub fn hash_of(&self, name: &str) -> Result<String, Fault> {
        let path = self.join(name);
        fs::read(&path).map(|bytes| hash(&bytes)).map_err(|error| fault("read", &path, &error))
    }

    /// Writes one of its files: whole or not at all.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Fault> {
        let path = self.join(name);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).map_err(|error| fault("make", above, &error))?;
        }
        let partial = path.with_extension("partial");
        let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, &path));
        written.map_err(|error| fault("write", &path, &error))
    }

    fn json(&self, name: &str) -> Result<Value, Fault> {
        let path = self.join(name);
        let text = fs::read_to_string(&path).map_err(|error| fault("read", &path, &error))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whether the folder has a file.
    pub fn has(&self, name: &str) -> bool {
        self.join(name).exists()
    }

    /// Writes the plan.
    pub fn write_plan(&self, plan: &Plan) -> Result<(), Fault> {
        let work = match &plan.work {
            Work::File => Value::from("work.json"),
            Work::Command(command) => Value::from(command.clone()),
        };
        let text = json!({
            "schema": "schedtwin.live.plan/1",
            "name": plan.name,
            "work": work,
            "runner": if plan.runner == Runner::RtApp { "rt-app" } else { "schedtwin" },
            "runs": plan.runs,
            "settings": plan.settings,
            "control": plan.control,
        });
        self.write("plan.json", &format!("{text:#}\n"))
    }

    /// Reads the plan.
    pub fn plan(&self) -> Result<Plan, Fault> {
        let plan = self.json("plan.json")?;
        let read = || {
            let texts = |value: &Value| -> Option<Vec<String>> {
                value.as_array()?.iter().map(|text| Some(text.as_str()?.to_owned())).collect()
            };
            let work = match &plan["work"] {
                Value::String(_) => Work::File,
                words => Work::Command(texts(words)?),
            };
            let runner = if plan["runner"] == "rt-app" { Runner::RtApp } else { Runner::BuiltIn };
            let settings = texts(&plan["settings"])?;
            let control = plan["control"].as_u64().map(|at| at as usize);
            (!settings.is_empty() && control.is_none_or(|at| at < settings.len())).then_some(())?;
            let (name, runs) = (plan["name"].as_str()?.to_owned(), plan["runs"].as_u64()? as usize);
            Some(Plan { name, work, runner, runs, settings, control })
        };
        read().ok_or_else(|| format!("{} is no plan", self.join("plan.json").display()))
    }

    /// Writes what a run was, beside its recording.
    pub fn write_run(&self, name: &str, run: &Run) -> Result<(), Fault> {
        let text = json!({
            "schema": "schedtwin.live.run/1",
            "setting": run.setting,
            "round": run.round,
            "began_unix_ns": run.began,
            "recorder": run.recorder,
            "seal": run.seal,
            "recording_blake3": run.recording,
            "troubles": run.troubles,
            "others_pct": run.others,
            "rows": rows_json(&run.rows),
        });
        self.write(&format!("{name}.json"), &format!("{text:#}\n"))
    }

    /// Reads the runs of `basis` or `measured`, by setting and round; their recordings have to be those that were made.
    pub fn runs(&self, part: &str) -> Result<Vec<(String, Run)>, Fault> {
        let folder = self.join(part);
        let entries = fs::read_dir(&folder).map_err(|error| fault("read", &folder, &error))?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
            .collect();
        names.sort();
        let mut runs = Vec::new();
        for name in names {
            let name = format!("{part}/{name}");
            let value = self.json(&format!("{name}.json"))?;
            let read = || {
                Some(Run {
                    setting: value["setting"].as_u64()? as usize,
                    round: value["round"].as_u64()? as usize,
                    began: value["began_unix_ns"].as_u64()?,
                    recorder: value["recorder"].as_u64()? as u32,
                    seal: value["seal"].as_str().map(str::to_owned),
                    recording: value["recording_blake3"].as_str()?.to_owned(),
                    troubles: value["troubles"]
                        .as_array()?
                        .iter()
                        .filter_map(|text| Some(text.as_str()?.to_owned()))
                        .collect(),
                    others: value["others_pct"].as_f64()?,
                    rows: rows_of(&value["rows"])?,
                })
            };
            let run = read().ok_or_else(|| format!("{name}.json is no run"))?;
            if self.hash_of(&format!("{name}.dat"))? != run.recording {
                return Err(format!("{name}.dat is not the recording that was made"));
            }
            runs.push((name, run));
        }
        runs.sort_by_key(|(_, run)| (run.setting, run.round));
        Ok(runs)
    }

    /// The names of all runs of `basis` or `measured`, in the order in which they are made, with setting and round.
    pub fn names(part: &str, plan: &Plan) -> Vec<(String, usize, usize)> {
        let rounds = 0..plan.runs;
        match part {
            "basis" => rounds.map(|round| (format!("basis/{round:02}"), 0, round)).collect(),
            _ => rounds
                .flat_map(|round| (0..plan.settings.len()).map(move |setting| (setting, round)))
                .map(|(setting, round)| (format!("{part}/{setting}-{round:02}"), setting, round))
                .collect(),
        }
    }

    /// Whether a run has come to its end: what it was is written last.
    pub fn is_done(&self, name: &str) -> bool {
        self.has(&format!("{name}.json"))
    }

    /// Ends a setting: none of its runs is judged.
    pub fn end(&self, setting: usize, why: &str) -> Result<(), Fault> {
        self.write(&format!("measured/{setting}.ended"), why)
    }

    /// Why a setting has ended; `None`: it has not.
    pub fn ended(&self, setting: usize) -> Result<Option<String>, Fault> {
        let path = self.join(&format!("measured/{setting}.ended"));
        match fs::read_to_string(&path) {
            Ok(why) => Ok(Some(why)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault("read", &path, &error)),
        }
    }

    /// Refuses a part that is not whole: its plan says how many runs it has.
    pub fn check_whole(&self, part: &str, plan: &Plan) -> Result<(), Fault> {
        let names = Folder::names(part, plan);
        let mut done = 0;
        for (name, setting, _) in &names {
            let is_ended = part == "measured" && self.ended(*setting)?.is_some();
            done += usize::from(self.is_done(name) || is_ended);
        }
        match done == names.len() {
            true => Ok(()),
            false => Err(format!(
                "{} has {done} of {} runs: it was interrupted; `schedtwin live record` goes on where it stopped",
                self.join(part).display(),
                names.len()
            )),
        }
    }

    /// Writes a prediction and seals it.
    pub fn seal(&self, prediction: &Prediction) -> Result<Seal, Fault> {
        if self.has("measured") {
            return Err(format!(
                "{} has measurements already: a prediction comes before them; take another folder",
                self.path.display()
            ));
        }
        let settings: Vec<Value> = prediction
            .settings
            .iter()
            .map(|of| {
                let runs: Vec<Value> = of.runs.iter().map(rows_json).collect();
                json!({"method": of.method.word(), "notes": of.notes, "runs": runs})
            })
            .collect();
        let inputs: Vec<Value> =
            prediction.inputs.iter().map(|(name, hash)| json!([name, hash])).collect();
        let text = json!({
            "schema": "schedtwin.live.prediction/1",
            "version": prediction.version,
            "inputs": inputs,
            "settings": settings,
        });
        let text = format!("{text:#}\n");
        let seal = Seal { hash: hash(text.as_bytes()), at: now() };
        self.write("prediction.json", &text)?;
        let line = json!({"blake3": seal.hash, "sealed_unix_ns": seal.at});
        self.write("prediction.seal", &format!("{line}\n"))?;
        Ok(seal)
    }

    /// Reads the seal; `None`: there is none.
    pub fn read_seal(&self) -> Result<Option<Seal>, Fault> {
        if !self.has("prediction.seal") {
            return Ok(None);
        }
        let value = self.json("prediction.seal")?;
        let read = || {
            Some(Seal {
                hash: value["blake3"].as_str()?.to_owned(),
                at: value["sealed_unix_ns"].as_u64()?,
            })
        };
        read().map(Some).ok_or_else(|| "prediction.seal is no seal".to_owned())
    }

    /// Reads the prediction, if it is the one that was sealed before all of these runs.
    pub fn check_seal(&self, measured: &[(String, Run)]) -> Result<Prediction, Fault> {
        let seal =
            self.read_seal()?.ok_or("there is no sealed prediction: `schedtwin live predict`")?;
        if self.hash_of("prediction.json")? != seal.hash {
            return Err("prediction.json was changed after it was sealed: nothing is judged".into());
        }
        for (name, run) in measured {
            if run.seal.as_ref() != Some(&seal.hash) || run.began < seal.at {
                return Err(format!(
                    "{name} was measured before the prediction was sealed: nothing is judged"
                ));
            }
        }
        let prediction = self.prediction()?;
        for (name, known) in &prediction.inputs {
            if *known != self.hash_of(name)? {
                return Err(format!("{name} was changed after the prediction: nothing is judged"));
            }
        }
        Ok(prediction)
    }

    fn prediction(&self) -> Result<Prediction, Fault> {
        let value = self.json("prediction.json")?;
        let read = || {
            let inputs = value["inputs"].as_array()?.iter();
            let text = |value: &Value| Some(value.as_str()?.to_owned());
            let settings = value["settings"].as_array()?.iter();
            Some(Prediction {
                version: text(&value["version"])?,
                inputs: inputs
                    .map(|pair| Some((text(&pair[0])?, text(&pair[1])?)))
                    .collect::<Option<_>>()?,
                settings: settings
                    .map(|of| {
                        Some(Predicted {
                            method: Method::parse(of["method"].as_str()?)?,
                            notes: of["notes"].as_array()?.iter().filter_map(text).collect(),
                            runs: of["runs"]
                                .as_array()?
                                .iter()
                                .map(rows_of)
                                .collect::<Option<_>>()?,
                        })
                    })
                    .collect::<Option<_>>()?,
            })
        };
        read().ok_or_else(|| "prediction.json is no prediction".to_owned())
    }
}

/// Figures as JSON.
pub fn rows_json(rows: &Rows) -> Value {
    let rows = rows.iter().map(|(key, value)| json!([key.class, key.metric, key.stat, value]));
    Value::from(rows.collect::<Vec<_>>())
}

fn rows_of(value: &Value) -> Option<Rows> {
    let row = |row: &Value| {
        let text = |at: usize| Some(row[at].as_str()?.to_owned());
        Some((Key { class: text(0)?, metric: text(1)?, stat: text(2)? }, row[3].as_f64()?))
    };
    value.as_array()?.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(value: f64) -> Rows {
        let key = Key { class: "ui".into(), metric: "latency".into(), stat: "p99".into() };
        Rows::from([(key, value)])
    }

    fn prediction() -> Prediction {
        let of = |value| Predicted { method: Method::File, notes: vec![], runs: vec![rows(value)] };
        Prediction { version: "1".into(), inputs: vec![], settings: vec![of(1.0), of(2.5)] }
    }

    fn measure(folder: &Folder, name: &str, seal: Option<&Seal>) {
        folder.write(&format!("{name}.dat"), "data").unwrap();
        let run = Run {
            setting: 0,
            round: 0,
            began: now(),
            recorder: 7,
            seal: seal.map(|seal| seal.hash.clone()),
            recording: hash(b"data"),
            troubles: vec!["x".into()],
            others: 1.5,
            rows: rows(3.0),
        };
        folder.write_run(name, &run).unwrap();
        let (read_name, read) = folder.runs("measured").unwrap().pop().unwrap();
        assert_eq!((read_name.as_str(), read), (name, run));
    }

    #[test]
    fn a_prediction_is_judged_only_if_it_was_sealed_before() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path());
        let seal = folder.seal(&prediction()).unwrap();
        measure(&folder, "measured/0-00", Some(&seal));
        let runs = folder.runs("measured").unwrap();
        assert_eq!(folder.check_seal(&runs).unwrap(), prediction());
        let again = folder.seal(&prediction()).unwrap_err();
        assert!(again.contains("a prediction comes before them"), "{again}");
        // Changed by a digit.
        let text = fs::read_to_string(folder.join("prediction.json")).unwrap();
        folder.write("prediction.json", &text.replace("2.5", "2.6")).unwrap();
        assert!(folder.check_seal(&runs).unwrap_err().contains("changed after it was sealed"));
        // Sealed again, after the measurement.
        let forged = text.replace("2.5", "2.6");
        folder.write("prediction.json", &forged).unwrap();
        let line = json!({"blake3": hash(forged.as_bytes()), "sealed_unix_ns": 5});
        folder.write("prediction.seal", &line.to_string()).unwrap();
        assert!(folder.check_seal(&runs).unwrap_err().contains("before the prediction was sealed"));
    }

    #[test]
    fn other_recordings_and_other_inputs_are_noticed() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path());
        folder.write("machine.toml", "a").unwrap();
        let inputs = vec![("machine.toml".to_owned(), hash(b"a"))];
        let seal = folder.seal(&Prediction { inputs, ..prediction() }).unwrap();
        measure(&folder, "measured/0-00", Some(&seal));
        let runs = folder.runs("measured").unwrap();
        assert!(folder.check_seal(&runs).is_ok());
        folder.write("machine.toml", "b").unwrap();
        assert!(folder.check_seal(&runs).unwrap_err().contains("machine.toml was changed"));
        folder.write("measured/0-00.dat", "other").unwrap();
        assert!(folder.runs("measured").unwrap_err().contains("not the recording"));
    }

    #[test]
    fn plans_are_read_as_they_were_written() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path());
        for (work, control) in
            [(Work::File, None), (Work::Command(vec!["make".into(), "-j2".into()]), Some(1))]
        {
            let settings = vec![String::new(), "nice a=3".to_owned()];
            let (name, runner) = ("x".to_owned(), Runner::RtApp);
            let plan = Plan { name, work, runner, runs: 3, settings, control };
            folder.write_plan(&plan).unwrap();
            assert_eq!(folder.plan().unwrap(), plan);
        }
        folder.write("plan.json", "{}").unwrap();
        assert!(folder.plan().unwrap_err().contains("is no plan"));
    }
}
