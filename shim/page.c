/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - joining the node's job page, and the descriptors that come with it.
 *
 * On the node where `cosched run` was called, its keeper listens on the socket that
 * COSCHED_KEEPER names. On the other nodes of the job nobody does: there the first rank
 * starts a keeper (`cosched keep`), and all ranks of the node find it by a name that follows
 * from COSCHED_KEEPER. If neither can be had the process stays passive and the job runs as
 * without us.
 *
 * Nothing that comes from outside is trusted: the other end must be our own user, the page
 * sealed against shrinking and large enough for what it claims; its parameters are copied.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../abi/wire.h"
#include "shim.h"

#define ASK_TIMEOUT_S 2			/* of a rank at work */
#define JOIN_TIMEOUT_S 10		/* beside a thousand others that the keeper lets in */
#define START_TRIES 200			/* of 10 ms, for a keeper that we started */
#define HIGH_FD 600			/* out of the way of programs that count on low ones */

static int keeper = -1;
static int *bells;			/* eventfds of peers by slot, plus one; 0 = not asked */

static u64 hash_of(const char *text)
{
	u64 hash = FNV_EMPTY;

	for (; *text; text++)
		hash = fnv(hash, (unsigned char)*text);
	return hash;
}

static int out_of_the_way(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* ---- the keeper ----------------------------------------------------------------------- */

static bool same_user(int fd)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) && cred.uid == getuid();
}

static void limit_waits(int fd, long seconds)
{
	struct timeval limit = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -1;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	limit_waits(fd, JOIN_TIMEOUT_S);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) || !same_user(fd)) {
		close(fd);
		return -1;
	}
	return out_of_the_way(fd);
}

/* The path of this node's own keeper; `cosched keep` computes the same. */
static void local_path(char *path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (!runtime || stat(runtime, &st) || st.st_uid != getuid() || access(runtime, W_OK))
		runtime = "/tmp";
	snprintf(path, size, "%s/cosched-%u-%016llx/keeper.sock", runtime, getuid(),
		 hash_of(getenv("COSCHED_KEEPER")));
}

static int start_keeper(const char *path)
{
	extern char **environ;
	const char *exe = getenv("COSCHED_EXE");
	char *argv[] = { "cosched", "keep", NULL };
	pid_t pid;
	int fd = -1;

	if (!exe || posix_spawn(&pid, exe, NULL, NULL, argv, environ))
		return -1;
	for (int i = 0; fd < 0 && i < START_TRIES; i++) {
		poll(NULL, 0, 10);
		fd = connect_to(path);
	}
	waitpid(pid, NULL, 0);		/* it went into the background */
	return fd;
}

static int connect_keeper(void)
{
	char path[256];
	int fd = connect_to(getenv("COSCHED_KEEPER"));

	if (fd >= 0)
		return fd;
	local_path(path, sizeof(path));
	fd = connect_to(path);
	return fd >= 0 ? fd : start_keeper(path);
}

/* One question; a descriptor may go with it (@give) and come back (@fd). False = no, or no answer. */
static bool ask(struct cos_ask *question, int give, struct cos_reply *reply, int *fd)
{
	union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int))]; } control;
	struct iovec iov = { question, sizeof(*question) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	*fd = -1;
	question->version = COS_WIRE_VERSION;
	if (give >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int));
		memset(&control, 0, sizeof(control));
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(c), &give, sizeof(int));
	}
	if (sendmsg(keeper, &msg, MSG_NOSIGNAL) != sizeof(*question))
		return false;
	iov = (struct iovec){ reply, sizeof(*reply) };
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	if (recvmsg(keeper, &msg, MSG_CMSG_CLOEXEC) != sizeof(*reply))
		return false;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	return reply->version == COS_WIRE_VERSION && reply->status == COS_REPLY_OK;
}

/* ---- the page --------------------------------------------------------------------------- */

static bool page_sound(const struct cos_page *page, size_t bytes)
{
	return page->magic == COS_PAGE_MAGIC && page->version == COS_PAGE_VERSION &&
	       page->params.abi == COS_POLICY_ABI && page->nr_slots <= COS_MAX_SLOTS &&
	       sizeof(*page) + page->nr_slots * sizeof(struct cos_slot) <= bytes;
}

