// SPDX-License-Identifier: GPL-2.0-or-later
//! Formats, records and pages as a kernel writes them, for the tests of the readers.

/// `events/header_page` of a 64-bit kernel with pages of 4096 bytes.
pub const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

/// `events/header_event`.
pub const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\
    \ttime_delta  :   27 bits\n\tarray       :   32 bits\n";

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// The number of `sched_switch`.
pub const SWITCH: u16 = 372;
/// The number of `sched_waking`.
pub const WAKING: u16 = 375;
/// The number of `print`.
pub const PRINT: u16 = 5;

/// `sched_switch`.
pub fn switch_format() -> String {
    format!(
        "name: sched_switch\nID: {SWITCH}\nformat:\n{COMMON}\
         \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
         \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
         \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
         \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
         \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
         \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
         \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n"
    )
}

/// `sched_waking`.
pub fn waking_format() -> String {
    format!(
        "name: sched_waking\nID: {WAKING}\nformat:\n{COMMON}\
         \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
         \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
         \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
         \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n"
    )
}

/// `print` of the system ftrace.
pub fn print_format() -> String {
    format!(
        "name: print\nID: {PRINT}\nformat:\n{COMMON}\
         \tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\
         \tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n\nprint fmt: \"\"\n"
    )
}

fn common(id: u16, flags: u8, pid: i32) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend([flags, 1]);
    bytes.extend(pid.to_le_bytes());
    bytes
}

fn comm(bytes: &mut Vec<u8>, name: &str) {
    let mut array = [0; 16];
    array[..name.len()].copy_from_slice(name.as_bytes());
    bytes.extend(array);
}

/// A record of `sched_switch`: `prev` goes to sleep, both of priority 120.
pub fn switch(prev: (&str, i32), next: (&str, i32)) -> Vec<u8> {
    let mut bytes = common(SWITCH, 0, prev.1);
    comm(&mut bytes, prev.0);
    bytes.extend(prev.1.to_le_bytes());
    bytes.extend(120_i32.to_le_bytes());
    bytes.extend(1_i64.to_le_bytes());
    comm(&mut bytes, next.0);
    bytes.extend(next.1.to_le_bytes());
    bytes.extend(120_i32.to_le_bytes());
    bytes
}

/// A record of `sched_waking` in a hardware interrupt.
pub fn waking(task: (&str, i32), target: i32) -> Vec<u8> {
    let mut bytes = common(WAKING, 0x08 | 0x01, 0);
    comm(&mut bytes, task.0);
    bytes.extend(task.1.to_le_bytes());
    bytes.extend(120_i32.to_le_bytes());
    bytes.extend(target.to_le_bytes());
    bytes
}

/// A record of `print`.
pub fn print(pid: i32, text: &str) -> Vec<u8> {
    let mut bytes = common(PRINT, 0, pid);
    bytes.extend([0; 8]);
    bytes.extend(text.as_bytes());
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A page of records, each with its time; `lost`: as many were lost before.
pub fn page(lost: Option<u64>, records: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let start = records.first().map_or(0, |(at, _)| *at);
    let mut data = Vec::new();
    let mut time = start;
    for (at, record) in records {
        let delta = (at - time) as u32;
        time = *at;
        data.extend((delta << 5 | (record.len() / 4) as u32).to_le_bytes());
        data.extend(record);
    }
    let flags: u64 = if lost.is_some() { 0xffff_ffff_c000_0000 } else { 0 };
    let mut bytes = start.to_le_bytes().to_vec();
    bytes.extend((data.len() as u64 | flags).to_le_bytes());
    bytes.extend(&data);
    lost.into_iter().for_each(|lost| bytes.extend(lost.to_le_bytes()));
    assert!(bytes.len() <= 4096 && records.iter().all(|(_, record)| record.len() % 4 == 0));
    bytes.resize(4096, 0);
    bytes
}
