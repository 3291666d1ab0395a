// SPDX-License-Identifier: GPL-2.0-or-later
//! The running digest: one number that two executions share only if they did the same.
//!
//! Every record (a fact, a mark, a truth segment) is packed without loss into three words: its time
//! `at`, a `header` (kind, CPU and up to 40 bits of payload) and a `word` (64 bits of payload). The
//! state then takes two multiplications a record, only one of which waits for the previous record:
//!
//! ```text
//! fold(a, b) = low 64 bits of a·b  XOR  high 64 bits of a·b      (a·b has 128 bits)
//! record     = fold(header ^ K1, word ^ K2)
//! state      = fold(state ^ at, record ^ K3)
//! ```
//!
//! This is the step of wyhash and rapidhash. It is integer arithmetic only, so the digest is the
//! same on every computer. It guards against mistakes, not against somebody who looks for
//! collisions. Order matters: swapping two records gives another digest.
//!
//! References: Wang Yi et al., "Modern Non-Cryptographic Hash Function and Pseudorandom Number
//! Generator" (wyhash).

use schedtwin_types::Ns;

// The first 256 bits of the fraction of pi, as in Blowfish: odd-looking, and nobody chose them.
const K0: u64 = 0x243f_6a88_85a3_08d3;
const K1: u64 = 0x1319_8a2e_0370_7344;
const K2: u64 = 0xa409_3822_299f_31d0;
const K3: u64 = 0x082e_fa98_ec4e_6c89;

/// Codes of records that are no facts: the subject of a record is in the low 8 bits of its header.
/// Those of facts, below 32, are in the table of facts. The numbers are part of the digest.
pub(super) mod code {
    pub(crate) const JOB_DONE: u8 = 32;
    pub(crate) const SLACK: u8 = 33;
    pub(crate) const WAKEUP_LATENCY: u8 = 34;
    pub(crate) const TASK_CREATED: u8 = 35;
    pub(crate) const DEADLINE_JOB_DONE: u8 = 36;
    pub(crate) const CPU_ACTIVITY: u8 = 48;
    pub(crate) const DOMAIN_OPP: u8 = 49;
}

/// The state of the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest(u64);

impl Digest {
    pub(super) fn new() -> Digest {
        Digest(K0)
    }

    /// Takes in one record: `cpu` is a CPU or domain, `small` has at most 40 bits.
    #[inline(always)]
    pub(super) fn absorb(&mut self, at: Ns, code: u8, cpu: u16, small: u64, word: u64) {
        debug_assert!(small < 1 << 40, "the header has room for 40 bits");
        let header = u64::from(code) | (cpu as u64) << 8 | small << 24;
        let record = fold(header ^ K1, word ^ K2);
        self.0 = fold(self.0 ^ at, record ^ K3);
    }

    /// The digest of all records so far.
    pub(super) fn value(self) -> u64 {
        fold(self.0 ^ K1, K3)
    }
}

/// The two halves of the 128-bit product, folded by exclusive or.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest is part of results that are compared between computers and releases: its value
    /// for fixed records (computed by another program from the formula above) may only change
    /// together with the version.
    #[test]
    fn the_digest_of_fixed_records_is_fixed() {
        let mut digest = Digest::new();
        assert_eq!(digest.value(), fold(K0 ^ K1, K3));
        digest.absorb(1_000, 11, 3, 0, 0);
        digest.absorb(u64::MAX, code::JOB_DONE, 255, (1 << 40) - 1, u64::MAX);
        assert_eq!(format!("{:016x}", digest.value()), "22eea572f6c1eebb");
    }

    #[test]
    fn order_and_every_field_matter() {
        let digest_of = |records: &[(Ns, u8, u16, u64, u64)]| {
            let mut digest = Digest::new();
            for r in records {
                digest.absorb(r.0, r.1, r.2, r.3, r.4);
            }
            digest.value()
        };
        let (a, b) = ((5, 11, 0, 0, 0), (5, 11, 1, 0, 0));
        assert_ne!(digest_of(&[a, b]), digest_of(&[b, a]));
        assert_ne!(digest_of(&[a]), digest_of(&[a, a]));
        let base = (5, 12, 2, 7, 9);
        for bit in 0..64 {
            assert_ne!(digest_of(&[base]), digest_of(&[(5 ^ 1 << bit, base.1, 2, 7, 9)]));
            assert_ne!(digest_of(&[base]), digest_of(&[(5, base.1, 2, 7, 9 ^ 1 << bit)]));
        }
        for bit in 0..40 {
            assert_ne!(digest_of(&[base]), digest_of(&[(5, base.1, 2, 7 ^ 1 << bit, 9)]));
        }
        for bit in 0..16 {
            assert_ne!(digest_of(&[base]), digest_of(&[(5, base.1, 2 ^ 1 << bit, 7, 9)]));
        }
    }
}
