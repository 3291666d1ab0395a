// SPDX-License-Identifier: GPL-2.0-or-later
//! Records without names of members: the same items as the lines of [`super`], in less time and space.
//!
//! ```text
//! schedtwin.packed-record/2 {"schema":"schedtwin.record/1","title":...}\n    the header, as in JSON Lines
//! LENGTH ITEM LENGTH ITEM ...                                                LENGTH: of the item, 32 bits, little end first
//! ```
//!
//! An item is [`Item`] in borsh's form (<https://borsh.io>): numbers of fixed width, little end first, texts and lists after
//! their length, alternatives after their number; what the governor reads are varints. Its shape has no names, so a reader reads the version that it was made
//! for; `schedtwin convert x.record x.jsonl` keeps a record for later ones.

use super::{LINE_BYTES_MAX, RecordedChain, RecordedDecision, Why, header_line, push_line};
use crate::atomic_file::Output;
use crate::record_lines::{FactLine, Line, PowerLine};
use crate::{Destination, Meta, Sink, TaskInfo};
use borsh::{BorshDeserialize, BorshSerialize};
use schedtwin_types::{DecisionRecord, Fact, NeedChain, Ns, TaskId};
use std::io::{self, BufRead, Read};

/// The first bytes of a packed record.
pub const PACKED: &str = "schedtwin.packed-record/2";

/// One line of a record, apart from the first.
#[derive(Clone, Debug, PartialEq, BorshSerialize, BorshDeserialize)]
pub(super) enum Item {
    /// A task, its name and priority.
    Task(u32, String, i32),
    /// A task and its new priority.
    Prio(u32, i32),
    /// When, on which CPU, what.
    Fact(Ns, u16, FactLine),
    /// When, on which CPU, what.
    Decision(Ns, u16, RecordedDecision),
    /// When, of which domain, microwatts.
    Power(Ns, u16, u64),
    /// When it ends, and the chain.
    Chain(Ns, RecordedChain),
}

impl Item {
    pub(super) fn task(info: &TaskInfo) -> Item {
        Item::Task(info.id.0, info.name.clone(), info.prio)
    }

    #[inline]
    pub(super) fn fact(fact: &Fact) -> Item {
        Item::Fact(fact.at, fact.cpu.0, fact.kind.into())
    }

    pub(super) fn decision(decision: &DecisionRecord) -> Item {
        Item::Decision(decision.at, decision.cpu.0, (&decision.decision).into())
    }

    pub(super) fn chain(chain: &NeedChain) -> Item {
        Item::Chain(chain.end_at, chain.into())
    }
}

impl From<(Ns, Why)> for Item {
    fn from((at, why): (Ns, Why)) -> Item {
        match why {
            Why::Decision(cpu, decision) => Item::Decision(at, cpu.0, decision),
            Why::Chain(chain) => Item::Chain(at, chain),
        }
    }
}

impl From<Item> for Line {
    fn from(item: Item) -> Line {
        let line = Line::default();
        match item {
            Item::Task(task, name, prio) => {
                Line { task: Some(task), name: Some(name), prio: Some(prio), ..line }
            }
            Item::Prio(task, prio) => Line { task: Some(task), prio: Some(prio), ..line },
            Item::Fact(at, cpu, fact) => {
                Line { at: Some(at), cpu: Some(cpu), fact: Some(fact), ..line }
            }
            Item::Decision(at, cpu, decision) => {
                Line { at: Some(at), cpu: Some(cpu), decision: Some(decision), ..line }
            }
            Item::Power(at, domain, microwatts) => {
                Line { at: Some(at), power: Some(PowerLine::new(domain, microwatts)), ..line }
            }
            Item::Chain(at, chain) => Line { at: Some(at), chain: Some(chain), ..line },
        }
    }
}

/// A packed record being written; see the module.
pub struct PackedRecord<D: Destination> {
    output: Output<D>,
    /// Items that wait to be written together.
    bytes: Vec<u8>,
}

/// So many bytes are written together.
const BATCH_BYTES: usize = 1 << 15;

impl<D: Destination> PackedRecord<D> {
    /// Starts a record with its header.
    pub fn new(destination: D, meta: Meta) -> PackedRecord<D> {
        let mut bytes = format!("{PACKED} ").into_bytes();
        push_line(&mut bytes, &header_line(meta));
        PackedRecord { output: Output::new(destination), bytes }
    }

    fn write(&mut self, item: &Item) {
        const LENGTH: usize = size_of::<u32>();
        let begin = self.bytes.len();
        self.bytes.extend([0; LENGTH]);
        item.serialize(&mut self.bytes).expect("memory takes everything");
        let (_, item) = self.bytes.split_at_mut(begin);
        let length = u32::try_from(item.len() - LENGTH).expect("below `LINE_BYTES_MAX`");
        item[..LENGTH].copy_from_slice(&length.to_le_bytes());
        if self.bytes.len() >= BATCH_BYTES {
            self.output.write(&self.bytes);
            self.bytes.clear();
        }
    }
}

impl<D: Destination> Sink for PackedRecord<D> {
    fn task(&mut self, info: &TaskInfo) {
        self.write(&Item::task(info));
    }

    fn task_prio(&mut self, id: TaskId, prio: i32) {
        self.write(&Item::Prio(id.0, prio));
    }

    fn fact(&mut self, fact: &Fact) {
        self.write(&Item::fact(fact));
    }

    fn wants_decisions(&self) -> bool {
        true
    }

    fn decision(&mut self, decision: &DecisionRecord) {
        self.write(&Item::decision(decision));
    }

    fn power_uw(&mut self, at: Ns, domain: u16, microwatts: u64) {
        self.write(&Item::Power(at, domain, microwatts));
    }

    fn chain(&mut self, chain: &NeedChain) {
        self.write(&Item::chain(chain));
    }

    fn read_back(&mut self, at: Ns, why: Why) -> bool {
        self.write(&Item::from((at, why)));
        true
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.output.write(&self.bytes);
        self.output.finish()
    }
}

/// Where the header begins in the first line of a packed record; `None`: it is no packed one.
pub(super) fn header(first_line: &[u8]) -> Result<Option<usize>, String> {
    let (kind, version) = PACKED.split_at(PACKED.len() - 1);
    let Some(rest) = first_line.strip_prefix(kind.as_bytes()) else { return Ok(None) };
    let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    if &rest[..end] != version.as_bytes() {
        let other = String::from_utf8_lossy(&rest[..end.min(20)]);
        return Err(format!("packed as `{kind}{other}`; `{PACKED}` can be read"));
    }
    Ok(Some(kind.len() + end))
}

/// Reads the next item into `bytes`; `Ok(false)` at the end of the file.
pub(super) fn read_item(input: &mut impl BufRead, bytes: &mut Vec<u8>) -> Result<bool, String> {
    let text = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the record ends within it".to_string(),
        _ => error.to_string(),
    };
    bytes.clear();
    if input.fill_buf().map_err(text)?.is_empty() {
        return Ok(false);
    }
    let mut length = [0; size_of::<u32>()];
    input.read_exact(&mut length).map_err(text)?;
    let length = u64::from(u32::from_le_bytes(length));
    if length > LINE_BYTES_MAX {
        return Err(format!("longer than {LINE_BYTES_MAX} bytes"));
    }
    // What is there, not what is said: damaged lengths cost no memory.
    input.take(length).read_to_end(bytes).map_err(text)?;
    if bytes.len() as u64 != length {
        return Err(text(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(true)
}

pub(super) fn parse(bytes: &[u8]) -> Result<Item, String> {
    borsh::from_slice(bytes).map_err(|error| error.to_string())
}
