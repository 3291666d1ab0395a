// SPDX-License-Identifier: GPL-2.0-or-later
//! Pages of the kernel's ring buffer: the records of one CPU, with their times and losses.
//!
//! ```text
//!   0  u64   time of the page
//!   8  long  commit: bytes of data; bit 31: events were lost before; bit 30: their number follows the data
//!  16  data  (12 on 32-bit kernels)
//!
//!  header of a record: 5 bits type_len, 27 bits time since the record before
//!  type_len   1..=28  4 x type_len bytes of data follow
//!             0       a u32 follows: bytes of data, itself included
//!             29      padding: the rest of the page, or a discarded record
//!             30      a u32 follows: the upper part of a long time difference
//!             31      a u32 follows: the upper part of an absolute time
//! ```
//!
//! The layout of the head comes from the file's `header_page` ([`PageLayout::parse`]): a kernel's
//! `long` has 4 or 8 bytes, and a page any size.
//!
//! **Losses.** A page says that events were lost before it, and mostly how many ([`Lost`]). On 64-bit kernels
//! bit 31 arrives sign-extended, so only the low 32 bits of `commit` are looked at.
//!
//! **Damage.** A record that does not fit ends the page and is reported as [`Damaged`]; the caller goes
//! on with the next page, and what was in the rest counts as lost. Some Android kernels claim more
//! data than there is and go on in zeros: that ends a page without damage.

use super::fields::ByteOrder;

/// The largest page that is read; the kernel's largest sub-buffer is a few hundred KB.
pub const PAGE_BYTES_MAX: usize = 16 << 20;

const COMMIT_LOST: u64 = 1 << 31;
const COMMIT_LOST_STORED: u64 = 1 << 30;
/// The kernel keeps bits above 27 of `commit` for flags.
const COMMIT_MASK: u64 = (1 << 27) - 1;

const TYPE_PADDING: u32 = 29;
const TYPE_EXTEND: u32 = 30;
const TYPE_STAMP: u32 = 31;

/// The bits of a time that an absolute time stamp does not hold.
const STAMP_MISSING: u64 = 0xf8 << 56;

/// The head of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    commit: usize,
    commit_bytes: usize,
    data: usize,
    order: ByteOrder,
    /// Bytes of a whole page, as `header_page` says; a file's own page size goes before.
    pub page_bytes: usize,
}

impl PageLayout {
    /// Reads the text of `events/header_page`.
    pub fn parse(text: &str, order: ByteOrder) -> Result<PageLayout, String> {
        let mut commit = None;
        let mut data = None;
        for line in text.lines() {
            let mut parts = line.trim().split(';').map(str::trim);
            let name = parts.next().unwrap_or("").rsplit(' ').next().unwrap_or("");
            let mut number = |key: &str| {
                parts
                    .next()
                    .and_then(|part| part.strip_prefix(key))
                    .and_then(|n| n.parse::<usize>().ok())
            };
            let place = (number("offset:"), number("size:"));
            match (name, place) {
                ("commit", (Some(offset), Some(size))) => commit = Some((offset, size)),
                ("data", (Some(offset), Some(size))) => data = Some((offset, size)),
                _ => {}
            }
        }
        let (commit, commit_bytes) = commit.ok_or("header_page has no field commit")?;
        let (data, data_bytes) = data.ok_or("header_page has no field data")?;
        let fits = matches!(commit_bytes, 4 | 8)
            && commit == 8
            && data == commit + commit_bytes
            && data_bytes < PAGE_BYTES_MAX - data;
        if !fits {
            return Err(format!(
                "header_page has commit at {commit} ({commit_bytes} bytes) and data at {data} \
                 ({data_bytes} bytes); known are 8 (4 or 8) with the data directly behind"
            ));
        }
        Ok(PageLayout { commit, commit_bytes, data, order, page_bytes: data + data_bytes })
    }

