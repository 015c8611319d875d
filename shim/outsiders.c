/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outsiders.c - does anyone outside the job compete for our CPU?
 *
 * Whether giving up the CPU is cheap (a rank of ours gets it and gives it back) or dear
 * (a stranger keeps it for a slice) decides between yielding and blocking. No call tells
 * it, but two sums do, over a window of some tens of ms:
 *
 *   delay      time that we were runnable and did not run (schedstat). None: we
 *              are alone, whatever else runs on the machine
 *   job CPU    CPU time of all ranks that share our CPUs. If they used the CPUs up
 *              between them, the delay was their own doing; what is missing went to
 *              outsiders
 *
 * The answer is their average number per CPU, in 1/256.
 */
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

#define WINDOW_NS 50000000ULL
#define FIRST_WINDOW_NS 10000000ULL
#define MOST_RANKS_SUMMED 64

static __thread struct {
	cpu_set_t allowed;
	u64 at_ns, ran_ns, delayed_ns, job_ns;
	bool known;
	u32 nr_q8;
} seen;

static u64 cpu_ns_of(u32 pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid((pid_t)pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (u64)ts.tv_sec * 1000000000ULL + (u64)ts.tv_nsec;
}

/* CPU time so far of the ranks last seen on the CPUs that we may use. */
static u64 job_cpu_ns(u32 *nr_ranks)
{
	struct cos_page *page = cos_shim.page;
	u32 nr_used = (u32)min_u64(page->nr_used, cos_shim.nr_slots);
	u64 sum_ns = 0;

	*nr_ranks = 0;
	for (u32 s = 0; s < nr_used && *nr_ranks < MOST_RANKS_SUMMED; s++) {
		struct cos_slot *slot = &page->slot[s];

		if (slot->job != cos_shim.me->job || slot->state == COS_RANK_DONE ||
		    slot->cpu >= CPU_SETSIZE || !CPU_ISSET(slot->cpu, &seen.allowed))
			continue;
		sum_ns += cpu_ns_of(slot->pid);
		++*nr_ranks;
	}
	return sum_ns;
}

static bool own_schedstat(u64 *ran_ns, u64 *delayed_ns)
{
	char text[128];

	return read_proc((u32)getpid(), "schedstat", text, sizeof(text)) &&
	       sscanf(text, "%llu %llu", ran_ns, delayed_ns) == 2;
}

void outsiders_start(void)
{
	if (sched_getaffinity(0, sizeof(seen.allowed), &seen.allowed))
		CPU_ZERO(&seen.allowed);
}

/* Outsiders per CPU over a window in which we ran, were delayed, and the job ran. */
static u32 judge(u64 window_ns, u64 ran_ns, u64 delayed_ns, u64 job_ns, u32 nr_ranks)
{
	u64 cpus = (u64)CPU_COUNT(&seen.allowed);
	u64 capacity_ns = cpus * window_ns;

	if (delayed_ns < window_ns / 50)
		return 0;
	if (nr_ranks <= cpus)
		return (u32)min_u64(div_or(delayed_ns * 256, ran_ns, 256), 1 << 16);
	if (job_ns > capacity_ns - capacity_ns / 8)
		return 0;
	return (u32)min_u64(div_or((capacity_ns - job_ns) * 256, job_ns, 256), 1 << 16);
}

bool outsiders_here(u64 now, u32 *nr_q8)
{
	u64 window_ns = now - seen.at_ns;
	u64 ran_ns, delayed_ns, job_ns;
	u32 nr_ranks;

	*nr_q8 = seen.nr_q8;
	if (window_ns < (seen.known ? WINDOW_NS : FIRST_WINDOW_NS))
		return seen.known;
	if (!own_schedstat(&ran_ns, &delayed_ns))
		return false;
	job_ns = job_cpu_ns(&nr_ranks);
	if (seen.at_ns) {
		seen.nr_q8 = judge(window_ns, ran_ns - seen.ran_ns,
				   delayed_ns - seen.delayed_ns,
				   sat_sub(job_ns, seen.job_ns), nr_ranks);
		seen.known = true;
	}
	seen.at_ns = now;
	seen.ran_ns = ran_ns;
	seen.delayed_ns = delayed_ns;
	seen.job_ns = job_ns;
	*nr_q8 = seen.nr_q8;
	return seen.known;
}
