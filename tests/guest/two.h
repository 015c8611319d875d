/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes, 0 and 1, each on the CPU of its number, that send each other datagrams on
 * the loopback: the kernel sees such a message come, also for who only polls.
 */
#ifndef TWO_H
#define TWO_H

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "pin.h"

static int sockets[2];
static struct sockaddr_in ends[2];

/* Before they part. Who sleeps for a datagram looks up ten times a second. */
static void open_sockets(void)
{
	struct timeval nap = { .tv_usec = 100000 };

	for (int i = 0; i < 2; i++) {
		socklen_t length = sizeof(ends[i]);

		ends[i] = (struct sockaddr_in){ .sin_family = AF_INET };
		ends[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
		if (bind(sockets[i], (void *)&ends[i], length) ||
		    getsockname(sockets[i], (void *)&ends[i], &length) ||
		    setsockopt(sockets[i], SOL_SOCKET, SO_RCVTIMEO, &nap, sizeof(nap)))
			exit(1);
	}
}

/* From the other to @peer. */
static void send_datagram(int peer, const void *message, size_t bytes)
{
	sendto(sockets[!peer], message, bytes, 0, (void *)&ends[peer], sizeof(ends[0]));
}

#endif
