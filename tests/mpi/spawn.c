/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn - MPI_Comm_spawn: parents and children are two jobs that wait for each other.
 * Each side is once 100 ms late.
 */
#include "check.h"

#define CHILDREN 2

static void exchange(MPI_Comm other, int is_child)
{
	for (int late = 0; late < 2; late++) {
		int sum = 0, one = 1, got = -1, out = rank;

		if (late == is_child)
			usleep(100000);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other);
		CHECK(sum == (is_child ? ranks : CHILDREN));
		if (!rank) {
			MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, other,
				     MPI_STATUS_IGNORE);
			CHECK(!got);
		}
	}
}

int main(int argc, char **argv)
{
	MPI_Comm parent, other, all;
	int size;

	MPI_Init(&argc, &argv);
	start();
	MPI_Comm_get_parent(&parent);
	if (parent == MPI_COMM_NULL) {
		MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0,
			       MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
	} else {
		other = parent;
	}
	exchange(other, parent != MPI_COMM_NULL);
	MPI_Intercomm_merge(other, parent != MPI_COMM_NULL, &all);
	MPI_Comm_size(all, &size);
	MPI_Comm_free(&all);
	MPI_Comm_disconnect(&other);
	if (parent == MPI_COMM_NULL) {
		CHECK(size == ranks + CHILDREN);
		passed("spawn");
	}
	MPI_Finalize();
	return 0;
}
