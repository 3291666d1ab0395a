// SPDX-License-Identifier: GPL-2.0-or-later
//! The protobuf wire format, for the packets that are written a million times.
//!
//! A field is a varint `number << 3 | wire type` followed by a varint (type 0) or by a length and
//! as many bytes (type 2). Everything that we write by hand needs only these two types. Messages
//! of prost are built and measured before they are written; here bytes are appended in one pass,
//! and the length of a nested message is filled in when its end is reached.

/// Appends a varint: 7 bits a byte, lowest first.
#[inline]
pub(crate) fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Number of bytes of a varint.
pub(crate) fn varint_len(value: usize) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

/// Number of bytes of field `number`, below 16, with `length` bytes.
pub(crate) fn bytes_len(length: usize) -> usize {
    1 + varint_len(length) + length
}

/// Appends field `number` with an unsigned value.
#[inline]
pub(crate) fn uint(to: &mut Vec<u8>, number: u32, value: u64) {
    varint(to, u64::from(number) << 3);
    varint(to, value);
}

/// Appends field `number` with the message that `fill` appends.
#[inline]
pub(crate) fn message(to: &mut Vec<u8>, number: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    varint(to, u64::from(number) << 3 | 2);
    // Nearly all nested messages are shorter than 128 bytes: one byte of length is reserved, and
    // the content is moved in the rare case that it needs more.
    let start = to.len();
    to.push(0);
    fill(to);
    let length = to.len() - start - 1;
    if length < 0x80 {
        to[start] = length as u8;
    } else {
        let mut prefix = Vec::with_capacity(5);
        varint(&mut prefix, length as u64);
        to.splice(start..=start, prefix);
    }
}

/// A varint of a value below 2^56 as a word, lowest byte first, and the number of its bytes; the bytes above are zero.
#[inline(always)]
fn word_of(value: u64) -> (u64, usize) {
    debug_assert!(value >> 56 == 0, "{value} has more than 8 groups");
    // Spreads groups of 7 bits to bytes: halves of 28 bits, then quarters of 14, then single groups.
    let spread = (value & 0x00ff_ffff_f000_0000) << 4 | value & 0x0fff_ffff;
    let spread = (spread & 0x0fff_c000_0fff_c000) << 2 | spread & 0x0000_3fff_0000_3fff;
    let spread = (spread & 0x3f80_3f80_3f80_3f80) << 1 | spread & 0x007f_007f_007f_007f;
    let highest_bit = 63 - (value | 1).leading_zeros();
    let further = highest_bit / 7;
    let more = 0x8080_8080_8080_8080 & ((1 << (8 * further)) - 1);
    (spread | more, further as usize + 1)
}

/// Some encoded bytes, to be used again and again.
#[derive(Clone, Copy, Default)]
pub(crate) struct Encoded {
    /// The bytes, lowest first, as [`Space::piece`] stores them.
    words: [u64; 2],
    length: usize,
}

impl Encoded {
    /// Encodes a varint.
    #[inline(always)]
    pub(crate) fn varint(value: u64) -> Encoded {
        if value >> 56 == 0 {
            let (word, length) = word_of(value);
            Encoded { words: [word, 0], length }
        } else {
            Encoded::varint_by_bytes(value)
        }
    }

    #[cold]
    fn varint_by_bytes(value: u64) -> Encoded {
        let mut bytes = Vec::with_capacity(10);
        varint(&mut bytes, value);
        Encoded::of(|space| bytes.iter().for_each(|byte| space.raw([*byte])))
    }

    /// Keeps what `fill` appends: at most 16 bytes.
    #[cold]
    pub(crate) fn of(fill: impl FnOnce(&mut Space)) -> Encoded {
        let mut bytes = [0; Space::BYTES + Space::WORD];
        let mut space = Space { bytes: &mut bytes, length: 0 };
        fill(&mut space);
        let length = space.length;
        assert!(length <= 16, "{length} bytes are too many");
        let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes"));
        Encoded { words: [word(0), word(8)], length }
    }

