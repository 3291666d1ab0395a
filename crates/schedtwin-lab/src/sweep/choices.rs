// SPDX-License-Identifier: GPL-2.0-or-later
//! Lists of choices in a name: `linux-6.12:schedutil.rate_limit_us={500,1000}` is two kernels.
//!
//! ```
//! use schedtwin_lab::sweep::choices::choices;
//! let all = choices("linux-{6.1,6.12}:hz={100,1000}").unwrap();
//! let texts: Vec<&str> = all.iter().map(|choice| choice.text.as_str()).collect();
//! assert_eq!(texts, ["linux-6.1:hz=100", "linux-6.1:hz=1000", "linux-6.12:hz=100", "linux-6.12:hz=1000"]);
//! assert_eq!(all[1].settings, [("hz".to_string(), "1000".to_string())]);
//! ```

use schedtwin_input::{Diagnostics, Source};

/// The most that one name may stand for.
const MOST: usize = 100_000;

/// One of those that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name with its choices made.
    pub text: String,
    /// Key and value of each choice that is a setting's value: it stands right behind `KEY=`, or `--OPTION `.
    pub settings: Vec<(String, String)>,
}

/// All that a name stands for; the last list changes fastest.
pub fn choices(name: &str) -> Result<Vec<Choice>, Diagnostics> {
    let source = Source::new("<command line>", name);
    let fault = |span, message: &str, help: &str| {
        let mut faults = Diagnostics::new();
        faults.push(&source, span, message, Some(help.to_string()));
        Err(faults)
    };
    let mut all = vec![Choice { text: String::new(), settings: Vec::new() }];
    let mut rest = 0;
    while let Some(open) = name[rest..].find(['{', '}']).map(|at| rest + at) {
        let help = "a list is written {500,1000,2000}";
        let inside = &name[open + 1..];
        let close = inside.find('}').map(|at| open + 1 + at);
        let Some(close) = close.filter(|_| name[open..].starts_with('{')) else {
            return fault(open..open + 1, "a list without its other end", help);
        };
        let list = &name[open + 1..close];
        if list.contains('{') || list.split(',').any(|value| value.trim().is_empty()) {
            return fault(open..close + 1, "this is no list of values", help);
        }
        let values: Vec<&str> = list.split(',').map(str::trim).collect();
        if all.len() * values.len() > MOST {
            let message = format!("these are more than {MOST} combinations");
            return fault(open..close + 1, &message, "split the sweep");
        }
        let key = key_before(&name[..open]);
        let before = &name[rest..open];
        let with = |choice: &Choice, value: &str| {
            let mut settings = choice.settings.clone();
            settings.extend(key.map(|key| (key.to_string(), value.to_string())));
            Choice { text: format!("{}{before}{value}", choice.text), settings }
        };
        all = all.iter().flat_map(|choice| values.iter().map(|v| with(choice, v))).collect();
        rest = close + 1;
    }
    for choice in &mut all {
        choice.text.push_str(&name[rest..]);
    }
    Ok(all)
}

/// The key whose value begins here, if one does.
fn key_before(text: &str) -> Option<&str> {
    let ends = |c: char| matches!(c, ',' | ':' | ' ' | '+' | '}');
    let key = match text.strip_suffix('=') {
        Some(text) => &text[text.rfind(ends).map_or(0, |at| at + 1)..],
        None => text.strip_suffix(' ').and_then(|text| text.rsplit(' ').next())?,
    };
    let key = key.trim_start_matches('-');
    let is_key = !key.is_empty() && !key.contains(['{', '}']);
    is_key.then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_settings_and_options() {
        let settings = |name: &str| choices(name).unwrap().remove(0).settings;
        let pair = |key: &str, value: &str| vec![(key.to_string(), value.to_string())];
        assert_eq!(settings("a:schedutil.x={1,2}"), pair("schedutil.x", "1"));
        assert_eq!(settings("a:hz=100,b={1,2}"), pair("b", "1"));
        assert_eq!(settings("messaging -g {1,2} -t"), pair("g", "1"));
        assert_eq!(settings("messaging --groups={1,2}"), pair("groups", "1"));
        assert_eq!(settings("linux-{6.1,6.12}"), []);
        assert_eq!(choices("plain").unwrap()[0].text, "plain");
    }

    #[test]
    fn what_is_no_list() {
        for (name, complaint) in [
            ("a={1,2", "1:3: a list without its other end"),
            ("a=1}", "1:4: a list without its other end"),
            ("a={1,}", "1:3: this is no list"),
            ("a={}", "1:3: this is no list"),
            ("a={1,{2,3}}", "1:3: this is no list"),
            (&"{1,2,3,4,5,6,7,8,9,0}".repeat(6), "more than 100000"),
        ] {
            let faults = choices(name).unwrap_err().to_string();
            assert!(faults.contains(complaint), "{name}: {faults}");
        }
    }
}
