/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * control.h - what a process asks of coschedd.
 *
 * A SOCK_SEQPACKET connection, one request a packet, one reply a packet, in
 * turns. A request is a cos_control_request and `length` bytes of text, a reply
 * a cos_control_reply and `length` bytes of text, which does not end in a NUL:
 * one line where the status is not OK, JSON where it says so below. Who asks is
 * told by SO_PEERCRED and never by the request. Beside BEGIN and JOIN may travel
 * one descriptor (SCM_RIGHTS): a pidfd, or a cgroup's directory (version 2).
 *
 *   HELLO                      -> mode; why there is no more of it, in a line
 *   BEGIN   preset, name, who  -> job, serial; JSON: who answers which question;
 *                                with SHIM maybe a descriptor: who is on a CPU (kernel.h)
 *   JOIN    job, who           -> OK
 *   SWITCH  job, preset        -> JSON as of BEGIN; its ranks go on
 *   END     job                -> OK; its ranks are ordinary tasks again
 *   JOBS    job or 0           -> JSON: jobs, and at most COS_CONTROL_MAX_RANKS ranks
 *   STATUS                     -> JSON: everything
 *   RELOAD                     -> OK; only for root
 *
 * Who joins: the process of the descriptor, or of `pid`, or else the caller,
 * each with all its descendants; with a cgroup every process in it and those that
 * come later. A caller acts on its own processes and jobs only; root on all. A job
 * ends by END, with the connection that holds it, or, where none does, with its
 * last task.
 */
#ifndef COS_CONTROL_H
#define COS_CONTROL_H

#include "../policy/types.h"

#define COS_CONTROL_VERSION 1
#define COS_CONTROL_SOCKET "/run/cosched/control.sock"	/* or COSCHED_SOCKET */
#define COS_CONTROL_MAX_TEXT 16384		/* after a request */
#define COS_CONTROL_MAX_REPLY 196608		/* text after a reply */
#define COS_CONTROL_MAX_RANKS 512

enum cos_control_kind {
	COS_CONTROL_HELLO = 1,
	COS_CONTROL_BEGIN,
	COS_CONTROL_JOIN,
	COS_CONTROL_SWITCH,
	COS_CONTROL_END,
	COS_CONTROL_JOBS,
	COS_CONTROL_STATUS,
	COS_CONTROL_RELOAD,
};

enum cos_control_flag {
	COS_CONTROL_HELD = 1,		/* BEGIN: the job ends when this connection closes */
	COS_CONTROL_EMPTY = 2,		/* BEGIN: nobody joins yet */
	COS_CONTROL_SHIM = 4,		/* BEGIN: its ranks have the preloaded library */
	COS_CONTROL_PRESET_TEXT = 8,	/* BEGIN, SWITCH: the text is a preset file */
};

enum cos_control_status {
	COS_CONTROL_OK,
	COS_CONTROL_OTHER_VERSION,	/* the daemon speaks the version of its reply */
	COS_CONTROL_MALFORMED,		/* ... and the connection is closed */
	COS_CONTROL_REFUSED,		/* not yours, or beyond the administrator's policy */
	COS_CONTROL_UNKNOWN,		/* no such job, process, cgroup or preset */
	COS_CONTROL_NO_ROOM,		/* all job numbers are taken */
	COS_CONTROL_CANNOT,		/* this machine or this mode cannot */
};

enum cos_control_mode {
	COS_CONTROL_OBSERVES = 1,	/* sees and counts, and changes nothing */
	COS_CONTROL_SCHEDULES,
};

struct cos_control_request {
	u32 version;			/* COS_CONTROL_VERSION */
	u32 kind;			/* enum cos_control_kind */
	u32 flags;			/* enum cos_control_flag */
	u32 job;
	u64 serial;			/* that of the job; 0 = whichever has that number now */
	u32 pid;			/* 0 = the caller, or the descriptor beside */
	u32 length;			/* of the text that follows */
	char preset[64];		/* its name; ends in a NUL */
	char name[32];			/* of the job, for people; may be empty; ends in a NUL */
};

struct cos_control_reply {
	u32 version;
	u32 status;			/* enum cos_control_status */
	u32 job;
	u32 length;
	u64 serial;			/* no two jobs of one daemon have the same */
	u32 mode;			/* enum cos_control_mode */
	u32 pad;
};

_Static_assert(sizeof(struct cos_control_request) == 128, "an ABI");
_Static_assert(sizeof(struct cos_control_reply) == 32, "an ABI");

#endif
