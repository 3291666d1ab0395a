//! The twin: joins kernel, machine and workload.

pub mod result;
