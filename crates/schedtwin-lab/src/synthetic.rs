// SPDX-License-Identifier: GPL-2.0-or-later
//! A subject without a twin: metrics drawn from known distributions, for tests of what is around it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use schedtwin_engine::result::{CpuResult, RunResult, TaskResult};
use schedtwin_types::{Ns, metric};

use crate::compare::Subject;

/// Draws `elapsed` from a normal and `wakeup_latency` from an exponential distribution.
pub struct Synthetic {
    name: String,
    mean: f64,
    deviation: f64,
    /// The seed with which a run fails.
    pub fails_at: Option<u64>,
    /// The seed with which a run panics.
    pub panics_at: Option<u64>,
}

impl Synthetic {
    pub fn new(name: &str, mean: f64, deviation: f64) -> Synthetic {
        Synthetic { name: name.to_string(), mean, deviation, fails_at: None, panics_at: None }
    }
}

fn uniform(random: &mut ChaCha8Rng) -> f64 {
    // 53 random bits, never 0.
    ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

impl Subject for Synthetic {
    fn name(&self) -> &str {
        &self.name
    }

    fn duration(&self) -> Option<Ns> {
        Some(1_000_000_000)
    }

    fn command(&self, seed: u64) -> String {
        format!("synthetic {} --seed {seed}", self.name)
    }

    fn run(&self, seed: u64, simulated: Arc<AtomicU64>) -> io::Result<RunResult> {
        if self.fails_at == Some(seed) {
            return Err(io::Error::other("no space"));
        }
        assert!(self.panics_at != Some(seed), "a bug with seed {seed}");
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(self.mean.to_bits() ^ self.deviation.to_bits()).to_le_bytes());
        let mut random = ChaCha8Rng::from_seed(key);
        let normal = (-2.0 * uniform(&mut random).ln()).sqrt()
            * (std::f64::consts::TAU * uniform(&mut random)).cos();
        let exponential = -uniform(&mut random).ln();
        simulated.store(1_000_000_000, Ordering::Relaxed);
        Ok(RunResult {
            ended: Vec::new(),
            broken: Vec::new(),
            metrics: vec![
                metric::ELAPSED.value("sum", vec![], Some(self.mean + self.deviation * normal)),
                metric::WAKEUP_LATENCY.value(
                    "p99",
                    vec![("task", "ui".into())],
                    Some(50.0 * exponential),
                ),
                metric::MIGRATIONS.value("sum", vec![], Some(3.0)),
                metric::FRAME_DURATION.value("mean", vec![], None),
            ],
            tasks: vec![TaskResult {
                name: "ui".into(),
                id: 1,
                cpu_time_ns: 250_000_000,
                utime_ns: 240_000_000,
                stime_ns: 10_000_000,
                cpu_time_by_cpu_ns: vec![250_000_000],
                jobs: 60,
                switches: 61,
                migrations: 3,
            }],
            cpus: vec![CpuResult {
                cpu: 0,
                busy_ns: 250_000_000,
                idle_ns: vec![500_000_000, 250_000_000],
                idle_loop_ns: 0,
                idle_entries: vec![40, 20],
                frequency_ns: vec![(500_000, 800_000_000), (2_000_000, 200_000_000)],
            }],
            digest: seed.wrapping_mul(31) ^ self.mean.to_bits(),
            simulated_ns: 1_000_000_000,
            events: 1234,
            notices: vec![],
        })
    }
}
