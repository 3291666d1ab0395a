// SPDX-License-Identifier: GPL-2.0-or-later
//! The messages of Perfetto that recordings of any tool hold, as far as they are read.
//!
//! Texts are `bytes`: the writer does not check them, and a name that the kernel cut may end inside a character. Parts
//! that only some packets have, and events, are kept as bytes until they are needed.

use prost::Message;
use prost::bytes::Bytes;

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub ftrace_events: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub process_tree: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub clock_snapshot: Option<Bytes>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub sequence: Option<u32>,
    #[prost(bytes = "bytes", optional, tag = "34")]
    pub ftrace_stats: Option<Bytes>,
    #[prost(uint32, optional, tag = "42")]
    pub previous_packet_dropped: Option<u32>,
    #[prost(bytes = "bytes", optional, tag = "45")]
    pub system_info: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "50")]
    pub compressed_packets: Option<Bytes>,
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub defaults: Option<PacketDefaults>,
    #[prost(bytes = "bytes", optional, tag = "67")]
    pub cpu_info: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "76")]
    pub frame_timeline: Option<Bytes>,
    #[prost(uint32, optional, tag = "98")]
    pub machine: Option<u32>,
    #[prost(bytes = "bytes", optional, tag = "133")]
    pub zstd_compressed_packets: Option<Bytes>,
}

/// `TracePacketDefaults`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct PacketDefaults {
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock: Option<u32>,
}

/// `ClockSnapshot`.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
}

/// `ClockSnapshot.Clock`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// `ProcessTree`.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

/// `ProcessTree.Process`.
#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub cmdline: Vec<Bytes>,
}

/// `ProcessTree.Thread`.
#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, optional, tag = "1")]
    pub tid: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub name: Option<Bytes>,
    #[prost(int32, optional, tag = "3")]
    pub tgid: Option<i32>,
}

/// `SystemInfo`.
#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub tracing_service_version: Option<Bytes>,
    #[prost(uint32, optional, tag = "8")]
    pub num_cpus: Option<u32>,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub soc_model: Option<Bytes>,
}

/// `Utsname`.
#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub release: Option<Bytes>,
}

/// `CpuInfo`.
#[derive(Clone, PartialEq, Message)]
pub struct CpuInfo {
    #[prost(message, repeated, tag = "1")]
    pub cpus: Vec<Cpu>,
}

/// `CpuInfo.Cpu`.
#[derive(Clone, PartialEq, Message)]
pub struct Cpu {
    #[prost(uint32, repeated, tag = "2")]
    pub frequencies: Vec<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub capacity: Option<u32>,
}

/// `FtraceStats`.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceStats {
    /// 1 at the start, 2 at the end.
    #[prost(int32, optional, tag = "1")]
    pub phase: Option<i32>,
    #[prost(message, repeated, tag = "2")]
    pub cpu_stats: Vec<CpuStats>,
}

/// `FtraceCpuStats`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct CpuStats {
    #[prost(uint64, optional, tag = "1")]
    pub cpu: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub overrun: Option<u64>,
    #[prost(uint64, optional, tag = "8")]
    pub dropped_events: Option<u64>,
}

/// `FtraceEventBundle`.
#[derive(Clone, PartialEq, Message)]
pub struct Bundle {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub event: Vec<Bytes>,
    #[prost(bool, optional, tag = "3")]
    pub lost_events: Option<bool>,
    #[prost(message, optional, tag = "4")]
    pub compact_sched: Option<CompactSched>,
    #[prost(int32, optional, tag = "5")]
    pub ftrace_clock: Option<i32>,
    #[prost(bytes = "bytes", repeated, tag = "8")]
    pub error: Vec<Bytes>,
    /// As the next one, of older recorders.
    #[prost(uint64, optional, tag = "9")]
    pub last_read_event_timestamp: Option<u64>,
    /// The CPU's events are complete from then on; told with each of its bundles.
    #[prost(uint64, optional, tag = "10")]
    pub previous_bundle_end_timestamp: Option<u64>,
}

/// The fields of a bundle that are needed before its turn.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct BundleHead {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(int32, optional, tag = "5")]
    pub ftrace_clock: Option<i32>,
}

/// `FtraceEventBundle.CompactSched`.
#[derive(Clone, PartialEq, Message)]
pub struct CompactSched {
    #[prost(uint64, repeated, tag = "1")]
    pub switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub switch_next_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "4")]
    pub switch_next_prio: Vec<i32>,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub intern_table: Vec<Bytes>,
    #[prost(uint32, repeated, tag = "6")]
    pub switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    pub waking_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "9")]
    pub waking_target_cpu: Vec<i32>,
    #[prost(int32, repeated, tag = "10")]
    pub waking_prio: Vec<i32>,
    #[prost(uint32, repeated, tag = "11")]
    pub waking_comm_index: Vec<u32>,
    #[prost(uint32, repeated, tag = "12")]
    pub waking_common_flags: Vec<u32>,
}

/// `FrameTimelineEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct FrameTimeline {
    #[prost(message, optional, tag = "1")]
    pub expected_display: Option<DisplayFrame>,
    #[prost(message, optional, tag = "2")]
    pub actual_display: Option<DisplayFrame>,
    #[prost(message, optional, tag = "3")]
    pub expected_surface: Option<SurfaceFrame>,
    #[prost(message, optional, tag = "4")]
    pub actual_surface: Option<SurfaceFrame>,
    #[prost(message, optional, tag = "5")]
    pub frame_end: Option<FrameEnd>,
}

/// `ExpectedDisplayFrameStart` and `ActualDisplayFrameStart`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct DisplayFrame {
    #[prost(int64, optional, tag = "1")]
    pub cookie: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub token: Option<i64>,
    #[prost(int32, optional, tag = "3")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub jank: Option<i32>,
}

/// `ExpectedSurfaceFrameStart` and `ActualSurfaceFrameStart`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct SurfaceFrame {
    #[prost(int64, optional, tag = "1")]
    pub cookie: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub token: Option<i64>,
    #[prost(int32, optional, tag = "4")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "9")]
    pub jank: Option<i32>,
}

/// `FrameEnd`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct FrameEnd {
    #[prost(int64, optional, tag = "1")]
    pub cookie: Option<i64>,
}
