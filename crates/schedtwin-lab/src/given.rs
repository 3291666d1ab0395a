// SPDX-License-Identifier: GPL-2.0-or-later
//! A machine, a kernel, a workload or a suite as it was given: a name, a text, or what is at hand.
//!
//! A name is what the command line takes: a built-in or a path, with settings in place. A text is a file's content under such
//! a name, so that a notebook needs no file, and an input goes to another computer as it is.
//!
//! ```
//! use schedtwin_lab::given::{GivenKernel, GivenWorkload};
//! let kernel = GivenKernel::text("mine:hz=100", "name = \"mine\"\ndescription = \"of mine\"\nextends = \"linux-7.3\"\n");
//! assert_eq!(kernel.load().unwrap().config.hz, 100);
//! let workload = GivenWorkload::text("app.json", "{ \"tasks\": { \"a\": { \"rum\": 10, \"run\": 10 } } }");
//! assert!(workload.load().unwrap_err().to_string().starts_with("app.json:1:21: unknown key \"rum\""));
//! ```

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::{Machine, Workload};
use schedtwin_input::{Diagnostics, Source, Spec, read_source};
use std::path::Path;

use crate::score::{self, Suite};

/// An input as it was given.
#[derive(Clone, Debug)]
pub enum Given<T> {
    /// As the command line names it.
    Named(String),
    /// The content of a file, under the name that results give it: a machine's and a kernel's may have settings in place.
    Text {
        /// The name.
        name: String,
        /// The content: TOML of machines, kernels and suites, rt-app's JSON of workloads.
        text: String,
    },
    /// One that is at hand, such as a kernel with policies of your own, or a recording.
    Ready {
        /// The name that results give it.
        name: String,
        /// The input.
        value: Box<T>,
    },
}

/// A machine as it was given.
pub type GivenMachine = Given<Machine>;
/// A kernel as it was given.
pub type GivenKernel = Given<KernelFile>;
/// A workload as it was given.
pub type GivenWorkload = Given<Workload>;
/// A suite as it was given.
pub type GivenSuite = Given<Suite>;

/// Something that a name or a text stands for.
pub trait Input: Clone {
    /// Loads what the command line names.
    fn named(name: &str) -> Result<Self, Diagnostics>;
    /// Reads a text that has a name.
    fn of_text(name: &str, text: &str) -> Result<Self, Diagnostics>;
    /// The path of the file that a name stands for; `None`: it is built in.
    fn path_of(name: &str) -> Option<String>;
}

impl Input for Machine {
    fn named(name: &str) -> Result<Machine, Diagnostics> {
        Machine::load(name)
    }

    fn of_text(name: &str, text: &str) -> Result<Machine, Diagnostics> {
        let spec = Spec::parse_machine(name)?;
        let source = Source::new(spec.name.text.clone(), text);
        let mut machine = Machine::from_source(&source, &spec.settings)?;
        machine.identity = spec.identity();
        Ok(machine)
    }

    fn path_of(name: &str) -> Option<String> {
        let word = Spec::parse_machine(name).ok()?.name;
        word.is_path().then_some(word.text)
    }
}

impl Input for KernelFile {
    fn named(name: &str) -> Result<KernelFile, Diagnostics> {
        KernelFile::load(name)
    }

    fn of_text(name: &str, text: &str) -> Result<KernelFile, Diagnostics> {
        let spec = Spec::parse_kernel(name)?;
        let source = Source::new(spec.name.text.clone(), text);
        KernelFile::from_source(&source, &spec)
    }

    fn path_of(name: &str) -> Option<String> {
        let word = Spec::parse_kernel(name).ok()?.name;
        word.is_path().then_some(word.text)
    }
}

impl Input for Workload {
    fn named(name: &str) -> Result<Workload, Diagnostics> {
        Workload::from_path_or_name(name)
    }

    fn of_text(name: &str, text: &str) -> Result<Workload, Diagnostics> {
        Workload::parse_rtapp(Source::new(name, text))
    }

    fn path_of(name: &str) -> Option<String> {
        // Jobs in a row are no file, and their files stay paths.
        Path::new(name).is_file().then(|| name.to_string())
    }
}

impl Input for Suite {
    fn named(name: &str) -> Result<Suite, Diagnostics> {
        score::load(name)
    }

    fn of_text(name: &str, text: &str) -> Result<Suite, Diagnostics> {
        score::read(&Source::new(name, text))
    }

    fn path_of(name: &str) -> Option<String> {
        score::is_path(name).then(|| name.to_string())
    }
}

impl<T: Input> Given<T> {
    /// A text under a name.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Given<T> {
        Given::Text { name: name.into(), text: text.into() }
    }

    /// The name that results give it.
    pub fn name(&self) -> &str {
        match self {
            Given::Named(name) | Given::Text { name, .. } | Given::Ready { name, .. } => name,
        }
    }

    /// The same under another name, of which it takes the settings.
    pub fn renamed(&self, name: String) -> Given<T> {
        match self.clone() {
            Given::Named(_) => Given::Named(name),
            Given::Text { text, .. } => Given::Text { name, text },
            Given::Ready { value, .. } => Given::Ready { name, value },
        }
    }

    /// Loads it; every fault at once.
    pub fn load(&self) -> Result<T, Diagnostics> {
        match self {
            Given::Named(name) => T::named(name),
            Given::Text { name, text } => T::of_text(name, text),
            Given::Ready { value, .. } => Ok((**value).clone()),
        }
    }

    /// The same with the file's content in the place of its path, for a computer that does not have it.
    pub fn embedded(&self) -> Result<Given<T>, Diagnostics> {
        let path = match self {
            Given::Named(name) => T::path_of(name),
            Given::Text { .. } | Given::Ready { .. } => None,
        };
        match path {
            Some(path) => Ok(Given::text(self.name(), read_source(path)?.text.clone())),
            None => Ok(self.clone()),
        }
    }
}

impl<T> From<&str> for Given<T> {
    fn from(name: &str) -> Given<T> {
        Given::Named(name.to_string())
    }
}

impl<T> From<String> for Given<T> {
    fn from(name: String) -> Given<T> {
        Given::Named(name)
    }
}

impl From<KernelFile> for Given<KernelFile> {
    fn from(file: KernelFile) -> Given<KernelFile> {
        Given::Ready { name: file.identity.clone(), value: Box::new(file) }
    }
}

impl From<Workload> for Given<Workload> {
    fn from(workload: Workload) -> Given<Workload> {
        Given::Ready { name: workload.name().to_string(), value: Box::new(workload) }
    }
}

impl From<Suite> for Given<Suite> {
    fn from(suite: Suite) -> Given<Suite> {
        Given::Ready { name: suite.name.clone(), value: Box::new(suite) }
    }
}

impl From<Machine> for Given<Machine> {
    fn from(machine: Machine) -> Given<Machine> {
        Given::Ready { name: machine.identity.clone(), value: Box::new(machine) }
    }
}
