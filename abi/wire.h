/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * wire.h - what a rank asks of the keeper of its node's job page.
 *
 * One SOCK_SEQPACKET connection per rank, kept open as long as it lives: its end
 * tells the keeper that the rank is gone. Each request is one cos_ask, each
 * answer one cos_reply; file descriptors travel beside them (SCM_RIGHTS). Both
 * ends check SO_PEERCRED: only processes of the same user talk.
 *
 *   JOIN   + the rank's eventfd                   -> slot      + the page
 *   OFFER  + its context-switch record (a perf event): costs at each switch, so a
 *            rank opens it only when it has competitors -> OK
 *   BELL   slot                                   -> OK        + its eventfd
 *   WATCH  slot                                   -> OK        + its switch record
 *   ONCPU                                         -> OK        + who is on a CPU (kernel.h),
 *            where coschedd gave it
 */
#ifndef COS_WIRE_H
#define COS_WIRE_H

#include "../policy/types.h"

#define COS_WIRE_VERSION 2

enum cos_ask_kind { COS_ASK_JOIN = 1, COS_ASK_OFFER, COS_ASK_BELL, COS_ASK_WATCH,
		    COS_ASK_ONCPU };

enum cos_reply_status {
	COS_REPLY_OK,
	COS_REPLY_VERSION,		/* the keeper speaks another version */
	COS_REPLY_FULL,			/* no free slot */
	COS_REPLY_NONE,			/* no such slot or descriptor */
};

struct cos_ask {
	u32 version;			/* COS_WIRE_VERSION */
	u32 kind;			/* enum cos_ask_kind */
	u64 job;			/* JOIN: key of the MPI job on this node */
	u32 world_rank;			/* JOIN */
	u32 slot;			/* BELL, WATCH */
	u32 pid, tid;			/* JOIN */
};

struct cos_reply {
	u32 version;
	u32 status;			/* enum cos_reply_status */
	u32 slot;
	u32 pad;
};

_Static_assert(sizeof(struct cos_ask) == 32, "an ABI");
_Static_assert(sizeof(struct cos_reply) == 16, "an ABI");

#endif
