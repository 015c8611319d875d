/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile - a process of the same user that joins a job as a rank and then does what no
 * rank does, until it is ended: writes random words all over the page, or says nonsense at
 * the socket. It waits for the ranks first, so that it disturbs a job at work.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../abi/page.h"
#include "../../abi/wire.h"

static int keeper(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strncpy(addr.sun_path, getenv("COSCHED_KEEPER"), sizeof(addr.sun_path) - 1);
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -1 : fd;
}

/* Room for one descriptor beside a packet. */
struct beside {
	union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int))]; } control;
	struct iovec iov;
	struct msghdr msg;
};

static struct msghdr *message(struct beside *b, void *data, size_t size)
{
	memset(b, 0, sizeof(*b));
	b->iov = (struct iovec){ data, size };
	b->msg = (struct msghdr){ .msg_iov = &b->iov, .msg_iovlen = 1, .msg_control = &b->control,
				  .msg_controllen = sizeof(b->control) };
	return &b->msg;
}

static int join(int fd)
{
	struct cos_ask ask = { .version = COS_WIRE_VERSION, .kind = COS_ASK_JOIN, .job = 1,
			       .world_rank = 0, .pid = 1, .tid = 1 };
	struct cos_reply reply;
	struct beside b;
	int bell = eventfd(0, 0), page;

	message(&b, &ask, sizeof(ask));
	b.control.header = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(&b.control.header), &bell, sizeof(int));
	if (sendmsg(fd, &b.msg, 0) < 0 || recvmsg(fd, message(&b, &reply, sizeof(reply)), 0) < 0)
		return -1;
	memcpy(&page, CMSG_DATA(&b.control.header), sizeof(int));
	return reply.status == COS_REPLY_OK ? page : -1;
}

/* Mostly where the ranks are: the header and the first slots. */
static void scribble(struct cos_page *page, size_t bytes)
{
	volatile u64 *word = (volatile u64 *)page;
	size_t near = (sizeof(*page) + 8 * sizeof(struct cos_slot)) / sizeof(u64);

	for (;;) {
		for (int i = 0; i < 200; i++) {
			size_t among = i % 8 ? near : bytes / sizeof(u64);

			word[(size_t)mrand48() % among] = (u64)mrand48() << 32 ^ (u64)mrand48();
		}
		usleep(200);
	}
}

/* Joins that are none, of all lengths and kinds; the keeper may hang up. */
static void babble(void)
{
	unsigned char noise[256];

	for (;;) {
		int fd = keeper();

		for (int i = 0; i < 20; i++) {
			for (size_t j = 0; j < sizeof(noise); j++)
				noise[j] = (unsigned char)mrand48();
			if (i % 2)
				memcpy(noise, &(struct cos_ask){ COS_WIRE_VERSION,
					(u32)mrand48() % 6, 1, 7, (u32)mrand48(), 1, 1 },
				       sizeof(struct cos_ask));
			send(fd, noise, i % 2 ? sizeof(struct cos_ask) : (size_t)mrand48() % 256,
			     MSG_NOSIGNAL | MSG_DONTWAIT);
		}
		close(fd);
		usleep(2000);
	}
}

int main(int argc, char **argv)
{
	int fd = keeper(), memory = fd < 0 ? -1 : join(fd);
	struct stat st;
	struct cos_page *page;

	if (argc != 3 || memory < 0 || fstat(memory, &st))
		return 3;
	page = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (page == MAP_FAILED)
		return 3;
	while (page->nr_named < strtoul(argv[2], NULL, 10))
		usleep(1000);
	if (!strcmp(argv[1], "socket"))
		babble();
	scribble(page, (size_t)st.st_size);
}
