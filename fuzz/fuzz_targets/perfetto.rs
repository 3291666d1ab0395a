//! Any bytes can be read back as a trace of ours, or say in which packet they cannot.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_trace::perfetto_read::read;

fuzz_target!(|bytes: &[u8]| {
    let _ = read(bytes, &mut |event| {
        std::hint::black_box(event);
    });
});
