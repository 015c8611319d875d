/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toy - an MPI library small enough for a thousand ranks: messages of one int through
 * shared memory, one mailbox per receiver. It waits as MPICH does: it spins, and each
 * pass calls ucp_worker_progress(), whose result does not tell of shared memory.
 */
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "toy.h"

#define EMPTY (-1)

struct mailbox {
	int source;			/* or EMPTY */
	int value;
};

static struct job {
	uint32_t nr_in_barrier, barriers;
	struct mailbox box[];
} *job;
static int my_rank, nr_ranks;

void toy_launch(int ranks)
{
	size_t bytes = sizeof(*job) + (size_t)ranks * sizeof(*job->box);
	int status, failed = 0;

	job = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job == MAP_FAILED)
		exit(1);
	nr_ranks = ranks;
	for (int r = 0; r < ranks; r++)
		job->box[r].source = EMPTY;
	for (my_rank = 0; my_rank < ranks; my_rank++) {
		pid_t pid = fork();

		if (!pid)
			return;
		failed |= pid < 0;
	}
	while (wait(&status) > 0)
		failed |= status;
	exit(!!failed);
}

/* Its own PLT entry, so that a preloaded one comes first. */
__attribute__((noipa)) unsigned ucp_worker_progress(void *worker)
{
	(void)worker;
	return 0;
}

#define WAIT_UNTIL(what) do { \
	while (!(what)) \
		ucp_worker_progress(NULL); \
} while (0)

int MPI_Init(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int MPI_Finalize(void)
{
	return 0;
}

int MPI_Send(const void *buf, int count, int type, int dest, int tag, int comm)
{
	struct mailbox *box = &job->box[dest];

	(void)count, (void)type, (void)tag, (void)comm;
	WAIT_UNTIL(__atomic_load_n(&box->source, __ATOMIC_ACQUIRE) == EMPTY);
	box->value = *(const int *)buf;
	__atomic_store_n(&box->source, my_rank, __ATOMIC_RELEASE);
	return 0;
}

int MPI_Recv(void *buf, int count, int type, int source, int tag, int comm, void *status)
{
	struct mailbox *box = &job->box[my_rank];

	(void)count, (void)type, (void)tag, (void)comm, (void)status;
	WAIT_UNTIL(__atomic_load_n(&box->source, __ATOMIC_ACQUIRE) == source);
	*(int *)buf = box->value;
	__atomic_store_n(&box->source, EMPTY, __ATOMIC_RELEASE);
	return 0;
}

int MPI_Barrier(int comm)
{
	uint32_t before = __atomic_load_n(&job->barriers, __ATOMIC_ACQUIRE);
	uint32_t nr = __atomic_add_fetch(&job->nr_in_barrier, 1, __ATOMIC_ACQ_REL);

	(void)comm;
	if (nr % (uint32_t)nr_ranks == 0)
		__atomic_add_fetch(&job->barriers, 1, __ATOMIC_RELEASE);
	WAIT_UNTIL(__atomic_load_n(&job->barriers, __ATOMIC_ACQUIRE) != before);
	return 0;
}

/* ---- what a preloaded library asks: all local; a group is all ranks ------------------ */

int MPI_Comm_rank(int comm, int *rank)
{
	(void)comm;
	*rank = my_rank;
	return 0;
}

int MPI_Comm_size(int comm, int *size)
{
	(void)comm;
	*size = nr_ranks;
	return 0;
}

int PMPI_Comm_group(int comm, int *group)
{
	*group = comm;
	return 0;
}

int PMPI_Comm_test_inter(int comm, int *inter)
{
	(void)comm;
	*inter = 0;
	return 0;
}

int PMPI_Group_translate_ranks(int group, int nr, const int *ranks, int other, int *out)
{
	(void)group, (void)other;
	for (int i = 0; i < nr; i++)
		out[i] = ranks[i];
	return 0;
}

int PMPI_Group_free(int *group)
{
	*group = 0;
	return 0;
}

#define PMPI(name) extern __typeof__(MPI_##name) PMPI_##name __attribute__((alias("MPI_" #name)))
PMPI(Comm_rank);
PMPI(Comm_size);
extern __typeof__(MPI_Comm_size) PMPI_Group_size __attribute__((alias("MPI_Comm_size")));
