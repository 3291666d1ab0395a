//! Whatever follows the name of a machine on the command line is settings, or faults that can be shown.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use schedtwin_input::{Source, Spec};
use schedtwin_machine::Machine;
use std::sync::{Arc, LazyLock};

/// A small machine: a large one would take most of the time.
static MACHINE: LazyLock<Arc<Source>> = LazyLock::new(|| {
    Source::new("good.toml", include_str!("../../crates/schedtwin-machine/tests/good.toml"))
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let machine = Spec::parse_machine(&format!("m:{text}"))
        .and_then(|spec| Machine::from_source(&MACHINE, &spec.settings));
    match machine {
        Ok(machine) => drop(machine.describe()),
        Err(faults) => drop(faults.render(false)),
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    schedtwin_fuzz::change_text(data, size, max_size, seed)
});
