// SPDX-License-Identifier: GPL-2.0-or-later
//! The Perfetto packets that we write, and those of any tool that have the same messages, as prost message types.
//!
//! Written by hand rather than generated: the official schema has over 5,000 fields, of which
//! these are the few needed. Names and numbers are those of `protos/perfetto/trace/` in the
//! Perfetto repository; a test compares every one of them with the schema in the PyPI package
//! `perfetto`, through [`FIELDS`]. Numbers of single events are in the table of tracepoints.
//!
//! Texts that recordings of any tool hold are `bytes`: their writers do not check them, and a name that the kernel cut may end
//! inside a character.

use prost::bytes::Bytes;
use prost::{Message, Oneof};

/// `perfetto.protos.TracePacket`: one element of a trace.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// In `timestamp_clock_id`, by default BOOTTIME, nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Which writer: state is per sequence.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Bit 0: `SEQ_INCREMENTAL_STATE_CLEARED`.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// Whether nothing of the sequence is missing before this packet.
    #[prost(bool, optional, tag = "87")]
    pub first_packet_on_sequence: Option<bool>,
    /// Texts that later packets of the sequence, and this one, have the numbers of.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// The content of the packet.
    #[prost(oneof = "Data", tags = "1, 2, 6, 11, 45, 60")]
    pub data: Option<Data>,
}

/// The payloads of a [`TracePacket`] that we know.
#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    /// Scheduler and power events of one CPU.
    #[prost(message, tag = "1")]
    FtraceEvents(FtraceEventBundle),
    /// Names of processes and threads.
    #[prost(message, tag = "2")]
    ProcessTree(ProcessTree),
    /// Readings of several clocks at one instant.
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    /// A value of a counter, or an instant.
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    /// The kernel that was traced.
    #[prost(message, tag = "45")]
    SystemInfo(SystemInfo),
    /// A track that events refer to.
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

