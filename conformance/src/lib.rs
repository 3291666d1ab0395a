//! The real kernel as oracle.

pub mod eevdf;
pub mod ftrace;
pub mod l0;
pub mod l1;
pub mod schedutil;
