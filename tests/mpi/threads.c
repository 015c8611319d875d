/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads - MPI_THREAD_MULTIPLE: four threads of each rank exchange at once, each with
 * its own tag, then all wait for a message that only one of them will get. With
 * OpenMP: threads that compute beside the one that communicates.
 */
#include "check.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS 100

static void *exchange(void *arg)
{
	int tag = (int)(intptr_t)arg, peer = ranks - 1 - rank, in;

	for (int i = 0; i < ROUNDS; i++) {
		int out = rank * 10000 + tag * 1000 + i;

		MPI_Sendrecv(&out, 1, MPI_INT, peer, tag, &in, 1, MPI_INT, peer, tag,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(in == peer * 10000 + tag * 1000 + i);
	}
	return NULL;
}

/* Rank 0's threads sleep on one doorbell; the last tag is sent first. */
static void *one_after_another(void *arg)
{
	int tag = (int)(intptr_t)arg, value = tag, in = -1;

	if (rank) {
		usleep(20000 * (THREADS - tag));
		MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
	} else {
		for (int r = 1; r < ranks; r++) {
			MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			CHECK(in == tag);
		}
	}
	return NULL;
}

static void in_threads(void *(*body)(void *))
{
	pthread_t thread[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, body, (void *)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void openmp(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		long mine = 0, sum = 0;

		#pragma omp parallel for num_threads(2) reduction(+:mine)
		for (long i = 0; i < 10000; i++)
			mine += i * (rank + 1);
		MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		CHECK(sum == 49995000L * ranks * (ranks + 1) / 2);
	}
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	start();
	CHECK(provided == MPI_THREAD_MULTIPLE);
	in_threads(exchange);
	passed("exchange");
	in_threads(one_after_another);
	passed("one after another");
	openmp();
	passed("openmp");
	MPI_Finalize();
	return 0;
}
