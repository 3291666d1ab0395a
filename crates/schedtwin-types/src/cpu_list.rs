// SPDX-License-Identifier: GPL-2.0-or-later
//! Lists of CPUs as sysfs prints them: `0-3,6`.

use crate::{CpuId, CpuMask, MAX_CPUS};

/// The limit of this build, and what to do.
const LIMIT: &str = if cfg!(feature = "nr-cpus-1024") {
    "a machine has at most 1024 CPUs, numbered from 0"
} else {
    "a machine has at most 256 CPUs, numbered from 0; a build with --features nr-cpus-1024 has 1024"
};

const _: () = assert!(MAX_CPUS == if cfg!(feature = "nr-cpus-1024") { 1024 } else { 256 });

impl CpuMask {
    /// Reads such a list; no CPU twice, and one at least.
    pub fn parse_list(text: &str) -> Result<CpuMask, String> {
        let mut mask = CpuMask::EMPTY;
        if text.trim().is_empty() {
            return Err("no CPU is named".into());
        }
        for piece in text.split(',') {
            let (first, last) = match piece.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(piece)?, number(piece)?),
            };
            if first > last {
                return Err(format!("`{}` runs backwards", piece.trim()));
            }
            for cpu in first..=last {
                if mask.contains(CpuId(cpu)) {
                    return Err(format!("CPU {cpu} is named twice"));
                }
                mask.insert(CpuId(cpu));
            }
        }
        Ok(mask)
    }
}

fn number(text: &str) -> Result<u16, String> {
    let text = text.trim();
    match text.parse::<u16>() {
        Ok(cpu) if usize::from(cpu) < MAX_CPUS => Ok(cpu),
        Ok(cpu) => Err(format!("CPU {cpu}: {LIMIT}")),
        Err(_) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            Err(format!("CPU {text}: {LIMIT}"))
        }
        Err(_) => Err(format!("`{text}` is not the number of a CPU")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        for (text, expected) in [
            ("0-3,6", Ok("0-3,6")),
            (" 7 , 0 - 1 ", Ok("0-1,7")),
            ("255", Ok("255")),
            ("", Err("no CPU is named")),
            ("0,", Err("`` is not the number of a CPU")),
            ("a", Err("`a` is not the number of a CPU")),
            ("-3", Err("`` is not the number of a CPU")),
            ("3-1", Err("`3-1` runs backwards")),
            ("0-3,2", Err("CPU 2 is named twice")),
        ] {
            let parsed = CpuMask::parse_list(text).map(|mask| mask.to_string());
            assert_eq!(parsed.as_deref(), expected.map_err(|e| e.to_string()).as_deref(), "{text}");
        }
        for text in [MAX_CPUS.to_string(), "0-99999999999".to_string()] {
            let told = CpuMask::parse_list(&text).unwrap_err();
            let limit = format!(": {LIMIT}");
            assert!(told.to_string().ends_with(&limit), "{told}");
        }
    }
}
