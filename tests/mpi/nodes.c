/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes - where is each rank, and on which job page? Then rank 0 waits for whoever comes:
 * for a peer of its own node by shared memory, for one of another node by a socket,
 * without knowing which. Each is late in turn.
 */
#include "check.h"

#define WIDTH 128

/* The inode tells pages apart; 0 = no page. */
static unsigned long page_inode(void)
{
	char line[512];
	unsigned long inode = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "cosched-page"))
			sscanf(line, "%*s %*s %*s %*s %lu", &inode);
	if (maps)
		fclose(maps);
	return inode;
}

static void tell_where(void)
{
	char mine[WIDTH], host[64], all[WIDTH * ranks];

	gethostname(host, sizeof(host));
	snprintf(mine, sizeof(mine), "%s %lu", host, page_inode());
	MPI_Gather(mine, WIDTH, MPI_CHAR, all, WIDTH, MPI_CHAR, 0, MPI_COMM_WORLD);
	for (int r = 0; !rank && r < ranks; r++)
		printf("%s\n", all + r * WIDTH);
}

static void whoever_comes(void)
{
	MPI_Status status;
	int value = rank;

	for (int late = 1; late < ranks; late++) {
		if (rank == late) {
			usleep(300000);
			MPI_Send(&value, 1, MPI_INT, 0, late, MPI_COMM_WORLD);
		} else if (!rank) {
			MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, late, MPI_COMM_WORLD, &status);
			CHECK(value == late && status.MPI_SOURCE == late);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	start();
	getsid(0);			/* a mark for who traces system calls */
	tell_where();
	whoever_comes();
	passed("whoever comes");
	MPI_Finalize();
	return 0;
}