    /// The layout of a kernel whose `long` has that many bytes, for files without `header_page`.
    pub fn of_long(long_bytes: usize, order: ByteOrder) -> PageLayout {
        PageLayout {
            commit: 8,
            commit_bytes: long_bytes,
            data: 8 + long_bytes,
            order,
            page_bytes: 4096,
        }
    }
}

/// Events lost before a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lost {
    /// None.
    #[default]
    Nothing,
    /// That many.
    Events(u64),
    /// Some.
    Unknown,
}

/// A page that cannot be read further: the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged(pub &'static str);

/// A record of a page: its time, and the place of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// When, in the buffer's clock.
    pub at: u64,
    /// The first byte.
    pub start: usize,
    /// The byte behind the last; up to 7 bytes of slack may be among them.
    pub end: usize,
}

/// A position in a page. It does not borrow the page, so that a stream can own both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCursor {
    next: usize,
    end: usize,
    time: u64,
    order: ByteOrder,
}

impl PageCursor {
    /// Starts with a page; also what was lost before it.
    pub fn open(layout: &PageLayout, page: &[u8]) -> Result<(PageCursor, Lost), Damaged> {
        let order = layout.order;
        let short = Damaged("a page is shorter than its head");
        let time = order.u64_at(page, 0).ok_or(short)?;
        let raw = match layout.commit_bytes {
            4 => order.u32_at(page, layout.commit).map(u64::from),
            _ => order.u64_at(page, layout.commit),
        }
        .ok_or(short)?;
        let end = layout.data + (raw & COMMIT_MASK) as usize;
        if end > page.len() {
            return Err(Damaged("a page claims more data than it has"));
        }
        let lost = if raw & COMMIT_LOST == 0 {
            Lost::Nothing
        } else if raw & COMMIT_LOST_STORED == 0 {
            Lost::Unknown
        } else {
            let stored = match layout.commit_bytes {
                4 => order.u32_at(page, end).map(u64::from),
                _ => order.u64_at(page, end),
            };
            stored.map_or(Lost::Unknown, Lost::Events)
        };
        Ok((PageCursor { next: layout.data, end, time, order }, lost))
    }

    /// The next record of the page that the cursor was opened with; `None` at its end.
    #[inline]
    pub fn next(&mut self, page: &[u8]) -> Result<Option<Place>, Damaged> {
        // Each turn goes on by at least 4 bytes, so a page ends it.
        loop {
            if self.next + 4 > self.end {
                return Ok(None);
            }
            let head = self.word(page, self.next)?;
            let (type_len, delta) = match self.order {
                ByteOrder::Little => (head & 31, u64::from(head >> 5)),
                ByteOrder::Big => (head >> 27, u64::from(head & ((1 << 27) - 1))),
            };
            let body = self.next + 4;
            match type_len {
                0 => {
                    let length = self.word(page, body)? as usize;
                    if length == 0 {
                        self.next = self.end;
                        return Ok(None);
                    }
                    self.time = self.time.wrapping_add(delta);
                    return self.place(body + 4, length.wrapping_sub(4), body, length);
                }
                TYPE_PADDING => {
                    if delta == 0 {
                        self.next = self.end;
                        return Ok(None);
                    }
                    let length = self.word(page, body)? as usize;
                    self.time = self.time.wrapping_add(delta);
                    self.skip(body, length)?;
                }
                TYPE_EXTEND => {
                    let upper = u64::from(self.word(page, body)?) << 27;
                    self.time = self.time.wrapping_add(delta.wrapping_add(upper));
                    self.skip(body, 4)?;
                }
                TYPE_STAMP => {
                    let stamp = delta.wrapping_add(u64::from(self.word(page, body)?) << 27);
                    let mut time = self.time & STAMP_MISSING | stamp & !STAMP_MISSING;
                    if time < self.time {
                        time = time.wrapping_add(1 << 59);
                    }
                    self.time = time;
                    self.skip(body, 4)?;
                }
                words => {
                    self.time = self.time.wrapping_add(delta);
                    let length = 4 * words as usize;
                    return self.place(body, length, body, length);
                }
            }
        }
    }

