// SPDX-License-Identifier: Apache-2.0
/*
 * explore - every interleaving of the waiting protocol, or the shortest one that
 * loses a wake-up.
 *
 * Breadth first over machine states (machine.h) from the start of each scenario
 * (scenarios.h), under TSO and PSO. Two things must never happen:
 *
 *   lost wake-up   nobody can take a step, and somebody sleeps
 *   double claim   a bell was rung more often than it was armed
 *
 * Each act lengthens a log or empties a buffer, so the states form a DAG whose
 * levels are the acts done; the number of interleavings is summed along its edges.
 *
 * usage: explore [SCENARIO]    exit: 0 the protocol holds, 1 it does not, 2 usage
 */
#include <stdint.h>
#include <stdio.h>

#include "scenarios.h"

enum { MAX_NODES = 1 << 22, NR_BUCKETS = 1 << 23, MAX_ACTS = MAX_THREADS * (1 + MAX_BUFFER) };

struct node {
	struct state state;
	struct act act;			/* how it came about ... */
	uint32_t parent;		/* ... from where */
	double nr_ways;			/* interleavings that lead here */
};

static struct node *nodes;
static uint32_t nr_nodes, *buckets;	/* index + 1 of a node; 0 = empty */
static const struct scenario *scenario;

static const char *const order_names[] = { "TSO", "PSO" };

static uint32_t hash(const struct state *state)
{
	const u8 *byte = (const u8 *)state;
	uint64_t h = 14695981039346656037ULL;

	for (size_t i = 0; i < sizeof(*state); i++)
		h = (h ^ byte[i]) * 1099511628211ULL;
	return (uint32_t)(h ^ h >> 32) % NR_BUCKETS;
}

/* The node of @state, made where it is new. */
static struct node *visit(const struct state *state, struct act act, uint32_t parent)
{
	uint32_t b = hash(state);

	for (; buckets[b]; b = (b + 1) % NR_BUCKETS)
		if (!memcmp(&nodes[buckets[b] - 1].state, state, sizeof(*state)))
			return &nodes[buckets[b] - 1];
	if (nr_nodes == MAX_NODES) {
		fprintf(stderr, "explore: more than %d states in %s: make the scenario smaller\n",
			MAX_NODES, scenario->name);
		exit(2);
	}
	buckets[b] = nr_nodes + 1;
	nodes[nr_nodes] = (struct node){ .state = *state, .act = act, .parent = parent };
	return &nodes[nr_nodes++];
}

static struct op wanted(const struct state *state, int t)
{
	if (!scenario->body[t])
		return (struct op){ .kind = OP_DONE };
	return next_op(&state->thread[t], scenario->body[t]);
}

/* Visits all successors of @node; returns how many there are. */
static int expand(struct node *node, enum order order)
{
	int nr_all = 0;

	for (u8 t = 0; t < MAX_THREADS; t++) {
		struct op op = wanted(&node->state, t);
		struct act acts[MAX_ACTS];
		int nr = possible_acts(&node->state, t, op, order, acts);

		for (int i = 0; i < nr; i++) {
			struct state state = node->state;

			perform(&state, acts[i], op);
			visit(&state, acts[i], (uint32_t)(node - nodes))->nr_ways += node->nr_ways;
		}
		nr_all += nr;
	}
	return nr_all;
}

static bool anyone_asleep(const struct state *state)
{
	for (int t = 0; t < MAX_THREADS; t++)
		if (state->thread[t].asleep)
			return true;
	return false;
}

static bool claimed_twice(const struct state *state)
{
	for (int i = 0; i < NR_SLOTS; i++)
		if (state->word[2 * i + LOC_SEQ] > state->nr_armings[i])
			return true;
	return false;
}

static const char *word_name(u8 loc)
{
	static char name[24];

	if (loc >= LOC_MESSAGE)
		snprintf(name, sizeof(name), "message %d", loc - LOC_MESSAGE);
	else
		snprintf(name, sizeof(name), "%s of %d", loc % 2 == LOC_SEQ ? "seq" : "armed", loc / 2);
	return name;
}

