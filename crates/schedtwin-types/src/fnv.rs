// SPDX-License-Identifier: GPL-2.0-or-later
//! FNV-1a, 64 bits: a short name for an input or a result, the same on every computer. Nothing depends on its
//! strength: nobody gains by making two inputs collide.

use std::fmt;

/// A digest of bytes, in order.
///
/// ```
/// use schedtwin_types::fnv::Fnv1a;
/// assert_eq!(Fnv1a::new().digest(), 0xcbf2_9ce4_8422_2325);
/// assert_eq!(Fnv1a::of(*b"a").digest(), 0xaf63_dc4c_8601_ec8c);
/// assert_eq!(Fnv1a::of(*b"foobar").digest(), 0x8594_4171_f739_67e8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fnv1a(u64);

impl Fnv1a {
    /// Of no bytes.
    pub const fn new() -> Fnv1a {
        Fnv1a(0xcbf2_9ce4_8422_2325)
    }

    /// Of these bytes.
    pub fn of(bytes: impl IntoIterator<Item = u8>) -> Fnv1a {
        let mut digest = Fnv1a::new();
        digest.extend(bytes);
        digest
    }

    /// The number.
    pub const fn digest(self) -> u64 {
        self.0
    }
}

impl Default for Fnv1a {
    fn default() -> Fnv1a {
        Fnv1a::new()
    }
}

impl Extend<u8> for Fnv1a {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Takes formatted text without a string in between.
impl fmt::Write for Fnv1a {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.extend(text.bytes());
        Ok(())
    }
}

/// As provenance lines show it: 16 hexadecimal digits.
impl fmt::LowerHex for Fnv1a {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}
