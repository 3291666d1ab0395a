// SPDX-License-Identifier: GPL-2.0-or-later
//! The input of a user: sources with names, positions, and errors that point at them.
//!
//! Every reader collects a [`Diagnostics`] and goes on, so that a user sees all faults of a file at
//! once, each with file, line, column, the offending text and what to do about it.
//!
//! | module | what it does |
//! |---|---|
//! | here | [`Source`], [`Location`], [`Diagnostic`], [`Diagnostics`] |
//! | `render` | prints faults with excerpts of the source |
//! | `read` | reads a file that a user named |
//! | `file_kind` | which kind of file a text is |
//! | `suggest` | "did you mean" |
//! | `spec` | `NAME[+PATCH...][:KEY=VALUE,...]` from the command line |
//! | `document` | TOML with the position of every key and value, into which settings can be put |
//! | `reader` | takes a TOML table apart by hand, all faults at once |
//!
//! ```
//! use schedtwin_input::{Diagnostics, Source, Spec, TomlDocument};
//! let source = Source::new("demo.toml", "hz = 250\n[schedutil]\nrate_limit_us = 750\n");
//! let mut document = TomlDocument::parse(&source).unwrap();
//! let spec = Spec::parse_kernel("demo:schedutil.rate_limit_us=500,hx=100").unwrap();
//! let mut faults = Diagnostics::new();
//! for setting in &spec.settings {
//!     faults.absorb(document.set(setting));
//! }
//! assert_eq!(
//!     faults.to_string(),
//!     "<command line>:1:34: there is no setting `hx`\n  help: did you mean `hz`?"
//! );
//! ```

mod document;
mod file_kind;
mod key_path;
mod read;
mod reader;
mod render;
mod spec;
mod suggest;

pub use document::{Entry, Node, Table, TomlDocument, Value};
pub use file_kind::FileKind;
pub use read::{DEVICE_TREE, MAX_SOURCE_BYTES, read_source};
pub use reader::{FromNode, Located, TableReader};
pub use render::{Severity, wrapped};
pub use spec::{Setting, Spec, Word};
pub use suggest::{did_you_mean, did_you_mean_or};

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text with the name under which the user knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path, or `<command line>`, or `<built in> pixel6`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

impl Source {
    /// A shared source.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into() })
    }

    /// Line and column (both from 1, columns in characters) of a byte offset.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let before = &self.text.as_bytes()[..offset];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        (line, column)
    }
}

/// A piece of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// In which text.
    pub source: Arc<Source>,
    /// Which bytes of it.
    pub span: Range<usize>,
}

impl Location {
    /// The span that stands for a whole source: a fault there has no line and no excerpt.
    pub const WHOLE: Range<usize> = usize::MAX..usize::MAX;

    /// Bytes `span` of `source`.
    pub fn new(source: &Arc<Source>, span: Range<usize>) -> Location {
        Location { source: source.clone(), span }
    }
}

/// One fault: what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// In which text.
    pub source: Arc<Source>,
    /// Which bytes of it.
    pub span: Range<usize>,
    /// The fault; fits after "failed to ...: ".
    pub message: String,
    /// The remedy: a suggestion, the allowed values.
    pub help: Option<String>,
}

/// Faults in the order of their discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// None so far.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Notes a fault.
    pub fn push(
        &mut self,
        source: &Arc<Source>,
        span: Range<usize>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.0.push(Diagnostic { source: source.clone(), span, message: message.into(), help });
    }

    /// Notes a fault at a location.
    pub fn push_at(&mut self, at: &Location, message: impl Into<String>, help: Option<String>) {
        self.push(&at.source, at.span.clone(), message, help);
    }

    /// Notes a fault that has no place inside its source: the file cannot be read, say.
    pub fn push_whole(
        &mut self,
        source: &Arc<Source>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.push(source, Location::WHOLE, message, help);
    }

    /// Takes over the faults of a step that failed, and gives back what it made if it did not.
    pub fn absorb<T>(&mut self, result: Result<T, Diagnostics>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(faults) => {
                self.0.extend(faults.0);
                None
            }
        }
    }

    /// Puts the faults into the order in which they stand in their sources; faults that are equal
    /// in every respect become one. Sources keep the order in which they first appear.
    pub fn sort(&mut self) {
        let mut sources: Vec<Arc<Source>> = Vec::new();
        let mut ranks = Vec::with_capacity(self.0.len());
        for fault in &self.0 {
            let rank = sources.iter().position(|s| Arc::ptr_eq(s, &fault.source));
            ranks.push(rank.unwrap_or_else(|| {
                sources.push(fault.source.clone());
                sources.len() - 1
            }));
        }
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order.sort_by_key(|at| (ranks[*at], self.0[*at].span.start, *at));
        self.0 = order.into_iter().map(|at| self.0[at].clone()).collect();
        self.0.dedup();
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` if there is no fault.
    pub fn into_result<T>(self, value: T) -> Result<T, Diagnostics> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.0.iter().take(render::MAX_SHOWN).enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            if fault.span == Location::WHOLE {
                write!(f, "{}: {}", fault.source.name, fault.message)?;
            } else {
                let (line, column) = fault.source.line_column(fault.span.start);
                write!(f, "{}:{line}:{column}: {}", fault.source.name, fault.message)?;
            }
            if let Some(help) = &fault.help {
                write!(f, "\n  help: {help}")?;
            }
        }
        if self.0.len() > render::MAX_SHOWN {
            write!(f, "\n... and {} more", self.0.len() - render::MAX_SHOWN)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
