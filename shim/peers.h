/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - a communicator as peers.c remembers it, and what collective.c says about it. */
#ifndef COS_PEERS_H
#define COS_PEERS_H

#include "shim.h"

struct comm {
	long handle;
	u32 size;
	u32 named;			/* page->nr_named when it was translated */
	bool complete;			/* every rank has a slot here */
	u32 group;			/* who its members are, in which order; 0 = not known */
	u64 members;
	int *slot;			/* by rank; -1 = not on this node, or not known yet */
};

u32 collective_group(const int *world_rank, u32 size);
void collective_enter(const struct comm *comm, bool needs_all);	/* NULL: not known yet */
void collective_over(const struct comm *comm);
bool collective_in_vain(const struct comm *comm, u32 slot);

#endif
