// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin mcp`: a server for agents, over stdin and stdout.

use crate::arguments::Mcp;
use crate::failure::Failure;

/// Serves until the client goes.
pub fn mcp(arguments: &Mcp) -> Result<(), Failure> {
    let served = schedtwin_mcp::serve(arguments.folder.as_deref());
    served.map_err(|error| Failure::bad(format!("failed to serve: {error}")))
}
