// SPDX-License-Identifier: GPL-2.0-or-later
//! Arguments of `schedtwin mcp`.

use std::path::PathBuf;

use clap::Args;

pub const MCP_EXAMPLES: &str = "\
A client starts it and speaks JSON-RPC over its stdin and stdout. Tools: list, show, check, run, compare, explain, first_difference,
properties, bisect, shrink, score. Nothing is written, and files are those below --folder.

Examples:
  claude mcp add schedtwin -- schedtwin mcp --folder ~/my-schedulers
  { \"mcpServers\": { \"schedtwin\": { \"command\": \"schedtwin\", \"args\": [\"mcp\"] } } }";

#[derive(Args)]
pub struct Mcp {
    /// Machines, kernels, workloads, suites and C of this folder may be read; without it no file may
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
}
