//! Whatever follows a name on the command line is a setting or an option, or a fault that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin::kernel_file::KernelFile;
use schedtwin_machine::Machine;
use schedtwin_workload::Workload;

fuzz_target!(|text: &str| {
    let faults = [
        KernelFile::load(&format!("linux-6.12:{text}")).err(),
        Machine::load(&format!("pixel6:{text}")).err(),
        Workload::from_path_or_name(&format!("jankbench {text}")).err(),
    ];
    for faults in faults.into_iter().flatten() {
        drop(faults.render(false));
    }
});
