// SPDX-License-Identifier: GPL-2.0-or-later
//! The messages of Perfetto that recordings of any tool hold, as far as they are read and we do not write them; the others
//! are in [`crate::perfetto_messages`].
//!
//! Parts that only some packets have are kept as bytes until they are needed.

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
    #[prost(bytes = "bytes", optional, tag = "40")]
    pub power_rails: Option<Bytes>,
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

/// `PowerRails`.
#[derive(Clone, PartialEq, Message)]
pub struct PowerRails {
    #[prost(message, repeated, tag = "1")]
    pub descriptors: Vec<RailDescriptor>,
    #[prost(message, repeated, tag = "2")]
    pub counts: Vec<EnergyData>,
}

/// `PowerRails.RailDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct RailDescriptor {
    #[prost(uint32, optional, tag = "1")]
    pub index: Option<u32>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub name: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub subsystem: Option<Bytes>,
}

/// `PowerRails.EnergyData`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct EnergyData {
    #[prost(uint32, optional, tag = "1")]
    pub index: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub timestamp_ms: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub energy_uws: Option<u64>,
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

/// The fields of a bundle that are needed before its turn.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct BundleHead {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(int32, optional, tag = "5")]
    pub ftrace_clock: Option<i32>,
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
