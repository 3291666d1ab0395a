// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin completions` and `schedtwin man`: what a shell and `man` know of the command line, made from its
//! declaration.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output;

/// Prints the completions of a shell.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "schedtwin", &mut text);
    output::print(&String::from_utf8_lossy(&text))
}

/// Writes a page for the command and one for each of its commands into `directory`, which is made if it is not there.
pub fn man(directory: &Path) -> Result<(), Failure> {
    let written = fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), directory));
    written.map_err(|error| Failure::of_file("write manual pages into", directory, &error))
}
