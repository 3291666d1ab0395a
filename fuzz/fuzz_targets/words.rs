// SPDX-License-Identifier: GPL-2.0-or-later
//! Any word of the command line that is taken apart by hand: names with patches and settings, metrics, conditions, times.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_input::{Setting, Spec};
use schedtwin_lab::fail_if::Condition;
use schedtwin_lab::selector::Selector;
use schedtwin_trace::explain::parse_time;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // The first character says what the rest is, so that an execution pays for one reader.
    let Some(first) = text.chars().next() else { return };
    let rest = &text[first.len_utf8()..];
    let faults = match first {
        'k' => Spec::parse_kernel(rest).err(),
        'm' => Spec::parse_machine(rest).err(),
        's' => Setting::parse(rest).err(),
        'l' => Selector::parse_list(rest).err(),
        'c' => Condition::parse(rest).err(),
        _ => return drop(parse_time(rest)),
    };
    if let Some(faults) = faults {
        drop(faults.render(false));
    }
});

schedtwin_fuzz::text_mutator!();
