/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collapse SECONDS: on CPU 0, makes huge pages of small ones with the least weight, as khugepaged does.
 *
 * The kernel copies all 512 in one read-side critical section of RCU, some milliseconds when emulated:
 * so who does it loses its CPU within, and no grace period ends until it is through. Prints how
 * often four were made.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "pin.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define HUGE (2ul << 20)
#define BYTES (4 * HUGE)

static int collapse(char *pages)
{
	int failed;

	madvise(pages, BYTES, MADV_DONTNEED);
	madvise(pages, BYTES, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < BYTES; at += 4096)
		pages[at] = 1;
	madvise(pages, BYTES, MADV_HUGEPAGE);
	setpriority(PRIO_PROCESS, 0, 19);
	failed = madvise(pages, BYTES, MADV_COLLAPSE);
	setpriority(PRIO_PROCESS, 0, 0);
	return !failed;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	char *room = mmap(NULL, BYTES + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *pages = (char *)(((uintptr_t)room + HUGE - 1) & ~(HUGE - 1));
	int nr = 0;

	if (room == MAP_FAILED)
		return 1;
	pin(0);
	while (time(NULL) < end)
		nr += collapse(pages);
	printf("%d\n", nr);
	return 0;
}
