// SPDX-License-Identifier: GPL-2.0-or-later
//! The events of a perf.data, and the fields of their samples.
//!
//! ```text
//! sample: IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU PERIOD   8 bytes each, those whose bit is set
//!         READ CALLCHAIN                                       of any length
//!         RAW: u32 size, bytes                                 the kernel's record
//! other records end in: TID TIME ID STREAM_ID CPU IDENTIFIER   8 bytes each
//! ```

use crate::event::SourceFault;
use crate::tracepoint::ByteOrder;

/// Events of a file: each tracepoint on each CPU has a number of its own.
const ATTRS_MAX: usize = 1 << 14;
const IDS_MAX: usize = 1 << 21;

const TYPE_TRACEPOINT: u32 = 2;

/// Bits of `sample_type`, in the order of a sample's fields.
const IDENTIFIER: u64 = 1 << 16;
const IP: u64 = 1;
const TID: u64 = 2;
const TIME: u64 = 4;
const ADDR: u64 = 8;
const ID: u64 = 0x40;
const STREAM_ID: u64 = 0x200;
const CPU: u64 = 0x80;
const PERIOD: u64 = 0x100;
const READ: u64 = 0x10;
const CALLCHAIN: u64 = 0x20;
const RAW: u64 = 0x400;

/// Bits of `read_format`.
const READ_GROUP: u64 = 8;
const READ_TIMES: [u64; 2] = [1, 2];
const READ_EACH: [u64; 2] = [4, 16];

/// Bits of the flags of an event.
const FLAG_SAMPLE_ID_ALL: u32 = 18;
const FLAG_USE_CLOCKID: u32 = 25;

/// An event as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    kind: u32,
    sample_type: u64,
    read_format: u64,
    sample_id_all: bool,
    clock: Option<i32>,
}

/// The events.
#[derive(Clone, Debug)]
pub struct Attrs {
    order: ByteOrder,
    attrs: Vec<Attr>,
    /// The event of each number, sorted.
    ids: Vec<(u64, u32)>,
    /// All events have the same fields.
    alike: bool,
}

/// The fields of a sample, or of the end of another record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The process.
    pub pid: Option<u32>,
    /// The thread.
    pub tid: Option<u32>,
    /// When.
    pub time: Option<u64>,
    /// Where.
    pub cpu: Option<u32>,
    /// The kernel's record.
    pub raw: Option<&'a [u8]>,
}

impl Sample<'_> {
    /// Takes the field of this bit of `sample_type`, if a reader of schedulers wants it.
    fn take(&mut self, bit: u64, order: ByteOrder, body: &[u8], at: usize) -> Option<()> {
        match bit {
            TID => {
                self.pid = Some(order.u32_at(body, at)?);
                self.tid = Some(order.u32_at(body, at + 4)?);
            }
            TIME => self.time = Some(order.u64_at(body, at)?),
            CPU => self.cpu = Some(order.u32_at(body, at)?),
            _ => {}
        }
        Some(())
    }
}

impl Attrs {
    /// No events yet.
    pub fn new(order: ByteOrder) -> Attrs {
        Attrs { order, attrs: Vec::new(), ids: Vec::new(), alike: true }
    }

    /// Adds an event and its numbers.
    pub fn add(&mut self, attr: &[u8], ids: &[u8]) -> Result<(), SourceFault> {
        let order = self.order;
        let short = || SourceFault::Unusable("its description of an event is cut".to_owned());
        let flags = order.u64_at(attr, 40).ok_or_else(short)?;
        // Bits are counted from the other end where the most significant byte comes first.
        let flag = |bit: u32| match order {
            ByteOrder::Little => flags >> bit & 1 == 1,
            ByteOrder::Big => flags >> (63 - bit) & 1 == 1,
        };
        let attr = Attr {
            kind: order.u32_at(attr, 0).ok_or_else(short)?,
            sample_type: order.u64_at(attr, 24).ok_or_else(short)?,
            read_format: order.u64_at(attr, 32).ok_or_else(short)?,
            sample_id_all: flag(FLAG_SAMPLE_ID_ALL),
            clock: order
                .u32_at(attr, 92)
                .filter(|_| flag(FLAG_USE_CLOCKID))
                .map(|clock| clock as i32),
        };
        if self.attrs.len() == ATTRS_MAX || self.ids.len() + ids.len() / 8 > IDS_MAX {
            return Err(SourceFault::Unusable(format!(
                "it has more than {ATTRS_MAX} events or {IDS_MAX} numbers of them"
            )));
        }
        if let Some(first) = self.attrs.first() {
            let fields = |attr: &Attr| {
                (attr.sample_type & !(RAW | CALLCHAIN | READ | PERIOD), attr.sample_id_all)
            };
            let same = fields(first) == fields(&attr);
            let identified = first.sample_type & attr.sample_type & IDENTIFIER != 0;
            if !same && !identified {
                return Err(SourceFault::Unusable(
                    "its events have different fields and no IDENTIFIER, so that a sample's event is unknown".to_owned(),
                ));
            }
            self.alike &=
                first.sample_type == attr.sample_type && first.sample_id_all == attr.sample_id_all;
        }
        let index = self.attrs.len() as u32;
        self.attrs.push(attr);
        self.ids.extend(ids.chunks_exact(8).filter_map(|id| Some((order.u64_at(id, 0)?, index))));
        self.ids.sort_unstable();
        Ok(())
    }

