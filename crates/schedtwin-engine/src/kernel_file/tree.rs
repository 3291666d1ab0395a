// SPDX-License-Identifier: GPL-2.0-or-later
//! Governors that come from a kernel tree: `tree=PATH,cpuidle=tree`.
//!
//! | spelled | means |
//! |---|---|
//! | `tree=PATH`, `tree=PATH@REVISION` | which tree: a folder, or a revision of its git repository |
//! | `cpuidle=tree` | the file of the governor that the kernel would have: `drivers/cpuidle/governors/teo.c` |
//! | `cpuidle=tree/menu.c` | another file of that folder |
//! | `cpuidle=tree/drivers/x/own.c` | another file of the tree |
//! | `cpufreq=tree` | schedutil's file, `kernel/sched/cpufreq_schedutil.c`; other files likewise |
//! | `sched=tree`, `fair=tree` | the fair class: refused, with the reason |
//!
//! These are no settings of a kernel file: the C stands behind the policy interface, in the place
//! of what the settings choose.

use super::KernelFile;
use schedtwin_input::{Diagnostics, Setting, Word};
use schedtwin_tree::{FrequencyCode, IdleCode, Tree};

/// Where a tree is named.
const TREE: &str = "tree";
/// The settings that take governors from it.
const CPUIDLE: &str = "cpuidle";
const CPUFREQ: &str = "cpufreq";

/// How the fair class is asked for: as a file of the tree, or as the point that names its form.
const FAIR: [&str; 2] = ["sched", "fair"];

/// The file that `cpufreq=tree` takes.
const SCHEDUTIL: &str = "cpufreq_schedutil.c";

/// Why there is no fair class from a tree, and what there is instead.
const NO_FAIR_CLASS: &str = "the fair class cannot be taken from a tree: fair.c keeps its state in run queues and tasks that core.c, \
                             rt.c, deadline.c and topology.c write, too, and those are the twin's own";
const JUDGE: &str = "conformance/judge --kernel TREE boots the tree under emulation and says where the twin parts from it; \
                     docs/fair-from-a-tree.md has what it would take";

/// The settings of a kernel that are asked of a tree.
#[derive(Default)]
pub(super) struct TreeRequest {
    tree: Option<Word>,
    /// The file, `None` being the one that the kernel would have, and where it is asked for.
    cpuidle: Option<(Option<String>, Word)>,
    /// Likewise.
    cpufreq: Option<(Option<String>, Word)>,
}

/// C that came from a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeCode {
    /// The policy that it is: `teo.c of ~/src/linux`.
    pub name: String,
    /// Of its sources and of all else that decides what it does.
    pub hash: u64,
    /// The commit that it is of, with its subject.
    pub commit: Option<String>,
    /// What can be set of it, a line each.
    pub options: Vec<String>,
    /// The kernel tree that it is a file of, with its path there.
    pub of_kernel: Option<(Tree, String)>,
}

/// `tree` or `tree/FILE`; the file, if one is named.
fn from_tree(value: &str) -> Option<Option<String>> {
    let rest = value.strip_prefix(TREE)?;
    match rest.strip_prefix('/') {
        Some("") | None => rest.trim_end_matches('/').is_empty().then_some(None),
        Some(file) => Some(Some(file.to_string())),
    }
}

impl TreeRequest {
    /// Takes what is asked of a tree out of the settings; the others remain.
    pub(super) fn take(
        settings: &[Setting],
        faults: &mut Diagnostics,
    ) -> (TreeRequest, Vec<Setting>) {
        let (mut asked, mut others) = (TreeRequest::default(), Vec::new());
        let mut fair = false;
        for setting in settings {
            match (setting.key.text.as_str(), from_tree(&setting.value.text)) {
                (TREE, _) => asked.tree = Some(setting.value.clone()),
                (CPUIDLE, Some(file)) => asked.cpuidle = Some((file, setting.value.clone())),
                (CPUFREQ, Some(file)) => asked.cpufreq = Some((file, setting.value.clone())),
                (key, Some(_)) if FAIR.contains(&key) => {
                    fair = true;
                    faults.push_at(&setting.value.at, NO_FAIR_CLASS, Some(JUDGE.into()));
                }
                _ => others.push(setting.clone()),
            }
        }
        match (&asked.tree, asked.cpuidle.as_ref().or(asked.cpufreq.as_ref())) {
            (Some(_), None) if fair => {}
            (Some(tree), None) => {
                let message = "nothing is taken from the tree".to_string();
                let help = "cpuidle=tree takes the idle governor that the kernel has, cpuidle=tree/FILE.c another; cpufreq=tree takes schedutil";
                faults.push_at(&tree.at, message, Some(help.into()));
            }
            (None, Some((_, at))) => {
                let help =
                    "tree=PATH or tree=PATH@REVISION names it: `:tree=~/src/linux,cpuidle=tree`";
                faults.push_at(&at.at, "which tree is not said", Some(help.into()));
            }
            _ => {}
        }
        (asked, others)
    }

