/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patterns - ways to talk that a doorbell must not be fooled by: senders that the
 * receiver cannot know, requests that outlive calls, handles that come back with
 * another meaning, tests that never block, and large messages in all directions.
 */
#include "check.h"

#define ROUNDS 50
#define LARGE (1 << 20)			/* ints: 4 MiB */

static void wildcards(void)
{
	MPI_Status status;
	long sum = 0;
	int value;

	for (int i = 0; i < ROUNDS; i++) {
		if (rank) {
			value = rank * 1000 + i;
			MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
			continue;
		}
		for (int r = 1; r < ranks; r++) {
			MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
				 MPI_COMM_WORLD, &status);
			CHECK(value == status.MPI_SOURCE * 1000 + status.MPI_TAG);
			sum += value;
		}
	}
	if (!rank)
		CHECK(sum == 1000L * ROUNDS * ranks * (ranks - 1) / 2 +
			     (ranks - 1L) * ROUNDS * (ROUNDS - 1) / 2);
}

static void persistent(void)
{
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
	int out = 0, in = -1;
	MPI_Request request[2];

	MPI_Send_init(&out, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &request[0]);
	MPI_Recv_init(&in, 1, MPI_INT, left, 0, MPI_COMM_WORLD, &request[1]);
	for (int i = 0; i < ROUNDS; i++) {
		out = rank + i * 10;
		MPI_Startall(2, request);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		CHECK(in == left + i * 10);
	}
	MPI_Request_free(&request[0]);
	MPI_Request_free(&request[1]);
}

/* Around the ring by tests alone: nobody may be asleep while it is awaited. */
static void tests(void)
{
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, done;

	for (int i = 0; i < ROUNDS; i++) {
		int out = rank + i * 10, in = -1;
		MPI_Request request[2];

		MPI_Irecv(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &request[0]);
		MPI_Isend(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &request[1]);
		do
			MPI_Testall(2, request, &done, MPI_STATUSES_IGNORE);
		while (!done);
		CHECK(in == left + i * 10);
	}
}

static void collectives(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		int sum = -1, mine = rank + i, told = rank ? -1 : i, all[ranks];
		MPI_Request request[4];

		MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request[0]);
		MPI_Ibcast(&told, 1, MPI_INT, 0, MPI_COMM_WORLD, &request[1]);
		MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request[2]);
		MPI_Ibarrier(MPI_COMM_WORLD, &request[3]);
		MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
		CHECK(sum == ranks * (ranks - 1) / 2 + ranks * i && told == i);
		for (int r = 0; r < ranks; r++)
			CHECK(all[r] == r + i);
	}
}

/* A freed handle's value comes back for other members in another order. */
static void handles(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		int me, size, sum = 0, in = -1;
		MPI_Comm part, copy;

		MPI_Comm_split(MPI_COMM_WORLD, rank % (1 + i % 3), i % 2 ? rank : -rank, &part);
		MPI_Comm_dup(part, &copy);
		MPI_Comm_rank(copy, &me);
		MPI_Comm_size(copy, &size);
		MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % size, 0, &in, 1, MPI_INT,
			     (me + size - 1) % size, 0, copy, MPI_STATUS_IGNORE);
		CHECK(in == (me + size - 1) % size);
		MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, part);
		CHECK(sum == size * (size - 1) / 2);
		MPI_Comm_free(&copy);
		MPI_Comm_free(&part);
	}
}

static void large_everywhere(void)
{
	int *out = malloc(LARGE * sizeof(int)), *in[ranks];
	MPI_Request request[2 * ranks];

	for (int i = 0; i < LARGE; i++)
		out[i] = rank ^ i;
	for (int r = 0; r < ranks; r++) {
		in[r] = calloc(LARGE, sizeof(int));
		MPI_Irecv(in[r], LARGE, MPI_INT, r, 2, MPI_COMM_WORLD, &request[2 * r]);
		MPI_Isend(out, LARGE, MPI_INT, r, 2, MPI_COMM_WORLD, &request[2 * r + 1]);
	}
	MPI_Waitall(2 * ranks, request, MPI_STATUSES_IGNORE);
	for (int r = 0; r < ranks; r++) {
		for (int i = 0; i < LARGE; i++)
			CHECK(in[r][i] == (r ^ i));
		free(in[r]);
	}
	free(out);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } patterns[] = {
		{ "wildcards", wildcards },	{ "persistent", persistent },
		{ "tests", tests },		{ "collectives", collectives },
		{ "handles", handles },		{ "large", large_everywhere },
	};

	MPI_Init(&argc, &argv);
	start();
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		patterns[i].run();
		passed(patterns[i].name);
	}
	finish();
	return 0;
}
