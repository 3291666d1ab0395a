//! Any text is a workload or a list of faults, and a workload can be instantiated or says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_input::Source;
use schedtwin_workload::{Host, Workload};

fuzz_target!(|text: &str| {
    if let Ok(workload) = Workload::parse_rtapp(Source::new("fuzz.json", text)) {
        let host = Host { cpu_capacity: vec![124, 124, 1024, 1024], ns_per_loop: 21 };
        let _ = workload.instantiate(&host, 1);
    }
});
