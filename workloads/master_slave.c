/* SPDX-License-Identifier: Apache-2.0 */
/*
 * master_slave - S4's synthetic workload: two kinds of slaves.
 *
 * Rank 0 is the master, odd ranks only receive (r_slave), even ones reply
 * (rs_slave); S4 places one of each kind on every node but the master's. In each
 * iteration the master sends to all slaves in turn; each computes a grain of
 * floating point; then the master waits for the replies. Who boosts by past
 * receiving frequency cannot tell the two kinds apart, but only one is awaited.
 */
#include "phase.h"

static uint64_t iterations = 20000, spins, bytes = 1024;
static double grain_us = 100;

/* A message: the iteration, then @bytes of load. */
static char *message_new(void)
{
	char *message = calloc(1, sizeof(uint64_t) + bytes);

	if (!message) {
		fprintf(stderr, "master_slave: no memory for a message; lower --bytes\n");
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
	return message;
}

static void master(struct phase *p, char *message)
{
	int length = (int)(sizeof(uint64_t) + bytes);

	for (uint64_t i = 0; i < iterations; i++) {
		double result;

		memcpy(message, &i, sizeof(i));
		for (int r = 1; r < p->ranks; r++)
			MPI_Send(message, length, MPI_BYTE, r, 0, MPI_COMM_WORLD);
		for (int r = 2; r < p->ranks; r += 2) {
			MPI_Recv(&result, 1, MPI_DOUBLE, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			p->checksum = wl_hash(p->checksum, &result, sizeof(result));
		}
	}
}

static void slave(struct phase *p, char *message)
{
	int length = (int)(sizeof(uint64_t) + bytes);

	for (uint64_t i = 0; i < iterations; i++) {
		uint64_t told;
		double result;

		MPI_Recv(message, length, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		memcpy(&told, message, sizeof(told));
		wl_work(spins, told);
		result = sqrt((double)told * (double)p->rank);
		p->checksum = wl_hash(p->checksum, &told, sizeof(told));
		if (p->rank % 2 == 0)
			MPI_Send(&result, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	const struct wl_option options[] = {
		{ "iterations", WL_COUNT, &iterations, "rounds of the master" },
		{ "grain-us", WL_REAL, &grain_us, "CPU time of a slave per message" },
		{ "spins", WL_COUNT, &spins, "loop turns per grain; 0: calibrate" },
		{ "bytes", WL_COUNT, &bytes, "load of each message to a slave" },
		{ 0 },
	};
	struct phase p;
	char *message;

	wl_options(argc, argv, "A master, slaves that reply and slaves that do not.", options);
	if (bytes > 1u << 30)
		wl_usage("at most 2^30", "--bytes");
	phase_init(&p, &argc, &argv);
	if (p.ranks < 2)
		phase_refuse(&p, "it takes two; start it with mpirun -n 2");
	phase_calibrate(&spins, grain_us);
	message = message_new();
	phase_begin(&p);
	if (p.rank)
		slave(&p, message);
	else
		master(&p, message);
	phase_end(&p);
	free(message);
	phase_report(&p, "master_slave", "\"iterations\":%" PRIu64 ",\"spins\":%" PRIu64,
		     iterations, spins);
	return 0;
}
