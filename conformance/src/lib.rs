//! The real kernel as oracle.
