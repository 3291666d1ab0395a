// SPDX-License-Identifier: GPL-2.0-or-later
//! Built-in machines and workloads under the built-in schedulers.

use super::follow;
use schedtwin_engine::Scenario;
use schedtwin_engine::kernel_file::KernelFile;

#[test]
fn both_classes_agree_on_built_in_machines() {
    for (machine, workload) in
        [("uniform8", "periodic"), ("pixel6", "ui-phone"), ("i5-10600k", "ui-phone")]
    {
        for release in ["linux-7.3", "linux-6.12"] {
            for scheduler in ["simple", "fifo", "random"] {
                let spec = format!("{release}:scx={scheduler}");
                let kernel = KernelFile::load(&spec).unwrap();
                let run = Scenario::with_kernel(machine, kernel, workload, Some(500_000_000));
                let steps = follow(&run.unwrap(), 3, u64::MAX).unwrap();
                assert!(steps > 500, "{spec} {machine}: only {steps} steps");
            }
        }
    }
}
