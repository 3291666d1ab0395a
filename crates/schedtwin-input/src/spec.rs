// SPDX-License-Identifier: GPL-2.0-or-later
//! The names on the command line: `NAME[+PATCH...][:KEY=VALUE,...]`.
//!
//! A kernel may carry patches and settings, a machine settings only. Every piece keeps its place in
//! the text, so that a fault found much later (an operating point that a setting made impossible)
//! still points at the piece of the command line that caused it.
//!
//! Terms: a **word** is a name or a path. A word that contains `/` is a path and goes on to the first
//! `.toml` that is followed by `+`, `:` or the end, so that `./a+b:c/x.toml` is one path; without such
//! an end, and for every other word, the first `+` or `:` ends it. A built-in name never contains `/`.
//! Commas inside brackets or quotes belong to the value.
//!
//! ```
//! use schedtwin_input::Spec;
//! let spec = Spec::parse_kernel("linux-5.18+runnable-boost:schedutil.rate_limit_us=500,hz=100").unwrap();
//! assert_eq!(spec.name.text, "linux-5.18");
//! assert_eq!(spec.patches[0].text, "runnable-boost");
//! assert_eq!(spec.settings[1].key.text, "hz");
//! assert!(Spec::parse_machine("./my+phone/x.toml:topology=mc").unwrap().name.is_path());
//! ```

use std::ops::Range;
use std::sync::Arc;

use crate::{Diagnostics, Location, Source};

/// A machine or a kernel as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The whole argument, a source named `<command line>`.
    pub source: Arc<Source>,
    /// Name of a built-in, or a path.
    pub name: Word,
    /// Patches, in the order in which they are to be applied.
    pub patches: Vec<Word>,
    /// Settings, in the order given.
    pub settings: Vec<Setting>,
}

/// A piece of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The text, without surrounding spaces.
    pub text: String,
    /// Where it stands.
    pub at: Location,
}

/// `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Which value: a path such as `schedutil.rate_limit_us` or `domain.little.opp[0].khz`.
    pub key: Word,
    /// The new value, as written.
    pub value: Word,
}

impl Word {
    /// Whether this is a path of a file rather than the name of a built-in.
    pub fn is_path(&self) -> bool {
        self.text.contains('/') || self.text.ends_with(".toml")
    }
}

impl Setting {
    /// A setting that did not come from a spec, `text` being `KEY=VALUE`.
    pub fn parse(text: &str) -> Result<Setting, Diagnostics> {
        let source = Source::new("<command line>", text);
        let mut faults = Diagnostics::new();
        let setting = parse_setting(&source, 0..text.len(), &mut faults);
        match setting {
            Some(setting) if faults.is_empty() => Ok(setting),
            _ => Err(faults),
        }
    }
}

impl Spec {
    /// `NAME[+PATCH...][:KEY=VALUE,...]`.
    pub fn parse_kernel(text: &str) -> Result<Spec, Diagnostics> {
        parse(text, true)
    }

    /// `NAME[:KEY=VALUE,...]`.
    pub fn parse_machine(text: &str) -> Result<Spec, Diagnostics> {
        parse(text, false)
    }

    /// The spec in one canonical spelling: spaces gone, everything else as written. It names the
    /// column of a table and the machine or kernel in a provenance.
    pub fn identity(&self) -> String {
        let mut out = self.name.text.clone();
        for patch in &self.patches {
            out.push('+');
            out.push_str(&patch.text);
        }
        for (at, setting) in self.settings.iter().enumerate() {
            out.push(if at == 0 { ':' } else { ',' });
            out.push_str(&setting.key.text);
            out.push('=');
            out.push_str(&setting.value.text);
        }
        out
    }
}