    /// Puts the governors into the kernel.
    pub(super) fn put_into(self, mut kernel: KernelFile) -> Result<KernelFile, Diagnostics> {
        let Some(named) = self.tree else { return Ok(kernel) };
        let tree = Tree::find(&named.text).map_err(|fault| fault.at(&named.at))?;
        if let Some((file, at)) = self.cpuidle {
            let file = file.unwrap_or_else(|| format!("{}.c", kernel.config.cpuidle.word()));
            let code = IdleCode::build(&tree, &file, kernel.config.hz.into());
            let code = code.map_err(|fault| fault.at(&at.at))?;
            let name = code.name().to_string();
            kernel.code.push(TreeCode::of_kernel(&name, code.hash(), &tree, file));
            let govern = move |cpus: &[_]| code.govern(cpus);
            kernel.policies = kernel.policies.with_machine_idle_governor(&name, govern);
        }
        if let Some((file, at)) = self.cpufreq {
            if !kernel.config.schedutil_asks_as_today() {
                let mut faults = Diagnostics::new();
                let message = "a frequency governor of a tree takes schedutil's place, which this kernel does not use \
                               or not to ask for frequencies";
                let help = "a kernel with cpufreq=schedutil and the machine's own driver; see `schedtwin list kernels`";
                faults.push_at(&at.at, message, Some(help.into()));
                return Err(faults);
            }
            let file = file.unwrap_or_else(|| SCHEDUTIL.to_string());
            let code = FrequencyCode::build(&tree, &file, kernel.config.hz.into());
            let code = code.map_err(|fault| fault.at(&at.at))?;
            let name = code.name().to_string();
            kernel.code.push(TreeCode::of_kernel(&name, code.hash(), &tree, file));
            let govern = move |domains: &[_]| code.govern(domains);
            kernel.policies = kernel.policies.with_machine_frequency_governor(&name, govern);
        }
        Ok(kernel)
    }
}

impl KernelFile {
    /// The commits that its C is of, abbreviated and with their subjects.
    pub fn commits(&self) -> Vec<&str> {
        let mut commits: Vec<&str> = Vec::new();
        for commit in self.code.iter().filter_map(|code| code.commit.as_deref()) {
            if !commits.contains(&commit) {
                commits.push(commit);
            }
        }
        commits
    }

    /// C files of the scheduler, frequency and idle code that differ between the trees that this kernel's governors and another's
    /// are of, and that neither takes.
    pub fn changed_and_not_taken(&self, other: &KernelFile) -> Vec<String> {
        fn of_kernel(kernel: &KernelFile) -> impl Iterator<Item = &(Tree, String)> {
            kernel.code.iter().filter_map(|code| code.of_kernel.as_ref())
        }
        let (Some((tree, _)), Some((base, _))) = (of_kernel(self).next(), of_kernel(other).next())
        else {
            return Vec::new();
        };
        // A file may be named by its end alone.
        let taken = |path: &str| {
            of_kernel(self).chain(of_kernel(other)).any(|(_, file)| path.ends_with(file))
        };
        let differ = tree.files_that_differ(base).into_iter();
        differ.filter(|path| !taken(path)).map(String::from).collect()
    }
}

impl TreeCode {
    fn of_kernel(name: &str, hash: u64, tree: &Tree, file: String) -> TreeCode {
        let (name, commit) = (name.to_string(), tree.commit_line());
        TreeCode { name, hash, commit, options: Vec::new(), of_kernel: Some((tree.clone(), file)) }
    }

    /// As provenances show it.
    pub fn text(&self) -> String {
        format!("{} ({:016x})", self.name, self.hash)
    }
}
