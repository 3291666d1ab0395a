// SPDX-License-Identifier: GPL-2.0-or-later
//! `cargo bench`: W1 against the floor.

fn main() {
    schedtwin_benches::w1::report(schedtwin_benches::w1::KERNEL, 10, 60);
}
