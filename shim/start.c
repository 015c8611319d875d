/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - when a process becomes a rank, and when it stops being one.
 *
 * Before the real MPI_Init it joins the job page (no thread of the library runs
 * yet), after it the hooks are armed and the shim is active. MPI_Finalize, fork and
 * exec make it passive again. Nothing is put into the environment: what makes Open MPI
 * call our sched_yield() is a switch inside this process, thrown after MPI_Init
 * and thrown back before MPI_Finalize, so that no child and no process without the shim can
 * ever meet it (the yield trap: yielding without our hook costs 13x).
 */
#include <pthread.h>
#include <string.h>
#include <stdlib.h>
#include <time.h>

#include "shim.h"

struct cos_shim cos_shim;
__thread struct cos_thread cos_self;

static bool joined;

static bool wanted(void)
{
	const char *cosched = getenv("COSCHED");

	return getenv("COSCHED_KEEPER") && !(cosched && !strcmp(cosched, "off"));
}

static u64 process_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (u64)ts.tv_sec * 1000000000ULL + (u64)ts.tv_nsec;
}

/* A forked child is not a rank: it shares our page and must not speak for us. */
static void in_child(void)
{
	bool was_active = cos_shim.active;

	cos_shim.active = false;
	joined = false;
	if (was_active)
		slice_stop();
}

static void before_init(void)
{
	static bool handler;

	if (joined || !wanted() || !page_join())
		return;
	joined = true;
	if (!handler)
		handler = !pthread_atfork(NULL, NULL, in_child);
}

#define THREAD_MULTIPLE 3		/* in every MPI */

static void after_init(int failed, int provided)
{
	if (failed || !joined || cos_shim.active)
		return;
	cos_shim.open_mpi = data_symbol("ompi_mpi_comm_world") != NULL;
	cos_shim.threaded = provided >= THREAD_MULTIPLE;
	peers_start();
	oncpu_start();
	published_start();
	outsiders_start();
	slice_start();
	cos_shim.me->begin_ns = now_ns();
	cos_shim.me->cpu_ns = process_cpu_ns();
	__atomic_store_n(&cos_shim.me->state, COS_RANK_COMPUTING, __ATOMIC_RELEASE);
	hooks_start();
	cos_shim.active = true;
}

static void before_finalize(void)
{
	if (!cos_shim.active)
		return;
	peers_ring(&(struct cos_call){ .tags = ANYONE, .peer = NONE, .peer2 = NONE });
	cos_shim.active = false;
	hooks_stop();
	slice_stop();
	cos_shim.me->end_ns = now_ns();
	cos_shim.me->cpu_ns = process_cpu_ns() - cos_shim.me->cpu_ns;
	__atomic_store_n(&cos_shim.me->state, COS_RANK_DONE, __ATOMIC_RELEASE);
}

COS_EXPORT int MPI_Init(int *argc, char ***argv)
{
	int rc;

	before_init();
	rc = NEXT(MPI_Init)(argc, argv);
	after_init(rc, 0);
	return rc;
}

COS_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc;

	before_init();
	rc = NEXT(MPI_Init_thread)(argc, argv, required, provided);
	after_init(rc, provided ? *provided : 0);
	return rc;
}

/* PMPI_ too: a profiler ahead of us takes MPI_Finalize for itself and calls that. */
#define FINALIZE(symbol) \
COS_EXPORT int symbol(void) \
{ \
	before_finalize(); \
	return NEXT(symbol)(); \
}
FINALIZE(MPI_Finalize)
FINALIZE(PMPI_Finalize)

#define FORTRAN_INIT(symbol) \
COS_EXPORT void symbol(int *ierror) \
{ \
	before_init(); \
	NEXT(symbol)(ierror); \
	after_init(ierror ? *ierror : 0, 0); \
}
FORTRAN_INIT(mpi_init_)
FORTRAN_INIT(mpi_init_f08_)

#define FORTRAN_INIT_THREAD(symbol) \
COS_EXPORT void symbol(int *required, int *provided, int *ierror) \
{ \
	before_init(); \
	NEXT(symbol)(required, provided, ierror); \
	after_init(ierror ? *ierror : 0, provided ? *provided : 0); \
}
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_INIT_THREAD(mpi_init_thread_f08_)

#define FORTRAN_FINALIZE(symbol) \
COS_EXPORT void symbol(int *ierror) \
{ \
	before_finalize(); \
	NEXT(symbol)(ierror); \
}
FORTRAN_FINALIZE(mpi_finalize_)
FORTRAN_FINALIZE(mpi_finalize_f08_)