macro_rules! messages {
    ($(
        $(#[$message_doc:meta])*
        $official:literal $name:ident {
            $( $(#[doc = $doc:literal])* $field:ident: $type:ty = ($($prost:tt)*) $tag:tt; )*
        }
    )*) => {
        $(
            $(#[$message_doc])*
            #[derive(Clone, PartialEq, Message)]
            pub struct $name {
                $( $(#[doc = $doc])* #[prost($($prost)*, tag = $tag)] pub $field: $type, )*
            }
        )*

        /// Every field of the message types: message, field, number, prost's kind. For the test
        /// against the official schema.
        pub const FIELDS: &[(&str, &str, &str, &str)] = &[
            ("TracePacket", "timestamp", "8", "uint64, optional"),
            ("TracePacket", "trusted_packet_sequence_id", "10", "uint32, optional"),
            ("TracePacket", "sequence_flags", "13", "uint32, optional"),
            ("TracePacket", "first_packet_on_sequence", "87", "bool, optional"),
            ("TracePacket", "interned_data", "12", "message, optional"),
            ("TracePacket", "ftrace_events", "1", "message, optional"),
            ("TracePacket", "process_tree", "2", "message, optional"),
            ("TracePacket", "clock_snapshot", "6", "message, optional"),
            ("TracePacket", "track_event", "11", "message, optional"),
            ("TracePacket", "system_info", "45", "message, optional"),
            ("TracePacket", "track_descriptor", "60", "message, optional"),
            $( $( ($official, stringify!($field), $tag, stringify!($($prost)*)), )* )*
        ];
    };
}

messages! {
    /// The kernel that was traced. Its release tells readers how to read `prev_state`.
    "SystemInfo" SystemInfo {
        /// As `uname` reports it.
        utsname: Option<Utsname> = (message, optional) "1";
        /// The recording program's version.
        tracing_service_version: Option<Bytes> = (bytes = "bytes", optional) "4";
        /// Number of CPUs.
        num_cpus: Option<u32> = (uint32, optional) "8";
        /// The hardware.
        android_soc_model: Option<Bytes> = (bytes = "bytes", optional) "9";
    }
    /// `struct utsname`.
    "Utsname" Utsname {
        /// `Linux`.
        sysname: Option<Bytes> = (bytes = "bytes", optional) "1";
        /// The output of `uname -v`.
        version: Option<Bytes> = (bytes = "bytes", optional) "2";
        /// `6.12.0`.
        release: Option<Bytes> = (bytes = "bytes", optional) "3";
        /// `aarch64`.
        machine: Option<Bytes> = (bytes = "bytes", optional) "4";
    }
    /// Readings of several clocks at one instant.
    "ClockSnapshot" ClockSnapshot {
        /// The readings.
        clocks: Vec<Clock> = (message, repeated) "1";
        /// The clock that the trace's times are shown in: 6, BOOTTIME.
        primary_trace_clock: Option<i32> = (int32, optional) "2";
    }
    /// A reading.
    "ClockSnapshot.Clock" Clock {
        /// `BuiltinClock`: 3 MONOTONIC, 6 BOOTTIME.
        clock_id: Option<u32> = (uint32, optional) "1";
        /// Nanoseconds.
        timestamp: Option<u64> = (uint64, optional) "2";
    }
    /// Names of processes and threads.
    "ProcessTree" ProcessTree {
        /// Processes.
        processes: Vec<Process> = (message, repeated) "1";
        /// Threads.
        threads: Vec<Thread> = (message, repeated) "2";
    }
    /// A process.
    "ProcessTree.Process" Process {
        /// Its number.
        pid: Option<i32> = (int32, optional) "1";
        /// Its parent's number.
        ppid: Option<i32> = (int32, optional) "2";
        /// Its command line.
        cmdline: Vec<Bytes> = (bytes = "bytes", repeated) "3";
    }
    /// A thread.
    "ProcessTree.Thread" Thread {
        /// Its number: the task's.
        tid: Option<i32> = (int32, optional) "1";
        /// Its name.
        name: Option<Bytes> = (bytes = "bytes", optional) "2";
        /// Its process.
        tgid: Option<i32> = (int32, optional) "3";
    }
    /// A track of counter values or instants.
    "TrackDescriptor" TrackDescriptor {
        /// Its number in this trace.
        uuid: Option<u64> = (uint64, optional) "1";
        /// Its name.
        name: Option<String> = (string, optional) "2";
        /// The thread that it shows, if it shows one.
        thread: Option<ThreadDescriptor> = (message, optional) "4";
        /// The track it is shown under.
        parent_uuid: Option<u64> = (uint64, optional) "5";
        /// Present if its events are counter values.
        counter: Option<CounterDescriptor> = (message, optional) "8";
    }
    /// The thread that a track belongs to.
    "ThreadDescriptor" ThreadDescriptor {
        /// Its process.
        pid: Option<i32> = (int32, optional) "1";
        /// Its number.
        tid: Option<i64> = (int64, optional) "2";
        /// Its name.
        thread_name: Option<String> = (string, optional) "5";
    }
    /// The quantity that a counter counts.
    "CounterDescriptor" CounterDescriptor {
        /// `mW`.
        unit_name: Option<String> = (string, optional) "6";
    }
    /// A value of a counter, or an instant.
    "TrackEvent" TrackEvent {
        /// Numbers of its categories.
        category_iids: Vec<u64> = (uint64, repeated) "3";
        /// Details of an instant.
        debug_annotations: Vec<DebugAnnotation> = (message, repeated) "4";
        /// 3 an instant, 4 a counter's value.
        r#type: Option<i32> = (int32, optional) "9";
        /// The number of its name.
        name_iid: Option<u64> = (uint64, optional) "10";
        /// On which track.
        track_uuid: Option<u64> = (uint64, optional) "11";
        /// The name of an instant.
        name: Option<String> = (string, optional) "23";
        /// The value.
        counter_value: Option<i64> = (int64, optional) "30";
    }
    /// A named detail.
    "DebugAnnotation" DebugAnnotation {
        /// The number of its name.
        name_iid: Option<u64> = (uint64, optional) "1";
        /// Yes or no.
        bool_value: Option<bool> = (bool, optional) "2";
        /// A number.
        uint_value: Option<u64> = (uint64, optional) "3";
        /// A number that may be negative.
        int_value: Option<i64> = (int64, optional) "4";
        /// A text.
        string_value: Option<String> = (string, optional) "6";
        /// Its name.
        name: Option<String> = (string, optional) "10";
        /// Named details within it.
        dict_entries: Vec<DebugAnnotation> = (message, repeated) "11";
        /// A list.
        array_values: Vec<DebugAnnotation> = (message, repeated) "12";
        /// The number of a text.
        string_value_iid: Option<u64> = (uint64, optional) "17";
    }
    /// Texts with numbers, by their use.
    "InternedData" InternedData {
        /// Categories of events: the kinds of instants, to select by.
        event_categories: Vec<EventCategory> = (message, repeated) "1";
        /// Names of events.
        event_names: Vec<EventName> = (message, repeated) "2";
        /// Names of details.
        debug_annotation_names: Vec<DebugAnnotationName> = (message, repeated) "3";
        /// Texts of details.
        debug_annotation_string_values: Vec<InternedString> = (message, repeated) "29";
    }
    /// A category.
    "EventCategory" EventCategory {
        /// Its number.
        iid: Option<u64> = (uint64, optional) "1";
        /// Its name.
        name: Option<String> = (string, optional) "2";
    }
    /// The name of an event.
    "EventName" EventName {
        /// Its number.
        iid: Option<u64> = (uint64, optional) "1";
        /// The name.
        name: Option<String> = (string, optional) "2";
    }
    /// The name of a detail.
    "DebugAnnotationName" DebugAnnotationName {
        /// Its number.
        iid: Option<u64> = (uint64, optional) "1";
        /// The name.
        name: Option<String> = (string, optional) "2";
    }
    /// A text.
    "InternedString" InternedString {
        /// Its number.
        iid: Option<u64> = (uint64, optional) "1";
        /// The text, as bytes.
        str: Option<Vec<u8>> = (bytes, optional) "2";
    }
    /// Events of one CPU.
    "FtraceEventBundle" FtraceEventBundle {
        /// Which CPU.
        cpu: Option<u32> = (uint32, optional) "1";
        /// Events other than the compact ones, each an `FtraceEvent`, undecoded.
        event: Vec<Bytes> = (bytes = "bytes", repeated) "2";
        /// Whether events were lost before these.
        lost_events: Option<bool> = (bool, optional) "3";
        /// Switches and wakings, in columns.
        compact_sched: Option<CompactSched> = (message, optional) "4";
        /// `FtraceClock`: 0 the default, that of boot.
        ftrace_clock: Option<i32> = (int32, optional) "5";
        /// Faults that the recorder found in the kernel's pages, undecoded.
        error: Vec<Bytes> = (bytes = "bytes", repeated) "8";
        /// As the next one, of older recorders.
        last_read_event_timestamp: Option<u64> = (uint64, optional) "9";
        /// The CPU's events are complete from then on; told with each of its bundles.
        previous_bundle_end_timestamp: Option<u64> = (uint64, optional) "10";
    }
    /// `sched_switch` and `sched_waking` in columns: entry i of each column is event i.
    "FtraceEventBundle.CompactSched" CompactSched {
        /// `sched_switch`: time since the one before in this bundle, nanoseconds.
        switch_timestamp: Vec<u64> = (uint64, repeated) "1";
        /// `sched_switch`: the raw `prev_state`.
        switch_prev_state: Vec<i64> = (int64, repeated) "2";
        /// `sched_switch`: who gets the CPU; who leaves it got it in the event before.
        switch_next_pid: Vec<i32> = (int32, repeated) "3";
        /// `sched_switch`: with which priority.
        switch_next_prio: Vec<i32> = (int32, repeated) "4";
        /// Names, that the `comm_index` columns point into.
        intern_table: Vec<Bytes> = (bytes = "bytes", repeated) "5";
        /// `sched_switch`: name of who gets the CPU.
        switch_next_comm_index: Vec<u32> = (uint32, repeated) "6";
        /// `sched_waking`: time since the one before in this bundle, nanoseconds.
        waking_timestamp: Vec<u64> = (uint64, repeated) "7";
        /// `sched_waking`: who is woken.
        waking_pid: Vec<i32> = (int32, repeated) "8";
        /// `sched_waking`: the CPU it last ran on.
        waking_target_cpu: Vec<i32> = (int32, repeated) "9";
        /// `sched_waking`: with which priority.
        waking_prio: Vec<i32> = (int32, repeated) "10";
        /// `sched_waking`: its name.
        waking_comm_index: Vec<u32> = (uint32, repeated) "11";
        /// `sched_waking`: in which context, as `enum trace_flag_type`.
        waking_common_flags: Vec<u32> = (uint32, repeated) "12";
    }
}
