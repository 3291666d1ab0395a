// SPDX-License-Identifier: GPL-2.0-or-later
//! Flattened device trees (`.dtb`, `/sys/firmware/fdt`), as the Devicetree Specification v0.4 lays them out, chapter 5.
//!
//! ```text
//! header: magic d00dfeed, size, place of the structure, place of the strings, ...
//! structure: 1 NAME\0 (node begins)   3 LENGTH NAME-OFFSET DATA (property)   2 (node ends)   4 (nothing)   9 (end)
//! ```
//!
//! Every place and length is compared with what there is; nodes are nested at most [`DEPTH_MAX`] deep.

use schedtwin_input::DEVICE_TREE;

/// The greatest depth of nodes.
const DEPTH_MAX: usize = 64;

/// A node, with its properties and the nodes in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name, with its unit address: `cpu@100`.
    pub name: String,
    properties: Vec<(String, Vec<u8>)>,
    /// The nodes in it, in their order.
    pub children: Vec<Node>,
}

impl Node {
    /// The data of a property.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.properties.iter().find(|(of, _)| of == name).map(|(_, data)| &data[..])
    }

    /// Whether it has a property.
    pub fn has(&self, name: &str) -> bool {
        self.bytes(name).is_some()
    }

    /// The 32-bit numbers of a property; none where it is not there.
    pub fn cells(&self, name: &str) -> Vec<u32> {
        let data = self.bytes(name).unwrap_or_default();
        let cell = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        data.chunks_exact(4).map(cell).collect()
    }

    /// The first of them.
    pub fn cell(&self, name: &str) -> Option<u32> {
        self.cells(name).first().copied()
    }

    /// A number of one cell or two.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.cells(name)[..] {
            [] => None,
            [one] => Some(one.into()),
            [high, low, ..] => Some(u64::from(high) << 32 | u64::from(low)),
        }
    }

    /// The first text of a property.
    pub fn text(&self, name: &str) -> Option<String> {
        let data = self.bytes(name)?;
        let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
        Some(String::from_utf8_lossy(&data[..end]).into_owned())
    }

    /// A node in it, by its name without address.
    pub fn child(&self, name: &str) -> Option<&Node> {
        self.children.iter().find(|child| child.name.split('@').next() == Some(name))
    }

    /// The node that a handle names, anywhere in it.
    pub fn by_handle(&self, handle: u32) -> Option<&Node> {
        let is_it = |name| self.cell(name) == Some(handle);
        if is_it("phandle") || is_it("linux,phandle") {
            return Some(self);
        }
        self.children.iter().find_map(|child| child.by_handle(handle))
    }
}

/// Reads a tree: its root.
pub fn read(bytes: &[u8]) -> Result<Node, String> {
    if !bytes.starts_with(&DEVICE_TREE) {
        return Err("it is no flattened device tree".to_owned());
    }
    let damaged = |at: usize| format!("it is damaged or cut at byte {at}");
    let number = |at: usize| {
        let four = bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_be_bytes([four[0], four[1], four[2], four[3]]) as usize)
    };
    let place = |at| number(at).ok_or_else(|| damaged(at));
    let (mut at, strings) = (place(8)?, place(12)?);
    let text = |from: usize| {
        let rest = bytes.get(from..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    let mut open: Vec<Node> = Vec::new();
    loop {
        let token = place(at)?;
        at += 4;
        match token {
            1 => {
                let name = text(at).ok_or_else(|| damaged(at))?;
                at += (name.len() + 1).next_multiple_of(4);
                if open.len() == DEPTH_MAX {
                    return Err(damaged(at));
                }
                open.push(Node { name, ..Node::default() });
            }
            2 => {
                let node = open.pop().ok_or_else(|| damaged(at))?;
                match open.last_mut() {
                    Some(parent) => parent.children.push(node),
                    None => return Ok(node),
                }
            }
            3 => {
                let (length, name) = (place(at)?, place(at + 4)?);
                let data = at.checked_add(8 + length).and_then(|end| bytes.get(at + 8..end));
                let data = data.ok_or_else(|| damaged(at))?.to_vec();
                let name = strings.checked_add(name).and_then(text).ok_or_else(|| damaged(at))?;
                at += 8 + length.next_multiple_of(4);
                open.last_mut().ok_or_else(|| damaged(at))?.properties.push((name, data));
            }
            4 => {}
            _ => return Err(damaged(at)),
        }
    }
}
