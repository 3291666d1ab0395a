// SPDX-License-Identifier: GPL-2.0-or-later
//! Function and line of an address, from an object's debug information.
//!
//! Read here and not by a tool: the process in which C has crashed can start none, and the one that could should not read what the user's
//! object says about itself.

use crate::elf;
use gimli::{AttributeValue, Dwarf, EndianSlice, LittleEndian, Unit, constants as dw};

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// The deepest nesting of inlined functions that is looked at.
const DEPTH_MAX: usize = 64;

/// Function, file and line of an address of an object, counted from its first byte; `None`: it does not say.
pub(crate) fn place(object: &[u8], address: u64) -> Option<(String, String)> {
    let section = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
        Ok(EndianSlice::new(elf::section(object, id.name()).unwrap_or_default(), LittleEndian))
    };
    let dwarf = Dwarf::load(section).ok()?;
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        if let Ok(Some(line)) = line(&dwarf, &unit, address) {
            let function = function(&dwarf, &unit, address).ok().flatten();
            return Some((function?, line));
        }
    }
    None
}

fn line(dwarf: &Dwarf<Reader>, unit: &Unit<Reader>, address: u64) -> gimli::Result<Option<String>> {
    let Some(program) = unit.line_program.clone() else { return Ok(None) };
    let mut rows = program.rows();
    let mut before: Option<(u64, u64, u64)> = None;
    while let Some((header, row)) = rows.next_row()? {
        if let Some((at, file, line)) = before
            && (at..row.address()).contains(&address)
        {
            let Some(file) = header.file(file) else { return Ok(None) };
            let name = dwarf.attr_string(unit, file.path_name())?;
            let mut path = name.to_string_lossy().into_owned();
            if let Some(folder) = file.directory(header)
                && !path.starts_with('/')
            {
                let folder = dwarf.attr_string(unit, folder)?;
                path = format!("{}/{path}", folder.to_string_lossy());
            }
            return Ok(Some(format!("{path}:{line}")));
        }
        let line = row.line().map_or(0, |line| line.get());
        before = (!row.end_sequence()).then_some((row.address(), row.file_index(), line));
    }
    Ok(None)
}

/// The innermost function around an address.
fn function(
    dwarf: &Dwarf<Reader>,
    unit: &Unit<Reader>,
    address: u64,
) -> gimli::Result<Option<String>> {
    let mut found = None;
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        let is_one = matches!(entry.tag(), dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine);
        if !is_one || entry.depth() > DEPTH_MAX as isize {
            continue;
        }
        let mut ranges = dwarf.die_ranges(unit, entry)?;
        let mut inside = false;
        while let Some(range) = ranges.next()? {
            inside |= (range.begin..range.end).contains(&address);
        }
        if !inside {
            continue;
        }
        let origin = match entry.attr_value(dw::DW_AT_abstract_origin) {
            Some(AttributeValue::UnitRef(at)) => Some(unit.entry(at)?),
            _ => None,
        };
        let name = entry
            .attr_value(dw::DW_AT_name)
            .or_else(|| origin.as_ref().and_then(|of| of.attr_value(dw::DW_AT_name)));
        if let Some(name) = name {
            found = Some(dwarf.attr_string(unit, name)?.to_string_lossy().into_owned());
        }
    }
    Ok(found)
}
