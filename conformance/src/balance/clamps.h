// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What wakeups ask of clamps and of limits of capacity: a task's effective clamps, and by how much hardware and a limited
 * frequency lower a CPU's capacity. Whether a utilisation fits is the kernel's own function.
 */
#ifndef CLAMPS_H
#define CLAMPS_H

/* The static key. */
static int uclamp_used;
#define uclamp_is_used() uclamp_used
#define uclamp_eff_value(task, clamp) ((task)->clamps[clamp])
#undef get_actual_cpu_capacity
#undef thermal_load_avg
#define hw_load_avg(rq) ((rq)->avg_hw.load_avg)
#define thermal_load_avg(rq) hw_load_avg(rq)
#define cpufreq_get_pressure(cpu) (cpu_rq(cpu)->pressure)
#define arch_scale_thermal_pressure(cpu) (cpu_rq(cpu)->pressure)

#endif
