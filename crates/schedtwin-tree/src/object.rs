// SPDX-License-Identifier: GPL-2.0-or-later
//! Loads a compiled object without running any of it.
//!
//! **Idea.** An object of ours needs nothing from outside: no C library is linked, and no symbol is left open. So its loading is copying its
//! segments to memory and adding the address to the pointers in them. The system's loader does more than that, and each of the rest
//! runs code of the object: initialisers, finalisers, resolvers of indirect functions. This one has none of them, needs no file, and
//! refuses a relocation that it does not know.
//!
//! **Algorithm.** 1. [`Elf::read`] checks that all that is used later lies within the file and within the object's span. 2. [`Elf::contents`]
//! puts the segments beside each other. 3. [`Elf::relocate`] writes the pointers for an address. 4. [`Loaded::new`] maps that, seals code and
//! constants, and looks up functions by name.
//!
//! Numbers of the file are never trusted: a broken object is a message, not a crash.
//!
//! References: System V ABI, gabi 4.1, chapters 4 and 5; psABI for x86-64 and for AArch64 (ELF64).

use std::collections::BTreeMap;
use std::ops::Range;

/// The most that an object may take in memory. Schedulers take less than a hundredth of it.
const SPAN_BYTES_MAX: u64 = 256 << 20;
/// Most program headers: linkers make about ten.
const HEADERS_MAX: u64 = 64;
/// Where addresses may end, so that sums of two do not wrap.
const ADDRESS_MAX: u64 = 1 << 40;

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const PT_TLS: u64 = 7;
const PT_GNU_RELRO: u64 = 0x6474_e552;
const PF_X: u64 = 1;
const PF_W: u64 = 2;

/// The entries of the dynamic section that are used.
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_STRSZ: u64 = 10;
const DT_REL: u64 = 17;
const DT_PLTRELSZ: u64 = 2;
const DT_JMPREL: u64 = 23;
const DT_RELR: u64 = 36;

const RELA_BYTES: u64 = 24;
const SYMBOL_BYTES: u64 = 24;
/// Most bytes of a symbol's name.
const NAME_BYTES_MAX: usize = 4096;
const STT_GNU_IFUNC: u64 = 10;

/// The machine, and its relocations: the address of the object plus an addend; the address of a symbol; the same, plus an addend.
#[cfg(target_arch = "aarch64")]
const MACHINE: (u64, u64, [u64; 2], u64) = (183, 1027, [1025, 1026], 257);
#[cfg(not(target_arch = "aarch64"))]
const MACHINE: (u64, u64, [u64; 2], u64) = (62, 8, [6, 7], 1);

/// A segment.
#[derive(Clone, Debug)]
struct Segment {
    /// In the object, from its first byte.
    at: u64,
    in_memory: u64,
    /// In the file.
    file: Range<usize>,
    flags: u64,
}

/// A pointer that loading writes: where, and its value without the address of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pointer {
    at: u64,
    value: u64,
}

/// An object that has been checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elf {
    segments: Vec<Segment>,
    /// What is read-only once it is relocated.
    sealed: Option<Range<u64>>,
    span: u64,
    pointers: Vec<Pointer>,
    symbols: BTreeMap<String, u64>,
}

