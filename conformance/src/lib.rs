//! The real kernel as oracle.

pub mod ftrace;
pub mod l1;
