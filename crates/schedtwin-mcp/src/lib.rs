// SPDX-License-Identifier: GPL-2.0-or-later
//! schedtwin for agents: a server of the Model Context Protocol over stdin and stdout.
//!
//! Each tool is one row of a table ([`tools`]): its name, its arguments, and the function of the library that it calls. Arguments are
//! declared once ([`arguments`]): the schema that a client sees, the reader, and its messages follow. A result is a text that
//! fits a model's context; what is longer comes in pages ([`page`]). Work that takes long tells its progress and can be cancelled
//! ([`server`]).
//!
//! Files are read below one folder, which is given at the start, and nothing is written ([`folder`]): without a folder there are no
//! files, and machines, kernels and workloads are names or texts.

pub mod arguments;
mod asked;
mod causes;
pub mod folder;
pub mod page;
pub mod server;
pub mod tools;

use std::io;
use std::path::Path;

use rmcp::ServiceExt;

pub use server::Server;

/// Serves stdin and stdout until the client goes. Files are those below `folder`, if there is one.
pub fn serve(folder: Option<&Path>) -> io::Result<()> {
    // Before there is another thread: threads take the confinement from the one that starts them.
    let weak = folder::confine(folder)?;
    if let Some(weak) = weak {
        eprintln!("warning: {weak}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let server = Server::new(folder.is_some());
        let running = server.serve(rmcp::transport::stdio()).await.map_err(io::Error::other)?;
        running.waiting().await.map_err(io::Error::other)?;
        Ok(())
    })
}
