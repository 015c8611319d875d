/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * order.h - who is next?
 *
 * Asked of one candidate whenever the local scheduler compares; less key is
 * sooner, and among equals who ran least recently. BIAS adds to the local key,
 * never by more than max_debt, REPLACE stands for it. Answers:
 *
 *   local              the local scheduler's own
 *   frequency          predictive coscheduling (S4 section 3, algorithm 2)
 *   receive_frequency  the same of what is received only: S4's DYN
 *   pending            most unconsumed messages (S2 section 3.1, Msg)
 *   round_robin        all alike (S2 section 3.1, RR)
 *   veto               S3 section 2.2.3, "thread select": may only refuse who has
 *                      no message while another has; kept to be shown not to do
 *
 * S4: freq = P * freq + (1 - P) * cur_freq at each comparison, cur_freq = packets
 * in the socket queues = bytes / 4096, the first four values their mean; freq is
 * added to goodness. Two readings: the text (a task with slice left gets counter +
 * priority + freq) and algorithm 2 as printed, `if (! weight)` (a task whose slice
 * is used up gets priority + freq, another only its counter; facts of the kernel
 * say that this is a slip). P may be learned (S4 section 5, a wish): whichever of
 * average and last sample forecasts the next one better weighs more; the weights
 * are the errors of both, averaged.
 *
 * Deviations. Fixed point in 1/65536 of a packet. The learned average moves by
 * 1/64 at each comparison, a forecast of P = 0.984.
 */
#ifndef COS_ORDER_H
#define COS_ORDER_H

#include "contract.h"

#define COS_PACKET_BYTES 4096
#define COS_ONE_PPM 1000000

enum cos_frequency_arg {
	COS_FREQUENCY_PAST_PPM,		/* P */
	COS_FREQUENCY_LEARN,		/* 1: P is learned, PAST is not read */
	COS_FREQUENCY_PRINTED,		/* 0: the text; 1: algorithm 2 as printed */
	COS_FREQUENCY_WORTH_NS,		/* of one packet; one unit of goodness is a tick */
	COS_FREQUENCY_MAX_DEBT_NS,
};

COS_FN u64 cos_distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* a * p + b * (1 - p). */
COS_FN u64 cos_mix(u64 a, u64 b, u64 p_ppm)
{
	p_ppm = min_u64(p_ppm, COS_ONE_PPM);
	return sat_add(sat_mul(a, p_ppm), sat_mul(b, COS_ONE_PPM - p_ppm)) / COS_ONE_PPM;
}

/* cur_freq, in 1/65536 of a packet; at most 2^31 packets. */
COS_FN u64 cos_packets_q16(const struct cos_obs *obs, u32 receive_only)
{
	u64 packets = obs->rq_bytes / COS_PACKET_BYTES;

	if (!receive_only)
		packets = sat_add(packets, obs->sq_bytes / COS_PACKET_BYTES);
	return min_u64(packets, 1ULL << 31) << 16;
}

/* Towards @sample by 1/64, down to 0 too. */
COS_FN u64 cos_sixty_fourth(u64 average, u64 sample)
{
	return average - (average >> 6) + (sample >> 6);
}

/* What is forecast of the next sample, after @now_q16. */
COS_FN u64 cos_learned_frequency_q16(u64 *w, u64 now_q16)
{
	u64 *past = &w[COS_W_FREQUENCY_Q16], *last = &w[COS_W_LAST_Q16], p_ppm;
	u64 *past_error = &w[COS_W_PAST_ERROR_Q16], *last_error = &w[COS_W_LAST_ERROR_Q16];

	*past_error = cos_sixty_fourth(*past_error, cos_distance(*past, now_q16));
	*last_error = cos_sixty_fourth(*last_error, cos_distance(*last, now_q16));
	*past = cos_sixty_fourth(*past, now_q16);
	*last = now_q16;
	p_ppm = div_or(sat_mul(*last_error, COS_ONE_PPM), sat_add(*last_error, *past_error),
		       COS_ONE_PPM / 2);
	return cos_mix(*past, *last, p_ppm);
}

