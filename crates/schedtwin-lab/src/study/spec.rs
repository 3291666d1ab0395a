// SPDX-License-Identifier: GPL-2.0-or-later
//! Settings put into names: `machine.settle_us=50` makes `pixel6` into `pixel6:settle_us=50`.
//!
//! A study changes machines, kernels and workloads in the spelling of the command line, so that each of its
//! columns can be run by hand, and so that what a calibration found can be typed. A later setting of the
//! same key replaces an earlier one, and the one in the name.
//!
//! ```
//! use schedtwin_lab::study::spec::{Assignment, Part, with_settings};
//! let settings = ["kernel.hz=100", "kernel.hz=1000"].map(|text| Assignment::parse(text).unwrap());
//! assert_eq!(with_settings("linux-5.18+a:hz=250,x=1", Part::Kernel, &settings), "linux-5.18+a:hz=1000,x=1");
//! assert_eq!(with_settings("pixel6", Part::Machine, &settings), "pixel6");
//! ```

use schedtwin_input::Spec;

/// The part of a set-up that a setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The machine.
    Machine,
    /// Every kernel.
    Kernel,
    /// The workload.
    Workload,
}

/// `machine.KEY=VALUE`, `kernel.KEY=VALUE` or `workload.KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The part that the setting belongs to.
    pub part: Part,
    /// The key.
    pub key: String,
    /// The value, as written.
    pub value: String,
}

impl Part {
    const ALL: [(Part, &'static str); 3] =
        [(Part::Machine, "machine"), (Part::Kernel, "kernel"), (Part::Workload, "workload")];

    /// `machine`, `kernel` or `workload`.
    pub fn word(self) -> &'static str {
        Part::ALL[self as usize].1
    }
}

/// Splits `machine.KEY` into its part and its key.
pub fn parse_parameter(text: &str) -> Result<(Part, String), String> {
    let known = || "a parameter begins with machine., kernel. or workload.".to_string();
    let (part, key) = text.trim().split_once('.').ok_or_else(known)?;
    let part = Part::ALL.iter().find(|(_, word)| *word == part).ok_or_else(known)?.0;
    match key.trim() {
        "" => Err(known()),
        key => Ok((part, key.to_string())),
    }
}

impl Assignment {
    /// Reads `PART.KEY=VALUE`.
    pub fn parse(text: &str) -> Result<Assignment, String> {
        let (parameter, value) =
            text.split_once('=').ok_or("a setting is written PART.KEY=VALUE")?;
        let (part, key) = parse_parameter(parameter)?;
        match value.trim() {
            "" => Err(format!("`{}` is set to nothing", parameter.trim())),
            value => Ok(Assignment { part, key, value: value.to_string() }),
        }
    }

    /// `PART.KEY`.
    pub fn parameter(&self) -> String {
        format!("{}.{}", self.part.word(), self.key)
    }

    /// `PART.KEY=VALUE`.
    pub fn text(&self) -> String {
        format!("{}={}", self.parameter(), self.value)
    }
}

/// The name of a machine, kernel or workload with the settings that are of it. A name that cannot be
/// taken apart is left as it is: the code that loads it tells what is wrong.
pub fn with_settings(name: &str, part: Part, settings: &[Assignment]) -> String {
    let own: Vec<&Assignment> = settings.iter().filter(|set| set.part == part).collect();
    if own.is_empty() {
        return name.to_string();
    }
    if part == Part::Workload {
        return with_options(name, &own);
    }
    let parsed = match part {
        Part::Machine => Spec::parse_machine(name),
        _ => Spec::parse_kernel(name),
    };
    let Ok(spec) = parsed else {
        return name.to_string();
    };
    let mut pairs: Vec<(String, String)> =
        spec.settings.iter().map(|s| (s.key.text.clone(), s.value.text.clone())).collect();
    for set in own {
        match pairs.iter_mut().find(|(key, _)| *key == set.key) {
            Some(pair) => pair.1 = set.value.clone(),
            None => pairs.push((set.key.clone(), set.value.clone())),
        }
    }
    let bare = Spec { settings: Vec::new(), ..spec };
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{}:{}", bare.identity(), pairs.join(","))
}

/// A workload with options as its program takes them: `--key value`.
fn with_options(name: &str, own: &[&Assignment]) -> String {
    let mut words: Vec<String> = name.split_whitespace().map(str::to_string).collect();
    for set in own {
        let option = format!("--{}", set.key);
        match words.iter().position(|word| *word == option) {
            Some(at) if at + 1 < words.len() => words[at + 1] = set.value.clone(),
            _ => words.extend([option, set.value.clone()]),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_settings_replace_earlier_ones() {
        let settings: Vec<Assignment> = [
            "machine.a.b=1",
            "kernel.hz=100",
            "workload.scale=2",
            "machine.a.b = 3",
            "workload.scale=4",
        ]
        .iter()
        .map(|text| Assignment::parse(text).unwrap())
        .collect();
        for (name, part, expected) in [
            ("pixel6", Part::Machine, "pixel6:a.b=3"),
            ("pixel6:a.b=0,c=[1,2]", Part::Machine, "pixel6:a.b=3,c=[1,2]"),
            ("linux-5.18+x", Part::Kernel, "linux-5.18+x:hz=100"),
            ("jank", Part::Workload, "jank --scale 4"),
            ("jank --scale 1 -t", Part::Workload, "jank --scale 4 -t"),
            ("a:b", Part::Machine, "a:b"),
        ] {
            assert_eq!(with_settings(name, part, &settings), expected);
        }
        for (bad, message) in [
            ("hz=1", "begins with machine."),
            ("kernel.=1", "begins with machine."),
            ("kernel.hz", "PART.KEY=VALUE"),
            ("kernel.hz= ", "set to nothing"),
            ("cpu.x=1", "begins with machine."),
        ] {
            assert!(Assignment::parse(bad).unwrap_err().contains(message), "{bad}");
        }
    }
}
