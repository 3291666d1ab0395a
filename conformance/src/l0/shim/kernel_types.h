/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a file of the kernel takes for granted, as little of it as the oracles need. Written for
 * this purpose: one CPU, no concurrency, 64 bits.
 */
#ifndef L0_KERNEL_TYPES_H
#define L0_KERNEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>

typedef unsigned long long u64;
typedef long long s64;
typedef unsigned int u32;
typedef int s32;
typedef s64 ktime_t;

#define U64_MAX (~0ULL)
#define S64_MAX ((s64)(U64_MAX >> 1))
#define KTIME_MAX ((s64)(~0ULL >> 1))
#define NSEC_PER_SEC 1000000000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_USEC 1000L

#define likely(condition) (condition)
#define unlikely(condition) (condition)
#define READ_ONCE(variable) (variable)
#define WRITE_ONCE(variable, value) ((void)((variable) = (value)))
/* The C library has its own. */
#undef __always_inline
#ifdef COUNT_BRANCHES
/* One copy of each function, or a branch would count as missed in a caller that fixes it. */
#define __always_inline __attribute__((noinline))
#else
#define __always_inline inline __attribute__((always_inline))
#endif
#define __maybe_unused __attribute__((unused))
#define __init __attribute__((unused))

#define min_t(type, a, b) ({ type a_ = (a); type b_ = (b); a_ < b_ ? a_ : b_; })
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
/*
 * The declared difference of PELT: the floor of a runqueue's 64-bit sums is taken in the sum's own
 * width, as schedtwin does, and not cut to 32 bits. AS_WRITTEN or MAX_T_AS_WRITTEN gives the kernel's.
 */
#if defined(MAX_T_AS_WRITTEN) || defined(AS_WRITTEN)
#define max_t(type, a, b) ({ type a_ = (a); type b_ = (b); a_ > b_ ? a_ : b_; })
#else
#define max_t(type, a, b) \
	({ __typeof__(a) a_ = (a); __typeof__(a) b_ = (b); a_ > b_ ? a_ : b_; })
#endif
#define swap(a, b) do { __typeof__(a) old_ = (a); (a) = (b); (b) = old_; } while (0)

static inline u64 mul_u64_u32_shr(u64 a, u32 factor, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * factor) >> shift);
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

#endif
