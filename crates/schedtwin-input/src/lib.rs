//! What a user wrote: sources with names, positions, and errors that point at them.
//!
//! Every reader collects a [`Diagnostics`] and goes on, so that a user sees all faults of a file at
//! once, each with file, line, column, the offending text and what to do about it.

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

/// One fault: what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// In which text.
    pub source: Arc<Source>,
    /// Which bytes of it.
    pub span: Range<usize>,
    /// What is wrong; fits after "failed to ...: ".
    pub message: String,
    /// What to do: a suggestion, the allowed values.
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
    pub fn push(&mut self, source: &Arc<Source>, span: Range<usize>, message: impl Into<String>, help: Option<String>) {
        self.0.push(Diagnostic { source: source.clone(), span, message: message.into(), help });
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
        for (at, fault) in self.0.iter().enumerate() {
            let (line, column) = fault.source.line_column(fault.span.start);
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:{line}:{column}: {}", fault.source.name, fault.message)?;
            if let Some(help) = &fault.help {
                write!(f, "\n  help: {help}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