fn parse(text: &str, patches_allowed: bool) -> Result<Spec, Diagnostics> {
    let source = Source::new("<command line>", text);
    let mut faults = Diagnostics::new();
    let mut at = 0;
    let mut words = Vec::new();
    let settings_at = loop {
        let end = word_end(text, at, patches_allowed);
        words.push(word(&source, at..end));
        match text[end..].chars().next() {
            Some('+') => at = end + 1,
            Some(_) => break Some(end + 1),
            None => break None,
        }
    };
    for (index, word) in words.iter().enumerate() {
        if word.text.is_empty() {
            let what =
                if index == 0 { "a name is missing" } else { "the name of a patch is missing" };
            faults.push_at(&word.at, what, None);
        }
    }
    for (index, patch) in words.iter().enumerate().skip(1) {
        if words[1..index].iter().any(|p| p.text == patch.text) && !patch.text.is_empty() {
            faults.push_at(&patch.at, format!("patch `{}` is named twice", patch.text), None);
        }
    }
    let mut settings: Vec<Setting> = Vec::new();
    if let Some(start) = settings_at {
        for span in split_settings(text, start) {
            let Some(setting) = parse_setting(&source, span, &mut faults) else {
                continue;
            };
            if settings.iter().any(|s| s.key.text == setting.key.text) {
                faults.push_at(
                    &setting.key.at,
                    format!("`{}` is set twice", setting.key.text),
                    None,
                );
            }
            settings.push(setting);
        }
    }
    let mut words = words.into_iter();
    let name = words.next().expect("the loop above puts one in before it can end");
    faults.into_result(Spec { source, name, patches: words.collect(), settings })
}

/// Where the word that begins at `at` ends.
fn word_end(text: &str, at: usize, plus_ends: bool) -> usize {
    let stops: &[char] = if plus_ends { &['+', ':'] } else { &[':'] };
    let rest = &text[at..];
    let plain = rest.find(stops).unwrap_or(rest.len());
    // Settings begin at the first `:` before a `=`; a `.toml` behind that belongs to a value.
    let equals = rest.find('=').unwrap_or(rest.len());
    if rest[..plain].contains('/') {
        let mut from = 0;
        while let Some(found) = rest[from..equals].find(".toml") {
            let end = from + found + ".toml".len();
            if end == rest.len() || rest[end..].starts_with(stops) {
                return at + end;
            }
            from = end;
        }
    }
    at + plain
}

/// The pieces between commas that are outside brackets and quotes.
fn split_settings(text: &str, start: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut from, mut depth, mut quote) = (start, 0usize, None);
    for (offset, c) in text[start..].char_indices() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                pieces.push(from..start + offset);
                from = start + offset + 1;
            }
            _ => {}
        }
    }
    pieces.push(from..text.len());
    pieces
}

fn parse_setting(
    source: &Arc<Source>,
    span: Range<usize>,
    faults: &mut Diagnostics,
) -> Option<Setting> {
    let text = &source.text[span.clone()];
    if text.trim().is_empty() {
        faults.push(source, span, "a setting is missing here", Some("write KEY=VALUE".into()));
        return None;
    }
    let Some(equals) = text.find('=') else {
        let path = text.trim().ends_with(".toml");
        let help = if path {
            "a path that contains `:` begins with `./` or `/`"
        } else {
            "write KEY=VALUE"
        };
        faults.push(
            source,
            span.clone(),
            format!("`{}` is not a setting", text.trim()),
            Some(help.into()),
        );
        return None;
    };
    let key = word(source, span.start..span.start + equals);
    let value = word(source, span.start + equals + 1..span.end);
    if key.text.is_empty() {
        faults.push_at(
            &key.at,
            "the key of the setting is missing",
            Some("write KEY=VALUE".into()),
        );
        return None;
    }
    if value.text.is_empty() {
        faults.push_at(&value.at, format!("`{}` is set to nothing", key.text), None);
        return None;
    }
    Some(Setting { key, value })
}

