/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * types.h - the words that policy code is written in.
 *
 * Policy is compiled three times: natively into the shim, natively into the
 * simulator, and by `clang -target bpf` into the kernel. The three must agree
 * bit for bit, so only what means the same everywhere is used: unsigned 64-bit
 * arithmetic, saturating helpers, and division through div_or(). (BPF defines
 * x / 0 as 0 and goes on; native code faults. A native shift by 64 is
 * undefined; BPF masks the count.) No libc, no kernel header, no maps, no
 * clock, no randomness: everything is an argument.
 */
#ifndef COS_TYPES_H
#define COS_TYPES_H

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define COS_FN static inline __attribute__((unused, always_inline))
#define COS_NEVER_NS (~0ULL)

_Static_assert(sizeof(u32) == 4 && sizeof(u64) == 8 && sizeof(s64) == 8,
	       "policy arithmetic is defined on these widths");

/* n / d, or @if_zero where d is 0. */
COS_FN u64 div_or(u64 n, u64 d, u64 if_zero)
{
	return d ? n / d : if_zero;
}

COS_FN u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

COS_FN u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* a + b, or the largest u64 where that would overflow. */
COS_FN u64 sat_add(u64 a, u64 b)
{
	return a > ~0ULL - b ? ~0ULL : a + b;
}

/* a - b, or 0 where b is larger. */
COS_FN u64 sat_sub(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/*
 * a * b, or the largest u64 where that would overflow. In halves: a check like
 * a > MAX / b is compiled to a 128-bit product, which BPF has not.
 */
COS_FN u64 sat_mul(u64 a, u64 b)
{
	u64 small = min_u64(a, b), large = max_u64(a, b);
	u64 high = (large >> 32) * small;

	if ((small >> 32) || (high >> 32))
		return ~0ULL;
	return sat_add(high << 32, (large & 0xffffffffULL) * small);
}

/* a * 2^e: saturating for any e > 0, down to 0 for any e < 0. */
COS_FN u64 sat_pow2(u64 a, s64 e)
{
	if (e >= 64)
		return a ? ~0ULL : 0;
	if (e >= 0)
		return a > ~0ULL >> e ? ~0ULL : a << e;
	return e > -64 ? a >> -e : 0;
}

/*
 * Signed amounts are kept within +-COS_MAX_NS (73 years), so that the sum or
 * difference of two never overflows.
 */
#define COS_MAX_NS (1LL << 61)

COS_FN s64 clamp_ns(s64 a, s64 low, s64 high)
{
	return a < low ? low : a > high ? high : a;
}

COS_FN s64 signed_ns(u64 a)
{
	return (s64)min_u64(a, COS_MAX_NS);
}

/* a * q / 256 without overflow: @q_q8 is a factor in fixed point, 256 = 1.0. */
COS_FN u64 scale_q8(u64 a, u64 q_q8)
{
	return sat_add(sat_mul(a >> 8, q_q8), sat_mul(a & 255, q_q8) >> 8);
}

/*
 * Exponential average that moves 1/2^shift of the way to @sample and starts at
 * the first one (0 = nothing learned yet). Rounds towards the sample by at
 * least 1, so that it always converges.
 */
COS_FN u64 learn(u64 avg, u64 sample, u32 shift)
{
	if (!avg)
		return sample;
	if (sample > avg)
		return avg + max_u64((sample - avg) >> (shift & 63), 1);
	if (sample < avg)
		return avg - max_u64((avg - sample) >> (shift & 63), 1);
	return avg;
}

#endif
