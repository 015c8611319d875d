/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrivals - how long is a message there before its receiver runs?
 *
 * Worker 0 sleeps for a random gap, then sends a datagram on the loopback; each
 * other worker polls its socket and never sleeps, so no wake-up tells a
 * scheduler that it has something to do. A delay is counted where the receiver
 * was off its CPU, and so had not polled for a while, when the sender began to run.
 * Messages are far apart, so that the receiver is owed a turn whenever one comes, and
 * what is measured is the scheduler's delay, not what fairness refuses.
 *
 * The gaps are a fixed sequence: each run sends the same messages.
 */
#include "workers.h"
#include <arpa/inet.h>
#include <sys/socket.h>

#define MAX_MESSAGES 100000

/* Who polls at all polls more often. */
#define OFF_CPU_S 300e-6

struct message {
	double woke_s, sent_s;			/* the sender came on its CPU, and sent */
};

static struct shared {
	struct sockaddr_in end[MAX_WORKERS];
	double cpu_s[MAX_WORKERS], elapsed_s;
	uint64_t nr[MAX_WORKERS];
	double delay_s[];			/* off their CPU: MAX_MESSAGES a worker */
} *shared;

static uint64_t workers = 2, messages = 100;
static double least_gap_ms = 30, most_gap_ms = 90;
static bool pin;
static int sockets[MAX_WORKERS];

/* Bound before the workers are forked: a message never comes too early. */
static void open_sockets(void)
{
	for (uint64_t w = 0; w < workers; w++) {
		struct sockaddr_in *end = &shared->end[w];
		socklen_t size = sizeof(*end);

		end->sin_family = AF_INET;
		end->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		sockets[w] = socket(AF_INET, SOCK_DGRAM, 0);
		if (sockets[w] < 0 || bind(sockets[w], (struct sockaddr *)end, size) ||
		    getsockname(sockets[w], (struct sockaddr *)end, &size))
			workers_fail("open a socket", strerror(errno));
	}
}

static void sleep_ms(double ms)
{
	struct timespec left = {
		.tv_sec = (time_t)(ms / 1e3),
		.tv_nsec = (long)(fmod(ms, 1e3) * 1e6),
	};

	while (nanosleep(&left, &left))
		;
}

/* The next of a fixed sequence between least and most. */
static double gap_ms(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return least_gap_ms + (most_gap_ms - least_gap_ms) * (double)(*state >> 11) * 0x1p-53;
}

static void send_all(void)
{
	uint64_t state = WL_HASH;

	for (uint64_t i = 0; i < messages; i++) {
		struct message message;

		sleep_ms(gap_ms(&state));
		message.woke_s = wl_wall_s();
		for (uint64_t w = 1; w < workers; w++) {
			message.sent_s = wl_wall_s();
			if (sendto(sockets[0], &message, sizeof(message), 0,
				   (struct sockaddr *)&shared->end[w], sizeof(shared->end[w])) < 0)
				workers_fail("send", strerror(errno));
		}
	}
}

static void receive_all(int worker)
{
	double *delay_s = &shared->delay_s[(uint64_t)worker * MAX_MESSAGES];
	double polled_s = wl_wall_s(), left_s = 0, came_s = 0;
	struct message message;

	for (uint64_t left = messages; left;) {
		bool got = recv(sockets[worker], &message, sizeof(message), MSG_DONTWAIT) > 0;
		double now_s = wl_wall_s();

		if (now_s - polled_s > OFF_CPU_S) {
			left_s = polled_s;
			came_s = now_s;
		}
		polled_s = now_s;
		if (!got)
			continue;
		left--;
		if (left_s < message.woke_s && message.woke_s < came_s)
			delay_s[shared->nr[worker]++] = now_s - message.sent_s;
	}
}

static void work(int worker)
{
	double begin_s, begin_cpu_s;

	workers_meet();
	begin_s = wl_wall_s();
	begin_cpu_s = wl_cpu_s();
	if (worker)
		receive_all(worker);
	else
		send_all();
	shared->cpu_s[worker] = wl_cpu_s() - begin_cpu_s;
	if (!worker)
		shared->elapsed_s = wl_wall_s() - begin_s;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* All receivers' delays in front, sorted. Returns how many. */
static uint64_t gather(void)
{
	uint64_t nr = 0;

	for (uint64_t w = 1; w < workers; w++) {
		memmove(&shared->delay_s[nr], &shared->delay_s[w * MAX_MESSAGES],
			shared->nr[w] * sizeof(double));
		nr += shared->nr[w];
	}
	qsort(shared->delay_s, nr, sizeof(double), by_size);
	return nr;
}

/* The delay that the part @q of them does not exceed, in seconds. */
static double quantile(uint64_t nr, double q)
{
	return nr ? shared->delay_s[(uint64_t)(q * (double)(nr - 1) + 0.5)] : 0;
}

static void report(void)
{
	uint64_t nr = gather();
	double cpu_s = 0;

	for (uint64_t w = 0; w < workers; w++)
		cpu_s += shared->cpu_s[w];
	printf("{\"workload\":\"arrivals\",\"ranks\":%" PRIu64 ",\"elapsed_s\":%.6f,\"cpu_s\":%.6f,"
	       "\"messages\":%" PRIu64 ",\"off_cpu\":%" PRIu64
	       ",\"p50_s\":%.9f,\"p90_s\":%.9f,\"p99_s\":%.9f,\"max_s\":%.9f}\n",
	       workers, shared->elapsed_s, cpu_s, messages * (workers - 1), nr, quantile(nr, 0.5),
	       quantile(nr, 0.9), quantile(nr, 0.99), quantile(nr, 1));
}

int main(int argc, char **argv)
{
	const struct wl_option options[] = {
		{ "workers", WL_COUNT, &workers, "processes: a sender, and receivers" },
		{ "pin", WL_FLAG, &pin, "worker i on the i-th CPU that it may use" },
		{ "messages", WL_COUNT, &messages, "to each receiver" },
		{ "least-gap-ms", WL_REAL, &least_gap_ms, "between two messages" },
		{ "most-gap-ms", WL_REAL, &most_gap_ms, "between two messages" },
		{ 0 },
	};

	wl_options(argc, argv, "Datagrams to processes that poll without sleeping; no MPI.", options);
	if (workers < 2 || workers > MAX_WORKERS)
		wl_usage("must be 2 to 64", "--workers");
	if (!messages || messages > MAX_MESSAGES)
		wl_usage("must be 1 to 100000", "--messages");
	if (most_gap_ms < least_gap_ms)
		wl_usage("must be at least --least-gap-ms", "--most-gap-ms");
	shared = workers_share(sizeof(*shared) + workers * MAX_MESSAGES * sizeof(double));
	open_sockets();
	workers_run(workers, pin, work);
	report();
	return 0;
}