/// The word in `span`, without the spaces around it.
fn word(source: &Arc<Source>, span: Range<usize>) -> Word {
    let text = &source.text[span.clone()];
    let start = span.start + (text.len() - text.trim_start().len());
    let text = text.trim();
    Word { text: text.into(), at: Location::new(source, start..start + text.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(spec: &Spec) -> String {
        let mut out = spec.name.text.clone();
        for patch in &spec.patches {
            out += &format!(" +{}", patch.text);
        }
        for setting in &spec.settings {
            out += &format!(" {}={}", setting.key.text, setting.value.text);
        }
        out
    }

    #[test]
    fn kernels() {
        for (text, expected) in [
            ("linux-6.12", "linux-6.12"),
            ("linux-5.18+a+b", "linux-5.18 +a +b"),
            ("linux-5.18+a:x.y=1, z = two ", "linux-5.18 +a x.y=1 z=two"),
            ("x.toml:hz=100", "x.toml hz=100"),
            ("linux-6.12+x.toml:hz=100", "linux-6.12 +x.toml hz=100"),
            ("./a+b/c:d/x.toml+./p+q/y.toml:k=v", "./a+b/c:d/x.toml +./p+q/y.toml k=v"),
            ("/no/suffix:k=v", "/no/suffix k=v"),
            ("./x.toml.d/y.toml:k=v", "./x.toml.d/y.toml k=v"),
            ("k:a=[1,2],b=\"x,y\",c={d=1,e=2}", "k a=[1,2] b=\"x,y\" c={d=1,e=2}"),
            ("k:note=a/b.toml", "k note=a/b.toml"),
            ("k:f=a:b=c", "k f=a:b=c"),
        ] {
            assert_eq!(show(&Spec::parse_kernel(text).unwrap()), expected, "{text}");
        }
        assert_eq!(Spec::parse_kernel(" a + b : c = d ").unwrap().identity(), "a+b:c=d");
    }

    #[test]
    fn machines_have_no_patches() {
        let spec = Spec::parse_machine("c++/x.toml:k=v").unwrap();
        assert_eq!(show(&spec), "c++/x.toml k=v");
        assert_eq!(show(&Spec::parse_machine("pixel6+x").unwrap()), "pixel6+x");
    }

    #[test]
    fn faults_point_at_the_piece() {
        for (text, expected) in [
            ("", "<command line>:1:1: a name is missing"),
            (":k=v", "<command line>:1:1: a name is missing"),
            ("a+", "<command line>:1:3: the name of a patch is missing"),
            ("a+b+b", "<command line>:1:5: patch `b` is named twice"),
            ("a:", "<command line>:1:3: a setting is missing here\n  help: write KEY=VALUE"),
            ("a:k", "<command line>:1:3: `k` is not a setting\n  help: write KEY=VALUE"),
            (
                "a:=v",
                "<command line>:1:3: the key of the setting is missing\n  help: write KEY=VALUE",
            ),
            ("a:k=", "<command line>:1:5: `k` is set to nothing"),
            ("a:k=1,k=2", "<command line>:1:7: `k` is set twice"),
            (
                "a:b.toml",
                "<command line>:1:3: `b.toml` is not a setting\n  help: a path that contains `:` begins with `./` or `/`",
            ),
            (
                "+:x,",
                "<command line>:1:1: a name is missing\n<command line>:1:2: the name of a patch is missing\n\
                 <command line>:1:3: `x` is not a setting\n  help: write KEY=VALUE\n\
                 <command line>:1:5: a setting is missing here\n  help: write KEY=VALUE",
            ),
        ] {
            assert_eq!(Spec::parse_kernel(text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_spec_or_a_fault(text in "[a-z./+:=,ä\"\\[\\]{} -]{0,40}") {
            for result in [Spec::parse_kernel(&text), Spec::parse_machine(&text)] {
                match result {
                    Ok(spec) => for setting in &spec.settings {
                        let at = &setting.value.at;
                        assert_eq!(&at.source.text[at.span.clone()], setting.value.text);
                    },
                    Err(faults) => assert!(!faults.render(false).is_empty()),
                }
            }
        }
    }
}
