//! The real kernel as oracle.

pub mod cfs;
pub mod eevdf;
pub mod ftrace;
pub mod l0;
pub mod l1;
pub mod l2;
pub mod rational;
pub mod schedutil;
