// SPDX-License-Identifier: GPL-2.0-or-later
//! Numbers that are nearly always small, in packed records: as protobuf has them, 7 bits a byte, lowest first.

use borsh::io::{Error, ErrorKind, Read, Result, Write};
use prost::encoding::decode_varint;

/// Bytes of the longest.
const BYTES_MAX: usize = 10;

/// For `serialize_with`.
#[inline]
pub(crate) fn write<W: Write>(value: &u64, to: &mut W) -> Result<()> {
    let mut rest = *value;
    while rest >= 0x80 {
        to.write_all(&[rest as u8 | 0x80])?;
        rest >>= 7;
    }
    to.write_all(&[rest as u8])
}

/// For `deserialize_with`.
pub(crate) fn read<R: Read>(from: &mut R) -> Result<u64> {
    let mut bytes = [0; BYTES_MAX];
    for end in 0..BYTES_MAX {
        from.read_exact(&mut bytes[end..=end])?;
        if bytes[end] < 0x80 {
            break;
        }
    }
    decode_varint(&mut &bytes[..]).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_longer_ones_are_refused() {
        for value in (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit]).chain([u64::MAX]) {
            let mut bytes = Vec::new();
            write(&value, &mut bytes).expect("memory takes everything");
            let mut prost = Vec::new();
            prost::encoding::encode_varint(value, &mut prost);
            assert_eq!(bytes, prost);
            assert_eq!(read(&mut &bytes[..]).expect("complete"), value);
            assert!(read(&mut &bytes[..bytes.len() - 1]).is_err(), "cut");
        }
        assert!(read(&mut &[0xff; 11][..]).is_err());
    }
}