    /// Appends the bytes.
    pub(crate) fn push_to(&self, to: &mut Vec<u8>) {
        let [low, high] = self.words.map(u64::to_le_bytes);
        to.extend([low, high].as_flattened().iter().take(self.length));
    }

    /// The same with more bits of byte `at`, which is among the first eight.
    #[inline(always)]
    pub(crate) fn with_bits(mut self, at: usize, bits: u8) -> Encoded {
        self.words[0] |= u64::from(bits) << (8 * at);
        self
    }
}

/// Space at the end of a buffer. Numbers are stored there in words of a fixed size, of which the
/// next one overwrites what is
/// too much: that needs no loop and no look at the buffer's capacity.
pub(crate) struct Space<'a> {
    bytes: &'a mut [u8; Space::BYTES + Space::WORD],
    length: usize,
}

impl Space<'_> {
    /// The most bytes that fit.
    pub(crate) const BYTES: usize = 64;
    /// The longest word.
    const WORD: usize = 16;

    /// Stores a word of which `length` bytes count.
    #[inline(always)]
    fn store<const N: usize>(&mut self, word: [u8; N], length: usize) {
        const { assert!(N <= Space::WORD, "a word fits behind the last byte") };
        // As a remainder the place is seen to be within bounds; the caller that gives the space
        // checks whether it was enough.
        let place = self.length % Space::BYTES;
        self.bytes[place..place + N].copy_from_slice(&word);
        self.length = self.length.wrapping_add(length);
    }

    /// Appends known bytes.
    #[inline(always)]
    pub(crate) fn raw<const N: usize>(&mut self, bytes: [u8; N]) {
        self.store(bytes, N);
    }

    /// Appends what has been encoded before.
    #[inline(always)]
    pub(crate) fn piece(&mut self, piece: &Encoded) {
        let [low, high] = piece.words;
        self.store((u128::from(high) << 64 | u128::from(low)).to_le_bytes(), piece.length);
    }

    /// Appends a varint.
    #[inline(always)]
    pub(crate) fn varint(&mut self, value: u64) {
        if value < 1 << 14 {
            // One byte or two, without a branch.
            let more = u64::from(value >= 0x80);
            let word = value & 0x7f | more << 7 | (value & 0x3f80) << 1;
            self.store((word as u16).to_le_bytes(), 1 + more as usize);
        } else {
            self.piece(&Encoded::varint(value));
        }
    }

    /// Appends field `number`, below 16, with an unsigned value.
    #[inline(always)]
    pub(crate) fn uint(&mut self, number: u8, value: u64) {
        debug_assert!(number < 16, "its tag is one byte");
        self.raw([number << 3]);
        self.varint(value);
    }

    /// Appends field `number`, below 16, with a signed value, as `int32` and `int64` are written: sign-extended.
    #[inline(always)]
    pub(crate) fn int(&mut self, number: u8, value: i64) {
        self.uint(number, value as u64);
    }

    /// How much has been appended.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Puts a byte where another one was appended before.
    #[inline(always)]
    pub(crate) fn put(&mut self, at: usize, byte: u8) {
        self.bytes[at % Space::BYTES] = byte;
    }
}

/// Bytes with free space behind them, so that appending needs no look at the capacity.
pub(crate) struct Buffer {
    /// The filled bytes, and more than a [`Space`] takes.
    bytes: Vec<u8>,
    filled: usize,
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::with_space(0)
    }
}

impl Buffer {
    /// Makes a buffer that has space for a [`Space`] until so many bytes are filled.
    pub(crate) fn with_space(bytes: usize) -> Buffer {
        Buffer { bytes: vec![0; bytes + Space::BYTES + Space::WORD], filled: 0 }
    }

