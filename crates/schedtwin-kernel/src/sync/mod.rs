//! What tasks wait for: futexes, pipes, time.
//!
//! Wake order, the synchronous-wakeup hint and buffer limits are kernel semantics, and schedulers are
//! sensitive to them.

pub mod futex;
pub mod nanosleep;
pub mod pipe;
