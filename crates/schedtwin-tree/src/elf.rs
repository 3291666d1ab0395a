// SPDX-License-Identifier: GPL-2.0-or-later
//! The variables and functions of a compiled object: where they are and how long, from its table of symbols.

use std::collections::BTreeMap;

/// A variable: its offset from where the object is loaded, and its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// `SHT_SYMTAB`.
const SYMBOL_TABLE: u32 = 2;
/// `STT_OBJECT`, `STT_FUNC`.
const KINDS: [u8; 2] = [1, 2];

/// Returns the variables and functions of an ELF file of 64 bits, little endian, by name; those with equal names once.
pub(crate) fn variables(elf: &[u8]) -> BTreeMap<String, Variable> {
    read(elf).unwrap_or_default()
}

fn read(elf: &[u8]) -> Option<BTreeMap<String, Variable>> {
    let sections = number::<8>(elf, 0x28)?;
    let (entry, count) = (number::<2>(elf, 0x3a)?, number::<2>(elf, 0x3c)?);
    // Offsets of a broken file wrap to where it has nothing.
    let section = |index: u64| sections.wrapping_add(index.wrapping_mul(entry));
    let plus = |at: u64, offset: u64| at.wrapping_add(offset);
    let mut found = BTreeMap::new();
    for index in 0..count {
        let header = section(index);
        if number::<4>(elf, plus(header, 4))? != u64::from(SYMBOL_TABLE) {
            continue;
        }
        let (from, bytes) =
            (number::<8>(elf, plus(header, 0x18))?, number::<8>(elf, plus(header, 0x20))?);
        let strings = number::<8>(elf, plus(section(number::<4>(elf, plus(header, 0x28))?), 0x18))?;
        for at in (from..from.checked_add(bytes)?).step_by(24) {
            if !KINDS.contains(&(number::<1>(elf, plus(at, 4))? as u8 & 0xf)) {
                continue;
            }
            let name = elf.get(usize::try_from(plus(strings, number::<4>(elf, at)?)).ok()?..)?;
            let end = name.iter().position(|byte| *byte == 0)?;
            let name = String::from_utf8_lossy(&name[..end]).into_owned();
            let (offset, bytes) = (number::<8>(elf, plus(at, 8))?, number::<8>(elf, plus(at, 16))?);
            found.insert(name, Variable { offset, bytes });
        }
    }
    Some(found)
}

fn number<const BYTES: usize>(elf: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = elf.get(at..at.checked_add(BYTES)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_has_no_variables() {
        for text in [&b""[..], b"\x7fELF", &[0xff; 200]] {
            assert!(variables(text).is_empty());
        }
    }
}