    /// Returns the bytes appended so far.
    #[inline(always)]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// How much has been appended.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.filled
    }

    /// Forgets what has been appended.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Forgets the first `count` bytes.
    pub(crate) fn forget(&mut self, count: usize) {
        self.bytes.copy_within(count..self.filled, 0);
        self.filled -= count;
    }

    /// Appends at most [`Space::BYTES`] bytes.
    #[inline(always)]
    pub(crate) fn append(&mut self, fill: impl FnOnce(&mut Space)) {
        self.append_within(fill);
        if self.bytes.len() - self.filled < Space::BYTES + Space::WORD {
            self.grow(0);
        }
    }

    /// As [`Buffer::append`], while less is filled than the buffer was made for.
    #[inline(always)]
    pub(crate) fn append_within(&mut self, fill: impl FnOnce(&mut Space)) {
        let bytes = self.bytes[self.filled..].first_chunk_mut().expect("there is space");
        let mut space = Space { bytes, length: 0 };
        fill(&mut space);
        assert!(space.length <= Space::BYTES, "what is appended fits");
        self.filled = self.filled.wrapping_add(space.length);
    }

    /// Makes space for `more` and a [`Space`].
    #[cold]
    fn grow(&mut self, more: usize) {
        self.bytes.resize((self.filled + more).next_power_of_two() + 1024, 0);
    }

    /// Appends bytes.
    #[inline]
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if self.bytes.len() - self.filled < bytes.len() + Space::BYTES + Space::WORD {
            self.grow(bytes.len());
        }
        self.bytes[self.filled..][..bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    /// Appends field `number`, below 16, with bytes.
    #[inline]
    pub(crate) fn bytes(&mut self, number: u8, bytes: &[u8]) {
        self.append(|space| {
            space.raw([number << 3 | 2]);
            space.varint(bytes.len() as u64);
        });
        self.extend(bytes);
    }

    /// Fills in the length of a message that begins after the byte at `start`, which was reserved for it.
    #[inline(always)]
    pub(crate) fn message_ends(&mut self, start: usize) {
        let length = self.filled - start - 1;
        if length < 0x80 {
            self.bytes[start] = length as u8;
        } else {
            self.long_message_ends(start, length);
        }
    }

    /// Reserves two bytes for the length of a message that is often longer than 127; returns where.
    #[inline]
    pub(crate) fn long_message_begins(&mut self) -> usize {
        let start = self.filled;
        self.append(|space| space.raw([0x80, 0]));
        start
    }

    /// Fills in the length of what begins after the two bytes at `start`. A varint may have more bytes than it needs.
    #[inline]
    pub(crate) fn long_message_ended(&mut self, start: usize) {
        let length = self.filled - start - 2;
        if length < 1 << 14 {
            self.bytes[start] = length as u8 | 0x80;
            self.bytes[start + 1] = (length >> 7) as u8;
        } else {
            self.bytes.copy_within(start + 2..self.filled, start + 1);
            self.filled -= 1;
            self.long_message_ends(start, length);
        }
    }

    #[cold]
    fn long_message_ends(&mut self, start: usize, length: usize) {
        let content = self.bytes[start + 1..self.filled].to_vec();
        self.filled = start;
        self.append(|space| space.varint(length as u64));
        self.extend(&content);
    }
}

/// A packed field: varints one after the other.
#[derive(Default)]
pub(crate) struct Column {
    bytes: Vec<u8>,
    filled: usize,
}

impl Column {
    /// The longest varint.
    const VALUE_BYTES: usize = 10;

    /// Empties the column and makes space for so many values.
    pub(crate) fn begin(&mut self, values: usize) {
        let space = values * Column::VALUE_BYTES;
        if self.bytes.len() < space {
            self.bytes.resize(space, 0);
        }
        self.filled = 0;
    }

