/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outsiders.c - does anyone outside the job compete for our CPU?
 *
 * Whether giving up the CPU is cheap (a rank of ours gets it and gives it back) or dear
 * (a stranger keeps it for a slice) decides between yielding and blocking. No call tells it,
 * but sums over a window do:
 *
 *   delay      time that we were runnable and did not run (schedstat). None: we are
 *              alone, whatever else runs on the machine. With a CPU for each rank, any
 *              delay is an outsider's doing
 *   job, idle  with more ranks than CPUs the delay may be our own doing. What the CPUs
 *              did in the window less what all ranks used and what was idle
 *              (/proc/stat, 10 ms grains, so over a longer window) went to outsiders
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
#define LONG_WINDOW_NS 200000000ULL
#define LEAVING_WINDOW_NS 100000000ULL		/* sooner right again when they have left */
#define MOST_RANKS_SUMMED 64

static __thread struct {
	cpu_set_t allowed;
	bool known, outnumbered;
	u32 nr_q8;
	u64 at_ns, ran_ns, delayed_ns;			/* the window */
	u64 long_at_ns, long_job_ns, long_idle_ns;	/* the long one */
} seen;

static u64 cpu_ns_of(u32 pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid((pid_t)pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (u64)ts.tv_sec * 1000000000ULL + (u64)ts.tv_nsec;
}

static bool shares_our_cpus(const struct cos_slot *slot)
{
	return slot->job == cos_shim.me->job && slot->state != COS_RANK_DONE &&
	       slot->cpu < CPU_SETSIZE && CPU_ISSET(slot->cpu, &seen.allowed);
}

/* How many ranks share our CPUs, and the CPU time that they have used so far. */
static u32 ranks_here(u64 *sum_ns)
{
	struct cos_page *page = cos_shim.page;
	u32 nr_used = (u32)min_u64(page->nr_used, cos_shim.nr_slots);
	u32 nr = 0;

	*sum_ns = 0;
	for (u32 s = 0; s < nr_used && nr < MOST_RANKS_SUMMED; s++) {
		if (!shares_our_cpus(&page->slot[s]))
			continue;
		*sum_ns += cpu_ns_of(page->slot[s].pid);
		nr++;
	}
	return nr;
}

/* Idle time so far of the CPUs that we may use. */
static u64 idle_ns(void)
{
	u64 tick_ns = 1000000000ULL / (u64)sysconf(_SC_CLK_TCK);
	FILE *stat = fopen("/proc/stat", "re");
	char line[512];
	u64 sum_ns = 0;

	while (stat && fgets(line, sizeof(line), stat)) {
		u64 idle, iowait;
		u32 cpu;

		if (sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &cpu, &idle, &iowait) == 3 &&
		    cpu < CPU_SETSIZE && CPU_ISSET(cpu, &seen.allowed))
			sum_ns += (idle + iowait) * tick_ns;
	}
	if (stat)
		fclose(stat);
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

static u32 per_q8(u64 theirs_ns, u64 ours_ns)
{
	return (u32)min_u64(div_or(theirs_ns * 256, ours_ns, 256), 1 << 16);
}

/* More ranks than CPUs: what neither we used nor was idle, over the long window. */
static void look_long(u64 now, u64 job_ns)
{
	u64 window_ns = now - seen.long_at_ns;
	u64 ours_ns = sat_sub(job_ns, seen.long_job_ns), idle;
	u64 least_ns = seen.nr_q8 >= COS_OUTSIDER_Q8 ? LEAVING_WINDOW_NS : LONG_WINDOW_NS;

	if (seen.long_at_ns && window_ns < least_ns)
		return;
	idle = idle_ns();
	if (seen.long_at_ns && window_ns < 2 * LONG_WINDOW_NS)
		seen.nr_q8 = per_q8(sat_sub((u64)CPU_COUNT(&seen.allowed) * window_ns,
					    ours_ns + sat_sub(idle, seen.long_idle_ns)),
				    ours_ns);
	seen.long_at_ns = now;
	seen.long_job_ns = job_ns;
	seen.long_idle_ns = idle;
}

static void look(u64 now, u64 ran_ns, u64 delayed_ns)
{
	u64 window_ns = now - seen.at_ns, job_ns;

	seen.outnumbered = ranks_here(&job_ns) > (u32)CPU_COUNT(&seen.allowed);
	if (delayed_ns < window_ns / 50)
		seen.nr_q8 = 0;
	else if (!seen.outnumbered)
		seen.nr_q8 = per_q8(delayed_ns, ran_ns);
	else
		look_long(now, job_ns);
	seen.known = true;
}

bool outsiders_ranks_outnumber_cpus(void)
{
	return seen.outnumbered;
}

bool outsiders_here(u64 now, u32 *nr_q8)
{
	u64 ran_ns, delayed_ns;

	if (now - seen.at_ns >= (seen.known ? WINDOW_NS : FIRST_WINDOW_NS) &&
	    own_schedstat(&ran_ns, &delayed_ns)) {
		if (seen.at_ns)
			look(now, ran_ns - seen.ran_ns, delayed_ns - seen.delayed_ns);
		seen.at_ns = now;
		seen.ran_ns = ran_ns;
		seen.delayed_ns = delayed_ns;
	}
	*nr_q8 = seen.nr_q8;
	return seen.known;
}
