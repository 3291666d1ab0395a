//! The real kernel as oracle.

pub mod ftrace;
pub mod l0;
pub mod l1;
