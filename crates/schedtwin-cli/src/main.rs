// SPDX-License-Identifier: GPL-2.0-or-later
//! The binary `schedtwin`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(schedtwin_cli::run_command(std::env::args_os()))
}
