/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onesided - a rank may be waited for without any call of its own: fence, locks and
 * general active target (post, start, complete, wait).
 */
#include "check.h"

#define ROUNDS 20
#define WINDOW 4096			/* bytes; MPICH 4.0 misplaces windows of 8 */

static int *cell;			/* of this rank's window, one per rank */
static MPI_Win window;

static void fence(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		int value = rank * 100 + i;

		MPI_Win_fence(0, window);
		MPI_Put(&value, 1, MPI_INT, (rank + 1) % ranks, rank, 1, MPI_INT, window);
		MPI_Win_fence(0, window);
		CHECK(cell[(rank + ranks - 1) % ranks] == (rank + ranks - 1) % ranks * 100 + i);
	}
}

/* The owner of the window is in a barrier, or late. */
static void locks(void)
{
	int one = 1, sum = 0;

	cell[0] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
		MPI_Win_unlock(0, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Get(&sum, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
	MPI_Win_unlock(0, window);
	CHECK(sum == ranks * ROUNDS);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void active_target(void)
{
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
	MPI_Group world, to, from;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &right, &to);
	MPI_Group_incl(world, 1, &left, &from);
	for (int i = 0; i < ROUNDS; i++) {
		int value = rank * 1000 + i;

		if (!rank && i == ROUNDS / 2)
			usleep(100000);
		MPI_Win_post(from, 0, window);
		MPI_Win_start(to, 0, window);
		MPI_Put(&value, 1, MPI_INT, right, 0, 1, MPI_INT, window);
		MPI_Win_complete(window);
		MPI_Win_wait(window);
		CHECK(cell[0] == left * 1000 + i);
	}
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&world);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	start();
	MPI_Win_allocate(WINDOW, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &cell, &window);
	fence();
	passed("fence");
	locks();
	passed("locks");
	active_target();
	passed("active target");
	MPI_Win_free(&window);
	MPI_Finalize();
	return 0;
}