/* What @act does in @state, in words. */
static void describe(const struct state *state, struct act act, char *text, size_t size)
{
	const struct thread *thread = &state->thread[act.thread];
	struct op op = wanted(state, act.thread);
	u8 loc = act.kind == ACT_DRAIN ? act.loc : op.loc;
	const char *name = word_name(loc);
	u8 now = load(state, thread, loc), i = 0;

	if (act.kind == ACT_DRAIN) {
		while (thread->buffer[i][0] != loc)
			i++;
		snprintf(text, size, "... %s = %d lands", name, thread->buffer[i][1]);
	} else if (act.kind == ACT_TIMEOUT) {
		snprintf(text, size, "its sleep times out");
	} else {
		switch (op.kind) {
		case OP_LOAD: snprintf(text, size, "reads %s: %d", name, now); break;
		case OP_STORE: snprintf(text, size, "stores %s = %d", name, op.val); break;
		case OP_ADD: snprintf(text, size, "%s += %d", name, op.val); break;
		case OP_EXCHANGE: snprintf(text, size, "%s: %d -> %d", name, now, op.val); break;
		case OP_SLEEP: snprintf(text, size, "%s while %s is %d",
					state->word[loc] == op.val ? "SLEEPS" : "does not sleep", name,
					op.val); break;
		case OP_WAKE: snprintf(text, size, "wakes sleepers on %s", name); break;
		case OP_FENCE: snprintf(text, size, "fence"); break;
		case OP_DONE: break;
		}
	}
}

/* One column per thread, time downwards. */
static void print_timeline(const struct node *node)
{
	char text[64];

	if (node->parent == UINT32_MAX) {
		for (int t = 0; t < MAX_THREADS && scenario->body[t]; t++)
			printf("    %-34s", scenario->who[t]);
		printf("\n");
		return;
	}
	print_timeline(&nodes[node->parent]);
	describe(&nodes[node->parent].state, node->act, text, sizeof(text));
	printf("%*s%s\n", 4 + 38 * node->act.thread, "", text);
}

/* True where the scenario holds under @order. */
static bool explore(enum order order)
{
	struct state start = { .nr_timeouts = scenario->nr_timeouts };
	double nr_complete = 0;

	memset(buckets, 0, NR_BUCKETS * sizeof(*buckets));
	nr_nodes = 0;
	visit(&start, (struct act){ 0 }, UINT32_MAX)->nr_ways = 1;
	for (uint32_t i = 0; i < nr_nodes; i++) {
		bool is_end = !expand(&nodes[i], order);
		bool is_lost = is_end && anyone_asleep(&nodes[i].state);

		if (is_lost || claimed_twice(&nodes[i].state)) {
			printf("%s %s: %s after %u states\n", scenario->name, order_names[order],
			       is_lost ? "LOST WAKE-UP" : "DOUBLE CLAIM", nr_nodes);
			print_timeline(&nodes[i]);
			return false;
		}
		nr_complete += is_end ? nodes[i].nr_ways : 0;
	}
	printf("%s %s: holds in %u states, %.3g interleavings\n", scenario->name,
	       order_names[order], nr_nodes, nr_complete);
	return true;
}

int main(int argc, char **argv)
{
	bool all_hold = true;
	int nr_run = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	nodes = calloc(MAX_NODES, sizeof(*nodes));
	buckets = calloc(NR_BUCKETS, sizeof(*buckets));
	if (!nodes || !buckets || argc > 2) {
		fprintf(stderr, argc > 2 ? "usage: explore [SCENARIO]\n" : "explore: out of memory\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		scenario = &scenarios[i];
		if (argc == 2 && strcmp(argv[1], scenario->name))
			continue;
		nr_run++;
		all_hold &= explore(TSO);
		all_hold &= explore(PSO);
	}
	if (!nr_run) {
		fprintf(stderr, "explore: no scenario is called %s\n", argv[1]);
		return 2;
	}
	return all_hold ? 0 : 1;
}
