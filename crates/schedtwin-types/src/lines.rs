// SPDX-License-Identifier: GPL-2.0-or-later
//! Cache lines that the kernel's paths share between CPUs.

macro_rules! line_counts {
    ($($(#[doc = $doc:literal])+ $field:ident = $count:literal,)*) => {
        /// Cache lines of each object that CPUs share, as many as a path touches that finds all of them written elsewhere.
        ///
        /// They are counted in the source of 6.12 to 6.18 with the layouts of a kernel for amd64; every number may be wrong by
        /// a third.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct LineCounts {
            $($(#[doc = $doc])+ pub $field: u64,)*
        }

        impl Default for LineCounts {
            fn default() -> LineCounts {
                LineCounts { $($field: $count,)* }
            }
        }

        impl LineCounts {
            /// Name, meaning and value of each count.
            pub fn entries(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($field), concat!($($doc),+).trim_ascii(), self.$field),)*]
            }

            /// The count of that name.
            ///
            /// # Panics
            /// If there is none of that name.
            pub fn by_name(&mut self, name: &str) -> &mut u64 {
                match name {
                    $(stringify!($field) => &mut self.$field,)*
                    _ => panic!("no lines are called {name}"),
                }
            }
        }
    };
}

line_counts! {
    /// of a run queue, which another CPU reads to see how busy it is: `nr_running`, `curr`, counters of the fair queue
    look = 3,
    /// of a run queue, which who holds its lock touches: lock, clocks, timeline, PELT, domains
    run_queue = 12,
    /// of a group's run queue and entity, for each level of groups above a task
    group_level = 9,
    /// of a task that is queued or switched to
    task = 9,
    /// of a task that is woken, before it is queued: state, `on_rq`, `wake_cpu`, `pi_lock`
    task_state = 5,
    /// of the list of a CPU that others put wakees on, with its flags
    wake_list = 4,
    /// of a group that all CPUs add to: `tg->load_avg`
    load_avg = 1,
    /// of what the CPUs of a last-level cache share: `sd_llc_shared`
    llc = 1,
    /// of a pipe, with the buffer's entry and a waiter's; its data count as payload
    pipe = 7,
    /// of a receive queue of a socket, with its wait queue
    socket_queue = 4,
    /// of a message in the memory of sockets: `sk_buff`, head, `skb_shared_info`
    skb = 6,
    /// of a socket whose memory is counted: `sk_wmem_alloc`
    wmem = 1,
    /// of an end of a TCP connection over loopback, by the groups of `tcp_sock` and `sock` that Linux documents
    tcp = 10,
    /// of a UDP socket over loopback, likewise
    udp = 6,
    /// of a futex: bucket, waiter, word, wake queue
    futex = 5,
}
