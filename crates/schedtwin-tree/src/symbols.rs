// SPDX-License-Identifier: GPL-2.0-or-later
//! The variables and functions of a compiled object: where they are, and what shape they have, from its debug information.
//!
//! A map of BPF says its sizes in the types of a structure's members, and a loader writes variables by name, elements and
//! members: both ask for types, which only the debug information has.

use crate::Fault;
use crate::elf;
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, EntriesTreeNode, LittleEndian,
    Operation, Unit, UnitOffset, constants as dw,
};
use schedtwin_types::MAX_CPUS;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// The deepest nesting of types that is looked at: a map in a map has five levels.
const DEPTH_MAX: u32 = 8;
/// As deep as the type of a program's argument is looked at: a pointer, a structure, and its numbers.
const ARGUMENT_DEPTH: u32 = 3;
/// Most steps from a type to what it is made of: names, qualifiers, pointers, elements, members. Types of schedulers have ten.
const STEPS_MAX: u32 = 64;
/// The most that an object's debug information may unfold to: types, members, and names by their bytes.
const UNFOLDED_MAX: usize = 1 << 18;
/// Bytes of a name that count as much as a type.
const NAME_BYTES_EACH: usize = 64;
/// Longer names are none: nobody asks for them.
const NAME_BYTES_MAX: usize = 4096;

type Reader<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = DebuggingInformationEntry<Reader<'a>>;

/// The shape of a variable's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A number of so many bytes.
    Number(u64),
    /// A pointer, and what it leads to.
    Pointer(Box<Shape>),
    /// Elements, and how many; 0: it does not say.
    Array(Box<Shape>, u64),
    /// Its bytes, and its members: name, offset, shape.
    Struct(u64, Vec<(String, u64, Shape)>),
    /// Anything else.
    Unknown,
}

