// SPDX-License-Identifier: GPL-2.0-or-later
//! The headers that stand in for the kernel's: which there are, and what is in them.

/// Our own files, by their paths below `c/`.
pub(crate) const FILES: [(&str, &str); 12] = [
    ("include/schedtwin/kernel.h", include_str!("../c/include/schedtwin/kernel.h")),
    ("include/schedtwin/cpuidle.h", include_str!("../c/include/schedtwin/cpuidle.h")),
    ("include/schedtwin/all.h", include_str!("../c/include/schedtwin/all.h")),
    ("include/schedtwin/cpufreq.h", include_str!("../c/include/schedtwin/cpufreq.h")),
    ("runtime.c", include_str!("../c/runtime.c")),
    ("idle.c", include_str!("../c/idle.c")),
    ("frequency.c", include_str!("../c/frequency.c")),
    ("include/schedtwin/scx.h", include_str!("../c/include/schedtwin/scx.h")),
    ("include/schedtwin/scx_inside.h", include_str!("../c/include/schedtwin/scx_inside.h")),
    ("scx.c", include_str!("../c/scx.c")),
    ("scx_maps.c", include_str!("../c/scx_maps.c")),
    ("scx_masks.c", include_str!("../c/scx_masks.c")),
];

/// Headers that a governor may include as `<...>`. Each leads to everything that is offered.
pub(crate) const HEADERS: [&str; 55] = [
    "asm/io.h",
    "asm/div64.h",
    "linux/atomic.h",
    "linux/bitops.h",
    "linux/bits.h",
    "linux/bug.h",
    "linux/build_bug.h",
    "linux/cache.h",
    "linux/cleanup.h",
    "linux/compiler.h",
    "linux/container_of.h",
    "linux/cpu.h",
    "linux/cpufreq.h",
    "linux/cpuidle.h",
    "linux/cpumask.h",
    "linux/err.h",
    "linux/errno.h",
    "linux/export.h",
    "linux/gfp.h",
    "linux/hrtimer.h",
    "linux/init.h",
    "linux/irq_work.h",
    "linux/jiffies.h",
    "linux/jump_label.h",
    "linux/kernel.h",
    "linux/kthread.h",
    "linux/ktime.h",
    "linux/kvm_para.h",
    "linux/limits.h",
    "linux/list.h",
    "linux/log2.h",
    "linux/math.h",
    "linux/math64.h",
    "linux/minmax.h",
    "linux/module.h",
    "linux/moduleparam.h",
    "linux/mutex.h",
    "linux/percpu.h",
    "linux/printk.h",
    "linux/rcupdate.h",
    "linux/sched.h",
    "linux/sched/clock.h",
    "linux/sched/cpufreq.h",
    "linux/sched/idle.h",
    "linux/sched/loadavg.h",
    "linux/sched/stat.h",
    "linux/sched/topology.h",
    "linux/slab.h",
    "linux/smp.h",
    "linux/spinlock.h",
    "linux/string.h",
    "linux/tick.h",
    "linux/time.h",
    "linux/types.h",
    "uapi/linux/sched/types.h",
];

/// Headers that a scheduler of sched_ext may include as `<...>`. Each leads to everything that is offered to those.
const SCX_HEADERS: [&str; 20] = [
    "bpf/bpf_core_read.h",
    "bpf/bpf_helpers.h",
    "bpf/bpf_tracing.h",
    "bpf_arena_common.bpf.h",
    "bpf_arena_spin_lock.h",
    "bpf_experimental.h",
    "errno.h",
    "lib/alloc/bpf_helpers_local.h",
    "lib/pmu.h",
    "limits.h",
    "scx/bpf_arena_common.bpf.h",
    "scx/bpf_arena_spin_lock.h",
    "scx/common.bpf.h",
    "scx/compat.bpf.h",
    "scx/enums.bpf.h",
    "scx/percpu.bpf.h",
    "scx/user_exit_info.bpf.h",
    "scx/user_exit_info.h",
    "stdbool.h",
    "vmlinux.h",
];

/// The text of such a header.
const SCX_FORWARD: &str = "#include <schedtwin/scx.h>\n";

/// Headers that a governor may include as `"..."`, which are not taken from the tree.
const QUOTED: [&str; 1] = ["sched.h"];
/// Likewise those of a scheduler of sched_ext.
const SCX_QUOTED: [&str; 1] = ["bpf_arena_common.bpf.h"];

/// Whether `"name"` is one of ours.
pub(crate) fn is_quoted(name: &str) -> bool {
    QUOTED.contains(&name) || SCX_QUOTED.contains(&name)
}

/// Whether `<name>` is one that a scheduler gets from us.
pub(crate) fn is_offered(name: &str) -> bool {
    SCX_HEADERS.contains(&name)
}

/// The text of a header that leads to everything.
pub(crate) const FORWARD: &str = "#include <schedtwin/all.h>\n";

/// All files to be written: paths and texts.
pub(crate) fn files() -> impl Iterator<Item = (String, &'static str)> {
    let ours = FILES.into_iter().map(|(path, text)| (path.to_string(), text));
    let headers = HEADERS.into_iter().map(|header| (format!("include/{header}"), FORWARD));
    let quoted = QUOTED.into_iter().map(|header| (format!("quoted/{header}"), FORWARD));
    let scx = SCX_HEADERS.into_iter().map(|header| (format!("include/{header}"), SCX_FORWARD));
    let scx_quoted = SCX_QUOTED.into_iter().map(|header| (format!("quoted/{header}"), SCX_FORWARD));
    ours.chain(headers).chain(scx).chain(quoted).chain(scx_quoted)
}

/// Every word of the headers, for "did you mean".
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    let headers = FILES.into_iter().filter(|(path, _)| path.ends_with(".h"));
    let words =
        headers.flat_map(|(_, text)| text.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| word.len() > 3 && !word.starts_with("schedtwin"))
}
