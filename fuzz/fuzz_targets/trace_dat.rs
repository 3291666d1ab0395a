// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes can be read as a trace.dat to its end, or are refused with a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_fuzz::read_to_the_end;
use schedtwin_trace::trace_dat::TraceDat;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| read_to_the_end(TraceDat::open(Cursor::new(bytes)), bytes.len()));
