/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes - what a rank starts is no rank: forked, spawned and executed children have
 * the slice that the rank had before MPI_Init, never its short one, and see no setting
 * of ours; the rank goes on talking meanwhile. The argument is a library (called.c).
 */
#include "check.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static char self[4096];

/* As the kernel says; struct sched_attr of Linux, first version. */
static unsigned long long slice_ns(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attr = { .size = sizeof(attr) };

	return syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) ? 0 : attr.runtime_ns;
}

static int child_status(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void forks(unsigned long long before_ns)
{
	pid_t pid = fork();

	if (!pid)
		_exit(slice_ns() == before_ns ? 0 : 1);
	CHECK(!child_status(pid));
}

/* The child is this program with its parent's former slice as argument. */
static void starts_programs(unsigned long long before_ns)
{
	char number[32], line[8192];
	char *args[] = { self, "slice", number, NULL };
	pid_t pid;
	FILE *out;

	snprintf(number, sizeof(number), "%llu", before_ns);
	snprintf(line, sizeof(line), "%s slice %s", self, number);
	CHECK(!posix_spawn(&pid, self, NULL, NULL, args, environ));
	CHECK(!child_status(pid));
	CHECK(!system(line));
	out = popen(line, "r");
	CHECK(out && !pclose(out));
	pid = fork();
	if (!pid) {
		execl(self, self, "slice", number, (char *)NULL);
		_exit(1);
	}
	CHECK(!child_status(pid));
}

static void calls_through(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*sum_of_ranks)(void) = handle ? (int (*)(void))dlsym(handle, "sum_of_ranks") : NULL;

	CHECK(sum_of_ranks);
	CHECK(sum_of_ranks() == ranks * (ranks - 1) / 2);
}

int main(int argc, char **argv)
{
	unsigned long long before_ns = slice_ns();

	if (argc == 3 && !strcmp(argv[1], "slice"))
		return before_ns != strtoull(argv[2], NULL, 10);
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	MPI_Init(&argc, &argv);
	start();
	forks(before_ns);
	passed("fork");
	starts_programs(before_ns);
	passed("programs");
	CHECK(system("env | grep -qi yield"));
	passed("environment");
	calls_through(argv[1]);
	passed("library");
	MPI_Finalize();
	CHECK(slice_ns() == before_ns);
	return 0;
}