fn number<const BYTES: usize>(from: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = from.get(at..at.checked_add(BYTES)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn range(at: u64, bytes: u64) -> Option<Range<u64>> {
    Some(at..at.checked_add(bytes).filter(|end| *end <= ADDRESS_MAX)?)
}

impl Elf {
    /// Reads an object; the error says in a few words what is wrong with it.
    pub(crate) fn read(file: &[u8]) -> Result<Elf, String> {
        Elf::try_read(file).unwrap_or_else(|| Err("a part of it lies outside of it".to_string()))
    }

    /// `None`: something lies outside of the file, or outside of the object.
    fn try_read(file: &[u8]) -> Option<Result<Elf, String>> {
        let refused = |what: &str| Some(Err(what.to_string()));
        const ELF64_LITTLE_ENDIAN: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
        const ET_DYN: u64 = 3;
        let (machine, ..) = MACHINE;
        if file.get(..6)? != ELF64_LITTLE_ENDIAN
            || number::<2>(file, 16)? != ET_DYN
            || number::<2>(file, 18)? != machine
        {
            return refused("it is no shared object of this machine");
        }
        let (headers, entry, count) =
            (number::<8>(file, 32)?, number::<2>(file, 54)?, number::<2>(file, 56)?);
        if count > HEADERS_MAX {
            return refused("it has too many segments");
        }
        let mut elf = Elf::default();
        let mut dynamic = None;
        for index in 0..count {
            let header = headers.checked_add(index * entry)?;
            let field = |at: u64| number::<8>(file, header.checked_add(at)?);
            let (kind, flags) = (number::<4>(file, header)?, number::<4>(file, header + 4)?);
            let (offset, at, in_file, in_memory) = (field(8)?, field(16)?, field(32)?, field(40)?);
            match kind {
                PT_LOAD => {
                    let bytes = range(offset, in_file)?;
                    let file_range = bytes.start as usize..bytes.end as usize;
                    file.get(file_range.clone())?;
                    if in_file > in_memory || range(at, in_memory)?.end > SPAN_BYTES_MAX {
                        return refused("it is too large");
                    }
                    elf.span = elf.span.max(at + in_memory);
                    elf.segments.push(Segment { at, in_memory, file: file_range, flags });
                }
                PT_DYNAMIC => dynamic = Some(range(offset, in_file)?),
                PT_GNU_RELRO => elf.sealed = Some(range(at, in_memory)?),
                PT_TLS => return refused("it has variables of threads"),
                PT_INTERP => return refused("it names an interpreter"),
                _ => {}
            }
        }
        if elf.segments.is_empty() || elf.sealed.as_ref().is_some_and(|it| it.end > elf.span + PAGE)
        {
            return refused("it has nothing to load");
        }
        // The loaded contents have every table; their addresses are those of the object.
        let image = elf.contents(file);
        let mut entries: BTreeMap<u64, u64> = BTreeMap::new();
        let dynamic = dynamic?;
        for at in (dynamic.start..dynamic.end).step_by(16) {
            let tag = number::<8>(file, at)?;
            if tag == 0 {
                break;
            }
            entries.insert(tag, number::<8>(file, at + 8)?);
        }
        if entries.contains_key(&DT_REL) || entries.contains_key(&DT_RELR) {
            return refused("its relocations have another form");
        }
        let get = |tag: u64| entries.get(&tag).copied();
        let (table, names, names_bytes) = (get(DT_SYMTAB)?, get(DT_STRTAB)?, get(DT_STRSZ)?);
        let names = range(names, names_bytes)?;
        let names = image.get(names.start as usize..names.end as usize)?;
        let symbol = |index: u64| -> Option<(u64, u64, u64, u64)> {
            let at = table.checked_add(index.checked_mul(SYMBOL_BYTES)?)?;
            let (name, info) = (number::<4>(&image, at)?, number::<1>(&image, at + 4)?);
            Some((name, info & 15, number::<2>(&image, at + 6)?, number::<8>(&image, at + 8)?))
        };
        let count = number::<4>(&image, get(DT_HASH)?.checked_add(4)?)?;
        let mut names_bytes = 0;
        for index in 1..count {
            let (name, kind, section, value) = symbol(index)?;
            if section == 0 {
                continue;
            }
            if kind == STT_GNU_IFUNC {
                return refused("it has an ifunc resolver");
            }
            let name = names.get(name as usize..)?.split(|byte| *byte == 0).next()?;
            names_bytes += name.len();
            if name.len() > NAME_BYTES_MAX || names_bytes > crate::elf::NAMES_BYTES_MAX {
                return refused("the names of its symbols are too long");
            }
            if value < elf.span {
                elf.symbols.insert(String::from_utf8_lossy(name).into_owned(), value);
            }
        }
        let (_, relative, of_symbol, of_symbol_plus) = MACHINE;
        for (table, bytes) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
            let (Some(table), Some(bytes)) = (get(table), get(bytes)) else { continue };
            let table = range(table, bytes)?;
            for at in (table.start..table.end).step_by(RELA_BYTES as usize) {
                let (at, info, addend) = (
                    number::<8>(&image, at)?,
                    number::<8>(&image, at + 8)?,
                    number::<8>(&image, at + 16)?,
                );
                let (index, kind) = (info >> 32, info & 0xffff_ffff);
                let value = match kind {
                    0 => continue,
                    kind if kind == relative => addend,
                    kind if of_symbol.contains(&kind) || kind == of_symbol_plus => {
                        let (_, of, section, value) = symbol(index)?;
                        if section == 0 || of == STT_GNU_IFUNC {
                            return refused("it wants a symbol of somebody else");
                        }
                        let addend = if kind == of_symbol_plus { addend } else { 0 };
                        value.wrapping_add(addend)
                    }
                    other => {
                        return Some(Err(format!(
                            "it has a relocation of type {other}, which may run code"
                        )));
                    }
                };
                let into = |segment: &Segment| {
                    segment.at <= at && at + 8 <= segment.at + segment.in_memory
                };
                // First, so that the sum does not wrap.
                if at > elf.span || !elf.segments.iter().any(into) {
                    return None;
                }
                elf.pointers.push(Pointer { at, value });
            }
        }
        Some(Ok(elf))
    }

    /// The object's bytes as they lie in memory, before relocation.
    fn contents(&self, file: &[u8]) -> Vec<u8> {
        let mut image = vec![0; self.span as usize];
        for segment in &self.segments {
            let at = segment.at as usize;
            image[at..at + segment.file.len()].copy_from_slice(&file[segment.file.clone()]);
        }
        image
    }

    fn relocate(&self, image: &mut [u8], base: u64) {
        for Pointer { at, value } in &self.pointers {
            let at = *at as usize;
            image[at..at + 8].copy_from_slice(&value.wrapping_add(base).to_le_bytes());
        }
    }

    /// The object as it would lie at address 0: what can be read of it without loading it.
    pub(crate) fn data(&self, file: &[u8]) -> Vec<u8> {
        let mut image = self.contents(file);
        self.relocate(&mut image, 0);
        image
    }
}

/// The smallest page of any machine.
const PAGE: u64 = 4096;

/// An object in memory, alone for whoever loaded it.
#[derive(Debug)]
pub(crate) struct Loaded {
    base: *mut u8,
    bytes: usize,
    symbols: BTreeMap<String, u64>,
}

impl Loaded {
    /// Maps an object, and seals what it may not write.
    pub(crate) fn new(elf: &Elf, file: &[u8], page: usize) -> std::io::Result<Loaded> {
        let up = |at: u64| (at as usize).next_multiple_of(page);
        let down = |at: u64| at as usize / page * page;
        let bytes = up(elf.span);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let (readable, writable) = (libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: an anonymous mapping that nobody else knows.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, writable, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let loaded = Loaded { base: base.cast(), bytes, symbols: elf.symbols.clone() };
        // SAFETY: the mapping was just made, is writable, and has so many bytes.
        let image = unsafe { std::slice::from_raw_parts_mut(loaded.base, elf.span as usize) };
        for segment in &elf.segments {
            let at = segment.at as usize;
            image[at..at + segment.file.len()].copy_from_slice(&file[segment.file.clone()]);
        }
        elf.relocate(image, loaded.base as u64);
        let protect = |from: usize, to: usize, how: libc::c_int| {
            // SAFETY: the range is a part of the mapping, of whole pages, and no reference into it is left.
            let failed = from < to
                && unsafe { libc::mprotect(loaded.base.add(from).cast(), to - from, how) } != 0;
            if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
        };
        // First nothing may be written or run, then each segment is given what it asks for.
        protect(0, bytes, readable)?;
        for segment in &elf.segments {
            let mut how = readable;
            how |= if segment.flags & PF_W != 0 { libc::PROT_WRITE } else { 0 };
            how |= if segment.flags & PF_X != 0 { libc::PROT_EXEC } else { 0 };
            protect(down(segment.at), up(segment.at + segment.in_memory), how)?;
        }
        if let Some(sealed) = &elf.sealed {
            protect(down(sealed.start), down(sealed.end).min(bytes), readable)?;
        }
        Ok(loaded)
    }

    /// The address of a symbol.
    pub(crate) fn symbol(&self, name: &str) -> Option<*mut u8> {
        // It lies within the span, which was checked.
        self.symbols.get(name).map(|at| self.base.wrapping_add(*at as usize))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which only this value knows.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the bytes say, reading them ends with a message.
    #[test]
    fn broken_objects_are_refused() {
        for file in [&b""[..], b"\x7fELF", &[0xff; 4096], &[0; 4096]] {
            assert!(Elf::read(file).is_err());
        }
        let mut file = vec![0; 4096];
        file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        file[16] = 3;
        file[18] = MACHINE.0 as u8;
        for byte in 20..200 {
            for value in [1, 0x7f, 0xff] {
                let mut broken = file.clone();
                broken[byte] = value;
                broken[byte ^ 1] ^= value;
                assert!(Elf::read(&broken).is_err(), "byte {byte}");
            }
        }
    }
}