    fn word(&mut self, page: &[u8], at: usize) -> Result<u32, Damaged> {
        match self.order.u32_at(page, at) {
            Some(word) if at + 4 <= self.end => Ok(word),
            _ => self.damaged(),
        }
    }

    /// Skips `length` bytes behind `body`, in whole words.
    fn skip(&mut self, body: usize, length: usize) -> Result<(), Damaged> {
        match length.checked_next_multiple_of(4).and_then(|length| body.checked_add(length)) {
            Some(next) if next <= self.end => self.next = next,
            _ => return self.damaged(),
        }
        Ok(())
    }

    fn place(
        &mut self,
        start: usize,
        length: usize,
        body: usize,
        advance: usize,
    ) -> Result<Option<Place>, Damaged> {
        let end = match start.checked_add(length) {
            Some(end) if end <= self.end => end,
            _ => return self.damaged(),
        };
        self.skip(body, advance)?;
        Ok(Some(Place { at: self.time, start, end }))
    }

    /// Ends the page: nothing behind a damaged record can be trusted.
    fn damaged<T>(&mut self) -> Result<T, Damaged> {
        self.next = self.end;
        Err(Damaged("a record does not fit into its page"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    /// A page of these words, as a kernel with 8-byte longs writes it.
    fn page(order: ByteOrder, time: u64, flags: u64, words: &[(u32, u32, &[u32])]) -> Vec<u8> {
        let little = order == ByteOrder::Little;
        let u32s = |word: u32| if little { word.to_le_bytes() } else { word.to_be_bytes() };
        let u64s = |word: u64| if little { word.to_le_bytes() } else { word.to_be_bytes() };
        let mut data = Vec::new();
        for (type_len, delta, rest) in words {
            let head = match order {
                ByteOrder::Little => delta << 5 | type_len,
                ByteOrder::Big => type_len << 27 | delta,
            };
            data.extend(u32s(head));
            rest.iter().for_each(|word| data.extend(u32s(*word)));
        }
        let mut bytes = u64s(time).to_vec();
        bytes.extend(u64s(data.len() as u64 | flags));
        bytes.extend(&data);
        if flags & COMMIT_LOST_STORED != 0 {
            bytes.extend(u64s(2617));
        }
        bytes.resize(4096, 0);
        bytes
    }

    fn read(layout: &PageLayout, page: &[u8]) -> (Lost, Vec<(u64, usize)>, Option<Damaged>) {
        let (mut cursor, lost) = match PageCursor::open(layout, page) {
            Ok(opened) => opened,
            Err(damaged) => return (Lost::Nothing, Vec::new(), Some(damaged)),
        };
        let mut records = Vec::new();
        loop {
            match cursor.next(page) {
                Ok(Some(place)) => records.push((place.at, place.end - place.start)),
                Ok(None) => return (lost, records, None),
                Err(damaged) => return (lost, records, Some(damaged)),
            }
        }
    }

    #[test]
    fn each_type_of_record_moves_time_and_place_in_both_byte_orders() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let layout = PageLayout::parse(HEADER_PAGE, order).unwrap();
            assert_eq!(layout.page_bytes, 4096);
            let bytes = page(
                order,
                1 << 60 | 1000,
                0,
                &[
                    (1, 5, &[7]),
                    // 3 + (2 << 27).
                    (30, 3, &[2]),
                    (2, 1, &[7, 7]),
                    // 7 bytes of data in 8, the length itself included.
                    (0, 1, &[7, 0x0102_0304]),
                    // A discarded record: its own length, then its data.
                    (29, 10, &[8, 9]),
                    (1, 0, &[1]),
                    // 59 bits, of which 27 are in the head.
                    (31, 1, &[1 << 20]),
                    (1, 2, &[1]),
                    (29, 0, &[]),
                ],
            );
            let start = 1 << 60 | 1000;
            let after_extend = start + 8 + (2 << 27);
            let stamped = 1 << 60 | 1 << 47 | 1;
            assert_eq!(
                read(&layout, &bytes),
                (
                    Lost::Nothing,
                    vec![
                        (start + 5, 4),
                        (after_extend + 1, 8),
                        (after_extend + 2, 3),
                        (after_extend + 12, 4),
                        (stamped + 2, 4),
                    ],
                    None
                )
            );
        }
    }

    #[test]
    fn losses_are_told_with_their_number_where_the_page_has_it() {
        let layout = PageLayout::parse(HEADER_PAGE, ByteOrder::Little).unwrap();
        for (flags, lost) in [
            (0, Lost::Nothing),
            (0xffff_ffff_8000_0000, Lost::Unknown),
            (0xffff_ffff_c000_0000, Lost::Events(2617)),
        ] {
            let bytes = page(ByteOrder::Little, 5, flags, &[(1, 0, &[1])]);
            assert_eq!(read(&layout, &bytes), (lost, vec![(5, 4)], None), "{flags:x}");
        }
    }

    #[test]
    fn kernels_of_32_bits_have_a_shorter_head() {
        let text = HEADER_PAGE
            .replace("offset:8;\tsize:8", "offset:8;\tsize:4")
            .replace("offset:16;\tsize:4080", "offset:12;\tsize:4084");
        let layout = PageLayout::parse(&text, ByteOrder::Little).unwrap();
        let mut bytes = 9u64.to_le_bytes().to_vec();
        bytes.extend(8u32.to_le_bytes());
        bytes.extend((3u32 << 5 | 1).to_le_bytes());
        bytes.extend([0; 4]);
        assert_eq!(read(&layout, &bytes), (Lost::Nothing, vec![(12, 4)], None));
    }

    #[test]
    fn damage_ends_a_page_and_zeros_end_it_quietly() {
        let layout = PageLayout::parse(HEADER_PAGE, ByteOrder::Little).unwrap();
        let does_not_fit = Some(Damaged("a record does not fit into its page"));
        for (words, records, damaged) in [
            (&[(1, 0, &[1][..]), (28, 0, &[1])][..], 1, does_not_fit),
            (&[(0, 0, &[1 << 30])], 0, does_not_fit),
            (&[(0, 0, &[u32::MAX])], 0, does_not_fit),
            (&[(0, 0, &[3])], 0, does_not_fit),
            (&[(0, 0, &[])], 0, does_not_fit),
            (&[(29, 4, &[u32::MAX])], 0, does_not_fit),
            (&[(30, 0, &[])], 0, does_not_fit),
            (&[(31, 0, &[])], 0, does_not_fit),
            (&[(1, 0, &[1]), (0, 0, &[0, 0, 0])], 1, None),
            (&[], 0, None),
        ] {
            let (_, read, error) = read(&layout, &page(ByteOrder::Little, 0, 0, words));
            assert_eq!((read.len(), error), (records, damaged), "{words:?}");
        }
        let lies = page(ByteOrder::Little, 0, 4081, &[]);
        assert_eq!(read(&layout, &lies).2, Some(Damaged("a page claims more data than it has")));
        for length in 0..16 {
            assert_eq!(
                read(&layout, &lies[..length]).2,
                Some(Damaged("a page is shorter than its head"))
            );
        }
    }

    #[test]
    fn other_layouts_are_refused() {
        for (from, to) in [
            ("commit", "kommit"),
            ("char data", "char dada"),
            ("size:4080", "size:999999999"),
            ("offset:16", "offset:20"),
        ] {
            assert!(PageLayout::parse(&HEADER_PAGE.replace(from, to), ByteOrder::Little).is_err());
        }
    }
}