/* freq() of algorithm 2. */
COS_FN u64 cos_frequency_q16(const u64 *arg, u64 *w, u64 now_q16)
{
	u64 *nr = &w[COS_W_NR_FREQUENCY], *past = &w[COS_W_FREQUENCY_Q16];

	if (*nr < 4) {
		*past = div_or(sat_add(sat_mul(*past, *nr), now_q16), *nr + 1, 0);
		w[COS_W_LAST_Q16] = now_q16;
		*nr += 1;
		return *past;
	}
	if (arg[COS_FREQUENCY_LEARN])
		return cos_learned_frequency_q16(w, now_q16);
	*past = cos_mix(*past, now_q16, arg[COS_FREQUENCY_PAST_PPM]);
	return *past;
}

COS_FN void cos_order_frequency(const u64 *arg, const struct cos_obs *obs, u64 *w,
				u32 receive_only, struct cos_out *out)
{
	u32 printed = arg[COS_FREQUENCY_PRINTED] != 0;
	u32 needs = printed ? COS_F_LEFT | COS_F_LOCAL_KEY : 0;
	u32 used_up = cos_knows(obs, COS_F_LEFT) && !obs->left_ns;
	u64 worth_ns;

	needs |= receive_only ? COS_F_RQ_BYTES : COS_F_RQ_BYTES | COS_F_SQ_BYTES;
	if (!cos_knows(obs, needs)) {
		cos_verdict(out, COS_ACT_NONE, COS_WHY_UNKNOWN, COS_NEVER_NS);
		return;
	}
	if (used_up != printed) {
		cos_verdict(out, printed ? COS_ACT_REPLACE : COS_ACT_NONE, COS_WHY_USED_UP,
			    COS_NEVER_NS);
		out->key = printed ? -signed_ns(obs->left_ns) : 0;
		return;
	}
	worth_ns = scale_q8(arg[COS_FREQUENCY_WORTH_NS],
			    cos_frequency_q16(arg, w, cos_packets_q16(obs, receive_only)) >> 8);
	worth_ns = min_u64(worth_ns, arg[COS_FREQUENCY_MAX_DEBT_NS]);
	cos_verdict(out, printed ? COS_ACT_REPLACE : COS_ACT_BIAS, COS_WHY_FREQUENCY,
		    COS_NEVER_NS);
	out->key = -signed_ns(printed ? sat_add(worth_ns, obs->local_key) : worth_ns);
}

COS_FN void cos_order_pending(const struct cos_obs *obs, struct cos_out *out)
{
	if (!cos_knows(obs, COS_F_NR_PENDING)) {
		cos_verdict(out, COS_ACT_NONE, COS_WHY_UNKNOWN, COS_NEVER_NS);
		return;
	}
	cos_verdict(out, COS_ACT_REPLACE,
		    obs->nr_pending ? COS_WHY_PENDING : COS_WHY_NONE_PENDING, COS_NEVER_NS);
	out->key = -(s64)obs->nr_pending;
}

COS_FN void cos_order_veto(const struct cos_obs *obs, struct cos_out *out)
{
	if (!cos_knows(obs, COS_F_NR_PENDING | COS_F_NR_PENDING_HERE))
		cos_verdict(out, COS_ACT_NONE, COS_WHY_UNKNOWN, COS_NEVER_NS);
	else if (!obs->nr_pending && obs->nr_pending_here)
		cos_verdict(out, COS_ACT_VETO, COS_WHY_NONE_PENDING, COS_NEVER_NS);
	else
		cos_verdict(out, COS_ACT_NONE, COS_WHY_PRESET, COS_NEVER_NS);
}

COS_FN void cos_order(const struct cos_params *params, const struct cos_obs *obs,
		      struct cos_task *task, struct cos_job *job, struct cos_out *out)
{
	const u64 *arg = params->arg[COS_Q_ORDER];
	u32 answer = params->answer[COS_Q_ORDER];

	(void)job;
	switch (answer) {
	case COS_ORDER_FREQUENCY:
	case COS_ORDER_RECEIVE_FREQUENCY:
		cos_order_frequency(arg, obs, task->w, answer == COS_ORDER_RECEIVE_FREQUENCY,
				    out);
		return;
	case COS_ORDER_PENDING:
		cos_order_pending(obs, out);
		return;
	case COS_ORDER_ROUND_ROBIN:
		cos_verdict(out, COS_ACT_REPLACE, COS_WHY_PRESET, COS_NEVER_NS);
		return;
	case COS_ORDER_VETO:
		cos_order_veto(obs, out);
		return;
	default:
		cos_verdict(out, COS_ACT_NONE, COS_WHY_PRESET, COS_NEVER_NS);
	}
}

#endif
