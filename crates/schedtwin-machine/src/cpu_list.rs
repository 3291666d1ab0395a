// SPDX-License-Identifier: GPL-2.0-or-later
//! Lists of CPUs as sysfs prints them: `0-3,6`.

use schedtwin_input::{Diagnostics, FromNode, Location, Node};
use schedtwin_types::{CpuId, CpuMask};

/// A list that was read: not empty, no CPU twice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CpuList {
    pub(crate) mask: CpuMask,
    pub(crate) at: Location,
}

impl CpuList {
    /// Its CPUs, ascending.
    pub(crate) fn cpus(&self) -> Vec<CpuId> {
        self.mask.iter().collect()
    }
}

impl FromNode for CpuList {
    fn from_node(node: &Node, faults: &mut Diagnostics) -> Option<CpuList> {
        let text = String::from_node(node, faults)?;
        match CpuMask::parse_list(&text) {
            Ok(mask) => Some(CpuList { mask, at: node.at.clone() }),
            Err(message) => {
                let help = Some("write CPUs as \"0-3,6\"".to_string());
                faults.push_at(&node.at, message, help);
                None
            }
        }
    }
}
