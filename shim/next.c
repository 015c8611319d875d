/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next.c - the real functions behind those that we interpose.
 *
 * RTLD_NEXT finds the next definition in load order, so a profiling library that
 * wraps the same calls stays in the chain. It cannot see a library that was
 * loaded privately (mpi4py loads libmpi with RTLD_LOCAL): then we look for the MPI
 * libraries among everything that is mapped and ask each directly.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sched.h>

#include "shim.h"

struct library_search {
	const char *library, *symbol;
	void *found;
};

static bool name_matches(const char *path, const char *library)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return !strncmp(base, library, strlen(library));
}

static int search_one(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct library_search *search = arg;
	void *handle;

	(void)size;
	if (!info->dlpi_name || !name_matches(info->dlpi_name, search->library))
		return 0;
	handle = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
	if (!handle)
		return 0;
	search->found = dlsym(handle, search->symbol);
	dlclose(handle);
	return search->found != NULL;
}

/* @symbol of a mapped library whose file name begins with @library, or NULL. */
void *library_symbol(const char *library, const char *symbol)
{
	struct library_search search = { library, symbol, NULL };

	dl_iterate_phdr(search_one, &search);
	return search.found;
}

static void *search_mpi(const char *name)
{
	static const char *const mpi[] = { "libmpi", "libucp", "libopen-pal" };
	void *found = NULL;

	for (size_t i = 0; !found && i < sizeof(mpi) / sizeof(*mpi); i++)
		found = library_symbol(mpi[i], name);
	return found;
}

void *next_symbol(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	return found ? found : search_mpi(name);
}

/* A variable: the program may hold the copy that counts, ahead of us. */
void *data_symbol(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	return found ? found : search_mpi(name);
}

u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ULL + (u64)ts.tv_nsec;
}

u32 current_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? ~0u : (u32)cpu;
}