static bool map_page(int fd, u32 slot)
{
	struct cos_page *page;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) ||
	    (size_t)st.st_size < sizeof(*page))
		return false;
	page = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return false;
	if (!page_sound(page, (size_t)st.st_size) || slot >= page->nr_slots) {
		munmap(page, (size_t)st.st_size);
		return false;
	}
	cos_shim.page = page;
	cos_shim.params = page->params;
	cos_shim.nr_slots = page->nr_slots;
	cos_shim.slot = slot;
	cos_shim.bit = 1ULL << (slot % 64);
	cos_shim.me = &page->slot[slot];
	return true;
}

/* ---- which MPI job is this? --------------------------------------------------------------- */

/* Hydra starts the ranks of a node from one proxy, maybe through a shell or two. */
static pid_t ancestor_named(const char *name)
{
	pid_t pid = getppid();

	for (int i = 0; pid > 1 && i < 16; i++) {
		char stat[256], *comm;

		if (!read_proc((u32)pid, "stat", stat, sizeof(stat)) ||
		    !(comm = strchr(stat, '(')))
			return 0;
		if (!strncmp(comm + 1, name, strlen(name)))
			return pid;
		comm = strrchr(stat, ')');
		if (!comm || sscanf(comm, ") %*c %d", &pid) != 1)
			return 0;
	}
	return 0;
}

static u64 job_key(void)
{
	static const char *const named[] = { "PMIX_NAMESPACE", "SLURM_STEPID", "PMI_JOBID" };
	char text[64];
	pid_t proxy = ancestor_named("hydra_pmi_proxy");

	if (proxy) {
		snprintf(text, sizeof(text), "hydra %d", proxy);
		return hash_of(text);
	}
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
		if (getenv(named[i]))
			return hash_of(getenv(named[i]));
	snprintf(text, sizeof(text), "pid %d", getppid());
	return hash_of(text);
}

/* ---- interface ------------------------------------------------------------------------------ */

static bool join(void)
{
	struct cos_ask question = { .kind = COS_ASK_JOIN, .job = job_key(), .world_rank = ~0u,
				    .pid = (u32)getpid(), .tid = (u32)syscall(SYS_gettid) };
	struct cos_reply reply;
	int page_fd;
	bool ok;

	ok = ask(&question, cos_shim.eventfd, &reply, &page_fd) && page_fd >= 0 &&
	     map_page(page_fd, reply.slot);
	if (page_fd >= 0)
		close(page_fd);
	return ok;
}

bool page_join(void)
{
	keeper = connect_keeper();
	if (keeper < 0)
		return false;
	cos_shim.eventfd = out_of_the_way(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (cos_shim.eventfd >= 0 && join()) {
		limit_waits(keeper, ASK_TIMEOUT_S);
		bells = calloc(cos_shim.nr_slots, sizeof(*bells));
		return bells != NULL;
	}
	close(keeper);
	keeper = -1;
	return false;
}

/* Two threads may ask at once: requests are whole, the lock keeps answers apart. */
static int ask_alone(struct cos_ask *question, int give, bool *done)
{
	static u32 busy;
	struct cos_reply reply;
	int fd = -1;

	*done = false;
	if (keeper < 0 || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return -1;
	*done = ask(question, give, &reply, &fd);
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	return fd;
}

/* A bell is asked for once and kept; a switch record is the caller's to close. */
int page_peer_fd(u32 kind, u32 slot)
{
	struct cos_ask question = { .kind = kind, .slot = slot };
	bool done;
	int fd;

	if (kind == COS_ASK_BELL && bells[slot])
		return bells[slot] - 1;
	fd = ask_alone(&question, -1, &done);
	if (kind == COS_ASK_BELL) {
		fd = out_of_the_way(fd);
		bells[slot] = fd + 1;
	}
	return fd;
}

bool page_offer(int fd)
{
	struct cos_ask question = { .kind = COS_ASK_OFFER };
	bool done;

	ask_alone(&question, fd, &done);
	return done;
}