    /// Whether any event is a tracepoint with the kernel's record.
    pub fn has_tracepoints(&self) -> bool {
        self.attrs.iter().any(|attr| attr.kind == TYPE_TRACEPOINT && attr.sample_type & RAW != 0)
    }

    /// The clock that was asked for; `None`: perf's own.
    pub fn clock(&self) -> Option<&'static str> {
        match self.attrs.first()?.clock? {
            0 => Some("realtime"),
            1 => Some("mono"),
            4 => Some("mono_raw"),
            7 => Some("boot"),
            11 => Some("tai"),
            _ => None,
        }
    }

    fn by_id(&self, id: u64) -> Option<&Attr> {
        let index = self.ids.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.attrs.get(self.ids[index].1 as usize)
    }

    /// Reads a sample; `None` if it is too short for its fields.
    pub fn sample<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        let order = self.order;
        let first = self.attrs.first()?;
        let attr =
            if self.alike && self.attrs.len() > 1 && first.sample_type & (IDENTIFIER | ID) == 0 {
                first
            } else if first.sample_type & IDENTIFIER != 0 {
                self.by_id(order.u64_at(body, 0)?)
                    .or_else(|| (self.attrs.len() == 1).then_some(first))?
            } else if first.sample_type & ID != 0 {
                let before = [IP, TID, TIME, ADDR];
                let at = 8 * before.iter().filter(|bit| first.sample_type & **bit != 0).count();
                self.by_id(order.u64_at(body, at)?).unwrap_or(first)
            } else {
                first
            };
        let mut sample = Sample::default();
        let mut at = 0;
        for bit in [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD] {
            if attr.sample_type & bit == 0 {
                continue;
            }
            sample.take(bit, order, body, at)?;
            at += 8;
        }
        if attr.sample_type & READ != 0 {
            at = attr.behind_read(order, body, at)?;
        }
        if attr.sample_type & CALLCHAIN != 0 {
            let count = usize::try_from(order.u64_at(body, at)?).ok()?;
            at = at.checked_add(8)?.checked_add(count.checked_mul(8)?)?;
        }
        if attr.kind == TYPE_TRACEPOINT && attr.sample_type & RAW != 0 {
            let size = order.u32_at(body, at)? as usize;
            sample.raw = Some(body.get(at + 4..(at + 4).checked_add(size)?)?);
        }
        Some(sample)
    }

    /// Reads the end of a record that is no sample.
    pub fn trailer(&self, body: &[u8]) -> Option<Sample<'static>> {
        let order = self.order;
        let first = self.attrs.first()?;
        let attr = if self.alike || first.sample_type & IDENTIFIER == 0 {
            first
        } else {
            self.by_id(order.u64_at(body, body.len().checked_sub(8)?)?).unwrap_or(first)
        };
        let mut sample = Sample::default();
        if !attr.sample_id_all {
            return Some(sample);
        }
        let mut at = body.len();
        for bit in [IDENTIFIER, CPU, STREAM_ID, ID, TIME, TID] {
            if attr.sample_type & bit == 0 {
                continue;
            }
            at = at.checked_sub(8)?;
            sample.take(bit, order, body, at)?;
        }
        Some(sample)
    }
}

impl Attr {
    /// Where the values that were read together with the event end.
    fn behind_read(&self, order: ByteOrder, body: &[u8], at: usize) -> Option<usize> {
        let count =
            |bits: [u64; 2]| bits.iter().filter(|bit| self.read_format & **bit != 0).count();
        let words = if self.read_format & READ_GROUP == 0 {
            1 + count(READ_TIMES) + count(READ_EACH)
        } else {
            let values = usize::try_from(order.u64_at(body, at)?).ok()?;
            values.checked_mul(1 + count(READ_EACH))?.checked_add(1 + count(READ_TIMES))?
        };
        at.checked_add(words.checked_mul(8)?)
    }
}
