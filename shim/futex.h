/* SPDX-License-Identifier: Apache-2.0 */
/* futex.h - the two futex calls, on words shared between processes. */
#ifndef COS_FUTEX_H
#define COS_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../policy/types.h"

static inline struct timespec timespec_of(u64 ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000ULL),
				  .tv_nsec = (long)(ns % 1000000000ULL) };
}

/* 0 when woken or *word != seen; -1 with errno after a timeout or a signal. */
static inline int futex_wait(u32 *word, u32 seen, u64 timeout_ns)
{
	struct timespec ts = timespec_of(timeout_ns);

	if (!syscall(SYS_futex, word, FUTEX_WAIT, seen, &ts, NULL, 0))
		return 0;
	return __atomic_load_n(word, __ATOMIC_RELAXED) != seen ? 0 : -1;
}

static inline void futex_wake_all(u32 *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
