// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub const IMPORT_EXAMPLES: &str = "\
Examples:
  schedtwin import wattson curves/ -m captured/machine.toml
  schedtwin import lisa plat_info.yml -o board.toml
  schedtwin import device-tree /sys/firmware/fdt -o board.toml
  schedtwin import wattson curves/ -m pixel6 -o my-pixel6.toml --device Tensor
The folder of wattson has CSV files with the columns of Wattson's tables: device, policy, freq_khz, static, active,
idle0 (mW), and dep_freq where power depends on another policy's frequency, too. Perfetto's trace processor
exports them: SELECT * FROM _device_curves_1d after INCLUDE PERFETTO MODULE wattson.curves.device_cpu_1d.";

#[derive(Args)]
pub struct Import {
    #[command(subcommand)]
    pub what: ImportWhat,
}

#[derive(Subcommand)]
pub enum ImportWhat {
    /// Power by operating point, as Perfetto's Wattson has it
    Wattson(ImportWattson),
    /// A machine file of LISA's plat_info.yml: capacities, frequencies and the energy model
    Lisa(ImportMachine),
    /// A machine file of a compiled device tree (.dtb): CPUs, operating points, power, idle states, caches
    DeviceTree(ImportMachine),
}

#[derive(Args)]
pub struct ImportMachine {
    /// The description
    #[arg(value_name = "FILE")]
    pub description: PathBuf,
    /// The machine file to write
    #[arg(short, long, value_name = "FILE.toml")]
    pub output: PathBuf,
    /// The machine's name [default: that of the description]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Args)]
pub struct ImportWattson {
    /// The folder of the CSV files
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,
    /// The machine that gets the power: NAME or a path
    #[arg(short, long, value_name = "MACHINE")]
    pub machine: String,
    /// The device, where the files have several
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// The file to write [default: the machine's own]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
