// SPDX-License-Identifier: GPL-2.0-or-later
//! Load balancing and wakeup placement against the kernel's own C: whole decisions on random states.
//!
//! The other subjects compare after every operation of a sequence; here a case is a state, and the
//! answer is what the balancer makes of it. So the cases are text, one a line: the state, `=`, our
//! answer. The kernel crate's own test writes them (`sched/fair/balance/golden.rs`, which needs its
//! private functions), and `shim.c` reads them, computes the kernel's
//! answer from the same state and compares.
//!
//! ```text
//!   cargo test -p schedtwin-kernel balance::golden ──► cases ──► kernel's C ──► equal?
//!   (SCHEDTWIN_BALANCE_CASES, SCHEDTWIN_BALANCE_COUNT)
//! ```
//!
//! **Three kinds.** *Decisions*: `sched_balance_find_src_group` and `_rq` with the imbalance and what
//! they write to the root domain, or `sched_balance_find_dst_group` and `_cpu` for a fork. *Passes*: a
//! whole `sched_balance_rq`, then every queue in order, the counters and the stopper. *Wakeups*: `wake_affine`
//! and `select_idle_sibling`, with what SIS_PROP spends.
//!
//! Each kind also on machines whose cores have hardware threads, with priorities of CPUs as asymmetric packing has them, and
//! decisions and passes of 7.3 also where processes prefer one of several caches.
//!
//! **Four forms.** Our points of 6.12 are compared with a tree that has these functions, those of 6.1
//! with one that has `load_balance`, `find_busiest_group` and so on; 7.3 is known by what only it has, and 6.12 before
//! 6.12.117 by what it lacks. Wakeups of 7.3 are not compared.
//!
//! **Not compared here:** what `kernel.h` beside the shim lists as replaced.

use crate::l0::{self, BuildDir, TREE, TREE_7_3, extract, oracle};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its name on the command line.
pub const NAME: &str = "balance";
/// The same against the tree of 7.3.
pub const NAME_7_3: &str = "balance-7.3";
/// Decisions, if not said; for every four of them there is one pass.
const CASES: u64 = 300_000;

