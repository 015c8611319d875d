/* SPDX-License-Identifier: Apache-2.0 */
/* The calling process on one CPU. Who includes it defines _GNU_SOURCE. */
#ifndef PIN_H
#define PIN_H

#include <sched.h>

static void pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

#endif
