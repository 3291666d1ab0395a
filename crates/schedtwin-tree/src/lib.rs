// SPDX-License-Identifier: GPL-2.0-or-later
//! Governors from a kernel tree: the user's own C, compiled, loaded and asked inside of the twin.
//!
//! **Idea.** A governor's C is a file that asks the kernel around it about thirty things. Here it is compiled against
//! headers that answer those from the twin, loaded as a shared object, and stands behind the policy
//! interface ([`schedtwin_kernel::policy`]) like any user's policy.
//!
//! ```text
//!  tree (folder or git revision)          c/ (our headers, glue, runtime)
//!        └── sources.rs: the file and what it includes ──┐
//!                              compile.rs: cc ── cache by content ── object
//!  kernel ── policy interface ── idle.rs, frequency.rs ── memory.rs: arena ── C: select(), reflect(), update_util()
//!                                          watch.rs: whose code crashes, loops
//! ```
//!
//! **State is memory.** All that a governor's C can write, its variables, its per-CPU data and what it allocates, lies in
//! an *arena*: one loaded copy of the object. A kernel of the twin has an *image* of it. The image that was asked last is
//! where the C finds it; when another one is asked, the two change places. Pointers stay right, because an image always
//! returns to the arena that it was made in. A clone is a copy of the image.
//!
//! **Trust.** The command `schedtwin` never loads the code in its own process: a worker, which has confined itself before, does, and
//! performs the whole command ([`confine`], [`worker`]). Crashes, loops and refusals are noticed (`watch.rs`).
//!
//! | module | contents |
//! |---|---|
//! | `tree.rs` | the tree: a folder, or a revision in git, both only read |
//! | `sources.rs` | a file of it, with those that it includes |
//! | `offered.rs` | the headers that stand in for the kernel's |
//! | `compile.rs` | the compiler, the cache, and what an error means |
//! | `program.rs` | other programs with limits: the compiler, git |
//! | `confine.rs` | what the C and its compiler may reach |
//! | `worker.rs` | the process that loads the C, and the one that watches it |
//! | `object.rs` | loading an object without running any of it |
//! | `memory.rs` | arenas and images |
//! | `watch.rs` | who is asked; crashes, loops, refusals |
//! | `built.rs` | what governors of every kind have in common |
//! | `idle.rs`, `frequency.rs` | idle governors; frequency governors |
//! | `scx/`, `ext_setting.rs` | schedulers of sched_ext; what is set of them |
//! | `options.rs`, `loaders/` | what their own programs set and offer |
//! | `steps.rs`, `expression.rs` | what they make of the machine |
//! | `tokens.rs` | the text of a preprocessed unit, to be rewritten |
//! | `symbols.rs`, `lines.rs`, `elf.rs` | variables of an object: where they are, and their types; its lines |
//!
//! Only on Linux, with 64 bits, and with the feature `c`; else it is refused.

mod expression;
mod ext_setting;
mod fault;
mod options;
#[cfg(unix)]
mod program;
mod steps;

cfg_if::cfg_if! {
    if #[cfg(all(feature = "c", target_os = "linux", target_pointer_width = "64"))] {
        mod built;
        mod compile;
        pub mod confine;
        mod elf;
        #[cfg(test)]
        #[allow(dead_code)]
        mod elsewhere;
        mod frequency;
        mod idle;
        mod lines;
        mod machine_code;
        mod memory;
        mod object;
        mod offered;
        mod scx;
        mod sources;
        mod symbols;
        mod tokens;
        mod tree;
        mod watch;
        pub mod worker;

        pub use frequency::FrequencyCode;
        pub use idle::IdleCode;
        pub use scx::ExtCode;
        pub use tree::Tree;
    } else {
        mod elsewhere;
        #[cfg(unix)]
        #[allow(dead_code, reason = "its files are for what compiles C")]
        mod tree;

        #[cfg(not(unix))]
        pub use elsewhere::Tree;
        pub use elsewhere::{ExtCode, FrequencyCode, IdleCode, confine, worker};
        #[cfg(unix)]
        pub use tree::Tree;
    }
}

pub use expression::{Expression, Operator};
pub use ext_setting::{ExtSetting, OF_ALL};
pub use fault::{Fault, Refusal};
pub use options::{ExtOption, ExtOptions, OPTIONS_FILE};
pub use steps::{Action, Part, Path, Run, Step, Value};
