/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice.c - a short EEVDF slice for the rank, undone for its children.
 *
 * Since Linux 6.12 a task may choose its slice. A short one gives it an earlier virtual
 * deadline, so a woken rank that is owed CPU time preempts at once; it changes no
 * share and needs no privilege. Only sched_runtime is changed in what the kernel reports,
 * and the result is read back: where the kernel does not take it, nothing happens.
 *
 * A slice is inherited, so forked children, and programs that are executed or
 * spawned, get the rank's former one back first.
 */
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"

/* The kernel's sched_attr: its header and the C library's do not go together. */
struct attr {
	u32 size, policy;
	u64 flags;
	int nice;
	u32 priority;
	u64 runtime_ns, deadline_ns, period_ns;
	u32 util_min, util_max;
};

static u64 former_ns, wanted_ns;	/* 0 = not changed */

static bool get(struct attr *attr)
{
	return !syscall(SYS_sched_getattr, 0, attr, sizeof(*attr), 0) &&
	       attr->policy == 0;		/* SCHED_OTHER */
}

static bool set_slice(u64 ns)
{
	struct attr attr = { .size = sizeof(attr) };
	int saved = errno;
	bool done;

	done = get(&attr);
	attr.runtime_ns = ns;
	done = done && !syscall(SYS_sched_setattr, 0, &attr, 0);
	errno = saved;
	return done;
}

static u64 slice_ns(void)
{
	struct attr attr = { .size = sizeof(attr) };

	return get(&attr) ? attr.runtime_ns : 0;
}

void slice_start(void)
{
	u64 ns = cos_shim.page->slice_us * 1000ULL;
	u64 before = slice_ns();

	if (!ns || !before || ns < 100000 || ns > 100000000 || !set_slice(ns))
		return;
	if (slice_ns() != ns) {
		set_slice(before);
		return;
	}
	former_ns = before;
	wanted_ns = ns;
	cos_shim.me->slice_us = (u32)(ns / 1000);
}

/* This thread's slice as it was; in a forked child, and at the end. */
void slice_stop(void)
{
	if (wanted_ns)
		set_slice(former_ns);
	wanted_ns = 0;
}

/* ---- programs that we start --------------------------------------------------------- */

/* Run @call with the former slice; if it returns, the short one is back. */
#define WITH_FORMER_SLICE(type, call) ({ \
	type rc_; \
	if (wanted_ns) \
		set_slice(former_ns); \
	rc_ = (call); \
	if (wanted_ns) \
		set_slice(wanted_ns); \
	rc_; })

COS_EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	return WITH_FORMER_SLICE(int, NEXT(execve)(path, argv, env));
}

COS_EXPORT int execv(const char *path, char *const argv[])
{
	return WITH_FORMER_SLICE(int, NEXT(execv)(path, argv));
}

COS_EXPORT int execvp(const char *file, char *const argv[])
{
	return WITH_FORMER_SLICE(int, NEXT(execvp)(file, argv));
}

COS_EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	return WITH_FORMER_SLICE(int, NEXT(execvpe)(file, argv, env));
}

COS_EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	return WITH_FORMER_SLICE(int, NEXT(fexecve)(fd, argv, env));
}

/* The variable-argument forms, as the vector ones: the C library's own call no PLT. */
static size_t count_args(va_list args)
{
	size_t nr = 1;

	while (va_arg(args, char *))
		nr++;
	return nr + 1;
}

#define COLLECT_ARGS(first, argv, args) do { \
	argv[0] = (char *)(first); \
	for (size_t i_ = 1; (argv[i_] = va_arg(args, char *)); i_++) \
		; \
} while (0)

#define EXEC_LIST(first, nr, use) \
	va_list args; \
	size_t nr; \
	va_start(args, first); \
	nr = count_args(args); \
	va_end(args); \
	char *argv[nr]; \
	va_start(args, first); \
	COLLECT_ARGS(first, argv, args); \
	use

COS_EXPORT int execl(const char *path, const char *arg, ...)
{
	EXEC_LIST(arg, nr, va_end(args));
	return execv(path, argv);
}

COS_EXPORT int execlp(const char *file, const char *arg, ...)
{
	EXEC_LIST(arg, nr, va_end(args));
	return execvp(file, argv);
}

COS_EXPORT int execle(const char *path, const char *arg, ...)
{
	char *const *env;

	EXEC_LIST(arg, nr, env = va_arg(args, char *const *));
	va_end(args);
	return execve(path, argv, env);
}

COS_EXPORT int posix_spawn(pid_t *pid, const char *path,
			   const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[],
			   char *const env[])
{
	return WITH_FORMER_SLICE(int, NEXT(posix_spawn)(pid, path, actions, attr, argv, env));
}

COS_EXPORT int posix_spawnp(pid_t *pid, const char *file,
			    const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[],
			    char *const env[])
{
	return WITH_FORMER_SLICE(int, NEXT(posix_spawnp)(pid, file, actions, attr, argv, env));
}

COS_EXPORT FILE *popen(const char *command, const char *mode)
{
	return WITH_FORMER_SLICE(FILE *, NEXT(popen)(command, mode));
}

COS_EXPORT int system(const char *command)
{
	return WITH_FORMER_SLICE(int, NEXT(system)(command));
}
