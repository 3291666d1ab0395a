// SPDX-License-Identifier: GPL-2.0-or-later
//! Commands for contributors: `cargo xtask` lists them.

mod lessons;
mod release;
mod site;
mod skeleton;
mod web;
mod workspace;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Commands for those who work on schedtwin
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the playground and its lessons as static pages: target/web/index.html
    Web {
        /// Say why and succeed where the compiler has no target for WebAssembly
        #[arg(long)]
        if_possible: bool,
    },
    /// Name the functions of the scheduler that a kernel's commits change, their counterparts here, and the text to begin with
    Skeleton {
        /// The folder of a git repository of Linux
        tree: PathBuf,
        /// Two revisions: A..B
        range: String,
    },
    /// Make all that a release publishes, into release/out, and try each piece where nothing else is
    Release(release::Asked),
    /// Build the documents as a book with a search, beside the API docs, and the playground if that is built: target/site/index.html
    Site(site::Asked),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Web { if_possible } => web::build(if_possible),
        Command::Skeleton { tree, range } => skeleton::print(&tree, &range),
        Command::Release(asked) => release::make(&asked),
        Command::Site(asked) => site::build(&asked),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