    /// Returns the bytes appended so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Appends a value.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: u64) {
        if value < 0x80 {
            self.bytes[self.filled] = value as u8;
            self.filled += 1;
        } else {
            self.push_long(value);
        }
    }

    /// As [`Column::push`], for values that are mostly of more than 7 bits.
    #[inline]
    pub(crate) fn push_long(&mut self, mut value: u64) {
        let (mut at, bytes) = (self.filled, &mut self.bytes[..]);
        while value >= 0x80 {
            bytes[at] = value as u8 | 0x80;
            value >>= 7;
            at += 1;
        }
        bytes[at] = value as u8;
        self.filled = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[derive(Clone, PartialEq, Message)]
    struct Outer {
        #[prost(uint64, optional, tag = "1")]
        unsigned: Option<u64>,
        #[prost(int32, optional, tag = "114")]
        signed: Option<i32>,
        #[prost(string, optional, tag = "5")]
        text: Option<String>,
        #[prost(message, optional, boxed, tag = "491")]
        inner: Option<Box<Outer>>,
    }

    #[test]
    fn prost_reads_messages_with_two_bytes_of_length() {
        for length in (0..=130).chain([16_379, 16_380, 16_381, 16_382, 70_000]) {
            let inner = Outer { text: Some("x".repeat(length)), ..Outer::default() };
            let mut buffer = Buffer::default();
            buffer.append(|space| space.varint(491 << 3 | 2));
            let start = buffer.long_message_begins();
            buffer.bytes(5, inner.text.as_deref().expect("set").as_bytes());
            buffer.long_message_ended(start);
            buffer.append(|space| space.uint(1, 7));
            let outer =
                Outer { unsigned: Some(7), inner: Some(Box::new(inner)), ..Outer::default() };
            assert_eq!(Outer::decode(buffer.as_bytes()).expect("a message"), outer, "{length}");
        }
    }

    #[test]
    fn prost_reads_what_is_written() {
        for length in (0..=130).chain([20_000]) {
            for number in [0, 1, 127, 128, 300, u64::MAX >> 1, u64::MAX] {
                let inner = Outer {
                    unsigned: Some(number),
                    signed: Some(-(number as i32 & 0xffff)),
                    text: Some("x".repeat(length)),
                    inner: None,
                };
                let mut encoded = Vec::new();
                message(&mut encoded, 491, |to| {
                    uint(to, 1, number);
                    uint(to, 114, i64::from(inner.signed.expect("set")) as u64);
                    message(to, 5, |to| to.extend(inner.text.as_deref().expect("set").bytes()));
                });
                uint(&mut encoded, 1, 7);
                let expected =
                    Outer { unsigned: Some(7), inner: Some(Box::new(inner)), ..Outer::default() };
                assert_eq!(Outer::decode(&encoded[..]), Ok(expected));
            }
        }
    }

    /// Numbers of all lengths, and their neighbours.
    fn numbers() -> impl Iterator<Item = u64> {
        let powers = (0..64).map(|bit| 1u64 << bit);
        powers.flat_map(|power| [power - 1, power, power + 1, power | power >> 1]).chain([u64::MAX])
    }

    #[test]
    fn a_varint_is_the_same_however_it_is_written() {
        let (mut buffer, mut column, mut expected) =
            (Buffer::default(), Column::default(), Vec::new());
        column.begin(numbers().count());
        for value in numbers() {
            varint(&mut expected, value);
            let start = buffer.len();
            buffer.append(|space| space.varint(value));
            let mut kept = Vec::new();
            Encoded::varint(value).push_to(&mut kept);
            assert_eq!(kept, buffer.as_bytes()[start..], "{value}");
            assert_eq!(varint_len(value as usize), kept.len(), "{value}");
            column.push(value);
        }
        assert_eq!(buffer.as_bytes(), expected);
        assert_eq!(column.as_bytes(), expected);
        buffer.forget(1);
        assert_eq!(buffer.as_bytes(), &expected[1..]);
    }

    #[test]
    fn long_texts_move_the_length_of_their_message() {
        for length in [0, 1, 100, 127, 128, 5000] {
            let text = vec![b'x'; length];
            let (mut buffer, mut expected) = (Buffer::default(), Vec::new());
            buffer.append(|space| space.raw([1 << 3 | 2, 0]));
            buffer.bytes(5, &text);
            buffer.message_ends(1);
            buffer.append(|space| space.int(3, -1));
            message(&mut expected, 1, |to| message(to, 5, |to| to.extend(&text)));
            uint(&mut expected, 3, u64::MAX);
            assert_eq!(buffer.as_bytes(), expected, "{length}");
            assert_eq!(bytes_len(length), expected.len() - 11 - 1 - varint_len(bytes_len(length)));
        }
    }
}
