/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.c - the MPI library's own wait points: where a progress pass was empty.
 *
 *   Open MPI   calls sched_yield() at the end of an opal_progress() pass that found
 *              nothing, if told to yield when idle. We tell it so through its own
 *              exported switch and answer the call ourselves.
 *   MPICH      (ch4:ucx) calls ucp_worker_progress() once per pass; 0 = nothing.
 *              From version 5 on it may yield at the end of the same pass: no second look
 *              at messages lies between the two, so that must not count as one.
 *   sockets    (Open MPI's TCP, UCX's) are polled with a zero timeout in each pass;
 *              wait.c may let such a poll sleep, so that the packet itself wakes us.
 *
 * opal_progress() is wrapped only to count passes: two or more since the last empty one
 * mean that the library found something, and may have sent something.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "futex.h"
#include "shim.h"

static bool (*set_yield)(bool);
static bool ucp_passes;			/* each pass shows itself in ucp_worker_progress() */
static bool yielded_before;

/* Called with the page joined and MPI initialised. */
void hooks_start(void)
{
	set_yield = (bool (*)(bool))library_symbol("libopen-pal",
						   "opal_progress_set_yield_when_idle");
	if (set_yield)
		yielded_before = set_yield(true);
}

void hooks_stop(void)
{
	if (set_yield)
		set_yield(yielded_before);
}

static void empty_pass(struct cos_thread *self, u32 hook)
{
	self->hook_frame = __builtin_frame_address(0);
	if (!(cos_shim.me->hook & hook))
		cos_shim.me->hook |= hook;
	if (self->call.tags & BLOCK)
		wait_pass();
	else
		wait_test_pass();
	self->nr_found = 0;
}

COS_EXPORT void opal_progress(void)
{
	struct cos_thread *self = &cos_self;

	self->in_progress++;
	self->nr_found++;
	NEXT(opal_progress)();
	self->in_progress--;
}

/*
 * From the library: an empty pass. From anyone else: what it always was. An active
 * rank's library never gives up the CPU here unless policy says so, also in
 * calls that we do not wrap (depth 0), where it then spins as stock does.
 */
COS_EXPORT int sched_yield(void)
{
	struct cos_thread *self = &cos_self;

	if (likely(cos_shim.active) && (self->depth || self->in_progress)) {
		if (self->depth && !ucp_passes)
			empty_pass(self, COS_HOOK_YIELD);
		return 0;
	}
	return NEXT(sched_yield)();
}

COS_EXPORT unsigned ucp_worker_progress(void *worker)
{
	struct cos_thread *self = &cos_self;
	unsigned found = NEXT(ucp_worker_progress)(worker);

	if (!found && cos_shim.active && self->depth && !set_yield) {
		ucp_passes = true;
		empty_pass(self, COS_HOOK_UCP);
	}
	return found;
}

/* ---- zero-timeout polls --------------------------------------------------------- */

/* Is this the poll of a progress pass of a waiting rank? */
static bool polling(int timeout)
{
	struct cos_thread *self = &cos_self;

	if (timeout || !cos_shim.active || !self->depth || !(self->call.tags & BLOCK))
		return false;
	self->polled_now = true;
	return wait_in_poll();
}

struct polled {
	struct pollfd *fds;		/* the library's, and room for our eventfd */
	nfds_t nr;
};

/* Until a descriptor is ready, a doorbell rings or the time is over. */
static enum cos_ended nap_in_poll(void *arg, u64 ns)
{
	struct polled *polled = arg;
	struct pollfd *bell = &polled->fds[polled->nr];
	struct timespec ts = timespec_of(ns);
	u64 drained;
	int ready;

	*bell = (struct pollfd){ .fd = cos_shim.eventfd, .events = POLLIN };
	ready = ppoll(polled->fds, polled->nr + 1, &ts, NULL);
	if (ready > 0 && (bell->revents & POLLIN) &&
	    read(cos_shim.eventfd, &drained, sizeof(drained)) > 0)
		return BY_DOORBELL;
	return ready > 0 ? BY_PACKET : ready ? BY_SIGNAL : BY_TIMEOUT;
}

static void sleep_in_poll(struct pollfd *fds, nfds_t nr)
{
	struct polled polled = { fds, nr };
	int saved = errno;

	wait_asleep(nap_in_poll, &polled);
	cos_shim.me->hook |= COS_HOOK_POLL;
	errno = saved;
}

#define MAX_POLLED 1024

COS_EXPORT int poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	if (polling(timeout) && nr < MAX_POLLED) {
		struct pollfd copy[nr + 1];

		memcpy(copy, fds, nr * sizeof(*fds));
		sleep_in_poll(copy, nr);
	}
	return NEXT(poll)(fds, nr, timeout);
}

COS_EXPORT int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	if (polling(timeout)) {
		struct pollfd fds[2] = { { .fd = epfd, .events = POLLIN } };

		sleep_in_poll(fds, 1);
	}
	return NEXT(epoll_wait)(epfd, events, max, timeout);
}

static nfds_t pollfds_of(int nr, fd_set *rd, fd_set *wr, fd_set *ex, struct pollfd *fds)
{
	nfds_t n = 0;

	for (int fd = 0; fd < nr && fd < FD_SETSIZE; fd++) {
		short events = (short)((rd && FD_ISSET(fd, rd) ? POLLIN : 0) |
				       (wr && FD_ISSET(fd, wr) ? POLLOUT : 0) |
				       (ex && FD_ISSET(fd, ex) ? POLLPRI : 0));
		if (events)
			fds[n++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return n;
}

COS_EXPORT int select(int nr, fd_set *rd, fd_set *wr, fd_set *ex, struct timeval *timeout)
{
	bool zero = timeout && !timeout->tv_sec && !timeout->tv_usec;

	if (zero && polling(0)) {
		struct pollfd fds[FD_SETSIZE + 1];

		sleep_in_poll(fds, pollfds_of(nr, rd, wr, ex, fds));
	}
	return NEXT(select)(nr, rd, wr, ex, timeout);
}
