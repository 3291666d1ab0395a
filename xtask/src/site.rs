// SPDX-License-Identifier: GPL-2.0-or-later
//! `cargo xtask site`: the documents as a book with a search; beside it the API docs of the library, and the playground if it is built.
//!
//! ```text
//! *.md ─────── every link checked ── links of the book ──┐
//! cargo doc ── every link checked ── api ────────────────┼── target/site
//! cargo xtask web ── playground ─────────────────────────┘
//! ```
//!
//! A link that leads to nothing ends the build. `--check` ends when links are checked; it needs nothing of what makes books, so a build
//! without the feature `site` has it, too.

mod api;
#[cfg(feature = "site")]
mod book;
mod links;

use api::Api;
use links::Documents;

/// The options of `cargo xtask site`.
#[derive(clap::Args)]
pub struct Asked {
    /// Check the links of the documents and of the API docs, and write no book
    #[arg(long)]
    pub check: bool,
}

/// Builds it, or checks what it is built of.
pub fn build(asked: &Asked) -> Result<(), String> {
    let documents = Documents::read()?;
    let count = documents.check()?;
    let api = Api::build()?;
    println!(
        "{count} links of documents and the API docs of {} crates lead to what exists",
        api.crates.len()
    );
    if asked.check {
        return Ok(());
    }
    #[cfg(feature = "site")]
    return book::build(&documents, &api);
    #[cfg(not(feature = "site"))]
    Err("the book needs the feature `site`, which `cargo xtask` has".to_string())
}
