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

/// Appends field `number` with an unsigned value.
#[inline]
pub(crate) fn uint(to: &mut Vec<u8>, number: u32, value: u64) {
    varint(to, u64::from(number) << 3);
    varint(to, value);
}

/// Appends field `number` with a signed value, as `int32` and `int64` are written: sign-extended.
#[inline]
pub(crate) fn int(to: &mut Vec<u8>, number: u32, value: i64) {
    uint(to, number, value as u64);
}

/// Appends field `number` with bytes: a string, a packed column, an encoded message.
#[inline]
pub(crate) fn bytes(to: &mut Vec<u8>, number: u32, value: &[u8]) {
    varint(to, u64::from(number) << 3 | 2);
    varint(to, value.len() as u64);
    to.extend_from_slice(value);
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

/// A message of at most [`Short::BYTES`] bytes of numbers, put together where appending needs no look at the room.
#[derive(Default)]
pub(crate) struct Short {
    bytes: [u8; Short::BYTES],
    length: usize,
}

impl Short {
    /// Three numbers of 64 bits with their fields.
    pub(crate) const BYTES: usize = 32;
    /// What a message that is field 1, or 11, begins with. Its length, below 128, follows.
    pub(crate) const TAG_OF_1: u8 = 1 << 3 | 2;
    pub(crate) const TAG_OF_11: u8 = 11 << 3 | 2;

    #[inline(always)]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes[self.length % Short::BYTES] = value as u8 | 0x80;
            self.length += 1;
            value >>= 7;
        }
        self.bytes[self.length % Short::BYTES] = value as u8;
        self.length += 1;
    }

    /// Appends field `number` with an unsigned value.
    #[inline(always)]
    pub(crate) fn uint(mut self, number: u32, value: u64) -> Short {
        self.varint(u64::from(number) << 3);
        self.varint(value);
        self
    }

    /// What has been appended.
    #[inline(always)]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        assert!(self.length <= Short::BYTES, "it is short");
        &self.bytes[..self.length]
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
                    int(to, 114, i64::from(inner.signed.expect("set")));
                    bytes(to, 5, inner.text.as_deref().expect("set").as_bytes());
                });
                uint(&mut encoded, 1, 7);
                let expected =
                    Outer { unsigned: Some(7), inner: Some(Box::new(inner)), ..Outer::default() };
                assert_eq!(Outer::decode(&encoded[..]), Ok(expected));
            }
        }
    }
}