/// The blocks that are taken out of `fair.c`, in an order in which it compiles.
const BLOCKS: &[&str] = &[
    "enum fbq_type",
    "enum group_type",
    "enum migration_type",
    "struct lb_env",
    "struct sg_lb_stats",
    "struct sd_lb_stats",
];
const MACROS: &[&str] = &[
    "LBF_ALL_PINNED",
    "LBF_NEED_BREAK",
    "LBF_DST_PINNED",
    "LBF_SOME_PINNED",
    "LBF_ACTIVE_LB",
    "MAX_PINNED_INTERVAL",
];
/// The macros and blocks that only 7.3 has.
const MACROS_7_3: &[&str] = &["LBF_LLC_PINNED", "LBF_ACTIVE_LB_LLC", "util_greater"];
const BLOCKS_7_3: &[&str] = &["enum llc_mig"];
/// And functions, before the others.
const FUNCTIONS_7_3: &[&str] = &[
    "task_is_ineligible_on_dst_cpu",
    "choose_sched_idle_rq",
    // Caches that processes prefer.
    "llc_id",
    "get_sched_cache_scale",
    "exceed_llc_capacity",
    "invalid_llc_nr",
    "task_pref_llc_runnable",
    "pref_llc_running_inc",
    "pref_llc_running_dec",
    "account_llc_enqueue",
    "account_llc_dequeue",
    "fits_llc_capacity",
    "get_llc_stats",
    "can_migrate_llc",
    "task_misfits_asym_cpu",
    "can_migrate_llc_task",
    "alb_break_llc",
    "migrate_llc_task_wrong_dst",
    "migrate_degrades_llc",
    "record_sg_llc_stats",
    "llc_balance",
    "update_llc_busiest",
    "alb_stop_fn",
];
/// Functions by their names in 6.12 and, where those differ, in 6.1; `""`: not there.
const FUNCTIONS: &[(&str, &str)] = &[
    // Hardware threads.
    ("is_core_idle", "is_core_idle"),
    // Which task may move.
    ("task_hot", "task_hot"),
    ("can_migrate_task", "can_migrate_task"),
    ("detach_task", "detach_task"),
    ("detach_tasks", "detach_tasks"),
    ("attach_tasks", "attach_tasks"),
    // Statistics of groups.
    ("init_sd_lb_stats", "init_sd_lb_stats"),
    ("check_cpu_capacity", "check_cpu_capacity"),
    ("check_misfit_status", "check_misfit_status"),
    ("sg_imbalanced", "sg_imbalanced"),
    ("group_has_capacity", "group_has_capacity"),
    ("group_is_overloaded", "group_is_overloaded"),
    ("group_classify", "group_classify"),
    ("sched_use_asym_prio", "asym_smt_can_pull_tasks"),
    ("sched_asym", "sched_asym"),
    ("sched_group_asym", ""),
    ("smt_vs_nonsmt_groups", ""),
    ("smt_balance", ""),
    ("sibling_imbalance", ""),
    ("sched_reduced_capacity", "sched_reduced_capacity"),
    ("update_sg_lb_stats", "update_sg_lb_stats"),
    ("update_sd_pick_busiest", "update_sd_pick_busiest"),
    // Where a fork goes.
    ("task_running_on_cpu", "task_running_on_cpu"),
    ("idle_cpu_without", "idle_cpu_without"),
    ("update_sg_wakeup_stats", "update_sg_wakeup_stats"),
    ("update_pick_idlest", "update_pick_idlest"),
    ("adjust_numa_imbalance", "adjust_numa_imbalance"),
    ("sched_balance_find_dst_group", "find_idlest_group"),
    ("sched_balance_find_dst_group_cpu", "find_idlest_group_cpu"),
    // The busiest group and queue.
    ("update_idle_cpu_scan", "update_idle_cpu_scan"),
    ("update_sd_lb_stats", "update_sd_lb_stats"),
    ("calculate_imbalance", "calculate_imbalance"),
    ("sched_balance_find_src_group", "find_busiest_group"),
    ("sched_balance_find_src_rq", "find_busiest_queue"),
    // A pass.
    ("asym_active_balance", "asym_active_balance"),
    ("imbalanced_active_balance", "imbalanced_active_balance"),
    ("need_active_balance", "need_active_balance"),
    ("should_we_balance", "should_we_balance"),
    ("sched_balance_rq", "load_balance"),
];
/// Those of wakeups, likewise; of 7.3 they are not compared yet.
const WAKEUPS: &[(&str, &str)] = &[
    ("wake_affine_idle", "wake_affine_idle"),
    ("wake_affine_weight", "wake_affine_weight"),
    ("wake_affine", "wake_affine"),
    ("select_idle_core", "select_idle_core"),
    ("select_idle_smt", "select_idle_smt"),
    ("select_idle_cpu", "select_idle_cpu"),
    ("select_idle_capacity", "select_idle_capacity"),
    ("asym_fits_cpu", "asym_fits_cpu"),
    ("select_idle_sibling", "select_idle_sibling"),
];

/// Which of our forms a kernel tree is the oracle of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    V6_1,
    /// Before what 6.12.117 took over about groups of bigger CPUs.
    V6_12_95,
    V6_12,
    V7_3,
}

impl Form {
    /// By the names of functions, and what of those that picks the busiest group asks for.
    fn of(fair: &str) -> Form {
        if extract::function(fair, "sched_balance_rq").is_none() {
            return Form::V6_1;
        }
        if extract::function(fair, "task_is_ineligible_on_dst_cpu").is_some() {
            return Form::V7_3;
        }
        let pick = extract::function(fair, "update_sd_pick_busiest").unwrap_or_default();
        if pick.contains("dst_core_idle") { Form::V6_12 } else { Form::V6_12_95 }
    }

    /// Returns the flag that the shim is told.
    fn flag(self) -> Option<&'static str> {
        match self {
            Form::V6_1 => Some("-DFORM_6_1"),
            Form::V7_3 => Some("-DFORM_7_3"),
            Form::V6_12_95 | Form::V6_12 => None,
        }
    }

    /// The modules of the kernel crate's tests.
    fn module(self) -> &'static str {
        match self {
            Form::V6_1 => "golden::linux_6_1::",
            Form::V6_12_95 => "golden::linux_6_12_95::",
            Form::V6_12 => "golden::linux_6_12::",
            Form::V7_3 => "balance::golden::linux_7_3::",
        }
    }
}

fn read_fair(tree: &Path) -> Result<String, String> {
    let path = tree.join("kernel/sched/fair.c");
    std::fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))
}

