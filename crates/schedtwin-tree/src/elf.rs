// SPDX-License-Identifier: GPL-2.0-or-later
//! Sections of an ELF file of 64 bits, little endian.

use std::collections::BTreeMap;

/// The contents of a section; `None`: there is none of this name, or the file is broken.
pub(crate) fn section<'a>(elf: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let sections = number::<8>(elf, 0x28)?;
    let (entry, count) = (number::<2>(elf, 0x3a)?, number::<2>(elf, 0x3c)?);
    // Offsets of a broken file wrap to where it has nothing.
    let header = |index: u64| sections.wrapping_add(index.wrapping_mul(entry));
    let field = |index: u64, at: u64| number::<8>(elf, header(index).wrapping_add(at));
    let names = field(number::<2>(elf, 0x3e)?, 0x18)?;
    let is_it = |index: &u64| {
        let at = number::<4>(elf, header(*index)).map(|at| names.wrapping_add(at));
        let text = at.and_then(|at| elf.get(usize::try_from(at).ok()?..));
        text.and_then(|text| text.strip_prefix(name.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&0))
    };
    let index = (0..count).find(is_it)?;
    let from = usize::try_from(field(index, 0x18)?).ok()?;
    let bytes = usize::try_from(field(index, 0x20)?).ok()?;
    elf.get(from..from.checked_add(bytes)?)
}

/// The most that the names of an object's symbols may have together: schedulers have a hundredth.
pub(crate) const NAMES_BYTES_MAX: usize = 16 << 20;

/// The size of each variable, by its name.
pub(crate) fn sizes(elf: &[u8]) -> BTreeMap<String, u64> {
    const SYMBOL_BYTES: usize = 24;
    const STT_OBJECT: u8 = 1;
    // What is behind belongs to no scheduler.
    let mut names_bytes = 0;
    let names = section(elf, ".strtab").unwrap_or_default();
    let symbols = section(elf, ".symtab").unwrap_or_default();
    let (symbols, _) = symbols.as_chunks::<SYMBOL_BYTES>();
    let size = |symbol: &[u8; SYMBOL_BYTES]| {
        let name =
            names.get(number::<4>(symbol, 0)? as usize..)?.split(|byte| *byte == 0).next()?;
        names_bytes += name.len();
        if names_bytes > NAMES_BYTES_MAX {
            return None;
        }
        let is_one = symbol[4] & 15 == STT_OBJECT;
        is_one.then_some((String::from_utf8_lossy(name).into_owned(), number::<8>(symbol, 16)?))
    };
    symbols.iter().filter_map(size).collect()
}

fn number<const BYTES: usize>(elf: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = elf.get(at..at.checked_add(BYTES)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}