impl Shape {
    /// Its size, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Shape::Number(bytes) | Shape::Struct(bytes, _) => *bytes,
            Shape::Pointer(_) => 8,
            Shape::Array(of, count) => of.bytes().saturating_mul(*count),
            Shape::Unknown => 0,
        }
    }

    /// What indices and members lead to, such as `[1].id`, and how far it is from the beginning.
    pub(crate) fn at(&self, path: &str) -> Option<(u64, &Shape)> {
        let (mut offset, mut shape, mut rest) = (0_u64, self, path);
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix('[') {
                let (index, behind) = behind.split_once(']')?;
                let Shape::Array(of, count) = shape else { return None };
                let index: u64 = index.parse().ok().filter(|index| index < count)?;
                let within = index.saturating_mul(of.bytes());
                (offset, shape, rest) = (offset.saturating_add(within), of, behind);
            } else {
                let behind = rest.strip_prefix('.')?;
                let end = behind.find(['.', '[']).unwrap_or(behind.len());
                let (at, of) = shape.member(&behind[..end])?;
                (offset, shape, rest) = (offset.saturating_add(at), of, &behind[end..]);
            }
        }
        Some((offset, shape))
    }

    /// The place of a number that begins at an offset; of an array its first element.
    pub(crate) fn number(&self, offset: u64) -> Option<Place> {
        match self {
            Shape::Array(of, _) => of.number(offset),
            Shape::Number(bytes) => Some(Place { offset, bytes: *bytes }),
            _ => None,
        }
    }

    /// The offsets of the pointers of these names within what begins at an offset.
    pub(crate) fn pointers(&self, names: &BTreeSet<String>, offset: u64) -> Vec<u64> {
        match self {
            Shape::Struct(_, members) => {
                let of = |(name, at, shape): &(String, u64, Shape)| match shape {
                    Shape::Pointer(_) if names.contains(name) => vec![offset + at],
                    _ => shape.pointers(names, offset + at),
                };
                members.iter().flat_map(of).collect()
            }
            Shape::Array(of, count) if !of.pointers(names, 0).is_empty() => {
                let each = |at| of.pointers(names, offset + at * of.bytes());
                (0..(*count).min(64)).flat_map(each).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The places of the words of 64 bits that begin at an offset: a number, or an array of numbers that fills whole words.
    pub(crate) fn words(&self, offset: u64) -> Vec<Place> {
        let word = |offset| Place { offset, bytes: 8 };
        match self {
            Shape::Number(8) => vec![word(offset)],
            Shape::Array(of, count) => {
                let Shape::Number(bytes) = **of else { return Vec::new() };
                let all = count.saturating_mul(bytes);
                let words = if all % 8 == 0 { all / 8 } else { 0 };
                // No mask is longer.
                let words = words.min(MAX_CPUS as u64 / 64);
                (0..words).map(|at| word(offset.saturating_add(8 * at))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A member of a structure: offset and shape. Members of unnamed ones count as its own.
    pub(crate) fn member(&self, name: &str) -> Option<(u64, &Shape)> {
        let Shape::Struct(_, members) = self else { return None };
        members.iter().find_map(|(of, offset, shape)| {
            if of == name {
                return Some((*offset, shape));
            }
            let (inner, found) = of.is_empty().then(|| shape.member(name)).flatten()?;
            Some((offset.saturating_add(inner), found))
        })
    }
}

/// A variable or a function, from where the object is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) offset: u64,
    pub(crate) shape: Shape,
}

impl Symbol {
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}

/// A place within a variable that holds a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Symbols and structures by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    symbols: BTreeMap<String, Symbol>,
    /// Bytes.
    structures: BTreeMap<String, u64>,
    /// The structure that a function's first argument leads to.
    arguments: BTreeMap<String, Shape>,
    /// Variables that the compiler may take for their first values.
    constants: BTreeSet<String>,
}

impl Symbols {
    /// Of an ELF file; none if it has no debug information.
    ///
    /// # Errors
    /// If it would unfold to more than memory is for.
    pub(crate) fn of(object: &[u8]) -> Result<Symbols, Fault> {
        let mut found = Symbols::default();
        let left = Cell::new(UNFOLDED_MAX);
        let section = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            Ok(EndianSlice::new(elf::section(object, id.name()).unwrap_or_default(), LittleEndian))
        };
        if let Ok(dwarf) = Dwarf::load(section) {
            let mut headers = dwarf.units();
            while let Ok(Some(header)) = headers.next() {
                if let Ok(unit) = dwarf.unit(header) {
                    // A unit that cannot be read has no symbols that could be asked for.
                    let _ = InUnit { dwarf: &dwarf, unit: &unit, left: &left }.read(&mut found);
                }
                if left.get() == 0 {
                    return Err(Fault::new(
                        "its types are too large",
                        "a scheduler's types are structures that lead to few others",
                    ));
                }
            }
        }
        Ok(found)
    }

    /// The size of a structure, bytes.
    pub(crate) fn structure(&self, name: &str) -> Option<u64> {
        self.structures.get(name).copied()
    }

    /// The structure to which the first argument of a function leads.
    pub(crate) fn argument(&self, function: &str) -> Option<&Shape> {
        self.arguments.get(function)
    }

    /// Whether a variable keeps its first value: nobody can write it, and the compiler has it.
    pub(crate) fn is_constant(&self, name: &str) -> bool {
        self.constants.contains(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Symbol> {
        self.symbols.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Symbol)> {
        self.symbols.iter().map(|(name, symbol)| (name.as_str(), symbol))
    }

    /// The place that a path names, such as `slice_ns`, `pair_cpu[3]`, `ctxs[1].id`; of an array without an index its first
    /// element. `None`: there is no such place.
    pub(crate) fn place(&self, path: &str) -> Option<Place> {
        let (offset, shape) = self.shape(path)?;
        shape.number(offset)
    }

    /// What a path names, and where it is; of a constant nothing.
    pub(crate) fn shape(&self, path: &str) -> Option<(u64, &Shape)> {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        if self.is_constant(&path[..end]) {
            return None;
        }
        let symbol = self.symbols.get(&path[..end])?;
        let (within, shape) = symbol.shape.at(&path[end..])?;
        Some((symbol.offset.saturating_add(within), shape))
    }
}

/// A unit of the debug information.
struct InUnit<'a, 'd> {
    dwarf: &'a Dwarf<Reader<'d>>,
    unit: &'a Unit<Reader<'d>>,
    /// How much more may be unfolded.
    left: &'a Cell<usize>,
}

impl<'d> InUnit<'_, 'd> {
    /// Takes from what may be unfolded; the error ends the reading of the unit.
    fn unfold(&self, count: usize) -> gimli::Result<()> {
        self.left.set(self.left.get().saturating_sub(count));
        match self.left.get() {
            0 => Err(gimli::Error::Io),
            _ => Ok(()),
        }
    }

    fn read(&self, found: &mut Symbols) -> gimli::Result<()> {
        let mut tree = self.unit.entries_tree(None)?;
        let mut children = tree.root()?.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            let symbol = match entry.tag() {
                dw::DW_TAG_variable => {
                    let variable = self.variable(entry)?;
                    if let Some((name, _, true)) = &variable {
                        found.constants.insert(name.clone());
                    }
                    variable.map(|(name, symbol, _)| (name, symbol))
                }
                dw::DW_TAG_subprogram => {
                    let symbol = self.function(entry)?;
                    if let Some((name, _)) = &symbol
                        && let Some(argument) = self.first_argument(child)?
                    {
                        found.arguments.insert(name.clone(), argument);
                    }
                    symbol
                }
                dw::DW_TAG_structure_type => {
                    let bytes = entry.attr_value(dw::DW_AT_byte_size);
                    let bytes = bytes.and_then(|value| value.udata_value());
                    found.structures.extend(self.name(entry)?.zip(bytes));
                    None
                }
                _ => None,
            };
            if let Some((name, symbol)) = symbol {
                found.symbols.insert(name, symbol);
            }
        }
        Ok(())
    }

    fn name(&self, entry: &Entry<'d>) -> gimli::Result<Option<String>> {
        let Some(value) = entry.attr_value(dw::DW_AT_name) else { return Ok(None) };
        let text = self.dwarf.attr_string(self.unit, value)?;
        if text.len() > NAME_BYTES_MAX {
            return Ok(None);
        }
        self.unfold(1 + text.len() / NAME_BYTES_EACH)?;
        Ok(Some(text.to_string_lossy().into_owned()))
    }

    fn function(&self, entry: &Entry<'d>) -> gimli::Result<Option<(String, Symbol)>> {
        let address = match entry.attr_value(dw::DW_AT_low_pc) {
            Some(value) => self.dwarf.attr_address(self.unit, value)?,
            None => None,
        };
        let name = self.name(entry)?;
        Ok(name.zip(address).map(|(name, offset)| (name, Symbol { offset, shape: Shape::Unknown })))
    }

    /// The structure that the first argument of a function points to, with members of its own only.
    fn first_argument(
        &self,
        node: EntriesTreeNode<'_, '_, Reader<'d>>,
    ) -> gimli::Result<Option<Shape>> {
        let mut children = node.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            if entry.tag() == dw::DW_TAG_formal_parameter {
                let of = entry.attr_value(dw::DW_AT_type);
                let Shape::Pointer(to) = self.shape_of(of, (ARGUMENT_DEPTH, STEPS_MAX))? else {
                    break;
                };
                return Ok(Some(*to).filter(|to| matches!(to, Shape::Struct(..))));
            }
        }
        Ok(None)
    }

    /// A variable, and whether it is constant.
    fn variable(&self, entry: &Entry<'d>) -> gimli::Result<Option<(String, Symbol, bool)>> {
        let Some(AttributeValue::Exprloc(location)) = entry.attr_value(dw::DW_AT_location) else {
            return Ok(None);
        };
        let mut operations = location.operations(self.unit.encoding());
        let offset = match operations.next()? {
            Some(Operation::Address { address }) => address,
            Some(Operation::AddressIndex { index }) => self.dwarf.address(self.unit, index)?,
            _ => return Ok(None),
        };
        // A variable that was declared before has its name and type there.
        let declared = match entry.attr_value(dw::DW_AT_specification) {
            Some(AttributeValue::UnitRef(at)) => Some(self.unit.entry(at)?),
            _ => None,
        };
        let about = declared.as_ref().unwrap_or(entry);
        let Some(name) = self.name(about)? else { return Ok(None) };
        // An array may have got its length only at its definition.
        let of = entry.attr_value(dw::DW_AT_type).or(about.attr_value(dw::DW_AT_type));
        let constant = self.is_constant(of)?;
        let shape = self.shape_of(of, (DEPTH_MAX, STEPS_MAX))?;
        Ok(Some((name, Symbol { offset, shape }, constant)))
    }

    /// Whether a type is constant, or an array of such.
    fn is_constant(&self, mut of: Option<AttributeValue<Reader<'d>>>) -> gimli::Result<bool> {
        for _ in 0..STEPS_MAX {
            let Some(AttributeValue::UnitRef(at)) = of else { return Ok(false) };
            self.unfold(1)?;
            let entry = self.unit.entry(at)?;
            match entry.tag() {
                dw::DW_TAG_const_type => return Ok(true),
                dw::DW_TAG_typedef | dw::DW_TAG_volatile_type | dw::DW_TAG_array_type => {
                    of = entry.attr_value(dw::DW_AT_type);
                }
                _ => return Ok(false),
            }
        }
        Ok(false)
    }

    /// The shape of a type as far as so many levels and steps.
    fn shape_of(
        &self,
        of: Option<AttributeValue<Reader<'d>>>,
        (depth, steps): (u32, u32),
    ) -> gimli::Result<Shape> {
        match of {
            Some(AttributeValue::UnitRef(at)) if depth > 0 && steps > 0 => {
                self.shape(at, depth, steps - 1)
            }
            _ => Ok(Shape::Unknown),
        }
    }

    fn shape(&self, at: UnitOffset, depth: u32, steps: u32) -> gimli::Result<Shape> {
        self.unfold(1)?;
        let mut tree = self.unit.entries_tree(Some(at))?;
        let node = tree.root()?;
        let entry = node.entry();
        let of = entry.attr_value(dw::DW_AT_type);
        let bytes = entry.attr_value(dw::DW_AT_byte_size).and_then(|value| value.udata_value());
        let bytes = bytes.unwrap_or(0);
        match entry.tag() {
            dw::DW_TAG_base_type | dw::DW_TAG_enumeration_type => Ok(Shape::Number(bytes)),
            dw::DW_TAG_typedef | dw::DW_TAG_volatile_type | dw::DW_TAG_const_type => {
                self.shape_of(of, (depth, steps))
            }
            dw::DW_TAG_pointer_type => {
                Ok(Shape::Pointer(Box::new(self.shape_of(of, (depth - 1, steps))?)))
            }
            dw::DW_TAG_array_type => {
                let element = self.shape_of(of, (depth, steps))?;
                self.array(element, node)
            }
            dw::DW_TAG_structure_type | dw::DW_TAG_union_type => {
                Ok(Shape::Struct(bytes, self.members(node, (depth - 1, steps))?))
            }
            _ => Ok(Shape::Unknown),
        }
    }

    fn array(
        &self,
        element: Shape,
        node: EntriesTreeNode<'_, '_, Reader<'d>>,
    ) -> gimli::Result<Shape> {
        let mut counts = Vec::new();
        let mut children = node.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            self.unfold(1)?;
            if entry.tag() == dw::DW_TAG_subrange_type {
                let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
                let last = number(dw::DW_AT_upper_bound).map(|last| last.wrapping_add(1));
                counts.push(number(dw::DW_AT_count).or(last).unwrap_or(0));
            }
            if counts.len() > STEPS_MAX as usize {
                return Ok(Shape::Unknown);
            }
        }
        let shape = counts.into_iter().rev();
        Ok(shape.fold(element, |of, count| Shape::Array(Box::new(of), count)))
    }

    fn members(
        &self,
        node: EntriesTreeNode<'_, '_, Reader<'d>>,
        left: (u32, u32),
    ) -> gimli::Result<Vec<(String, u64, Shape)>> {
        let mut members = Vec::new();
        let mut children = node.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            self.unfold(1)?;
            if entry.tag() != dw::DW_TAG_member {
                continue;
            }
            let at = entry.attr_value(dw::DW_AT_data_member_location);
            let at = at.and_then(|value| value.udata_value()).unwrap_or(0);
            let shape = self.shape_of(entry.attr_value(dw::DW_AT_type), left)?;
            members.push((self.name(entry)?.unwrap_or_default(), at, shape));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number() -> Shape {
        Shape::Number(4)
    }

    #[test]
    fn places_are_found_by_path() {
        let ctx = Shape::Struct(
            16,
            vec![
                ("id".into(), 0, number()),
                ("".into(), 8, Shape::Struct(8, vec![("cpu".into(), 4, Shape::Number(2))])),
            ],
        );
        let symbol = |offset, shape| Symbol { offset, shape };
        let symbols = BTreeMap::from([
            ("slice".to_string(), symbol(100, number())),
            ("ctxs".to_string(), symbol(200, Shape::Array(Box::new(ctx), 3))),
            ("caps".to_string(), symbol(300, Shape::Array(Box::new(Shape::Number(2)), 8))),
        ]);
        let symbols = Symbols { symbols, ..Symbols::default() };
        let place = |path: &str| symbols.place(path).map(|place| (place.offset, place.bytes));
        assert_eq!(place("slice"), Some((100, 4)));
        assert_eq!(place("caps"), Some((300, 2)));
        assert_eq!(place("caps[7]"), Some((314, 2)));
        assert_eq!(place("ctxs[2].id"), Some((232, 4)));
        assert_eq!(place("ctxs[1].cpu"), Some((228, 2)), "a member of an unnamed member");
        for wrong in ["none", "caps[8]", "ctxs[1]", "ctxs[1].none", "slice.x", "caps[", "caps[x]"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_no_object_has_no_symbols() {
        for text in [&b""[..], b"\x7fELF", &[0xff; 200]] {
            assert_eq!(Symbols::of(text).expect("it is small").iter().count(), 0);
        }
    }
}