/// Builds the oracle from a tree.
pub fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let fair = read_fair(tree)?;
    let form = Form::of(&fair);
    let missing = |name: &str| format!("{}: no {name} in fair.c", tree.display());
    let mut text = String::new();
    let newer = form == Form::V7_3;
    for head in BLOCKS.iter().chain(BLOCKS_7_3.iter().filter(|_| newer)) {
        text += &extract::block(&fair, head).ok_or(missing(head))?;
    }
    let macros = MACROS.iter().chain(MACROS_7_3.iter().filter(|_| newer));
    for name in macros {
        text += &extract::macro_definition(&fair, name).ok_or(missing(name))?;
    }
    let wakeups = WAKEUPS.iter().filter(|_| !newer);
    let names = FUNCTIONS.iter().chain(wakeups).map(|(newer, older)| match form {
        Form::V6_1 => older,
        _ => newer,
    });
    let names = FUNCTIONS_7_3.iter().filter(|_| newer).chain(names);
    for name in names.filter(|name| !name.is_empty()) {
        text += &extract::function(&fair, name).ok_or(missing(name))?;
    }
    let file = build_dir.join("balance_extract.h");
    std::fs::write(&file, text).map_err(|error| format!("write {}: {error}", file.display()))?;
    let flags: Vec<&str> = flags.iter().copied().chain(form.flag()).collect();
    oracle::compile("balance/shim.c", &[build_dir], build_dir, &flags)
}

/// Lets the kernel crate's tests write their cases: the files of decisions, passes and wakeups, without and with hardware
/// threads.
fn write_cases(form: Form, cases: u64, dir: &Path) -> Result<Vec<PathBuf>, String> {
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
    let file = dir.join("cases");
    let mut command = Command::new(&cargo);
    command.args(["test", "--quiet", "--package", "schedtwin-kernel", "--lib"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    command.arg(form.module()).current_dir(l0::home());
    command.env("SCHEDTWIN_BALANCE_CASES", &file);
    command.env("SCHEDTWIN_BALANCE_COUNT", cases.to_string());
    let output = command.output().map_err(|error| format!("run {cargo}: {error}"))?;
    if !output.status.success() {
        let (out, err) = (&output.stdout, &output.stderr);
        let text = String::from_utf8_lossy(out) + String::from_utf8_lossy(err);
        return Err(format!("the test that writes the cases:\n{text}"));
    }
    let kinds = ["decisions", "passes", "wakeups"];
    let before = ["", "threads-", "cache-", "threads-cache-"];
    let names = before.iter().flat_map(|before| kinds.map(|kind| format!("{before}{kind}")));
    let all = names.map(|name| file.with_extension(name));
    // Not every form has all of them.
    let written: Vec<PathBuf> = all.filter(|file| file.exists()).collect();
    if written.is_empty() { Err("no cases were written".to_string()) } else { Ok(written) }
}

/// Compares `cases` decisions and wakeups and a quarter as many passes: the oracle's summaries and first
/// differences, and whether all are equal.
pub fn compare(tree: &Path, cases: u64, flags: &[&str]) -> Result<(String, bool), String> {
    let dir = BuildDir::new(NAME)?;
    let form = Form::of(&read_fair(tree)?);
    let oracle = build_oracle(tree, dir.path(), flags)?;
    let mut text = String::new();
    let mut equal = true;
    for file in write_cases(form, cases, dir.path())? {
        let input = std::fs::File::open(&file)
            .map_err(|error| format!("open {}: {error}", file.display()))?;
        let kind = file.extension().unwrap_or_default();
        let output = Command::new(&oracle)
            .arg(kind)
            .stdin(input)
            .output()
            .map_err(|error| format!("run {}: {error}", oracle.display()))?;
        text += &String::from_utf8_lossy(&output.stdout);
        match output.status.code() {
            Some(0) => {}
            Some(1) => equal = false,
            _ => return Err(text + &String::from_utf8_lossy(&output.stderr)),
        }
    }
    Ok((text, equal))
}

/// `l0 balance [--cases N]`.
pub fn run(asked: &l0::Asked) -> Result<i32, String> {
    run_with(TREE, asked)
}

/// `l0 balance-7.3 [--cases N]`.
pub fn run_7_3(asked: &l0::Asked) -> Result<i32, String> {
    run_with(TREE_7_3, asked)
}

fn run_with(variable: &str, asked: &l0::Asked) -> Result<i32, String> {
    if asked.action != l0::Action::Compare {
        return Err(format!("{NAME} can only be compared"));
    }
    let cases = asked.cases.unwrap_or(CASES);
    let tree = l0::kernel_tree(variable).ok_or(format!("set {variable} to a kernel tree"))?;
    let version = l0::tree_version(&tree)?;
    let (text, equal) = compare(&tree, cases, &["-O2"])?;
    print!("balance against {version}\n{text}");
    Ok(!equal as i32)
}
