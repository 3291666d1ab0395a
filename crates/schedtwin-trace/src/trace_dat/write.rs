// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes trace.dat, version 6, from what tracefs holds: pages of each CPU, and the texts beside them.
//!
//! Version 6 is the one that every reader knows. The parts stand in a fixed order (see `layout`); the pages
//! of each CPU follow, aligned to a page.

use std::io::{self, Read, Write};

/// The texts of tracefs that a trace.dat carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// `events/header_page`.
    pub header_page: Vec<u8>,
    /// `events/header_event`.
    pub header_event: Vec<u8>,
    /// Formats of the system `ftrace`.
    pub ftrace_formats: Vec<Vec<u8>>,
    /// Formats of the other systems.
    pub systems: Vec<(String, Vec<Vec<u8>>)>,
    /// `/proc/kallsyms`: the recorder leaves it out, since it is megabytes and addresses are hidden from most readers.
    pub kallsyms: Vec<u8>,
    /// `printk_formats`.
    pub printk_formats: Vec<u8>,
    /// `saved_cmdlines`.
    pub saved_cmdlines: Vec<u8>,
    /// `trace_clock`: all clocks, the chosen one in brackets.
    pub trace_clock: Vec<u8>,
    /// Further options of the file: number of an option, and its data.
    pub options: Vec<(u16, Vec<u8>)>,
}

/// The pages of a CPU: how many bytes, and where they come from.
pub struct CpuPages<R> {
    /// Bytes, a multiple of the page.
    pub bytes: u64,
    /// The pages.
    pub pages: R,
}

/// The option with the clock.
const OPTION_TRACECLOCK: u16 = 4;
/// `uname`, as `Linux HOST RELEASE MACHINE`.
pub const OPTION_UNAME: u16 = 5;
/// The recorder's version.
pub const OPTION_VERSION: u16 = 9;
/// The option with the content of `per_cpu/cpuN/stats`, once for each CPU.
pub const OPTION_CPUSTAT: u16 = 2;

/// Writes a file; the bytes written.
pub fn write<R: Read>(
    out: &mut impl Write,
    texts: &Texts,
    page_bytes: u32,
    cpus: Vec<CpuPages<R>>,
) -> io::Result<u64> {
    let mut head = Vec::new();
    head.extend(b"\x17\x08\x44tracing6\0");
    // The order and the long of the recording program; the kernel's are in header_page.
    head.push(u8::from(cfg!(target_endian = "big")));
    head.push(size_of::<usize>() as u8);
    head.extend(page_bytes.to_ne_bytes());
    let sized_64 = |head: &mut Vec<u8>, text: &[u8]| {
        head.extend((text.len() as u64).to_ne_bytes());
        head.extend(text);
    };
    for (name, text) in [("header_page", &texts.header_page), ("header_event", &texts.header_event)]
    {
        head.extend(name.as_bytes());
        head.push(0);
        sized_64(&mut head, text);
    }
    let formats = |head: &mut Vec<u8>, formats: &[Vec<u8>]| {
        head.extend((formats.len() as u32).to_ne_bytes());
        formats.iter().for_each(|format| sized_64(head, format));
    };
    formats(&mut head, &texts.ftrace_formats);
    head.extend((texts.systems.len() as u32).to_ne_bytes());
    for (system, of_system) in &texts.systems {
        head.extend(system.as_bytes());
        head.push(0);
        formats(&mut head, of_system);
    }
    head.extend((texts.kallsyms.len() as u32).to_ne_bytes());
    head.extend(&texts.kallsyms);
    head.extend((texts.printk_formats.len() as u32).to_ne_bytes());
    head.extend(&texts.printk_formats);
    sized_64(&mut head, &texts.saved_cmdlines);
    head.extend((cpus.len() as u32).to_ne_bytes());
    head.extend(b"options  \0");
    for (id, data) in texts.options.iter().chain(&[(OPTION_TRACECLOCK, Vec::new())]) {
        head.extend(id.to_ne_bytes());
        head.extend((data.len() as u32).to_ne_bytes());
        head.extend(data);
    }
    head.extend(0u16.to_ne_bytes());
    head.extend(b"flyrecord\0");
    let behind_table = (head.len() + 16 * cpus.len() + 8 + texts.trace_clock.len()) as u64;
    let page = u64::from(page_bytes);
    let mut at = behind_table.next_multiple_of(page);
    let first = at;
    for cpu in &cpus {
        head.extend(at.to_ne_bytes());
        head.extend(cpu.bytes.to_ne_bytes());
        at += cpu.bytes.next_multiple_of(page);
    }
    sized_64(&mut head, &texts.trace_clock);
    head.resize(first as usize, 0);
    out.write_all(&head)?;
    let mut written = first;
    for cpu in cpus {
        let copied = io::copy(&mut cpu.pages.take(cpu.bytes), out)?;
        if copied != cpu.bytes {
            return Err(io::Error::other(format!(
                "a CPU has {copied} bytes instead of {}",
                cpu.bytes
            )));
        }
        let padding = cpu.bytes.next_multiple_of(page) - cpu.bytes;
        out.write_all(&vec![0; padding as usize])?;
        written += cpu.bytes + padding;
    }
    Ok(written)
}
